//! In which order services start.

use std::collections::BTreeMap;

use super::error::ServicesError;
use super::model::Group;
use crate::driver::Name;

/// Every service after those that it waits for, else by name.
///
/// # Errors
/// [`ServicesError::Cycle`], with one way round.
pub fn order(group: &Group) -> Result<Vec<Name>, ServicesError> {
    let mut walk = Walk { group, seen: BTreeMap::new(), path: Vec::new(), order: Vec::new() };
    for name in group.services.keys() {
        walk.visit(name)?;
    }
    Ok(walk.order)
}

/// Depth first. Bounded by the number of services, which the files' readers bound.
struct Walk<'g> {
    group: &'g Group,
    /// Whether all that a service waits for is in the order.
    seen: BTreeMap<&'g Name, bool>,
    path: Vec<&'g Name>,
    order: Vec<Name>,
}

impl<'g> Walk<'g> {
    fn visit(&mut self, name: &'g Name) -> Result<(), ServicesError> {
        match self.seen.get(name) {
            Some(true) => return Ok(()),
            Some(false) => return Err(ServicesError::Cycle { cycle: self.cycle(name) }),
            None => {}
        }
        self.seen.insert(name, false);
        self.path.push(name);
        let service = self.group.services.get(name);
        for before in service.into_iter().flat_map(|service| service.after.keys()) {
            self.visit(before)?;
        }
        self.path.pop();
        self.seen.insert(name, true);
        self.order.push(name.clone());
        Ok(())
    }

    fn cycle(&self, name: &Name) -> Vec<Name> {
        let from = self.path.iter().position(|one| *one == name).unwrap_or(0);
        self.path[from..].iter().copied().chain([name]).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Beginning, Condition, Service};
    use super::*;
    use crate::driver::ImageName;

    fn group(services: &[(&str, &[&str])]) -> Group {
        let service = |after: &[&str]| Service {
            after: after.iter().map(|name| (name.parse().unwrap(), Condition::Started)).collect(),
            ..Service::new(Beginning::Image(ImageName::Host))
        };
        let services = services.iter().map(|(name, after)| (name.parse().unwrap(), service(after))).collect();
        Group { name: "g".parse().unwrap(), services, notes: Vec::new() }
    }

    #[test]
    fn what_is_waited_for_comes_first() {
        let order = order(&group(&[("a", &["c"]), ("b", &[]), ("c", &["d", "b"]), ("d", &[])])).unwrap();
        let order: Vec<&str> = order.iter().map(Name::as_str).collect();
        assert_eq!(order, ["b", "d", "c", "a"]);
    }

    #[test]
    fn a_cycle_is_shown() {
        let error = order(&group(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])])).unwrap_err();
        assert_eq!(error.to_string(), "services wait for each other: b → c → b");
        let own = order(&group(&[("a", &["a"])])).unwrap_err();
        assert_eq!(own.to_string(), "services wait for each other: a → a");
    }
}
