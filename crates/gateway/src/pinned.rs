//! Clients that take no certificate but the server's own.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::Target;

/// Where clients refused the session's certificate, and what they were doing is to go on unseen.
#[derive(Debug, Default)]
pub(crate) struct PinnedClients(Mutex<HashSet<(Target, Option<String>)>>);

/// More than any honest session has.
const MOST: usize = 1024;

impl PinnedClients {
    /// This program takes no other certificate for this target.
    pub(crate) fn add(&self, target: &Target, program: Option<String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST {
            known.insert((target.clone(), program));
        }
    }

    /// Whether it was seen to.
    pub(crate) fn contains(&self, target: &Target, program: Option<String>) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&(target.clone(), program))
    }
}
