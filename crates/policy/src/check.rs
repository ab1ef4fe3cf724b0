//! Combinations inside one document that the types cannot exclude.

use std::ops::Range;

use toml::Spanned;

use crate::document::Document;
use crate::file::{RuleSection, SecretKind, SecretSection};
use crate::{Action, Layer, NetworkDefault, PolicyError, Protocol, Workspace};

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
    check_inside(document, rule)?;
    check_opening(document, rule)?;
    if let Some(methods) = &rule.methods {
        let token = |method: &String| !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
        if !methods.get_ref().iter().all(token) {
            let help = "write \"GET\" or \"POST\"";
            return refuse(document, methods.span(), "a method is a word in capitals", help);
        }
    }
    match &rule.paths {
        Some(paths) => check_paths(document, paths),
        None => Ok(()),
    }
}

/// What only a look inside can tell.
fn check_inside(document: &Document, rule: &RuleSection) -> Result<(), PolicyError> {
    if rule.action == Action::Inspect {
        return Ok(());
    }
    let http = rule.protocol.as_ref().filter(|protocol| *protocol.get_ref() == Protocol::Http);
    let inside = [
        ("methods", rule.methods.as_ref().map(Spanned::span)),
        ("paths", rule.paths.as_ref().map(Spanned::span)),
        ("max_upload", rule.max_upload.as_ref().map(Spanned::span)),
        ("pinned", rule.pinned.as_ref().map(Spanned::span)),
        ("protocol = \"http\"", http.map(Spanned::span)),
    ];
    let Some((key, Some(span))) = inside.into_iter().find(|(_, span)| span.is_some()) else { return Ok(()) };
    let message = format!("`{key}` needs a look inside, and the action is `{}`", rule.action);
    refuse(document, span, &message, "set `action = \"inspect\"`")
}

/// What says something about connections that get out. A deny rule that seemed to hold only within a limit would be
/// read as two different things.
fn check_opening(document: &Document, rule: &RuleSection) -> Result<(), PolicyError> {
    if rule.action != Action::Deny {
        return Ok(());
    }
    let opening = [
        ("protocol", rule.protocol.as_ref().map(Spanned::span)),
        ("max_upload_session", rule.max_upload_session.as_ref().map(Spanned::span)),
        ("rate", rule.rate.as_ref().map(Spanned::span)),
        ("private", rule.private.as_ref().map(Spanned::span)),
    ];
    let Some((key, Some(span))) = opening.into_iter().find(|(_, span)| span.is_some()) else { return Ok(()) };
    let message = format!("`{key}` is about what gets out, and the action is `deny`");
    refuse(document, span, &message, "leave it out: a deny rule holds without conditions")
}

fn check_paths(document: &Document, paths: &Spanned<Vec<String>>) -> Result<(), PolicyError> {
    let well_formed = |path: &String| path.starts_with('/') && fast_glob::validate(path).is_ok();
    if !paths.get_ref().iter().all(well_formed) {
        let message = "a request path begins with `/` and is a well-formed glob";
        return refuse(document, paths.span(), message, "write \"/v1/**\"");
    }
    // What is matched is decoded, so an escape in a glob would never match.
    if paths.get_ref().iter().any(|path| path.replace("%2F", "").contains('%')) {
        let message = "paths are matched decoded: only a slash that is part of a name is written `%2F`";
        return refuse(document, paths.span(), message, "write the character itself");
    }
    Ok(())
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
    check_place(document, secret)
}

/// Where a secret is put, in one way only.
fn check_place(document: &Document, secret: &Spanned<SecretSection>) -> Result<(), PolicyError> {
    let section = secret.get_ref();
    let refuse = |message, help| refuse(document, secret.span(), message, help);
    let ways =
        [section.header.is_some(), section.query.is_some(), section.basic.is_some(), section.aws.is_some()];
    if ways.into_iter().filter(|given| *given).count() > 1 {
        let help = "leave one of `header`, `query`, `basic` and `aws`";
        return refuse("a secret is put in one place of a request", help);
    }
    // RFC 9110, section 5.1: a field name is a token.
    let token = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if section.header.as_deref().is_some_and(|header| !token(header)) {
        return refuse("`header` is no header's name", "write \"x-api-key\"");
    }
    let key = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && !b"&=#%+?".contains(&b))
    };
    if section.query.as_deref().is_some_and(|query| !key(query)) {
        return refuse("`query` is no key of a query", "write \"api_key\"");
    }
    // RFC 7617, section 2: a user name holds no colon, since the password begins after the first.
    let user = |name: &str| !name.is_empty() && !name.chars().any(|c| c == ':' || c.is_control());
    if section.basic.as_deref().is_some_and(|basic| !user(basic)) {
        return refuse("`basic` is no user's name", "write \"x-access-token\", or \"*\" for any");
    }
    match &section.aws {
        Some(aws) if !is_variable(&aws.access_key_id) || !is_variable(&aws.session_token) => {
            refuse("`aws` names no variables", "aws = {} takes AWS_ACCESS_KEY_ID and AWS_SESSION_TOKEN")
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
