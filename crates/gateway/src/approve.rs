//! Questions that only a person can answer.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use redoma_audit::event::{Answer, Process};

use crate::Target;

/// What a person is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Where it wants to go.
    pub target: Target,
    /// Who wants to, where that is known.
    pub process: Option<Process>,
    /// How long the question stands.
    pub timeout: Duration,
}

/// The one queue of questions for a person.
pub trait Approver: Send + Sync {
    /// Asks, and waits for the answer; [`Answer::Expired`] when there is none in time.
    fn ask(&self, ask: Ask) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;
}

/// Where there is nobody to ask.
#[derive(Clone, Copy, Debug)]
pub struct NobodyAnswers;

impl Approver for NobodyAnswers {
    fn ask(&self, _: Ask) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(std::future::ready(Answer::Expired))
    }
}
