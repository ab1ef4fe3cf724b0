//! The tier that a command would run in here, and its names in each crate.

use redoma_jail::Probes;

use crate::failure::hinted;

/// The best tier of this machine.
pub(crate) fn of_machine() -> anyhow::Result<redoma_policy::Tier> {
    Probes::run()
        .best_tier()
        .map(of_jail)
        .ok_or_else(|| hinted("nothing can be confined here", "redoma doctor"))
}

/// The policy's name for a tier of the jail.
pub(crate) fn of_jail(tier: redoma_jail::Tier) -> redoma_policy::Tier {
    match tier {
        redoma_jail::Tier::Full => redoma_policy::Tier::Full,
        redoma_jail::Tier::Landlock => redoma_policy::Tier::Landlock,
    }
}
