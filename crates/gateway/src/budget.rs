//! What rules let through in a session altogether.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use redoma_policy::NetworkRule;

use crate::Reason;
use crate::refuse::Refusal;

/// The accounts of all rules.
#[derive(Default)]
pub(crate) struct Budgets(Mutex<HashMap<String, Account>>);

#[derive(Default)]
struct Account {
    sent: Arc<AtomicU64>,
    /// When the requests of the last period were, where a rate is set.
    recent: VecDeque<Instant>,
}

impl Budgets {
    /// Bytes that went out by this rule.
    pub(crate) fn sent_by(&self, rule: &NetworkRule) -> Arc<AtomicU64> {
        Arc::clone(&self.accounts().entry(key(rule)).or_default().sent)
    }

    /// Counts a request, or a connection that is not looked into.
    pub(crate) fn count_one(&self, rule: &NetworkRule) -> Result<(), Refusal> {
        let Some(rate) = &rule.rate else { return Ok(()) };
        let mut accounts = self.accounts();
        let recent = &mut accounts.entry(key(rule)).or_default().recent;
        let now = Instant::now();
        while recent.front().is_some_and(|first| now.duration_since(*first) >= rate.per()) {
            recent.pop_front();
        }
        if recent.len() >= rate.count.get() as usize {
            let because = format!("the rule lets {rate} through ({})", rule.origin);
            return Err(Refusal::new(Reason::Budget, because));
        }
        recent.push_back(now);
        Ok(())
    }

    fn accounts(&self) -> std::sync::MutexGuard<'_, HashMap<String, Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A rule is where it was written; presets and flags write several in one place.
fn key(rule: &NetworkRule) -> String {
    format!("{} {} {:?}", rule.origin, rule.host, rule.ports)
}
