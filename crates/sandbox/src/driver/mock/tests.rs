use super::Mock;
use crate::driver::contract::{Bed, CLAUSES, hold_all};
use crate::driver::{Driver, ImageName};

struct OnMock(Mock);

impl Bed for OnMock {
    fn driver(&self) -> &dyn Driver {
        &self.0
    }

    fn image(&self) -> ImageName {
        ImageName::Reference("busybox".into())
    }
}

#[test]
fn the_mock_keeps_the_contract() {
    hold_all(&OnMock(Mock::new()));
}

#[test]
fn every_call_is_recorded() {
    let mock = Mock::new();
    let bed = OnMock(mock.clone());
    let clause = CLAUSES.iter().find(|clause| clause.name == "a_command_exits_with_its_code").unwrap();
    (clause.holds)(&bed);
    let calls = mock.calls();
    let methods: Vec<&str> = calls.iter().map(|call| call.method).collect();
    assert_eq!(methods, ["create", "exec", "exec", "exec", "destroy"]);
    assert_eq!(calls[3].argv, ["sh", "-c", "exit 42"]);
    assert!(calls.iter().all(|call| call.of == calls[0].of), "{calls:?}");
}
