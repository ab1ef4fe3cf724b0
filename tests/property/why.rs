//! What `redoma why` says: the library's answer, which the program must give too.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::Path;

use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};
use redoma_policy::{CommandLine, Effect, Place, Verdict};
use redoma_sandbox::settings::Settings;
use redoma_sandbox::why::Act;
use redoma_tests::{Project, Tier};

/// The policy of a project, resolved as `redoma` does it and looked up in what there is.
pub(crate) struct Why {
    library: redoma_sandbox::why::Why,
    tier: Tier,
}

impl Deref for Why {
    type Target = redoma_sandbox::why::Why;

    fn deref(&self) -> &Self::Target {
        &self.library
    }
}

impl Why {
    pub(crate) fn new(project: &Project<'_>, tier: Tier) -> Self {
        let variable = |name: &str| -> Option<OsString> {
            match name {
                "HOME" => Some(project.home().path().into()),
                "REDOMA_HOME" => Some(project.home().redoma().into()),
                "USER" => Some("test".into()),
                _ => None,
            }
        };
        let settings = Settings::at(project.path(), &variable).unwrap();
        let sources = settings.sources(None).unwrap();
        let policy = settings.resolve(&sources, &CommandLine::default()).unwrap();
        let kernel = match tier {
            Tier::Full => redoma_policy::Tier::Full,
            Tier::Landlock => redoma_policy::Tier::Landlock,
        };
        Self { library: redoma_sandbox::why::Why::new(&policy, kernel, &settings.homes).unwrap(), tier }
    }

    /// Asks the program the same.
    pub(crate) fn compare(&self, project: &Project<'_>, act: Act, typed: &Path) -> Result<(), TestCaseError> {
        let word = if act == Act::Read { "read" } else { "write" };
        let ran = project.redoma(["why", word, typed.to_str().unwrap(), "--json"]).tier(self.tier).run();
        prop_assert!(ran.code() < 2, "{ran:?}");
        let verdict = serde_json::to_value(self.path(act, typed).1).unwrap();
        for field in ["effect", "place", "because"] {
            prop_assert_eq!(&ran.json()[field], &verdict[field], "{:?}", ran);
        }
        Ok(())
    }
}

/// Whether the action works, and on the host's own file.
pub(crate) fn reaches_the_host(verdict: &Verdict) -> bool {
    verdict.effect == Effect::Allow && verdict.place == Place::Host
}
