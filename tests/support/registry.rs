//! A real registry on loopback, and a relay before it that stops in the middle.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::PATIENCE;
use crate::image::Layout;

/// The only user of a registry with passwords, and the password.
const USER: (&str, &str) = ("ana", "open-sesame");

/// Docker's registry on a port of its own; it ends with this.
pub struct Registry {
    folder: TempDir,
    child: Child,
    address: String,
}

impl Registry {
    /// One that lets everybody in.
    #[must_use]
    pub fn open() -> Self {
        Self::start("", "")
    }

    /// One that wants a password.
    #[must_use]
    pub fn guarded() -> Self {
        Self::start("", "auth: {htpasswd: {realm: test, path: FOLDER/passwords}}")
    }

    /// One that is called `registry.example` and speaks TLS, with a certificate of an authority of its own.
    #[must_use]
    pub fn encrypted() -> Self {
        Self::start("tls: {certificate: FOLDER/own.pem, key: FOLDER/own.key}", "")
    }

    fn start(tls: &str, auth: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("redoma-e2e-").tempdir().unwrap();
        certify(folder.path());
        if !auth.is_empty() {
            let made = Command::new("htpasswd").args(["-B", "-b", "-n", USER.0, USER.1]).output().unwrap();
            fs::write(folder.path().join("passwords"), made.stdout).unwrap();
        }
        // Port 0 is for the kernel to choose; the registry says which it was.
        let config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: FOLDER/data}}}}\n\
            http:\n  addr: '127.0.0.1:0'\n  {tls}\n{auth}\n",
        );
        let config = config.replace("FOLDER", &folder.path().display().to_string());
        let path = folder.path().join("config.yml");
        fs::write(&path, config).unwrap();
        let mut registry = Command::new("docker-registry");
        registry.arg("serve").arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = registry.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, after) = line.split_once("listening on ")?;
            Some(after.split(['"', ',']).next()?.to_owned())
        });
        let address = said.expect("the registry says where it listens");
        // A pipe that nobody empties would stop it.
        thread::spawn(move || lines.for_each(drop));
        Self { folder, child, address }
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The port alone.
    ///
    /// # Panics
    /// Never: an address has one.
    #[must_use]
    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// The certificate of its authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// The full name of an image in it.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// Puts an image of a layout into it under the same tag; its name there.
    #[must_use]
    pub fn push(&self, layout: &Layout, tag: &str) -> String {
        let name = self.name(&format!("test/{tag}:{tag}"));
        layout.copy(tag, &format!("docker://{name}"));
        name
    }

    /// The file in which it keeps a blob.
    #[must_use]
    pub fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let blobs = self.folder.path().join("data/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }

    /// Writes the file that `podman login` would have written.
    ///
    /// # Panics
    /// If the login is refused.
    pub fn login(&self, file: &Path) {
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["login", "--tls-verify=false", "--username", USER.0, "--password", USER.1]);
        let ran = skopeo.arg("--authfile").arg(file).arg(&self.address).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// Makes a certificate, its key, and the authority that signs it.
fn certify(folder: &Path) {
    let named = |name: &str, names: &[String]| {
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let mut authority = named("Test authority", &[]);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = Issuer::new(authority.clone(), KeyPair::generate().unwrap());
    fs::write(folder.join("authority.pem"), authority.self_signed(issuer.key()).unwrap().pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = named("registry.example", &["registry.example".to_owned()]).signed_by(&key, &issuer);
    fs::write(folder.join("own.pem"), own.unwrap().pem()).unwrap();
    fs::write(folder.join("own.key"), key.serialize_pem()).unwrap();
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A relay before a registry that lets so many bytes of its answers through, and then no more.
pub struct Stall {
    address: String,
    stalled: Receiver<()>,
}

impl Stall {
    /// Begins to relay.
    ///
    /// # Panics
    /// If there is no port.
    #[must_use]
    pub fn after(bytes: u64, registry: &Registry) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (target, left) = (registry.address.clone(), Arc::new(AtomicU64::new(bytes)));
        let (sender, stalled) = channel();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&target).unwrap();
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || relay_all(from, &to));
                let (left, sender) = (Arc::clone(&left), sender.clone());
                thread::spawn(move || relay_some(server, client, &left, &sender));
            }
        });
        Self { address, stalled }
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns when no more goes through.
    ///
    /// # Panics
    /// If it takes too long.
    pub fn wait(&self) {
        self.stalled.recv_timeout(PATIENCE).expect("more is asked for than goes through");
    }
}

fn relay_all(mut from: TcpStream, to: &TcpStream) {
    drop(std::io::copy(&mut from, &mut &*to));
    drop(to.shutdown(Shutdown::Write));
}

fn relay_some(mut from: TcpStream, mut to: TcpStream, left: &AtomicU64, stalled: &Sender<()>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let before = left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(count as u64)));
        let allowed = before.unwrap_or(0).min(count as u64);
        // The client may be gone: that is what this is for.
        drop(to.write_all(&buffer[..usize::try_from(allowed).unwrap()]));
        if allowed < count as u64 {
            let _ = stalled.send(());
            // The connection stays as it is until the client's end.
            drop(to.read(&mut [0]));
            return;
        }
    }
}
