//! An internet of one's own: a network namespace with public addresses, names, and servers behind them.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::command::{Redoma, Tier};
use crate::project::Project;

/// Servers on addresses that exist in a namespace only, and the certificate authority that they are signed by.
///
/// Names: `api.example`, `other.example` and `plain.example` (good), `expired.example`, `self.example`, `wrong.example`
/// (bad certificates), `v6.example`, `corp.example` (private), `metadata.example`, `loopback.example`, `mixed.example`,
/// `silent.example` (nobody answers). Ports: 80, 443, and 25, which speaks first and echoes.
pub struct World {
    folder: TempDir,
    holder: Child,
}

const SERVERS: &str = include_str!("world.py");
const RAISE: &str = "
ip link set lo up
for address in 93.184.1.1/32 10.1.2.3/32 169.254.169.254/32 2600:1f00::1/128; do ip address add $address dev lo; done
mount --bind \"$1/resolv.conf\" \"$(readlink -f /etc/resolv.conf)\"
exec python3 -u \"$1/world.py\" \"$1\"
";

impl World {
    /// Makes it and waits until it answers.
    ///
    /// # Panics
    /// If a namespace cannot be made or a server does not start.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("world").tempdir().unwrap();
        certificates(folder.path());
        std::fs::write(folder.path().join("world.py"), SERVERS).unwrap();
        std::fs::write(folder.path().join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
        let mut holder = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--net",
                "--mount",
                "--kill-child",
                "--fork",
                "sh",
                "-e",
                "-c",
                RAISE,
            ])
            .arg("sh")
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare(1) is there");
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n", "the world did not come up");
        Self { folder, holder }
    }

    /// `redoma run OPTIONS -- COMMAND` in a project, in this world.
    #[must_use]
    pub fn run<'a>(
        &self,
        project: &Project<'_>,
        tier: Tier,
        options: &[&'a str],
        command: impl IntoIterator<Item = &'a str>,
    ) -> Redoma {
        let redoma = project.redoma(["run"].into_iter().chain(options.iter().copied())).tier(tier);
        self.enter(redoma.command(command))
    }

    /// A call made in this world, by somebody who trusts its authority.
    #[must_use]
    pub fn enter(&self, redoma: Redoma) -> Redoma {
        let target = self.inner().to_string();
        let enter: [&OsStr; 11] = [
            "nsenter".as_ref(),
            "--preserve-credentials".as_ref(),
            "--user".as_ref(),
            "--net".as_ref(),
            "--mount".as_ref(),
            "--target".as_ref(),
            target.as_ref(),
            "sh".as_ref(),
            "-c".as_ref(),
            "cd \"$0\" && exec \"$@\"".as_ref(),
            redoma.folder().as_os_str(),
        ];
        let enter = enter.map(OsString::from).to_vec();
        redoma.within(enter).env("SSL_CERT_FILE", self.authority())
    }

    /// A command in this world, outside any sandbox.
    #[must_use]
    pub fn outside(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        let target = self.inner().to_string();
        command.args([
            "--preserve-credentials",
            "--user",
            "--net",
            "--mount",
            "--target",
            &target,
            "sh",
            "-c",
            script,
        ]);
        command
    }

    /// The certificate authority's certificate.
    #[must_use]
    pub fn authority(&self) -> OsString {
        self.folder.path().join("authority.pem").into_os_string()
    }

    /// Where the servers keep what they have seen, and look for what they wait for.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The names that a resolver was asked for.
    ///
    /// # Panics
    /// If there is no such list.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        let asked = std::fs::read_to_string(self.folder.path().join("asked")).unwrap();
        asked.lines().map(str::to_owned).collect()
    }

    /// What arrived at any server, a line each.
    ///
    /// # Panics
    /// If there is no such list.
    #[must_use]
    pub fn arrived(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("arrived")).unwrap()
    }

    /// The process whose namespaces it is: `unshare` forked it.
    fn inner(&self) -> i32 {
        let holder = i32::try_from(self.holder.id()).unwrap();
        crate::process::descendants(holder).first().copied().unwrap_or(holder)
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn certificates(folder: &Path) {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "World");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    write("authority.pem", authority.pem());
    let issuer = Issuer::new(params, key);
    for name in
        ["api.example", "other.example", "plain.example", "expired.example", "self.example", "wrong.example"]
    {
        let key = KeyPair::generate().unwrap();
        let named = if name == "wrong.example" { "right.example" } else { name };
        let mut params = CertificateParams::new([named.to_owned()]).unwrap();
        if name == "expired.example" {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        let certificate = match name {
            "self.example" => params.self_signed(&key),
            _ => params.signed_by(&key, &issuer),
        };
        write(&format!("{name}.pem"), key.serialize_pem() + &certificate.unwrap().pem());
    }
}
