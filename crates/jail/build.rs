//! Turns `data/seccomp.toml` into tables of constants, so that no run parses it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::{env, fs, path::PathBuf};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    allow: Vec<Calls>,
    supervise: Vec<Calls>,
    check: Vec<Check>,
    refuse: Vec<Calls>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Calls {
    #[serde(rename = "reason")]
    _reason: String,
    calls: Vec<String>,
    #[serde(default)]
    x86_64: Vec<String>,
    #[serde(default)]
    aarch64: Vec<String>,
    errno: Option<String>,
    #[serde(flatten)]
    scope: Scope,
}

#[derive(Deserialize)]
struct Scope {
    tier: Option<String>,
    only: Option<String>,
    unless: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    #[serde(rename = "reason")]
    _reason: String,
    call: String,
    #[serde(rename = "where")]
    guard: Option<Guard>,
    argument: usize,
    #[serde(default = "every_bit")]
    bits: u32,
    #[serde(flatten)]
    test: Test,
    errno: String,
    tier: Option<String>,
    only: Option<String>,
    unless: Option<String>,
    arch: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Test {
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
    AnyBit(Vec<String>),
}

#[derive(Deserialize)]
struct Guard {
    argument: usize,
    #[serde(flatten)]
    test: Test,
}

fn every_bit() -> u32 {
    u32::MAX
}

fn main() {
    println!("cargo::rerun-if-changed=data/seccomp.toml");
    let text = fs::read_to_string("data/seccomp.toml").expect("data/seccomp.toml is part of the crate");
    let rules: Rules = toml::from_str(&text).expect("data/seccomp.toml follows the model in build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("seccomp_rules.rs");
    fs::write(out, generate(&rules)).expect("OUT_DIR is writable");
}

fn generate(rules: &Rules) -> String {
    let mut code = String::from("pub(super) const SIMPLE: &[Simple] = &[\n");
    let groups = |list: &[Calls], answer: fn(&Calls) -> String| -> String {
        list.iter().map(|group| group.to_rust(&answer(group))).collect()
    };
    code += &groups(&rules.allow, |_| "Answer::Allow".to_owned());
    code += &groups(&rules.supervise, |_| "Answer::Supervise".to_owned());
    code += &groups(&rules.refuse, |group| refusal(group.errno.as_ref().expect("a refusal has an errno")));
    code.push_str("];\npub(super) const CHECKS: &[Check] = &[\n");
    for check in &rules.check {
        let _ = writeln!(code, "{},", check.to_rust());
    }
    code.push_str("];\npub(super) const NAMES: &[(u32, &str)] = &[\n");
    code += &names(rules);
    code.push_str("];\n");
    code
}

/// Every call of the file with its number, once.
fn names(rules: &Rules) -> String {
    let groups = rules.allow.iter().chain(&rules.supervise).chain(&rules.refuse).flat_map(Calls::named);
    let checks = rules.check.iter().map(|check| (check.call.as_str(), cfg(check.arch.as_deref())));
    let of_any = groups.map(|(call, cfg)| (call, cfg.to_owned())).chain(checks);
    let all: BTreeSet<(&str, String)> = of_any.collect();
    all.iter().map(|(call, cfg)| format!("{cfg}(nr::SYS_{call} as u32, \"{call}\"),\n")).collect()
}

fn cfg(arch: Option<&str>) -> String {
    arch.map_or(String::new(), |arch| format!("#[cfg(target_arch = \"{arch}\")]\n"))
}

impl Calls {
    fn to_rust(&self, answer: &str) -> String {
        let scope = scope(&self.scope);
        let rule = |(call, arch)| {
            format!("{arch}Simple {{ nr: nr::SYS_{call} as u32, answer: {answer}, scope: {scope} }},\n")
        };
        self.named().map(rule).collect()
    }

    /// Each call with the `cfg` attribute it needs.
    fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        let any = self.calls.iter().map(|call| (call.as_str(), ""));
        let x86_64 = self.x86_64.iter().map(|call| (call.as_str(), "#[cfg(target_arch = \"x86_64\")]\n"));
        let aarch64 = self.aarch64.iter().map(|call| (call.as_str(), "#[cfg(target_arch = \"aarch64\")]\n"));
        any.chain(x86_64).chain(aarch64)
    }
}

impl Check {
    fn to_rust(&self) -> String {
        let scope =
            scope(&Scope { tier: self.tier.clone(), only: self.only.clone(), unless: self.unless.clone() });
        let guard = self.guard.as_ref().map_or("None".to_owned(), |guard| {
            format!("Some(Guard {{ argument: {}, test: {} }})", guard.argument, guard.test.to_rust())
        });
        let arch = cfg(self.arch.as_deref());
        format!(
            "{arch}Check {{ nr: nr::SYS_{} as u32, guard: {guard}, argument: {}, bits: {:#x}, test: {}, answer: {}, scope: {scope} }}",
            self.call,
            self.argument,
            self.bits,
            self.test.to_rust(),
            refusal(&self.errno)
        )
    }
}

impl Test {
    fn to_rust(&self) -> String {
        match self {
            Self::OneOf(names) => format!("Test::OneOf(&[{}])", constants(names)),
            Self::NoneOf(names) => format!("Test::NoneOf(&[{}])", constants(names)),
            Self::AnyBit(names) => format!("Test::AnyBit(&[{}])", constants(names)),
        }
    }
}

fn refusal(errno: &str) -> String {
    format!("Answer::Refuse(nr::{errno} as u16)")
}

fn scope(scope: &Scope) -> String {
    let tier = match scope.tier.as_deref() {
        None => "None",
        Some("full") => "Some(Tier::Full)",
        Some("landlock") => "Some(Tier::Landlock)",
        Some(other) => panic!("no tier {other}"),
    };
    let conditions = [scope.only.as_deref(), scope.unless.as_deref()];
    if let Some(unknown) = conditions.iter().flatten().find(|name| !["nested_userns", "wire"].contains(name))
    {
        panic!("no condition {unknown}");
    }
    let when = |name| match conditions.map(|condition| condition == Some(name)) {
        [false, false] => "None",
        [true, false] => "Some(true)",
        [false, true] => "Some(false)",
        [true, true] => panic!("never {name}"),
    };
    format!("Scope {{ tier: {tier}, nested: {}, wire: {} }}", when("nested_userns"), when("wire"))
}

fn constants(names: &[String]) -> String {
    names.iter().map(|name| constant(name)).collect::<Vec<_>>().join(", ")
}

fn constant(name: &str) -> String {
    match name {
        "PER_LINUX" | "NO_LENGTH" | "SELF" => "0".to_owned(),
        // See ioprio_set(2), linux/fs.h, linux/fscrypt.h and linux/fsverity.h: libc has none of these.
        "IOPRIO_WHO_PROCESS" => "1".to_owned(),
        "FS_IOC_FSSETXATTR" => "0x401c_5820".to_owned(),
        "FS_IOC_SET_ENCRYPTION_POLICY" => "0x800c_6613".to_owned(),
        "FS_IOC_ENABLE_VERITY" => "0x4080_6685".to_owned(),
        // O_TMPFILE is this bit and O_DIRECTORY, which means nothing by itself here.
        "O_TMPFILE_BIT" => "((nr::O_TMPFILE & !nr::O_DIRECTORY) as u32)".to_owned(),
        "PER_ASK" => "0xffff_ffff".to_owned(),
        name => format!("(nr::{name} as u32)"),
    }
}
