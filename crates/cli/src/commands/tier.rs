//! The tier that a command would run in here, and its names in each crate.

use redoma_sandbox::homes::Homes;

use crate::args::TierArg;

/// The best tier of this machine.
pub(crate) fn of_machine() -> anyhow::Result<redoma_policy::Tier> {
    let probes = redoma_sandbox::machine::probes(&Homes::from_env()?);
    Ok(redoma_sandbox::machine::choose_tier(&probes, None)?)
}

/// The policy's name for a tier of the jail.
pub(crate) fn of_jail(tier: redoma_jail::Tier) -> redoma_policy::Tier {
    match tier {
        redoma_jail::Tier::Full => redoma_policy::Tier::Full,
        redoma_jail::Tier::Landlock => redoma_policy::Tier::Landlock,
    }
}

/// The red team's name for a tier that was typed, or of this machine.
pub(crate) fn of_redteam(typed: Option<TierArg>) -> anyhow::Result<redoma_redteam::Tier> {
    Ok(match typed.map_or_else(of_machine, |tier| Ok(tier.into()))? {
        redoma_policy::Tier::Full => redoma_redteam::Tier::Full,
        redoma_policy::Tier::Landlock => redoma_redteam::Tier::Landlock,
    })
}
