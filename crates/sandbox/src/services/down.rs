//! `redoma down`: the end of a group.

use crate::driver::{Driver, DriverError, Info, Label, Name};

/// Which sandboxes are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Those of a group of this name; none is of any group.
    pub group: Option<Name>,
    /// Those of the group that this file describes, as [`super::Loaded::place`] says it; none is of any file.
    pub file: Option<String>,
}

impl Which {
    fn has(&self, info: &Info) -> bool {
        let label = |label| info.spec.labels.get(&label).map(String::as_str);
        let same =
            |wanted: Option<&str>, label: Option<&str>| wanted.is_none_or(|wanted| label == Some(wanted));
        label(Label::Group).is_some()
            && same(self.group.as_ref().map(Name::as_str), label(Label::Group))
            && same(self.file.as_deref(), label(Label::File))
    }
}

/// The sandboxes of groups, in the order in which they were made.
///
/// # Errors
/// [`DriverError`].
pub fn services_of(driver: &dyn Driver, which: &Which) -> Result<Vec<Info>, DriverError> {
    let mut all = driver.list()?;
    all.retain(|info| which.has(info));
    Ok(all)
}

/// Ends services, the last that was made first, and removes them. What cannot be removed does not keep the others.
///
/// # Errors
/// The first [`DriverError`], when all were tried.
pub fn down(driver: &dyn Driver, which: &Which) -> Result<Vec<Name>, DriverError> {
    each(driver, which, |info| driver.destroy(&info.spec.id))
}

/// Ends services, the last that was made first, and leaves their sandboxes.
///
/// # Errors
/// The first [`DriverError`], when all were tried.
pub fn stop_all(driver: &dyn Driver, which: &Which) -> Result<Vec<Name>, DriverError> {
    each(driver, which, |info| driver.stop(&info.spec.id))
}

fn each(
    driver: &dyn Driver,
    which: &Which,
    end: impl Fn(&Info) -> Result<(), DriverError>,
) -> Result<Vec<Name>, DriverError> {
    let (mut ended, mut first) = (Vec::new(), Ok(()));
    for info in services_of(driver, which)?.into_iter().rev() {
        match end(&info) {
            Ok(()) => ended.push(info.spec.name),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first.map(|()| ended)
}
