//! Which engine, and the way to it.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use bollard::{API_DEFAULT_VERSION, Docker};
use redoma_sandbox::driver::DriverError;
use tempfile::TempDir;

/// Where an engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Behind a socket of this machine.
    Socket(PathBuf),
    /// On a machine that the user's own `ssh` reaches: its arguments before the destination, and the destination.
    Ssh {
        /// `user@host`, or a name of the user's `ssh_config`.
        destination: String,
        /// The port, if it is named.
        port: Option<u16>,
    },
    /// On a machine that is trusted by its certificate, and trusts ours. As `host:port`.
    Tls(String),
    /// On this machine's loopback, in the clear.
    Loopback(String),
}

/// Why an address was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address:?} is no engine's address: {why}")]
pub struct InvalidEngine {
    address: String,
    why: &'static str,
}

/// A way to an engine that lasts as long as this does.
pub(crate) struct Connection {
    pub(crate) docker: Docker,
    /// Where it is, if it is here: then files and sockets of this machine can be shown inside.
    pub(crate) socket: Option<PathBuf>,
    _tunnel: Option<Tunnel>,
}

/// An answer takes this long at most, in seconds; pulling and copying have no limit of time but that of each step.
const PATIENCE: u64 = 120;

// === impl Engine ===

impl Engine {
    /// The engine of this machine: what `DOCKER_HOST` says, else Docker's socket, else Podman's.
    ///
    /// # Errors
    /// When `DOCKER_HOST` makes no sense.
    pub fn of_environment(
        var: &dyn Fn(&str) -> Option<String>,
        there: &dyn Fn(&Path) -> bool,
    ) -> Result<Self, InvalidEngine> {
        if let Some(host) = var("DOCKER_HOST").filter(|host| !host.is_empty()) {
            return host.parse();
        }
        let docker = PathBuf::from("/var/run/docker.sock");
        let run = var("XDG_RUNTIME_DIR").map(|run| Path::new(&run).join("podman/podman.sock"));
        let podman = [run, Some("/run/podman/podman.sock".into())].into_iter().flatten();
        let found = podman.into_iter().find(|path| !there(&docker) && there(path));
        Ok(Self::Socket(found.unwrap_or(docker)))
    }

    /// Whether it is another machine's, so that nothing of this one can be shown inside.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Ssh { .. } | Self::Tls(_))
    }

    pub(crate) fn connect(&self, certificates: &Path) -> Result<Connection, DriverError> {
        let unreachable = |error: bollard::errors::Error| self.unreachable(&error.to_string());
        let (docker, tunnel) = match self {
            Self::Socket(path) => (over_socket(path).map_err(unreachable)?, None),
            Self::Loopback(address) => {
                let url = format!("http://{address}");
                let docker = Docker::connect_with_http(&url, PATIENCE, API_DEFAULT_VERSION);
                (docker.map_err(unreachable)?, None)
            }
            Self::Tls(address) => {
                let [key, cert, ca] = ["key.pem", "cert.pem", "ca.pem"].map(|name| certificates.join(name));
                let url = format!("tcp://{address}");
                let docker = Docker::connect_with_ssl(&url, &key, &cert, &ca, PATIENCE, API_DEFAULT_VERSION);
                (docker.map_err(unreachable)?, None)
            }
            Self::Ssh { destination, port } => {
                let tunnel = Tunnel::open(destination, *port).map_err(|why| self.unreachable(&why))?;
                (over_socket(&tunnel.socket()).map_err(unreachable)?, Some(tunnel))
            }
        };
        let socket = match self {
            Self::Socket(path) => Some(fs::canonicalize(path).unwrap_or_else(|_| path.clone())),
            _ => None,
        };
        Ok(Connection { docker, socket, _tunnel: tunnel })
    }

    pub(crate) fn unreachable(&self, why: &str) -> DriverError {
        let hint = match self {
            Self::Socket(path) => format!("docker -H unix://{} info", path.display()),
            Self::Ssh { destination, .. } => format!("ssh {destination} docker info"),
            Self::Tls(_) => "set DOCKER_CERT_PATH to the folder of ca.pem, cert.pem and key.pem".into(),
            Self::Loopback(address) => format!("docker -H tcp://{address} info"),
        };
        DriverError::Engine { why: format!("{self} does not answer: {why}"), hint }
    }
}

impl FromStr for Engine {
    type Err = InvalidEngine;

    fn from_str(address: &str) -> Result<Self, InvalidEngine> {
        let refuse = |why| Err(InvalidEngine { address: address.to_owned(), why });
        match address.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Socket(path.into())),
            Some(("unix", _)) => refuse("a socket's path is absolute"),
            Some(("ssh", rest)) => {
                let rest = rest.trim_end_matches('/');
                let (destination, port) = match rest.rsplit_once(':') {
                    Some((destination, port)) => (destination, port.parse().ok()),
                    None => (rest, None),
                };
                // What begins with a hyphen would be an option of ssh's.
                let plain = |c: char| c.is_ascii_alphanumeric() || "@._-".contains(c);
                let odd = destination.starts_with('-') || destination.contains("@-");
                if destination.is_empty() || odd || !destination.chars().all(plain) {
                    return refuse("ssh://user@host[:port] is what is meant");
                }
                Ok(Self::Ssh { destination: destination.to_owned(), port })
            }
            Some(("tcp" | "https", rest)) => {
                let rest = rest.trim_end_matches('/');
                let Some((host, port)) = rest.rsplit_once(':') else { return refuse("it has no port") };
                let Ok(port) = port.parse::<u16>() else { return refuse("its port is no port") };
                let bare = host.trim_matches(['[', ']']);
                let loopback = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
                // 2375 is the port of engines in the clear.
                let clear = loopback && address.starts_with("tcp") && port != 2376;
                Ok(if clear { Self::Loopback(rest.to_owned()) } else { Self::Tls(rest.to_owned()) })
            }
            Some(("http", _)) => refuse("in the clear, whoever listens could start anything on that machine"),
            _ => refuse("unix:///path, ssh://user@host or tcp://host:2376 is what is meant"),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix://{}", path.display()),
            Self::Ssh { destination, port: Some(port) } => write!(f, "ssh://{destination}:{port}"),
            Self::Ssh { destination, port: None } => write!(f, "ssh://{destination}"),
            Self::Tls(address) | Self::Loopback(address) => write!(f, "tcp://{address}"),
        }
    }
}

fn over_socket(path: &Path) -> Result<Docker, bollard::errors::Error> {
    Docker::connect_with_unix(&path.to_string_lossy(), PATIENCE, API_DEFAULT_VERSION)
}

// === impl Tunnel ===

/// The engine's socket over there as one here, by the user's own ssh: their keys, agent and known hosts count.
struct Tunnel {
    ssh: Child,
    folder: TempDir,
}

impl Tunnel {
    const REMOTE: &str = "/var/run/docker.sock";
    const PATIENCE: Duration = Duration::from_secs(30);

    fn open(destination: &str, port: Option<u16>) -> Result<Self, String> {
        let folder =
            tempfile::Builder::new().prefix("redoma-ssh-").tempdir().map_err(|error| error.to_string())?;
        let forward = format!("{}:{}", folder.path().join("engine").display(), Self::REMOTE);
        let mut ssh = Command::new("ssh");
        ssh.args(["-N", "-T", "-o", "ExitOnForwardFailure=yes", "-o", "BatchMode=yes"]);
        ssh.args(["-o", "StreamLocalBindMask=0177", "-L", &forward]);
        if let Some(port) = port {
            ssh.args(["-p", &port.to_string()]);
        }
        let ssh = ssh.args(["--", destination]).stdin(Stdio::null()).stdout(Stdio::null());
        let ssh = ssh.spawn().map_err(|error| format!("ssh: {error}"))?;
        let mut tunnel = Self { ssh, folder };
        tunnel.wait()?;
        Ok(tunnel)
    }

    /// Until the socket is there: ssh makes it when it is through.
    fn wait(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while !self.socket().exists() {
            if let Ok(Some(status)) = self.ssh.try_wait() {
                return Err(format!("ssh ended: {status}"));
            }
            if began.elapsed() > Self::PATIENCE {
                return Err("ssh does not get through".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine")
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_named_by_its_address() {
        let engine = |text: &str| text.parse::<Engine>();
        assert_eq!(engine("unix:///run/x.sock"), Ok(Engine::Socket("/run/x.sock".into())));
        let ssh = Engine::Ssh { destination: "me@there".into(), port: Some(2222) };
        assert_eq!(engine("ssh://me@there:2222"), Ok(ssh));
        assert_eq!(engine("tcp://there:2376"), Ok(Engine::Tls("there:2376".into())));
        assert_eq!(engine("tcp://127.0.0.1:2375"), Ok(Engine::Loopback("127.0.0.1:2375".into())));
        for good in ["unix:///run/x.sock", "ssh://me@there:2222", "tcp://there:2376"] {
            assert_eq!(engine(good).unwrap().to_string(), good);
        }
    }

    #[test]
    fn in_the_clear_there_is_loopback_only() {
        assert!(!matches!("tcp://192.0.2.1:2375".parse(), Ok(Engine::Loopback(_))));
        assert!(!matches!("tcp://there:2375".parse(), Ok(Engine::Loopback(_))));
        for bad in [
            "http://there:2375",
            "there",
            "unix://rel",
            "ssh://-oProxyCommand=x",
            "ssh://a@-x",
            "tcp://there",
        ] {
            assert!(bad.parse::<Engine>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_environment_comes_before_what_is_there() {
        let none = |_: &str| None;
        let docker = Engine::of_environment(&none, &|path| path.ends_with("docker.sock")).unwrap();
        assert_eq!(docker, Engine::Socket("/var/run/docker.sock".into()));
        let run = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/1".to_owned());
        let podman = Engine::of_environment(&run, &|path| path.ends_with("podman.sock")).unwrap();
        assert_eq!(podman, Engine::Socket("/run/user/1/podman/podman.sock".into()));
        let said = |name: &str| (name == "DOCKER_HOST").then(|| "ssh://there".to_owned());
        assert!(Engine::of_environment(&said, &|_| true).unwrap().is_remote());
    }
}
