//! Questions that only a person can answer.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redoma_audit::event::{Answer, Process};
use tokio::sync::OnceCell;

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

/// What was answered, so that nobody is asked twice, nor by several connections at once.
pub(crate) struct Approvals {
    approver: Arc<dyn Approver>,
    timeout: Duration,
    answers: Mutex<HashMap<Target, Arc<OnceCell<Answer>>>>,
}

/// More hosts than a person answers for; what comes beyond is refused without a question.
const MOST_HOSTS: usize = 4096;

impl Approvals {
    pub(crate) fn new(approver: Arc<dyn Approver>, timeout: Duration) -> Self {
        Self { approver, timeout, answers: Mutex::default() }
    }

    /// The answer for a target: the one that was given for the session, or a new one. An answer for this time is for
    /// those who wait for it.
    pub(crate) async fn answer(&self, target: &Target, process: Option<&Process>) -> Answer {
        let Some(cell) = self.cell(target) else { return Answer::Deny };
        let ask = || {
            let ask = Ask { target: target.clone(), process: process.cloned(), timeout: self.timeout };
            self.approver.ask(ask)
        };
        let answer = *cell.get_or_init(ask).await;
        if matches!(answer, Answer::Once | Answer::Expired) {
            self.forget(target, &cell);
        }
        answer
    }

    fn cell(&self, target: &Target) -> Option<Arc<OnceCell<Answer>>> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.get(target) {
            Some(cell) => Some(Arc::clone(cell)),
            None if answers.len() < MOST_HOSTS => {
                Some(Arc::clone(answers.entry(target.clone()).or_default()))
            }
            None => None,
        }
    }

    /// Unless another question stands there by now.
    fn forget(&self, target: &Target, cell: &Arc<OnceCell<Answer>>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.get(target).is_some_and(|other| Arc::ptr_eq(other, cell)) {
            answers.remove(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers in turn, and counts.
    struct Person(Mutex<Vec<Answer>>);

    impl Approver for Person {
        fn ask(&self, _: Ask) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
            Box::pin(async {
                tokio::task::yield_now().await;
                self.0.lock().unwrap().pop().expect("asked too often")
            })
        }
    }

    fn approvals(answers: &[Answer]) -> Approvals {
        let answers = answers.iter().rev().copied().collect();
        Approvals::new(Arc::new(Person(Mutex::new(answers))), Duration::from_secs(1))
    }

    fn target(port: u16) -> Target {
        Target { host: "a.example".parse().unwrap(), port }
    }

    #[tokio::test]
    async fn an_answer_for_the_session_is_asked_for_once() {
        for answer in [Answer::Session, Answer::Always, Answer::Deny] {
            let approvals = approvals(&[answer]);
            assert_eq!(approvals.answer(&target(1), None).await, answer);
            assert_eq!(approvals.answer(&target(1), None).await, answer);
        }
    }

    #[tokio::test]
    async fn an_answer_for_this_time_is_for_those_who_wait() {
        let approvals = approvals(&[Answer::Once, Answer::Deny]);
        let (a, b) = (target(1), target(1));
        let both = tokio::join!(approvals.answer(&a, None), approvals.answer(&b, None));
        assert_eq!(both, (Answer::Once, Answer::Once));
        assert_eq!(approvals.answer(&a, None).await, Answer::Deny);
    }

    #[tokio::test]
    async fn another_port_is_another_question() {
        let approvals = approvals(&[Answer::Session, Answer::Expired, Answer::Deny]);
        assert_eq!(approvals.answer(&target(1), None).await, Answer::Session);
        assert_eq!(approvals.answer(&target(2), None).await, Answer::Expired);
        assert_eq!(approvals.answer(&target(2), None).await, Answer::Deny);
    }
}
