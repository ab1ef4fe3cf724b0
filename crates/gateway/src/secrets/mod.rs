//! Credentials that stay outside: loaded before there is a sandbox, known inside by a placeholder only, and put in on the
//! way to the hosts they are for.

mod apply;
mod load;
mod placeholder;
mod run;
mod secret;
mod sigv4;
#[cfg(test)]
mod tests;

use redoma_policy::{Host, SecretPlace, SecretRule};

pub(crate) use apply::Put;
pub use load::SecretError;
pub use secret::Secret;
pub(crate) use sigv4::BodyHash;

use crate::scan::{Class, Known};

/// The session's credentials.
#[derive(Debug, Default)]
pub struct Credentials {
    all: Vec<Credential>,
    absent: Vec<String>,
}

/// One credential, real and pretended.
#[derive(Debug)]
pub(crate) struct Credential {
    pub(crate) rule: SecretRule,
    real: Secret<String>,
    placeholder: Secret<String>,
    aws: Option<AwsKey>,
}

/// What belongs to an AWS secret access key.
#[derive(Debug)]
struct AwsKey {
    id: Pair,
    token: Option<Pair>,
}

/// A value and what stands inside for it, with the variable that holds it.
#[derive(Debug)]
struct Pair {
    variable: String,
    real: Secret<String>,
    placeholder: Secret<String>,
}

// === impl Credentials ===

impl Credentials {
    /// Loads what the rules name, and draws what stands inside for it. `variable` is the caller's environment. Commands
    /// are run here and waited for, and no thread is made.
    ///
    /// A credential whose variable is not set is left out, as it would be without Redoma; see [`Self::absent`].
    ///
    /// # Errors
    /// When one cannot be had, or cannot be put where it is to go.
    pub fn load(
        rules: &[SecretRule],
        variable: &dyn Fn(&str) -> Option<std::ffi::OsString>,
    ) -> Result<Self, SecretError> {
        let mut credentials = Self::default();
        for rule in rules {
            match load::credential(rule, variable)? {
                Some(credential) => credentials.all.push(credential),
                None => credentials.absent.push(rule.name.clone()),
            }
        }
        Ok(credentials)
    }

    /// Those whose variable is not set.
    #[must_use]
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The variables inside, with what stands for the values.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let pair = |pair: &Pair| (pair.variable.clone(), pair.placeholder.expose().clone());
        let of = |credential: &Credential| {
            let own = (credential.rule.name.clone(), credential.placeholder.expose().clone());
            let aws = credential.aws.iter().flat_map(|aws| [Some(&aws.id), aws.token.as_ref()]);
            [own].into_iter().chain(aws.flatten().map(pair)).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// What is looked for in everything that leaves. The id of a key is no secret, and not among it.
    pub(crate) fn known(&self) -> Vec<Known> {
        let both = |name: &str, real: &Secret<String>, placeholder: &Secret<String>| {
            let known =
                |class, value: &Secret<String>| Known { name: name.to_owned(), class, value: value.clone() };
            [known(Class::Placeholder, placeholder), known(Class::Credential, real)]
        };
        let of = |credential: &Credential| {
            let own = both(&credential.rule.name, &credential.real, &credential.placeholder);
            let token = credential.aws.as_ref().and_then(|aws| aws.token.as_ref());
            let token = token.map(|token| both(&credential.rule.name, &token.real, &token.placeholder));
            own.into_iter().chain(token.into_iter().flatten()).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// Whether the credential of this name is for this host.
    pub(crate) fn is_for(&self, name: &str, host: &Host) -> bool {
        self.all.iter().any(|credential| credential.rule.name == name && credential.is_for(host))
    }
}

// === impl Credential ===

impl Credential {
    pub(crate) fn is_for(&self, host: &Host) -> bool {
        self.rule.hosts.iter().any(|pattern| pattern.matches(host))
    }

    pub(crate) fn place(&self) -> &SecretPlace {
        &self.rule.place
    }
}
