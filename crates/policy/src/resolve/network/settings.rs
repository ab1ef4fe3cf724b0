//! Merging what the network part says beside its rules.

use toml::Spanned;

use super::Merge;
use crate::document::Document;
use crate::file::LeaksSection;
use crate::{Layer, LeakAction, Leaks, Network, Notice, NoticeKind};

impl Merge<'_> {
    pub(super) fn merge_settings(&mut self, document: &Document, merged: &mut Network) {
        self.merge_timeout(document, merged);
        self.merge_proxy(document, merged);
        self.merge_leaks(document, &mut merged.leaks);
    }

    fn merge_timeout(&mut self, document: &Document, merged: &mut Network) {
        let Some(wanted) = &document.file.network.ask_timeout else { return };
        let timeout = *wanted.get_ref();
        if document.trusted || timeout < merged.ask_timeout {
            merged.ask_timeout = timeout;
        } else if timeout > merged.ask_timeout {
            let origin = document.origin(wanted.span().start, &timeout.to_string());
            self.not_heard(&format!("network.ask_timeout = \"{timeout}\""), origin);
        }
    }

    /// A proxy sees everything that is not encrypted, so an untrusted document has no say.
    fn merge_proxy(&mut self, document: &Document, merged: &mut Network) {
        let Some(wanted) = &document.file.network.upstream_proxy else { return };
        let proxy = wanted.get_ref();
        if document.trusted {
            merged.upstream_proxy = proxy.clone();
        } else if *proxy != merged.upstream_proxy {
            let origin = document.origin(wanted.span().start, &proxy.to_string());
            self.not_heard(&format!("network.upstream_proxy = \"{proxy}\""), origin);
        }
    }

    fn merge_leaks(&mut self, document: &Document, leaks: &mut Leaks) {
        for (action, (class, wanted)) in actions(leaks).into_iter().zip(written(&document.file.network.leaks))
        {
            let Some(wanted) = wanted else { continue };
            let stricter = *wanted.get_ref();
            if document.trusted || stricter > *action {
                *action = stricter;
            } else if stricter < *action {
                let origin = document.origin(wanted.span().start, &stricter.to_string());
                self.not_heard(&format!("network.leaks.{class} = \"{stricter}\""), origin);
            }
        }
    }

    /// What the system policy says holds whatever came after: at most its time, at least its strictness, its proxy.
    pub(super) fn bind_settings(&mut self, merged: &mut Network) {
        for document in self.stack.documents.iter().filter(|document| document.layer == Layer::System) {
            let section = &document.file.network;
            if let Some(timeout) = &section.ask_timeout {
                merged.ask_timeout = merged.ask_timeout.min(*timeout.get_ref());
            }
            for (action, (_, wanted)) in actions(&mut merged.leaks).into_iter().zip(written(&section.leaks)) {
                *action = wanted.as_ref().map_or(*action, |wanted| *wanted.get_ref().max(action));
            }
            let Some(proxy) = &section.upstream_proxy else { continue };
            if *proxy.get_ref() != merged.upstream_proxy {
                let origin = document.origin(proxy.span().start, &proxy.get_ref().to_string());
                self.notices.push(Notice {
                    kind: NoticeKind::Ceiling,
                    message: format!(
                        "network.upstream_proxy = \"{}\" is not applied: the system policy names the proxy ({origin})",
                        merged.upstream_proxy
                    ),
                    hint: None,
                    origin: Some(origin),
                });
                merged.upstream_proxy = proxy.get_ref().clone();
            }
        }
    }
}

/// The classes in one order...
fn actions(leaks: &mut Leaks) -> [&mut LeakAction; 4] {
    [&mut leaks.decoys, &mut leaks.private_keys, &mut leaks.tokens, &mut leaks.personal]
}

/// ...and as a file has them.
fn written(section: &LeaksSection) -> [(&'static str, &Option<Spanned<LeakAction>>); 4] {
    [
        ("decoys", &section.decoys),
        ("private_keys", &section.private_keys),
        ("tokens", &section.tokens),
        ("personal", &section.personal),
    ]
}

#[cfg(test)]
mod tests {
    use crate::testbed::{Machine, project, system, user};
    use crate::{CommandLine, LeakAction, NoticeKind, ResolvedPolicy, Source};

    fn resolve(sources: &[Source]) -> ResolvedPolicy {
        Machine::with(&[]).resolve(sources, &CommandLine::default())
    }

    #[test]
    fn what_nobody_said_has_its_default() {
        let network = resolve(&[]).network;
        assert_eq!(network.ask_timeout.to_string(), "2m");
        assert_eq!(network.upstream_proxy.to_string(), "env");
        let leaks = network.leaks.classes().map(|(class, action)| format!("{class} {action}"));
        assert_eq!(leaks, ["decoys block", "private_keys block", "tokens alert", "personal off"]);
    }

    const LOOSE: &str = r#"
        [network]
        ask_timeout = "1h"
        upstream_proxy = "http://evil.example:3128"
        [network.leaks]
        decoys = "off"
        tokens = "off"
        personal = "alert"
    "#;

    #[test]
    fn an_untrusted_project_only_makes_it_stricter() {
        let policy = resolve(&[project(false, LOOSE)]);
        let network = &policy.network;
        assert_eq!(network.ask_timeout.to_string(), "2m");
        assert_eq!(network.upstream_proxy.to_string(), "env");
        assert_eq!((network.leaks.decoys, network.leaks.tokens), (LeakAction::Block, LeakAction::Alert));
        assert_eq!(network.leaks.personal, LeakAction::Alert);
        let notices = policy.notices.iter().filter(|notice| notice.kind == NoticeKind::Untrusted);
        assert_eq!(notices.count(), 4, "{:?}", policy.notices);
        let short = resolve(&[project(false, "[network]\nask_timeout = \"5s\"")]);
        assert_eq!(short.network.ask_timeout.to_string(), "5s");
    }

    #[test]
    fn a_trusted_one_is_heard() {
        let policy = resolve(&[project(true, LOOSE)]);
        assert_eq!(policy.network.ask_timeout.to_string(), "1h");
        assert_eq!(policy.network.leaks.decoys, LeakAction::Off);
        assert_eq!(policy.network.upstream_proxy.to_string(), "http://evil.example:3128");
    }

    #[test]
    fn the_system_policy_binds_whatever_came_after() {
        let bound = r#"
            [network]
            ask_timeout = "30s"
            upstream_proxy = "http://proxy.example:3128"
            [network.leaks]
            tokens = "block"
        "#;
        let policy = resolve(&[system(bound), user(LOOSE)]);
        assert_eq!(policy.network.ask_timeout.to_string(), "30s");
        assert_eq!(policy.network.upstream_proxy.to_string(), "http://proxy.example:3128");
        assert_eq!(
            (policy.network.leaks.tokens, policy.network.leaks.decoys),
            (LeakAction::Block, LeakAction::Off)
        );
        assert!(policy.notices.iter().any(|notice| notice.kind == NoticeKind::Ceiling));
    }
}
