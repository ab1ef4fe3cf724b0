//! Every attempt of `redoma-redteam`, from inside a real sandbox, in every tier that promises to stop it.
//!
//! What runs with nothing around it is tested beside the attempts; here the same runs under `redoma run`,
//! and the table says what stopped each. Run it as root and as an ordinary user: `cargo xtask test` does.

#![allow(clippy::print_stdout, reason = "the table is what this suite is for")]

mod network;
mod sessions;
mod siege;

use redoma_redteam::{Section, Tier};
use siege::{Around, Row};

/// Besieges one tier with one section, shows the table, and fails on what was not stopped.
fn besiege(around: Around, section: Section) {
    let rows = siege::rows(around, section);
    let table: String = rows.iter().map(Row::to_string).collect();
    println!("{table}");
    siege::record(&table);
    let breaches: String = rows.iter().filter(|row| row.breach()).map(Row::to_string).collect();
    assert!(breaches.is_empty(), "not stopped:\n{breaches}");
    // Root can have every limit of the full tier: a refusal there would hide that nothing is enforced.
    let lacking = rows.iter().any(Row::refused) && around == Around::Redoma(Tier::Full);
    assert!(!(lacking && rustix::process::geteuid().is_root()), "root is refused a limit");
    assert!(
        rows.iter().any(|row| row.tried() || row.refused()),
        "nothing of {section:?} can be tried on this kernel"
    );
}

macro_rules! sieges {
    ($($section:ident: $full:ident, $landlock:ident;)*) => {$(
        #[test]
        fn $full() {
            besiege(Around::Redoma(Tier::Full), Section::$section);
        }

        #[test]
        fn $landlock() {
            besiege(Around::Redoma(Tier::Landlock), Section::$section);
        }
    )*};
}

sieges! {
    Files: files_hold_in_the_full_tier, files_hold_in_the_landlock_tier;
    Processes: processes_hold_in_the_full_tier, processes_hold_in_the_landlock_tier;
    Kernel: kernel_holds_in_the_full_tier, kernel_holds_in_the_landlock_tier;
    Limits: limits_hold_in_the_full_tier, limits_hold_in_the_landlock_tier;
    NetworkNone: network_none_holds_in_the_full_tier, network_none_holds_in_the_landlock_tier;
}

/// The same attempts against a peer: what they find there shows that they find something.
#[test]
#[ignore = "a look at a peer, not a test of Redoma"]
fn bubblewrap_stops() {
    redoma_tests::requires!("bwrap");
    for section in
        [Section::Files, Section::Processes, Section::Kernel, Section::Limits, Section::NetworkNone]
    {
        let table: String = siege::rows(Around::Bubblewrap, section).iter().map(Row::to_string).collect();
        println!("{table}");
    }
}
