use super::{Bed, Made, any_name, command, shell, spec};
use crate::driver::{DriverError, State};

pub(super) fn what_is_made_is_listed_and_what_is_destroyed_is_not(bed: &dyn Bed) {
    let made = Made::new(bed);
    let listed = |id| bed.driver().list().unwrap().into_iter().find(|info| info.spec.id == id);
    let info = listed(made.id).expect("it is listed");
    assert_eq!(info.spec, made.info.spec);
    assert_eq!(info.driver, bed.driver().name());
    assert_eq!(info.state, State::Stopped);
    let id = made.id;
    drop(made);
    assert!(listed(id).is_none(), "it is listed still");
}

pub(super) fn a_name_is_taken_once(bed: &dyn Bed) {
    let first = Made::new(bed);
    let mut second = spec(bed);
    second.name = first.info.spec.name.clone();
    let refused = bed.driver().create(&second);
    assert!(matches!(refused, Err(DriverError::NameTaken(_))), "{refused:?}");
    assert!(bed.driver().list().unwrap().iter().all(|info| info.spec.id != second.id), "half of it is left");
    assert_eq!(first.code(&command(&["true"])), 0);
}

pub(super) fn destroying_twice_is_no_error(bed: &dyn Bed) {
    let made = Made::new(bed);
    bed.driver().destroy(&made.id).unwrap();
    bed.driver().destroy(&made.id).unwrap();
    bed.driver().destroy(&spec(bed).id).unwrap();
}

pub(super) fn what_is_gone_cannot_be_used(bed: &dyn Bed) {
    let made = Made::new(bed);
    bed.driver().destroy(&made.id).unwrap();
    assert!(matches!(made.start(&command(&["true"])), Err(DriverError::NoSandbox(_))));
    assert!(matches!(bed.driver().files(&made.id), Err(DriverError::NoSandbox(_))));
    assert!(matches!(bed.driver().stop(&made.id), Err(DriverError::NoSandbox(_))));
    if let Some(snapshots) = bed.driver().snapshots() {
        assert!(matches!(snapshots.snapshot(&made.id, &any_name()), Err(DriverError::NoSandbox(_))));
    }
}

pub(super) fn stopping_leaves_the_files(bed: &dyn Bed) {
    let made = Made::new(bed);
    assert_eq!(made.code(&shell("echo kept > /kept")), 0);
    bed.driver().stop(&made.id).unwrap();
    let info = bed.driver().list().unwrap().into_iter().find(|info| info.spec.id == made.id).unwrap();
    assert_eq!(info.state, State::Stopped);
    bed.driver().stop(&made.id).unwrap();
    assert_eq!(made.text(&command(&["cat", "/kept"])), "kept\n");
}

pub(super) fn destroying_ends_what_runs(bed: &dyn Bed) {
    let made = Made::new(bed);
    let (mut process, _input, _output) = made.start(&command(&["sleep", "600"])).unwrap();
    bed.driver().destroy(&made.id).unwrap();
    // It ended, or it is gone with its sandbox: what does not happen is that somebody waits for ever.
    let _ = process.event();
}
