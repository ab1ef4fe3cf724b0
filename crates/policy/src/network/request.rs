//! Whether a rule permits an HTTP request, by its method and path.
//!
//! What a path means is up to the server, and servers differ: in whether `%2F` is a slash, `//` is one, and `;x` is
//! part of a name. So a path is read in every way that is known of, and a rule must permit each. What leads upwards in
//! any of them, or hides something that no client needs to hide, is refused as ambiguous.

use std::collections::BTreeSet;

use super::NetworkRule;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestProblem {
    /// The rule names methods, and not this one.
    #[error("no rule lets this method through")]
    Method,
    /// The rule names paths, and none is this one.
    #[error("no rule lets this path through")]
    Path,
    /// Servers would read the path in different ways.
    #[error("the path is ambiguous: {0}")]
    Ambiguous(&'static str),
    /// A header would have the server take another method or path than the one that was judged.
    #[error("a header would replace the method or path that was judged")]
    Override,
}

/// Headers by which some frameworks and reverse proxies take a request for another. Lower case.
const OVERRIDES: [&str; 9] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-method",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
    "x-forwarded-uri",
    "x-forwarded-path",
];

// === impl NetworkRule ===

impl NetworkRule {
    /// Whether the rule lets a request through. `target` is its origin form (RFC 9112, section 3.2.1): the path and
    /// perhaps a query, or `*`. `HEAD` is let through wherever `GET` is: it says less.
    ///
    /// # Errors
    /// Says what stands against it.
    pub fn permits(&self, method: &str, target: &str) -> Result<(), RequestProblem> {
        let named = |wanted: &str| self.methods.iter().any(|own| own == wanted);
        let by_method = self.methods.is_empty() || named(method) || (method == "HEAD" && named("GET"));
        if !by_method {
            return Err(RequestProblem::Method);
        }
        if self.paths.is_empty() {
            return Ok(());
        }
        let readings = readings(target).map_err(RequestProblem::Ambiguous)?;
        let matched = |path: &String| self.paths.iter().any(|glob| fast_glob::glob_match(glob, path));
        if readings.iter().all(matched) { Ok(()) } else { Err(RequestProblem::Path) }
    }

    /// Whether the rule lets a header through, by its name in lower case: where methods or paths are limited, none that
    /// would replace them.
    ///
    /// # Errors
    /// Says that it would.
    pub fn permits_header(&self, name: &str) -> Result<(), RequestProblem> {
        let limited = !self.methods.is_empty() || !self.paths.is_empty();
        if limited && OVERRIDES.contains(&name) { Err(RequestProblem::Override) } else { Ok(()) }
    }
}

// === paths ===

/// Every way in which a server might read the path of a request, decoded.
fn readings(target: &str) -> Result<BTreeSet<String>, &'static str> {
    let path = target.split('?').next().unwrap_or(target);
    if !path.starts_with('/') {
        return Err("it does not begin with `/`");
    }
    let decoded = decode(path)?;
    let mut readings = BTreeSet::from([decoded]);
    for reading in [encoded_slashes, without_parameters, merged_slashes] {
        let more: Vec<String> = readings.iter().map(|path| reading(path)).collect();
        readings.extend(more);
    }
    let climbs = |path: &String| path.split('/').any(|segment| matches!(segment, "." | ".."));
    if readings.iter().any(climbs) {
        return Err("it has `.` or `..` for a name");
    }
    Ok(readings)
}

/// Percent-decodes (RFC 3986, section 2.1) everything but slashes, which stay `%2F`.
fn decode(path: &str) -> Result<String, &'static str> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let (value, after) = hex(after).ok_or("a `%` in it begins no escape")?;
                rest = after;
                match value {
                    b'/' => out.extend(b"%2F"),
                    b'%' if hex(after).is_some() => return Err("it is escaped twice"),
                    value => out.push(plain(value)?),
                }
            }
            b'#' => return Err("it has a fragment"),
            byte => out.push(plain(byte)?),
        }
    }
    String::from_utf8(out).map_err(|_| "it is not UTF-8")
}

/// Backslashes are slashes to some servers, and control characters end names in others.
fn plain(byte: u8) -> Result<u8, &'static str> {
    match byte {
        b'\\' => Err("it has a backslash"),
        0..=0x1f | 0x7f => Err("it has a control character"),
        byte => Ok(byte),
    }
}

/// Two hexadecimal digits and what follows them.
fn hex(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.split_at_checked(2)?;
    let digit = |at: usize| char::from(digits[at]).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok().map(|value| (value, rest))
}

fn encoded_slashes(path: &str) -> String {
    path.replace("%2F", "/")
}

/// Some servers take `;x=1` off each name before they look at it (RFC 3986, section 3.3).
fn without_parameters(path: &str) -> String {
    let names = path.split('/').map(|name| name.split(';').next().unwrap_or(name));
    names.collect::<Vec<_>>().join("/")
}

fn merged_slashes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !out.ends_with('/') {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testbed::{Machine, user};

    fn rule(limits: &str) -> NetworkRule {
        let text = format!("[[network.rule]]\nhost = \"example.com\"\naction = \"inspect\"\n{limits}\n");
        let policy = Machine::with(&[]).resolve(&[user(&text)], &crate::CommandLine::default());
        policy.network.rules[0].clone()
    }

    #[test]
    fn a_rule_without_limits_permits_everything() {
        for target in ["/", "/../x", "*", "/a%00", "//", "/a\\b", "x"] {
            assert_eq!(rule("").permits("BREW", target), Ok(()), "{target}");
        }
        assert_eq!(rule("").permits_header("x-original-url"), Ok(()));
    }

    #[test]
    fn methods_are_compared_as_they_are() {
        let rule = rule("methods = [\"GET\", \"POST\"]");
        for method in ["GET", "HEAD", "POST"] {
            assert_eq!(rule.permits(method, "/../x"), Ok(()), "{method}");
        }
        for method in ["get", "GETX", "", "PUT", "DELETE", "GET ", "CONNECT"] {
            assert_eq!(rule.permits(method, "/"), Err(RequestProblem::Method), "{method}");
        }
    }

    #[test]
    fn headers_that_replace_what_was_judged_are_refused_where_something_is_judged() {
        let refused = Err(RequestProblem::Override);
        for limits in ["methods = [\"GET\"]", "paths = [\"/v1/**\"]"] {
            assert_eq!(rule(limits).permits_header("x-http-method-override"), refused);
            assert_eq!(rule(limits).permits_header("x-original-url"), refused);
            assert_eq!(rule(limits).permits_header("accept"), Ok(()));
        }
    }

    #[test]
    fn a_path_is_permitted_only_if_every_reading_of_it_is() {
        let rule = rule(r#"paths = ["/v1/**", "/exact", "/one/*", "/@types/*", "/@types%2Fnode", "/a b/é"]"#);
        for target in [
            "/v1/",
            "/v1/x",
            "/v1/x/y?z=/../",
            "/v1/x%20y",
            "/v1//x",
            "/v1/x;a=1",
            "/v1/a%2Fb",
            "/v1/...",
            "/v1/%25",
            "/exact",
            "/%65xact",
            "/exact?x",
            "/one/x",
            "/@types%2fnode",
            "/%40types%2Fnode",
            "/a%20b/%C3%A9",
        ] {
            assert_eq!(rule.permits("GET", target), Ok(()), "{target}");
        }
        for target in [
            "/",
            "/v2/x",
            "/v1",
            "//v1/x",
            "/exact/",
            "/EXACT",
            "/exact;x/y",
            "/one/x/y",
            "/one/a%2Fb",
            "/one/a%2fb",
            "/@types%2fother",
            "/exactly",
            "/%2Fv1/x",
            "/x;/v1/y",
        ] {
            assert_eq!(rule.permits("GET", target), Err(RequestProblem::Path), "{target}");
        }
    }

    #[test]
    fn what_servers_read_differently_is_refused() {
        let rule = rule("paths = [\"/**\"]");
        for target in [
            "",
            "*",
            "v1/x",
            "http://example.com/v1",
            "\\v1",
            "/v1/../admin",
            "/v1/./admin",
            "/v1/..",
            "/v1/%2e%2e/admin",
            "/v1/.%2E/admin",
            "/v1/%2e",
            "/v1/..;/admin",
            "/v1/..;x=1/admin",
            "/v1/..%3Bx/admin",
            "/v1%2F..%2Fadmin",
            "/v1/x%2f../admin",
            "/v1/..%2Fadmin",
            "/v1/..\\admin",
            "/v1/..%5Cadmin",
            "/v1/%252e%252e/admin",
            "/v1/%2525",
            "/v1/%00",
            "/v1/x%0d%0aHost:%20y",
            "/v1/\u{1}",
            "/v1/%",
            "/v1/%2",
            "/v1/%zz",
            "/v1/%c0%ae%c0%ae/admin",
            "/v1/%c0%af",
            "/v1/%ff",
            "/v1#/x",
        ] {
            let answer = rule.permits("GET", target);
            assert!(matches!(answer, Err(RequestProblem::Ambiguous(_))), "{target}: {answer:?}");
        }
    }

    proptest! {
        /// Whatever is permitted below a folder stays there, however a server decodes it.
        #[test]
        fn nothing_climbs_out_of_a_folder(path in "/v1/([a./;]|%2[eEfF5]|%3[bB]|\\\\){0,12}") {
            if rule("paths = [\"/v1/**\"]").permits("GET", &path).is_ok() {
                let server = path.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/");
                let server = server.replace("%3b", ";").replace("%3B", ";").replace("%25", "%");
                let mut depth = 0_i32;
                for name in server.split('/').map(|name| name.split(';').next().unwrap()) {
                    depth += match name { "" | "." => 0, ".." => -1, _ => 1 };
                    prop_assert!(depth >= 0, "{path}");
                }
                prop_assert!(!server.split('/').any(|name| name.starts_with("..;")));
            }
        }

        #[test]
        fn no_target_panics(target in ".{0,40}") {
            let _ = rule("paths = [\"/**\"]").permits("GET", &target);
        }
    }
}
