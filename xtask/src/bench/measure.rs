//! Contenders of one row, measured in turns.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::clock::time;

/// One way to do the work of a row.
pub(crate) struct Contender<'a> {
    name: &'static str,
    measure: Box<dyn FnMut() -> Result<Duration> + 'a>,
}

/// What a row came to.
pub(crate) struct Row {
    pub(crate) work: &'static str,
    pub(crate) results: Vec<(&'static str, Finding)>,
    pub(crate) marks: Vec<Mark>,
}

/// Of one contender.
pub(crate) enum Finding {
    Median(Duration),
    /// Cannot be measured here, with the reason.
    Missing(String),
}

/// What `redoma` has to reach in a row.
pub(crate) enum Mark {
    /// At most this many times the peer's time.
    AtMost(f64, &'static str),
    /// At least this many times faster than the peer.
    Faster(f64, &'static str),
    /// At most this long.
    Within(Duration, &'static str),
}

impl<'a> Contender<'a> {
    /// A contender whose whole process is timed.
    pub(crate) fn process(name: &'static str, mut command: impl FnMut() -> Command + 'a) -> Self {
        Self::by(name, move || time(&mut command()))
    }

    /// A contender with a clock of its own.
    pub(crate) fn by(name: &'static str, measure: impl FnMut() -> Result<Duration> + 'a) -> Self {
        Self { name, measure: Box::new(measure) }
    }
}

/// Two rounds of warm-up, then `rounds` rounds in which everybody gets one turn.
pub(crate) fn alternate(
    work: &'static str,
    rounds: usize,
    mut contenders: Vec<Contender<'_>>,
    marks: Vec<Mark>,
) -> Row {
    eprintln!("measuring: {work}");
    let mut taken: Vec<Result<Vec<Duration>>> = contenders.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..rounds + 2 {
        for (contender, times) in contenders.iter_mut().zip(&mut taken) {
            let Ok(so_far) = times else { continue };
            match (contender.measure)() {
                Ok(time) if round >= 2 => so_far.push(time),
                Ok(_) => {}
                Err(error) => *times = Err(error),
            }
        }
    }
    let names = contenders.iter().map(|contender| contender.name);
    Row { work, results: names.zip(taken.into_iter().map(finding)).collect(), marks }
}

fn finding(times: Result<Vec<Duration>>) -> Finding {
    match times {
        Ok(times) => Finding::Median(median(times)),
        // The cause, not the long command line around it.
        Err(error) => Finding::Missing(error.root_cause().to_string().replace('\n', " ")),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

impl Row {
    /// The median of a contender that could be measured.
    pub(crate) fn median(&self, name: &str) -> Option<Duration> {
        self.results.iter().find_map(|(who, finding)| match finding {
            Finding::Median(median) if *who == name => Some(*median),
            _ => None,
        })
    }
}

impl Mark {
    /// Whether it was reached; `None` when a side is missing.
    pub(crate) fn reached(&self, row: &Row) -> Option<bool> {
        let seconds = |name| row.median(name).map(|median| median.as_secs_f64());
        Some(match *self {
            Self::AtMost(factor, peer) => seconds("redoma")? <= factor * seconds(peer)?,
            Self::Faster(factor, peer) => factor * seconds("redoma")? <= seconds(peer)?,
            Self::Within(limit, who) => row.median(who)? <= limit,
        })
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(factor, peer) => write!(f, "redoma at most {factor} x {peer}"),
            Self::Faster(factor, peer) => write!(f, "redoma at least {factor} x faster than {peer}"),
            Self::Within(limit, who) => write!(f, "{who} within {} ms", limit.as_secs_f64() * 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(redoma: u64, peer: u64) -> Row {
        let ms = |n| Finding::Median(Duration::from_millis(n));
        Row { work: "w", results: vec![("redoma", ms(redoma)), ("peer", ms(peer))], marks: Vec::new() }
    }

    #[test]
    fn marks_are_compared_the_right_way_round() {
        assert_eq!(Mark::AtMost(1.3, "peer").reached(&row(13, 10)), Some(true));
        assert_eq!(Mark::AtMost(1.3, "peer").reached(&row(14, 10)), Some(false));
        assert_eq!(Mark::Faster(4.0, "peer").reached(&row(10, 40)), Some(true));
        assert_eq!(Mark::Faster(4.0, "peer").reached(&row(10, 39)), Some(false));
        assert_eq!(Mark::Faster(4.0, "absent").reached(&row(10, 39)), None);
    }

    #[test]
    fn one_slow_round_does_not_move_the_median() {
        let times = [5, 1000, 4, 6, 5].map(Duration::from_millis).to_vec();
        assert_eq!(median(times), Duration::from_millis(5));
    }

    #[test]
    fn a_contender_that_fails_is_missing_and_the_others_go_on() {
        let broken = Contender::process("broken", || Command::new("false"));
        let whole = Contender::process("whole", || Command::new("true"));
        let row = alternate("w", 3, vec![broken, whole], Vec::new());
        assert!(row.median("broken").is_none());
        assert!(row.median("whole").is_some());
    }
}
