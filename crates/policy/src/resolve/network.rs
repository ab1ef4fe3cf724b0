//! Merging the rules about hosts.

mod settings;
mod typed;

use std::num::NonZeroU16;

use super::Merge;
use crate::document::Document;
use crate::file::RuleSection;
use crate::{
    Action, HostPattern, Network, NetworkDefault, NetworkRule, Notice, NoticeKind, Origin, Pinned,
    PolicyError, Protocol, ResolvedPolicy,
};

/// Where a rule that opens something holds if it names no ports.
const WEB_PORTS: [u16; 2] = [443, 80];

impl Merge<'_> {
    pub(super) fn network(&mut self) -> Result<Network, PolicyError> {
        let mut merged = Network::default();
        for document in &self.stack.documents {
            self.merge_default(document, &mut merged);
            self.merge_rules(document, &mut merged);
            self.merge_local(document, &mut merged);
            self.merge_settings(document, &mut merged);
        }
        self.bind_settings(&mut merged);
        if let Some(typed) = self.typed.net {
            merged.default = typed;
        }
        self.merge_typed_hosts(&mut merged)?;
        Ok(merged)
    }

    fn merge_default(&mut self, document: &Document, merged: &mut Network) {
        let Some(wanted) = &document.file.network.default else { return };
        let default = *wanted.get_ref();
        if document.trusted || default < merged.default {
            merged.default = default;
        } else if default > merged.default {
            let origin = document.origin(wanted.span().start, &default.to_string());
            self.not_heard(&format!("network default \"{default}\""), origin);
        }
    }

    fn merge_rules(&mut self, document: &Document, merged: &mut Network) {
        for rule in &document.file.network.rule {
            let section = rule.get_ref();
            let origin = document.origin(rule.span().start, &section.host.to_string());
            // An `ask` may narrow today's default and widen tomorrow's, so of untrusted rules only a deny is heard.
            if document.trusted || section.action == Action::Deny {
                merged.rules.push(written_rule(section, origin));
            } else {
                self.not_heard(&format!("{} {}", section.action, section.host), origin);
            }
        }
    }

    fn merge_local(&mut self, document: &Document, merged: &mut Network) {
        let local = &document.file.network.local;
        if document.trusted {
            merged.local.publish.extend(local.publish.iter().map(|publish| *publish.get_ref()));
            merged.local.reach.extend(local.reach.iter().map(|reach| *reach.get_ref()));
            return;
        }
        let publish =
            local.publish.iter().map(|port| (port.span().start, format!("publish {}", port.get_ref())));
        let reach = local.reach.iter().map(|port| (port.span().start, format!("reach {}", port.get_ref())));
        for (at, what) in publish.chain(reach) {
            self.notices.push(super::not_heard(&what, document.origin(at, &what)));
        }
    }
}

/// A secret is put in only where a request is looked into. One that no rule could use is a mistake that would otherwise
/// show as a server's refusal of the placeholder.
pub(super) fn notice_idle_secrets(policy: &mut ResolvedPolicy) {
    let network = &policy.network;
    if network.default != NetworkDefault::Deny {
        return;
    }
    let inspected = |host: &HostPattern| {
        let mut looking =
            network.rules.iter().filter(|rule| matches!(rule.action, Action::Inspect | Action::Ask));
        looking.any(|rule| rule.host.contains(host) || host.contains(&rule.host))
    };
    let idle = policy.secrets.iter().flat_map(|secret| {
        let hosts = secret.hosts.iter().filter(|host| !inspected(host));
        hosts.map(move |host| (secret, host))
    });
    let notices = idle.map(|(secret, host)| Notice {
        kind: NoticeKind::Note,
        message: format!(
            "the secret {} is for {host}, which no rule lets through and looks into",
            secret.name
        ),
        hint: Some(format!("redoma allow {}", crate::decide::shell_word(&host.to_string()))),
        origin: Some(secret.origin.clone()),
    });
    policy.notices.extend(notices.collect::<Vec<_>>());
}

/// `host:port`, `[v6]:port`, or a host alone; an address of version 6 has colons of its own.
pub(crate) fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return (address, rest.strip_prefix(':'));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

fn web_ports() -> Vec<NonZeroU16> {
    WEB_PORTS.into_iter().filter_map(NonZeroU16::new).collect()
}

fn rule(host: HostPattern, ports: Vec<NonZeroU16>, action: Action, origin: Origin) -> NetworkRule {
    NetworkRule {
        host,
        ports,
        action,
        protocol: Protocol::Any,
        methods: Vec::new(),
        paths: Vec::new(),
        max_upload: None,
        max_upload_session: None,
        rate: None,
        pinned: Pinned::Block,
        private: false,
        purpose: None,
        origin,
    }
}

fn value<T: Copy>(key: &Option<toml::Spanned<T>>) -> Option<T> {
    key.as_ref().map(|value| *value.get_ref())
}

fn written_rule(section: &RuleSection, origin: Origin) -> NetworkRule {
    let every = || if section.action == Action::Deny { Vec::new() } else { web_ports() };
    let ports = section.ports.clone().unwrap_or_else(every);
    let list = |values: &Option<toml::Spanned<Vec<String>>>| {
        values.as_ref().map(|values| values.get_ref().clone()).unwrap_or_default()
    };
    NetworkRule {
        methods: list(&section.methods),
        paths: list(&section.paths),
        protocol: value(&section.protocol).unwrap_or_default(),
        max_upload: value(&section.max_upload),
        max_upload_session: value(&section.max_upload_session),
        rate: value(&section.rate),
        private: value(&section.private).unwrap_or_default(),
        purpose: section.purpose,
        pinned: value(&section.pinned).unwrap_or_default(),
        ..rule(section.host.clone(), ports, section.action, origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_told_from_an_address() {
        assert_eq!(split_port("a.com:8443"), ("a.com", Some("8443")));
        assert_eq!(split_port("a.com"), ("a.com", None));
        assert_eq!(split_port("2001:db8::1"), ("2001:db8::1", None));
        assert_eq!(split_port("[2001:db8::1]:443"), ("2001:db8::1", Some("443")));
    }
}
