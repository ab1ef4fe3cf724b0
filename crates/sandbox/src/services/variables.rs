//! `${NAME}` in files, as [Compose reads it](https://docs.docker.com/reference/compose-file/interpolation/), with two
//! departures: only variables that the user named are there, since whoever wrote the file could have asked for any secret of
//! the caller's environment; and one that is not there and has no default is an error, not an empty text.

/// Why a text was not expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unexpanded {
    /// A variable that nobody named.
    Unset { name: String, said: Option<String> },
    /// What stands after the `$` is no variable.
    Syntax,
}

/// `text` with its variables' values; `$$` is a `$`.
pub(super) fn expand(text: &str, vars: &dyn Fn(&str) -> Option<String>) -> Result<String, Unexpanded> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (value, left) = variable(after, vars)?;
        expanded.push_str(&value);
        rest = left;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// What a `$` was the beginning of, and what follows.
fn variable<'t>(
    after: &'t str,
    vars: &dyn Fn(&str) -> Option<String>,
) -> Result<(String, &'t str), Unexpanded> {
    if let Some(left) = after.strip_prefix('$') {
        return Ok(("$".to_owned(), left));
    }
    if let Some(inner) = after.strip_prefix('{') {
        let (inner, left) = inner.split_once('}').ok_or(Unexpanded::Syntax)?;
        return Ok((braced(inner, vars)?, left));
    }
    let (name, left) = name(after)?;
    let value = vars(name).ok_or_else(|| Unexpanded::Unset { name: name.to_owned(), said: None })?;
    Ok((value, left))
}

/// `NAME`, `NAME:-default`, `NAME-default`, `NAME:?message`, `NAME?message`, `NAME:+instead` or `NAME+instead`.
fn braced(inner: &str, vars: &dyn Fn(&str) -> Option<String>) -> Result<String, Unexpanded> {
    let (name, rest) = name(inner)?;
    let (empty_counts, rest) = rest.strip_prefix(':').map_or((true, rest), |rest| (false, rest));
    let value = vars(name).filter(|value| empty_counts || !value.is_empty());
    let unset =
        |said: Option<&str>| Unexpanded::Unset { name: name.to_owned(), said: said.map(str::to_owned) };
    let mut rest = rest.chars();
    match (rest.next(), value) {
        (None, value) if empty_counts => value.ok_or_else(|| unset(None)),
        (Some('-'), value) => Ok(value.unwrap_or_else(|| rest.as_str().to_owned())),
        (Some('?'), value) => value.ok_or_else(|| unset(Some(rest.as_str()))),
        (Some('+'), value) => Ok(value.map(|_| rest.as_str().to_owned()).unwrap_or_default()),
        _ => Err(Unexpanded::Syntax),
    }
}

fn name(text: &str) -> Result<(&str, &str), Unexpanded> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if starts { Ok(text.split_at(end)) } else { Err(Unexpanded::Syntax) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(name: &str) -> Option<String> {
        match name {
            "TAG" => Some("3.12".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_read_as_compose_reads_them() {
        for (text, wanted) in [
            ("python:$TAG-slim", "python:3.12-slim"),
            ("${TAG}", "3.12"),
            ("${NONE:-x}y", "xy"),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY-x}", ""),
            ("${TAG:+set}${NONE:+set}", "set"),
            ("${TAG:?why}", "3.12"),
            ("$$TAG $$", "$TAG $"),
            ("no dollar", "no dollar"),
        ] {
            assert_eq!(expand(text, &vars).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_not_named_is_told_by_name() {
        let unset =
            |said: Option<&str>| Unexpanded::Unset { name: "NONE".into(), said: said.map(str::to_owned) };
        assert_eq!(expand("a${NONE}", &vars), Err(unset(None)));
        assert_eq!(expand("${NONE:?say it}", &vars), Err(unset(Some("say it"))));
        for broken in ["${TAG", "$", "${}", "$1", "${TAG:}", "${TAG!x}", "${TAG/x/y}"] {
            assert_eq!(expand(broken, &vars), Err(Unexpanded::Syntax), "{broken}");
        }
    }
}
