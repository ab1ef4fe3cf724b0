//! The walk along a chain, the same for a log and the ledger.

use crate::line::{AT_LEN, Chain, Head};
use crate::verify::{Finding, Place, Problem};

/// After so many findings a file says nothing more.
const MOST: usize = 100;

pub(super) struct Walk {
    place: Place,
    /// Where the next line goes; `None` if the first one says.
    pub(super) chain: Option<Chain>,
    pub(super) line: u64,
    pub(super) findings: Vec<Finding>,
    at: [u8; AT_LEN],
}

// === impl Walk ===

impl Walk {
    pub(super) fn new(place: Place, chain: Option<Chain>) -> Self {
        Self { place, chain, line: 0, findings: Vec::new(), at: [0; AT_LEN] }
    }

    pub(super) fn report(&mut self, problem: Problem) {
        if self.findings.len() < MOST {
            self.findings.push(Finding { place: self.place, line: Some(self.line), problem });
        }
    }

    /// Whether there is no point in going on; said once.
    pub(super) fn is_hopeless(&mut self) -> bool {
        let hopeless = self.findings.len() == MOST;
        if hopeless {
            self.findings.push(Finding {
                place: self.place,
                line: Some(self.line),
                problem: Problem::TooMany,
            });
        }
        hopeless
    }

    /// Goes over `line`. After something wrong the walk goes on from what stands there, so that each break shows once.
    ///
    /// # Errors
    /// What keeps it from being a record; the walk stays where it was.
    pub(super) fn step<'a>(&mut self, line: &'a [u8]) -> Result<Head<'a>, &'static str> {
        self.line += 1;
        let head = match self.chain {
            Some(chain) => Head::parse_expecting(line, chain.prev)?,
            None => Head::parse(line)?,
        };
        let expected = self.chain.unwrap_or(Chain::start(head.chain.prev));
        if expected.seq != head.chain.seq {
            self.report(Problem::Order { expected: expected.seq, found: head.chain.seq });
        } else if expected.prev != head.chain.prev {
            self.report(Problem::Chain);
        }
        // A fixed width: the order of the bytes is the order of time.
        if head.at < &self.at {
            self.report(Problem::Clock);
        }
        self.at = *head.at;
        let mut next = head.chain;
        next.advance(line);
        self.chain = Some(next);
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::Digest;

    /// Lines written after one another, each so many seconds after noon.
    fn lines(seconds: &[i64]) -> Vec<Vec<u8>> {
        let noon: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        let mut chain = Chain::start(Digest::of(b"origin"));
        let line = |&seconds: &i64| {
            let mut line = Vec::new();
            let record = serde_json::json!({ "kind": "note" });
            chain.write(&mut line, noon + SignedDuration::from_secs(seconds), &record).unwrap();
            chain.advance(&line);
            line
        };
        seconds.iter().map(line).collect()
    }

    fn walk(lines: &[Vec<u8>]) -> Vec<(u64, Problem)> {
        let mut walk = Walk::new(Place::Ledger, Some(Chain::start(Digest::of(b"origin"))));
        for line in lines {
            if let Err(what) = walk.step(line) {
                walk.report(Problem::Malformed(what));
            }
        }
        walk.findings.into_iter().map(|finding| (finding.line.unwrap(), finding.problem)).collect()
    }

    #[test]
    fn a_clock_set_back_shows_where_it_was_set_back() {
        assert_eq!(walk(&lines(&[0, 5, 5, 2, 3, 9])), [(4, Problem::Clock)]);
    }

    #[test]
    fn each_break_shows_once() {
        let good = lines(&[0, 1, 2, 3, 4, 5]);
        let dropped = [&good[..2], &good[3..]].concat();
        assert_eq!(walk(&dropped), [(3, Problem::Order { expected: 2, found: 3 })]);
        let mut edited = good.clone();
        let at = edited[1].len() - 3;
        edited[1][at] = b'X';
        assert_eq!(walk(&edited), [(3, Problem::Chain)]);
    }

    #[test]
    fn too_much_is_said_once() {
        let mut walk = Walk::new(Place::Ledger, None);
        while !walk.is_hopeless() {
            walk.report(Problem::Chain);
        }
        assert_eq!((walk.findings.len(), &walk.findings[MOST].problem), (MOST + 1, &Problem::TooMany));
    }

    proptest! {
        #[test]
        fn any_other_order_shows(mut order in prop::collection::vec(0usize..6, 1..8)) {
            order.insert(0, 0);
            let good = lines(&[0, 1, 2, 3, 4, 5]);
            let other: Vec<Vec<u8>> = order.iter().map(|&at| good[at].clone()).collect();
            let is_start = order.iter().enumerate().all(|(index, &at)| index == at);
            prop_assert_eq!(walk(&other).is_empty(), is_start);
        }
    }
}
