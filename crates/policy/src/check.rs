//! Combinations inside one document that the types cannot exclude.

use std::ops::Range;

use toml::Spanned;

use crate::document::Document;
use crate::file::{RuleSection, SecretKind, SecretSection};
use crate::{Action, Layer, NetworkDefault, PolicyError, Workspace};

/// Refuses a document that says two things at once.
pub(crate) fn check(document: &Document) -> Result<(), PolicyError> {
    check_ceiling(document)?;
    check_workspace(document)?;
    check_no_network(document)?;
    document.file.network.rule.iter().try_for_each(|rule| check_rule(document, rule.get_ref()))?;
    document.file.secrets.iter().try_for_each(|(name, secret)| check_secret(document, name, secret))?;
    document.file.environment.set.keys().try_for_each(|name| check_name(document, name))
}

fn refuse(document: &Document, span: Range<usize>, message: &str, help: &str) -> Result<(), PolicyError> {
    Err(PolicyError::Combination(Box::new(document.located(span, message).help(help))))
}

fn check_ceiling(document: &Document) -> Result<(), PolicyError> {
    match &document.file.ceiling {
        Some(ceiling) if document.layer != Layer::System => refuse(
            document,
            ceiling.span(),
            "a ceiling belongs in the system policy alone",
            "put it into /etc/redoma/policy.toml",
        ),
        _ => Ok(()),
    }
}

fn check_workspace(document: &Document) -> Result<(), PolicyError> {
    let files = &document.file.filesystem;
    let overlay =
        files.workspace.as_ref().is_some_and(|workspace| *workspace.get_ref() == Workspace::Overlay);
    match &files.undo {
        Some(undo) if overlay && *undo.get_ref() => refuse(
            document,
            undo.span(),
            "undo has nothing to do with the overlay workspace, where changes wait to be applied",
            "leave out `undo`, or set `workspace = \"direct\"`",
        ),
        _ => Ok(()),
    }
}

fn check_no_network(document: &Document) -> Result<(), PolicyError> {
    let network = &document.file.network;
    if network.default.as_ref().is_none_or(|default| *default.get_ref() != NetworkDefault::None) {
        return Ok(());
    }
    let opening = network.rule.iter().find(|rule| rule.get_ref().action != Action::Deny).map(Spanned::span);
    let publish = network.local.publish.first().map(Spanned::span);
    let reach = network.local.reach.first().map(Spanned::span);
    match opening.or(publish).or(reach) {
        Some(span) => refuse(
            document,
            span,
            "this opens something, and `default = \"none\"` says there is no network",
            "set `default = \"deny\"`: then only what rules name is reached",
        ),
        None => Ok(()),
    }
}

fn check_rule(document: &Document, rule: &RuleSection) -> Result<(), PolicyError> {
    if rule.action != Action::Inspect {
        let inside = [
            ("methods", rule.methods.as_ref().map(Spanned::span)),
            ("paths", rule.paths.as_ref().map(Spanned::span)),
            ("max_upload", rule.max_upload.as_ref().map(Spanned::span)),
            ("pinned", rule.pinned.as_ref().map(Spanned::span)),
        ];
        if let Some((key, Some(span))) = inside.into_iter().find(|(_, span)| span.is_some()) {
            let message = format!("`{key}` needs a look inside, and the action is `{}`", rule.action);
            return refuse(document, span, &message, "set `action = \"inspect\"`");
        }
    }
    if let (Action::Deny, Some(private)) = (rule.action, &rule.private) {
        let message = "`private` opens something, and the action is `deny`";
        return refuse(document, private.span(), message, "a deny rule holds whatever a name leads to");
    }
    if let Some(methods) = &rule.methods {
        let token = |method: &String| !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
        if !methods.get_ref().iter().all(token) {
            return refuse(
                document,
                methods.span(),
                "a method is a word in capitals",
                "write \"GET\" or \"POST\"",
            );
        }
    }
    match &rule.paths {
        Some(paths) if !paths.get_ref().iter().all(|path| is_request_path(path)) => refuse(
            document,
            paths.span(),
            "a request path begins with `/` and is a well-formed glob",
            "write \"/v1/**\"",
        ),
        _ => Ok(()),
    }
}

fn is_request_path(path: &str) -> bool {
    path.starts_with('/') && fast_glob::validate(path).is_ok()
}

fn check_secret(
    document: &Document,
    name: &Spanned<String>,
    secret: &Spanned<SecretSection>,
) -> Result<(), PolicyError> {
    check_name(document, name)?;
    let section = secret.get_ref();
    let given = [
        ("variable", SecretKind::Env, section.variable.is_some()),
        ("path", SecretKind::File, section.path.is_some()),
        ("entry", SecretKind::Keyring, section.entry.is_some()),
        ("command", SecretKind::Command, section.command.as_ref().is_some_and(|words| !words.is_empty())),
    ];
    for (key, kind, present) in given {
        let needed = kind == section.from && kind != SecretKind::Env;
        if present && kind != section.from {
            let message = format!("`{key}` does not go with this `from`");
            return refuse(document, secret.span(), &message, "`from` and its key go together");
        }
        if needed && !present {
            let message = format!("`{key}` is missing");
            return refuse(
                document,
                secret.span(),
                &message,
                "`from` says where to look, this key says for what",
            );
        }
    }
    if section.hosts.is_empty() {
        let help = "name the hosts it may be sent to: hosts = [\"api.example.com\"]";
        return refuse(document, secret.span(), "a secret without hosts could never be used", help);
    }
    // RFC 9110, section 5.1: a field name is a token.
    let token =
        |name: &String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match &section.header {
        Some(header) if !token(header) => {
            refuse(document, secret.span(), "`header` is no header's name", "write \"x-api-key\"")
        }
        _ => Ok(()),
    }
}

fn check_name(document: &Document, name: &Spanned<String>) -> Result<(), PolicyError> {
    if is_variable(name.get_ref()) {
        return Ok(());
    }
    refuse(document, name.span(), "this is no variable's name", "letters, digits and `_`, no digit in front")
}

pub(crate) fn is_variable(name: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(inside)
}
