use super::{Bed, Made, any_name, command, shell, spec};
use crate::driver::{DriverError, State};

fn state(made: &Made<'_>) -> State {
    let all = made.driver.list().unwrap();
    all.into_iter().find(|info| info.spec.id == made.id).expect("it is listed").state
}

pub(super) fn what_is_paused_stands_still_and_goes_on(bed: &dyn Bed) {
    let Some(pausing) = bed.driver().pausing() else { return };
    let made = Made::new(bed);
    let (_process, _input, _output) = made.start(&command(&["sleep", "600"])).unwrap();
    pausing.pause(&made.id).unwrap();
    assert_eq!(state(&made), State::Paused);
    pausing.pause(&made.id).unwrap();
    pausing.resume(&made.id).unwrap();
    assert_eq!(state(&made), State::Running);
    pausing.resume(&made.id).unwrap();
    pausing.pause(&made.id).unwrap();
    // A command lets it go on.
    assert_eq!(made.code(&command(&["true"])), 0);
    assert_eq!(state(&made), State::Running);
    pausing.pause(&made.id).unwrap();
    // And what is paused can be destroyed: that is tried when this is over.
}

pub(super) fn what_does_not_run_cannot_be_paused(bed: &dyn Bed) {
    let Some(pausing) = bed.driver().pausing() else { return };
    let made = Made::new(bed);
    let refused = pausing.pause(&made.id);
    assert!(matches!(refused, Err(DriverError::NotRunning(_))), "{refused:?}");
}

pub(super) fn a_fork_begins_as_the_snapshot(bed: &dyn Bed) {
    let Some(snapshots) = bed.driver().snapshots() else { return };
    let made = Made::new(bed);
    assert_eq!(made.code(&shell("echo before > /state")), 0);
    let name = any_name();
    let info = snapshots.snapshot(&made.id, &name).unwrap();
    assert_eq!((&info.name, &info.of, info.driver), (&name, &made.info.spec, bed.driver().name()));
    assert!(snapshots.snapshots().unwrap().iter().any(|one| one.name == name), "it is not listed");
    assert_eq!(made.code(&shell("echo after > /state")), 0);
    let fork = spec(bed);
    let forked = snapshots.fork(&name, &fork).unwrap();
    assert_eq!(forked.spec, fork);
    let forked = Made { driver: bed.driver(), id: fork.id, info: forked };
    assert_eq!(forked.text(&command(&["cat", "/state"])), "before\n");
    assert_eq!(forked.code(&shell("echo forked > /state")), 0);
    assert_eq!(made.text(&command(&["cat", "/state"])), "after\n");
    // What stands on it stays.
    snapshots.remove(&name).unwrap();
    assert!(snapshots.snapshots().unwrap().iter().all(|one| one.name != name), "it is listed still");
    assert_eq!(forked.text(&command(&["cat", "/state"])), "forked\n");
}

pub(super) fn a_snapshots_name_is_taken_once(bed: &dyn Bed) {
    let Some(snapshots) = bed.driver().snapshots() else { return };
    let (made, name) = (Made::new(bed), any_name());
    snapshots.snapshot(&made.id, &name).unwrap();
    let refused = snapshots.snapshot(&made.id, &name);
    assert!(matches!(refused, Err(DriverError::NameTaken(_))), "{refused:?}");
    snapshots.remove(&name).unwrap();
}

pub(super) fn there_is_no_fork_of_nothing(bed: &dyn Bed) {
    let Some(snapshots) = bed.driver().snapshots() else { return };
    let (name, fork) = (any_name(), spec(bed));
    assert!(matches!(snapshots.fork(&name, &fork), Err(DriverError::NoSnapshot(_))));
    assert!(matches!(snapshots.remove(&name), Err(DriverError::NoSnapshot(_))));
    assert!(bed.driver().list().unwrap().iter().all(|info| info.spec.id != fork.id), "half of it is left");
}

pub(super) fn what_is_used_is_told(bed: &dyn Bed) {
    let Some(statistics) = bed.driver().statistics() else { return };
    let made = Made::new(bed);
    let (_process, _input, _output) = made.start(&command(&["sleep", "600"])).unwrap();
    let stats = statistics.stats(&made.id).unwrap();
    assert!(stats.pids.is_none_or(|pids| pids >= 1), "{stats:?}");
    assert!(stats.memory.is_none_or(|memory| memory > 0), "{stats:?}");
}

pub(super) fn what_ran_is_told(bed: &dyn Bed) {
    let Some(histories) = bed.driver().histories() else { return };
    let made = Made::new(bed);
    made.run(&command(&["true"]));
    made.run(&shell("exit 7"));
    let told = histories.history(&made.id).unwrap();
    let told: Vec<_> = told.iter().map(|past| (past.argv.join(" "), past.exit)).collect();
    assert_eq!(told, [("true".to_owned(), Some(0)), ("sh -c exit 7".to_owned(), Some(7))]);
}
