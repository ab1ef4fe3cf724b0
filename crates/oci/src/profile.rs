//! The profile of system calls that the engine puts on a container.
//!
//! It has the calls of our rules, by name. What the rules say about arguments cannot be said in a profile in general (an engine
//! joins two conditions on one argument by "or"); the filter that each command puts on itself says it exactly
//! ([`redoma_jail::confine_guest`]), and this one holds for whatever else gets into the container.

use redoma_jail::guest_calls;
use serde_json::{Value, json};

/// What a kernel without the call answers.
const ENOSYS: u32 = 38;
/// Calls that make namespaces, with the bits for it in the first argument.
const BY_ARGUMENT: [&str; 2] = ["clone", "unshare"];

/// As `--security-opt seccomp=` takes it.
pub(crate) fn seccomp() -> String {
    let names: Vec<&str> = guest_calls().into_iter().filter(|name| !BY_ARGUMENT.contains(name)).collect();
    let rule =
        |names: Value, args: Value| json!({ "names": names, "action": "SCMP_ACT_ALLOW", "args": args });
    // No new namespaces.
    const NAMESPACES: u32 = 0x7e02_0000;
    let none = json!([{ "index": 0, "value": NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ" }]);
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": ENOSYS,
        "archMap": [
            { "architecture": "SCMP_ARCH_X86_64", "subArchitectures": [] },
            { "architecture": "SCMP_ARCH_AARCH64", "subArchitectures": [] },
        ],
        "syscalls": [rule(json!(names), json!([])), rule(json!(BY_ARGUMENT), none)],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_has_our_calls_and_no_others() {
        let profile: Value = serde_json::from_str(&seccomp()).unwrap();
        let names = profile["syscalls"][0]["names"].as_array().unwrap();
        let has = |name: &str| names.iter().any(|one| one == name);
        assert!(has("read") && has("execve") && has("seccomp") && has("socket"));
        for absent in ["mount", "bpf", "unshare", "keyctl", "kexec_load", "clone"] {
            assert!(!has(absent), "{absent}");
        }
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    }
}
