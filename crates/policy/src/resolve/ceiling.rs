//! The system policy's ceiling, applied to the finished policy so that no road around it is left.

use std::path::{Path, PathBuf};

use super::places::{Places, literal};
use super::{Stack, expanded};
use crate::document::Document;
use crate::file::{CeilingSection, Entries};
use crate::{
    Access, Action, CommandLine, Grant, Host, HostPattern, Layer, NetworkDefault, Notice, NoticeKind, Origin,
    PolicyError, ResolvedPolicy, Surroundings,
};

/// Cuts off what lies above the ceiling, with a notice each; what was typed is an error, since whoever types is there.
pub(super) fn apply(
    policy: &mut ResolvedPolicy,
    stack: &Stack,
    typed: &CommandLine,
    world: &Surroundings<'_>,
) -> Result<(), PolicyError> {
    for document in stack.documents.iter().filter(|document| document.layer == Layer::System) {
        let Some(section) = &document.file.ceiling else { continue };
        let ceiling = Ceiling {
            section: section.get_ref(),
            origin: document.origin(section.span().start, "[ceiling]"),
            document,
            world,
        };
        ceiling.bound_grants(policy)?;
        ceiling.bound_hosts(policy)?;
        ceiling.bound_private(policy);
        ceiling.bound_default(policy, typed)?;
        ceiling.bound_kernel(policy);
    }
    Ok(())
}

struct Ceiling<'a> {
    section: &'a CeilingSection,
    origin: Origin,
    document: &'a Document,
    world: &'a Surroundings<'a>,
}

impl Ceiling<'_> {
    fn bound_grants(&self, policy: &mut ResolvedPolicy) -> Result<(), PolicyError> {
        let read = self.folders(self.section.read.as_ref())?;
        let write = self.folders(self.section.write.as_ref())?;
        let below = |folders: &Option<Vec<PathBuf>>, path: &Path| {
            folders.as_ref().is_none_or(|folders| folders.iter().any(|folder| path.starts_with(folder)))
        };
        let writable = |grant: &Grant| below(&write, &grant.path);
        let readable = |grant: &Grant| below(&read, &grant.path) || (write.is_some() && writable(grant));
        let mut kept = Vec::with_capacity(policy.filesystem.grants.len());
        for mut grant in std::mem::take(&mut policy.filesystem.grants) {
            let access = match grant.access {
                _ if grant.system || grant.origin.layer == Layer::System => Some(grant.access),
                Access::Write if writable(&grant) => Some(Access::Write),
                _ if readable(&grant) => Some(Access::Read),
                _ => None,
            };
            if access != Some(grant.access) {
                let notable = grant.origin.layer != Layer::Builtin || grant.path == policy.project;
                self.cut(
                    policy,
                    &format!("{} {}", grant.access, grant.path.display()),
                    &grant.origin,
                    notable,
                )?;
            }
            if let Some(access) = access {
                grant.access = access;
                kept.push(grant);
            }
        }
        policy.filesystem.grants = kept;
        Ok(())
    }

    fn folders(&self, list: Option<&Entries>) -> Result<Option<Vec<PathBuf>>, PolicyError> {
        let Some(list) = list else { return Ok(None) };
        let mut places = Places::new(self.world.paths);
        let mut folders = Vec::with_capacity(list.len());
        for entry in self.document.entries(list) {
            if let Some(text) = expanded(&entry, self.world)? {
                folders.push(places.place(&literal(&text).0).target);
            }
        }
        Ok(Some(folders))
    }

    fn bound_hosts(&self, policy: &mut ResolvedPolicy) -> Result<(), PolicyError> {
        let Some(hosts) = &self.section.hosts else { return Ok(()) };
        let named = |host: &HostPattern| hosts.iter().any(|bound| bound.contains(host));
        let mut kept = Vec::with_capacity(policy.network.rules.len());
        for rule in std::mem::take(&mut policy.network.rules) {
            if rule.action == Action::Deny || named(&rule.host) {
                kept.push(rule);
            } else {
                let notable = rule.origin.layer != Layer::Builtin;
                self.cut(policy, &format!("{} {}", rule.action, rule.host), &rule.origin, notable)?;
            }
        }
        policy.network.rules = kept;
        if !hosts.iter().any(|host| host.matches(&Host::localhost())) {
            policy.network.local.reach.clear();
        }
        Ok(())
    }

    fn bound_private(&self, policy: &mut ResolvedPolicy) {
        if self.section.private != Some(false) {
            return;
        }
        let mut cut = Vec::new();
        for rule in policy.network.rules.iter_mut().filter(|rule| rule.private) {
            rule.private = false;
            cut.push((rule.host.to_string(), rule.origin.clone()));
        }
        for (host, origin) in cut {
            self.notice(policy, &format!("private = true for {host}"), Some(origin));
        }
    }

    /// A list of hosts bounds the default as well: `allow` would reach every host that no rule names.
    fn bound_default(&self, policy: &mut ResolvedPolicy, typed: &CommandLine) -> Result<(), PolicyError> {
        let by_hosts = self.section.hosts.as_ref().map(|_| NetworkDefault::Deny);
        let Some(bound) = [by_hosts, self.section.network].into_iter().flatten().min() else { return Ok(()) };
        if policy.network.default <= bound {
            return Ok(());
        }
        let wanted = policy.network.default;
        policy.network.default = bound;
        match typed.net {
            Some(_) => self.refuse("--net", &wanted.to_string()),
            None => {
                self.notice(policy, &format!("network default \"{wanted}\""), None);
                Ok(())
            }
        }
    }

    fn bound_kernel(&self, policy: &mut ResolvedPolicy) {
        if policy.kernel.nested_userns && self.section.nested_userns == Some(false) {
            policy.kernel.nested_userns = false;
            self.notice(policy, "kernel.nested_userns = true", None);
        }
    }

    fn cut(
        &self,
        policy: &mut ResolvedPolicy,
        what: &str,
        origin: &Origin,
        notable: bool,
    ) -> Result<(), PolicyError> {
        if origin.layer == Layer::CommandLine {
            let flag = origin.file.as_deref().map(Path::to_string_lossy).unwrap_or_default();
            return self.refuse(&flag, &origin.text);
        }
        if notable {
            self.notice(policy, what, Some(origin.clone()));
        }
        Ok(())
    }

    fn refuse(&self, flag: &str, value: &str) -> Result<(), PolicyError> {
        Err(PolicyError::AboveCeiling {
            flag: flag.to_owned(),
            value: value.to_owned(),
            ceiling: Box::new(self.origin.clone()),
        })
    }

    fn notice(&self, policy: &mut ResolvedPolicy, what: &str, origin: Option<Origin>) {
        policy.notices.push(Notice {
            kind: NoticeKind::Ceiling,
            message: format!("{what} goes beyond the ceiling ({})", self.origin),
            hint: None,
            origin,
        });
    }
}
