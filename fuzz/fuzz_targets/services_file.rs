//! Files that describe groups of services, of each kind: whatever is taken has an order and no port twice.

#![no_main]

use std::collections::BTreeSet;
use std::path::Path;

use redoma_sandbox::services::{FILE_LIMIT, order, parse};

libfuzzer_sys::fuzz_target!(|input: (u8, &str)| {
    let (kind, text) = input;
    let path = Path::new(["/p/redoma-services.toml", "/p/peapod.json", "/p/compose.yaml"][usize::from(kind % 3)]);
    if text.len() > FILE_LIMIT {
        return;
    }
    let Ok(group) = parse(path, text, &|name| (name.len() % 2 == 0).then(|| "x".to_owned())) else { return };
    assert_eq!(order(&group).map(|order| order.len()).ok(), Some(group.services.len()));
    let mut taken = BTreeSet::new();
    assert!(group.services.values().flat_map(|one| &one.ports).all(|port| taken.insert(port.outside)));
});
