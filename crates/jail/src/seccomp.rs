//! Compiles the system-call rules of `data/seccomp.toml` to a BPF program.
//!
//! The calls are sorted into ranges with one answer each and looked up by binary search: the kernel runs the
//! program once per call number when it is installed, to see which calls need no look at the arguments, and a
//! linear program of this size costs more there than all mounts together. See
//! `Documentation/userspace-api/seccomp_filter.rst`.

use std::collections::BTreeMap;

use redoma_sys::{Instruction, nr};

use redoma_policy::Tier;

use rules::{CHECKS, SIMPLE};

/// What `build.rs` made of the file: `SIMPLE`, one answer for each call, and `CHECKS`, by argument.
#[expect(clippy::unnecessary_cast, reason = "the kernel's constants have several types")]
mod rules {
    use redoma_policy::Tier;
    use redoma_sys::nr;

    use super::{Answer, Check, Guard, Scope, Simple, Test};

    include!(concat!(env!("OUT_DIR"), "/seccomp_rules.rs"));
}

/// The filter of a sandbox of `tier`, with or without user namespaces inside.
pub(crate) fn filter(tier: Tier, nested_userns: bool) -> Vec<Instruction> {
    let mut program = prologue();
    search(&mut program, &ranges(&leaves(tier, nested_userns)));
    program
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Allow,
    /// [`crate::supervisor`] answers, and without one the call does not exist.
    Supervise,
    Refuse(u16),
}

/// A call of this list does not exist inside.
const UNKNOWN: Answer = Answer::Refuse(nr::ENOSYS as u16);

struct Simple {
    nr: u32,
    answer: Answer,
    scope: Scope,
}

struct Check {
    nr: u32,
    guard: Option<Guard>,
    argument: u32,
    bits: u32,
    test: Test,
    answer: Answer,
    scope: Scope,
}

/// The check applies only where another argument passes this test.
struct Guard {
    argument: u32,
    test: Test,
}

enum Test {
    OneOf(&'static [u32]),
    NoneOf(&'static [u32]),
    AnyBit(u32),
}

/// Where a rule holds: in one tier or in both, with nested user namespaces, without, or either way.
struct Scope {
    tier: Option<Tier>,
    nested: Option<bool>,
}

impl Scope {
    fn holds(&self, tier: Tier, nested: bool) -> bool {
        self.tier.is_none_or(|only| only == tier) && self.nested.is_none_or(|only| only == nested)
    }
}

/// What the filter does about one call: the checks in order, then the answer.
#[derive(Clone)]
struct Leaf {
    checks: Vec<&'static Check>,
    otherwise: Answer,
}

impl Leaf {
    fn same_answer(&self, other: &Self) -> bool {
        self.checks.is_empty() && other.checks.is_empty() && self.otherwise == other.otherwise
    }
}

fn leaves(tier: Tier, nested: bool) -> BTreeMap<u32, Leaf> {
    let mut leaves = BTreeMap::new();
    for rule in SIMPLE.iter().filter(|rule| rule.scope.holds(tier, nested)) {
        leaves.entry(rule.nr).or_insert(Leaf { checks: Vec::new(), otherwise: rule.answer });
    }
    for check in CHECKS.iter().filter(|check| check.scope.holds(tier, nested)) {
        let leaf = leaves.entry(check.nr).or_insert(Leaf { checks: Vec::new(), otherwise: Answer::Allow });
        leaf.checks.push(check);
    }
    allow_checked_calls_without_checks(&mut leaves, tier, nested);
    leaves
}

/// `socketpair`, say, is checked in one tier only: where no check holds it is as the list of allowed calls says,
/// and a call that only ever stands in `check` (`ioctl`, `clone`) is allowed where its check does not hold.
fn allow_checked_calls_without_checks(leaves: &mut BTreeMap<u32, Leaf>, tier: Tier, nested: bool) {
    for check in CHECKS.iter().filter(|check| check.scope.tier.is_none_or(|only| only == tier)) {
        if check.scope.nested.is_some_and(|only| only != nested) {
            leaves.entry(check.nr).or_insert(Leaf { checks: Vec::new(), otherwise: Answer::Allow });
        }
    }
}

/// From each number on, up to the next entry's, the leaf applies.
fn ranges(leaves: &BTreeMap<u32, Leaf>) -> Vec<(u32, Leaf)> {
    let unknown = Leaf { checks: Vec::new(), otherwise: UNKNOWN };
    let mut ranges = vec![(0, unknown.clone())];
    let mut push = |from: u32, leaf: &Leaf| match ranges.last_mut() {
        Some((_, last)) if last.same_answer(leaf) => {}
        Some((start, last)) if *start == from => *last = leaf.clone(),
        _ => ranges.push((from, leaf.clone())),
    };
    for (&nr, leaf) in leaves {
        push(nr, leaf);
        if !leaves.contains_key(&(nr + 1)) {
            push(nr + 1, &unknown);
        }
    }
    ranges
}

// === code generation ===

/// Offsets in `struct seccomp_data`: the call's number, the architecture, the low halves of the arguments.
const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xc000_00b7;

/// Numbers from here on are x32 calls: the same kernel functions under other numbers. No other architecture
/// has calls up here, so the test needs no condition.
const X32_BIT: u32 = 0x4000_0000;

/// Refuses what the rules do not speak of: 32-bit calls (`int 0x80`) and x32 calls.
fn prologue() -> Vec<Instruction> {
    vec![
        load(OFFSET_ARCH),
        jump(nr::BPF_JEQ, AUDIT_ARCH, 1, 0),
        answer(UNKNOWN),
        load(OFFSET_NR),
        jump(nr::BPF_JGE, X32_BIT, 0, 1),
        answer(UNKNOWN),
    ]
}

fn search(program: &mut Vec<Instruction>, ranges: &[(u32, Leaf)]) {
    let [single] = ranges else {
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let mut left = Vec::new();
        search(&mut left, low);
        program.push(jump(nr::BPF_JGE, high[0].0, 0, 1));
        program.push(skip(left.len()));
        program.append(&mut left);
        return search(program, high);
    };
    for check in &single.1.checks {
        program.append(&mut check.compile());
    }
    program.push(answer(single.1.otherwise));
}

impl Check {
    /// Falls through where the check has no objection.
    fn compile(&self) -> Vec<Instruction> {
        let mut body = vec![load_argument(self.argument)];
        if self.bits != u32::MAX {
            body.push(and(self.bits));
        }
        body.extend(self.test.unless_it_holds(1));
        body.push(answer(self.answer));
        if let Some(guard) = &self.guard {
            let skipped = body.len();
            let guarded =
                [load_argument(guard.argument)].into_iter().chain(guard.test.unless_it_holds(skipped));
            body.splice(0..0, guarded.collect::<Vec<_>>());
        }
        body
    }
}

impl Test {
    /// Skips the next `count` instructions unless the value loaded last passes the test.
    fn unless_it_holds(&self, count: usize) -> Vec<Instruction> {
        match *self {
            // A match jumps over the comparisons that are left and over the skip behind them.
            Self::OneOf(values) => {
                let equal = |(at, &value)| jump(nr::BPF_JEQ, value, (values.len() - at) as u8, 0);
                values.iter().enumerate().map(equal).chain([skip(count)]).collect()
            }
            Self::NoneOf(values) => {
                let equal = |(at, &value)| jump(nr::BPF_JEQ, value, (values.len() - 1 - at + count) as u8, 0);
                values.iter().enumerate().map(equal).collect()
            }
            Self::AnyBit(bits) => vec![jump(nr::BPF_JSET, bits, 0, count as u8)],
        }
    }
}

fn load(offset: u32) -> Instruction {
    instruction(nr::BPF_LD | nr::BPF_W | nr::BPF_ABS, offset)
}

/// The kernel takes 32 bits of every argument that is checked, so only those are looked at. Little-endian: the
/// low half comes first.
fn load_argument(index: u32) -> Instruction {
    load(OFFSET_ARGUMENTS + index * 8)
}

fn and(bits: u32) -> Instruction {
    instruction(nr::BPF_ALU | nr::BPF_AND | nr::BPF_K, bits)
}

fn skip(count: usize) -> Instruction {
    instruction(nr::BPF_JMP | nr::BPF_JA, count as u32)
}

fn jump(operation: u32, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { jt, jf, ..instruction(nr::BPF_JMP | operation | nr::BPF_K, k) }
}

fn answer(answer: Answer) -> Instruction {
    let value = match answer {
        Answer::Allow => nr::SECCOMP_RET_ALLOW,
        Answer::Supervise => nr::SECCOMP_RET_USER_NOTIF,
        Answer::Refuse(errno) => nr::SECCOMP_RET_ERRNO | u32::from(errno),
    };
    instruction(nr::BPF_RET | nr::BPF_K, value)
}

fn instruction(code: u32, k: u32) -> Instruction {
    Instruction { code: code as u16, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A BPF machine of the few instructions used here: what the kernel would answer.
    fn run(program: &[Instruction], arch: u32, nr: u32, arguments: [u32; 6]) -> u32 {
        let word = |offset: u32| match offset {
            OFFSET_NR => nr,
            OFFSET_ARCH => arch,
            offset => arguments[((offset - OFFSET_ARGUMENTS) / 8) as usize],
        };
        let (mut at, mut a) = (0usize, 0u32);
        loop {
            let i = program[at];
            at += 1;
            let code = u32::from(i.code);
            match code & 0x07 {
                nr::BPF_LD => a = word(i.k),
                nr::BPF_ALU => a &= i.k,
                nr::BPF_RET => return i.k,
                nr::BPF_JMP if code & 0xf0 == nr::BPF_JA => at += i.k as usize,
                nr::BPF_JMP => {
                    let holds = match code & 0xf0 {
                        nr::BPF_JEQ => a == i.k,
                        nr::BPF_JGE => a >= i.k,
                        nr::BPF_JSET => a & i.k != 0,
                        other => panic!("jump {other:#x}"),
                    };
                    at += usize::from(if holds { i.jt } else { i.jf });
                }
                other => panic!("code {other:#x}"),
            }
        }
    }

    fn ask(tier: Tier, nested: bool, nr: impl TryInto<u32>, arguments: [u32; 6]) -> u32 {
        run(&filter(tier, nested), AUDIT_ARCH, nr.try_into().ok().unwrap(), arguments)
    }

    fn errno(errno: i32) -> u32 {
        nr::SECCOMP_RET_ERRNO | errno as u32
    }

    const NO: [u32; 6] = [0; 6];

    #[test]
    fn every_simple_rule_is_answered_as_written() {
        for (tier, nested) in [(Tier::Full, false), (Tier::Full, true), (Tier::Landlock, false)] {
            let program = filter(tier, nested);
            let leaves = leaves(tier, nested);
            for number in 0..600 {
                let expected = match leaves.get(&number) {
                    Some(leaf) if !leaf.checks.is_empty() => continue,
                    Some(leaf) => leaf.otherwise,
                    None => UNKNOWN,
                };
                assert_eq!(run(&program, AUDIT_ARCH, number, NO), answer(expected).k, "call {number}");
            }
        }
    }

    #[test]
    fn foreign_architectures_and_x32_do_not_exist() {
        let program = filter(Tier::Full, false);
        assert_eq!(run(&program, 0x4000_0003, 20, NO), errno(nr::ENOSYS));
        assert_eq!(run(&program, AUDIT_ARCH, X32_BIT | 39, NO), errno(nr::ENOSYS));
        assert_eq!(run(&program, AUDIT_ARCH, nr::SYS_getpid as u32, NO), nr::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn namespaces_are_refused_unless_nested() {
        let newuser = [nr::CLONE_NEWUSER as u32 | nr::SIGCHLD as u32, 0, 0, 0, 0, 0];
        assert_eq!(ask(Tier::Full, false, nr::SYS_clone, newuser), errno(nr::EPERM));
        assert_eq!(ask(Tier::Full, true, nr::SYS_clone, newuser), nr::SECCOMP_RET_ALLOW);
        assert_eq!(
            ask(Tier::Full, false, nr::SYS_clone, [nr::SIGCHLD as u32, 0, 0, 0, 0, 0]),
            nr::SECCOMP_RET_ALLOW
        );
        assert_eq!(ask(Tier::Full, false, nr::SYS_clone3, NO), errno(nr::ENOSYS));
        assert_eq!(ask(Tier::Full, true, nr::SYS_mount, NO), nr::SECCOMP_RET_ALLOW);
        assert_eq!(ask(Tier::Full, false, nr::SYS_mount, NO), errno(nr::EPERM));
    }

    #[test]
    fn sockets_by_family_and_protocol() {
        let full = |family: i32, protocol: i32| {
            ask(
                Tier::Full,
                false,
                nr::SYS_socket,
                [family as u32, nr::SOCK_STREAM as u32, protocol as u32, 0, 0, 0],
            )
        };
        assert_eq!(full(nr::AF_INET, 0), nr::SECCOMP_RET_ALLOW);
        assert_eq!(full(nr::AF_INET6, nr::IPPROTO_TCP), nr::SECCOMP_RET_ALLOW);
        assert_eq!(full(nr::AF_INET, 262), errno(nr::EPROTONOSUPPORT));
        assert_eq!(full(nr::AF_INET6, 132), errno(nr::EPROTONOSUPPORT));
        assert_eq!(full(nr::AF_NETLINK, nr::NETLINK_ROUTE), nr::SECCOMP_RET_ALLOW);
        assert_eq!(full(nr::AF_NETLINK, nr::NETLINK_NETFILTER), errno(nr::EPROTONOSUPPORT));
        assert_eq!(full(nr::AF_PACKET, 0), errno(nr::EAFNOSUPPORT));
        assert_eq!(
            ask(Tier::Landlock, false, nr::SYS_socket, [nr::AF_UNIX as u32, 1, 0, 0, 0, 0]),
            errno(nr::EACCES)
        );
        let pair = |kind: i32| ask(Tier::Landlock, false, nr::SYS_socketpair, [1, kind as u32, 0, 0, 0, 0]);
        assert_eq!(pair(nr::SOCK_STREAM | nr::SOCK_CLOEXEC), nr::SECCOMP_RET_ALLOW);
        assert_eq!(pair(nr::SOCK_DGRAM), errno(nr::EACCES));
    }

    #[test]
    fn set_user_id_files_cannot_be_made() {
        let full = |nr, arguments| ask(Tier::Full, false, nr, arguments);
        assert_eq!(full(nr::SYS_fchmodat, [0, 0, 0o4755, 0, 0, 0]), errno(nr::EPERM));
        assert_eq!(full(nr::SYS_fchmod, [0, 0o2755, 0, 0, 0, 0]), errno(nr::EPERM));
        assert_eq!(full(nr::SYS_fchmod, [0, 0o755, 0, 0, 0, 0]), nr::SECCOMP_RET_ALLOW);
        let create = nr::O_CREAT as u32;
        assert_eq!(full(nr::SYS_openat, [0, 0, create, 0o4755, 0, 0]), errno(nr::EPERM));
        assert_eq!(full(nr::SYS_openat, [0, 0, create, 0o644, 0, 0]), nr::SECCOMP_RET_ALLOW);
        assert_eq!(full(nr::SYS_openat, [0, 0, 0, 0o4755, 0, 0]), nr::SECCOMP_RET_ALLOW);
        assert_eq!(full(nr::SYS_openat, [0, 0, nr::O_TMPFILE as u32, 0o4755, 0, 0]), errno(nr::EPERM));
        assert_eq!(full(nr::SYS_openat, [0, 0, nr::O_DIRECTORY as u32, 0o4755, 0, 0]), nr::SECCOMP_RET_ALLOW);
        assert_eq!(full(nr::SYS_openat2, NO), errno(nr::ENOSYS));
    }

    #[test]
    fn attributes_are_supervised_where_no_mount_guards_them() {
        let both = |nr| [Tier::Full, Tier::Landlock].map(|tier| ask(tier, false, nr, NO));
        for nr in
            [nr::SYS_fchmodat, nr::SYS_fchown, nr::SYS_utimensat, nr::SYS_setxattr, nr::SYS_fremovexattr]
        {
            assert_eq!(both(nr), [nr::SECCOMP_RET_ALLOW, nr::SECCOMP_RET_USER_NOTIF], "call {nr}");
        }
        let setuid = [0, 0, 0o4755, 0, 0, 0];
        assert_eq!(ask(Tier::Landlock, false, nr::SYS_fchmodat, setuid), errno(nr::EPERM));
        let flags = [0, nr::FS_IOC_SETFLAGS as u32, 0, 0, 0, 0];
        assert_eq!(ask(Tier::Landlock, false, nr::SYS_ioctl, flags), errno(nr::EPERM));
        assert_eq!(ask(Tier::Full, false, nr::SYS_ioctl, flags), nr::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn every_supervised_call_has_a_reader() {
        let supervised = SIMPLE.iter().filter(|rule| rule.answer == Answer::Supervise);
        let numbers: Vec<_> = supervised.map(|rule| rule.nr).collect();
        assert!(numbers.len() >= 12, "{numbers:?}");
        for nr in numbers {
            assert!(crate::attributes::reader(nr.into()).is_some(), "call {nr}");
        }
    }

    #[test]
    fn terminal_injection_is_refused() {
        let ioctl = |command: u64| ask(Tier::Full, false, nr::SYS_ioctl, [0, command as u32, 0, 0, 0, 0]);
        assert_eq!(ioctl(nr::TIOCSTI), errno(nr::EPERM));
        assert_eq!(ioctl(nr::TIOCGWINSZ), nr::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn without_a_pid_namespace_only_oneself_is_limited_and_scheduled() {
        let landlock = |nr, arguments| ask(Tier::Landlock, false, nr, arguments);
        for call in [nr::SYS_prlimit64, nr::SYS_sched_setaffinity, nr::SYS_sched_setattr] {
            assert_eq!(landlock(call, [4711, 0, 0, 0, 0, 0]), errno(nr::EPERM));
            assert_eq!(landlock(call, NO), nr::SECCOMP_RET_ALLOW);
            assert_eq!(ask(Tier::Full, false, call, [4711, 0, 0, 0, 0, 0]), nr::SECCOMP_RET_ALLOW);
        }
        let priority = |which: u32, who| landlock(nr::SYS_setpriority, [which, who, 5, 0, 0, 0]);
        assert_eq!(priority(nr::PRIO_PROCESS, 0), nr::SECCOMP_RET_ALLOW);
        assert_eq!(priority(nr::PRIO_PROCESS, 4711), errno(nr::EPERM));
        assert_eq!(priority(nr::PRIO_USER, 0), errno(nr::EPERM), "all processes of the user");
    }
}
