//! Compiles the system-call rules of `data/seccomp.toml` to a BPF program.
//!
//! The calls are sorted into ranges with one answer each and looked up by binary search: the kernel runs the
//! program once per call number when it is installed, to see which calls need no look at the arguments, and a
//! linear program of this size costs more there than all mounts together. See
//! `Documentation/userspace-api/seccomp_filter.rst`.

use std::collections::{BTreeMap, BTreeSet};

use redoma_sys::{Instruction, nr};

use crate::blueprint::Blueprint;
use redoma_policy::Tier;

use rules::{CHECKS, NAMES, SIMPLE};

/// What `build.rs` made of the file: `SIMPLE`, one answer for each call, `CHECKS`, by argument, and the calls' `NAMES`.
#[expect(clippy::unnecessary_cast, reason = "the kernel's constants have several types")]
mod rules {
    use redoma_policy::Tier;
    use redoma_sys::nr;

    use super::{Answer, Check, Guard, Scope, Simple, Test};

    include!(concat!(env!("OUT_DIR"), "/seccomp_rules.rs"));
}

/// The filter of a sandbox of this kind.
pub(crate) fn filter(setting: Setting) -> Vec<Instruction> {
    let mut program = prologue();
    search(&mut program, &ranges(&leaves(setting)));
    program
}

/// What there are different rules for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    tier: Tier,
    nested_userns: bool,
    wire: bool,
}

impl Setting {
    pub(crate) fn of(blueprint: &Blueprint) -> Self {
        let Blueprint { tier, nested_userns, ref wire, .. } = *blueprint;
        Self { tier, nested_userns, wire: wire.is_some() }
    }

    /// In a container: its namespaces are as a sandbox's of the full tier.
    pub(crate) fn of_guest(network: bool) -> Self {
        Self { tier: Tier::Full, nested_userns: false, wire: network }
    }
}

/// The names of all calls that a filter lets through for at least some arguments.
pub(crate) fn names_of(tier: Tier) -> BTreeSet<&'static str> {
    let setting = Setting { tier, nested_userns: false, wire: true };
    let allowed = |nr: u32| {
        let leaf = leaves(setting).get(&nr).cloned();
        leaf.is_some_and(|leaf| leaf.otherwise == Answer::Allow)
    };
    NAMES.iter().filter(|(nr, _)| allowed(*nr)).map(|(_, name)| *name).collect()
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
    AnyBit(&'static [u32]),
}

/// Where a rule holds: in one tier or in both; with nested user namespaces, without, or either way; with a network or
/// not.
struct Scope {
    tier: Option<Tier>,
    nested: Option<bool>,
    wire: Option<bool>,
}

impl Scope {
    fn holds(&self, setting: Setting) -> bool {
        self.tier.is_none_or(|only| only == setting.tier)
            && self.nested.is_none_or(|only| only == setting.nested_userns)
            && self.wire.is_none_or(|only| only == setting.wire)
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

fn leaves(setting: Setting) -> BTreeMap<u32, Leaf> {
    let mut leaves = BTreeMap::new();
    for rule in SIMPLE.iter().filter(|rule| rule.scope.holds(setting)) {
        leaves.entry(rule.nr).or_insert(Leaf { checks: Vec::new(), otherwise: rule.answer });
    }
    for check in CHECKS.iter().filter(|check| check.scope.holds(setting)) {
        let leaf = leaves.entry(check.nr).or_insert(Leaf { checks: Vec::new(), otherwise: Answer::Allow });
        leaf.checks.push(check);
    }
    allow_checked_calls_without_checks(&mut leaves, setting);
    leaves
}

/// `socketpair`, say, is checked in one tier only: where no check holds it is as the list of allowed calls says,
/// and a call that only ever stands in `check` (`ioctl`, `clone`) is allowed where its check does not hold.
fn allow_checked_calls_without_checks(leaves: &mut BTreeMap<u32, Leaf>, setting: Setting) {
    for check in CHECKS.iter().filter(|check| check.scope.tier.is_none_or(|only| only == setting.tier)) {
        if check.scope.nested.is_some_and(|only| only != setting.nested_userns) {
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
            Self::AnyBit(bits) => {
                let mask = bits.iter().fold(0, |mask, bit| mask | bit);
                vec![jump(nr::BPF_JSET, mask, 0, count as u8)]
            }
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
mod tests;
