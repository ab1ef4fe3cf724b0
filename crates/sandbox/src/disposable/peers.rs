//! Other sandboxes of a group, by what they are called in this one. A connection goes from gateway to the other's keeper,
//! which has its init connect inside: no port of this machine is in between, and one without a network is reached as well.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::path::Path;

use redoma_policy::HostName;

use super::Native;
use super::control::{Ask, Line, Tell};
use super::store::{Store, failed};
use crate::driver::{Dialing, DriverError, Name, SandboxId, Spec};

/// The neighbours of one sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    store: Store,
    /// In lower case, as names of hosts are.
    names: BTreeMap<String, Name>,
}

impl Peers {
    pub(crate) fn of(spec: &Spec, store: &Store) -> Self {
        let names =
            spec.peers.iter().map(|(inside, name)| (inside.as_str().to_ascii_lowercase(), name.clone()));
        Self { store: store.clone(), names: names.collect() }
    }

    pub(crate) fn has(&self, name: &HostName) -> bool {
        self.names.contains_key(name.as_str())
    }

    pub(crate) fn dial(&self, name: &HostName, port: u16) -> io::Result<TcpStream> {
        let sandbox = self.names.get(name.as_str()).ok_or(io::ErrorKind::NotFound)?;
        let told = |error: DriverError| io::Error::other(error.to_string());
        let id = self.store.find(sandbox.as_str()).map_err(told)?;
        dial(&self.store, &id, port).map_err(told)
    }
}

impl Dialing for Native {
    fn dial(&self, id: &SandboxId, port: u16) -> Result<TcpStream, DriverError> {
        let connection = dial(&self.store, id, port)?;
        // init connects without waiting.
        connection
            .set_nonblocking(false)
            .map_err(|source| failed("use", Path::new("a connection"), source))?;
        Ok(connection)
    }
}

fn dial(store: &Store, id: &SandboxId, port: u16) -> Result<TcpStream, DriverError> {
    let line = Line::to_living(store, id)?;
    let line = line.ok_or_else(|| DriverError::NotRunning(id.to_string()))?;
    match line.exchange(&Ask::Dial(port), &[])? {
        (Tell::Failed(refusal), _) => Err(refusal.into()),
        (_, socket) => socket.into_iter().next().map(TcpStream::from).ok_or(DriverError::Gone(None)),
    }
}
