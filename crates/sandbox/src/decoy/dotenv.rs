//! Dotenv files with the names kept and the values replaced. The input is whatever lies in a file of that name.
//!
//! What is kept: names, their order, `export`, quotes, punctuation, the length and the alphabet of a value, prefixes that
//! tell the kind of token, and values that are no secret to anybody (`true`, `development`, a port). Comments and lines
//! that are no assignment are dropped, since old keys are kept in them.

use std::path::Path;

use super::Canary;
use super::draw::{self, Draw};

/// Larger files show as empty: no tool's dotenv file is that large.
pub const SIZE_MAX: usize = 256 * 1024;

/// Assignments kept.
const ASSIGNMENTS_MAX: usize = 4096;

/// Names longer than this are no names.
const NAME_MAX: usize = 256;

/// A value with fewer drawn characters is found by chance and makes no canary.
const CANARY_MIN: usize = 12;

/// Beginnings that programs check and that say nothing about the rest. The longest that fits is kept.
const PREFIXES: [&str; 40] = [
    "-----BEGIN ",
    "AIza",
    "AKIA",
    "ASIA",
    "Basic ",
    "Bearer ",
    "EAA",
    "SG.",
    "SK",
    "AC",
    "dapi",
    "dop_v1_",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "gsk_",
    "hf_",
    "hvs.",
    "key-",
    "lin_api_",
    "npm_",
    "phc_",
    "pk_live_",
    "pk_test_",
    "pypi-",
    "rk_live_",
    "shpat_",
    "sk-",
    "sk-ant-api03-",
    "sk-proj-",
    "sk_live_",
    "sk_test_",
    "whsec_",
    "xai-",
    "xoxb-",
    "xoxp-",
];

/// Values that are settings, whatever their name.
const PLAIN: [&str; 18] = [
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "0",
    "1",
    "null",
    "none",
    "development",
    "production",
    "test",
    "staging",
    "local",
    "debug",
    "info",
    "localhost",
];

/// Whether a file of this name is read as dotenv: `.env`, `.env.local`, `prod.env`, `.envrc`, `.dev.vars`.
pub fn is_dotenv(path: &Path) -> bool {
    let name = super::name(path);
    name.starts_with(b".env") || name.ends_with(b".env") || name.starts_with(b".dev.vars")
}

/// The file as it is shown, and the values in it that exist nowhere else.
pub fn placeholders(original: &[u8], draw: &mut Draw) -> (Vec<u8>, Vec<Canary>) {
    if original.len() > SIZE_MAX {
        return (Vec::new(), Vec::new());
    }
    let (mut content, mut canaries) = (Vec::new(), Vec::new());
    let mut rest = original;
    for _ in 0..ASSIGNMENTS_MAX {
        let Some((assignment, after)) = next(rest) else { break };
        rest = after;
        assignment.show(&mut content, &mut canaries, draw);
    }
    (content, canaries)
}

/// `export NAME='value'`, in parts.
struct Assignment<'a> {
    export: bool,
    name: &'a [u8],
    quote: Option<u8>,
    value: &'a [u8],
}

/// The next assignment, and what comes after it. Lines before it that are none are skipped.
fn next(mut input: &[u8]) -> Option<(Assignment<'_>, &[u8])> {
    while !input.is_empty() {
        if let Some(found) = assignment(input) {
            return Some(found);
        }
        input = after_line(input);
    }
    None
}

fn after_line(input: &[u8]) -> &[u8] {
    let end = input.iter().position(|byte| *byte == b'\n').map_or(input.len(), |at| at + 1);
    &input[end..]
}

fn assignment(input: &[u8]) -> Option<(Assignment<'_>, &[u8])> {
    let line = skip_blanks(input);
    let exported =
        line.strip_prefix(b"export").filter(|rest| rest.starts_with(b" ") || rest.starts_with(b"\t"));
    let line = exported.map_or(line, skip_blanks);
    let length = line.iter().position(|byte| !is_name_byte(*byte))?;
    let (name, rest) = line.split_at(length);
    if name.is_empty() || name.len() > NAME_MAX || name[0].is_ascii_digit() {
        return None;
    }
    let rest = skip_blanks(skip_blanks(rest).strip_prefix(b"=")?);
    let (quote, value, rest) = value(rest);
    Some((Assignment { export: exported.is_some(), name, quote, value }, rest))
}

fn skip_blanks(input: &[u8]) -> &[u8] {
    let start = input.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(input.len());
    &input[start..]
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// The value, its quote, and the rest after its line. A quote that is never closed is a character like any other.
fn value(input: &[u8]) -> (Option<u8>, &[u8], &[u8]) {
    let quoted = input.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\'' | b'`'));
    if let Some((quote, inner, end)) =
        quoted.and_then(|(quote, inner)| Some((quote, inner, closing(inner, *quote)?)))
    {
        return (Some(*quote), &inner[..end], after_line(&inner[end + 1..]));
    }
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    (None, without_comment(&input[..end]), after_line(input))
}

fn closing(inner: &[u8], quote: u8) -> Option<usize> {
    let mut escaped = false;
    inner.iter().position(|byte| {
        let closes = *byte == quote && !escaped;
        escaped = *byte == b'\\' && !escaped && quote != b'\'';
        closes
    })
}

fn without_comment(value: &[u8]) -> &[u8] {
    let comment = value.windows(2).position(|pair| pair[0].is_ascii_whitespace() && pair[1] == b'#');
    value[..comment.unwrap_or(value.len())].trim_ascii()
}

impl Assignment<'_> {
    fn show(&self, content: &mut Vec<u8>, canaries: &mut Vec<Canary>, draw: &mut Draw) {
        let (value, drawn) = placeholder(self.name, self.value, draw);
        if self.export {
            content.extend_from_slice(b"export ");
        }
        content.extend_from_slice(self.name);
        content.push(b'=');
        content.extend(self.quote);
        content.extend_from_slice(&value);
        content.extend(self.quote);
        content.push(b'\n');
        if drawn >= CANARY_MIN {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            canaries.push(Canary { name: text(self.name), value: text(&value) });
        }
    }
}

/// The value's stand-in, and how many of its characters were drawn.
fn placeholder(name: &[u8], value: &[u8], draw: &mut Draw) -> (Vec<u8>, usize) {
    let lower = value.to_ascii_lowercase();
    let is_port = name.to_ascii_uppercase().ends_with(b"PORT") && value.len() <= 5;
    if PLAIN.iter().any(|plain| plain.as_bytes() == lower)
        || (is_port && value.iter().all(u8::is_ascii_digit))
    {
        return (value.to_vec(), 0);
    }
    let kept = kept_prefix(value);
    let mut shown = value[..kept].to_vec();
    let mut drawn = 0;
    let mut escaped = false;
    for (at, byte) in value.iter().enumerate().skip(kept) {
        // `\n` in a quoted value is a line's end, not a letter; a port in a URL must stay a number a port can be.
        let keep = (escaped && b"nrt".contains(byte)) || is_url_port(value, at);
        escaped = *byte == b'\\' && !escaped;
        let stand_in = if keep { *byte } else { same_class(*byte, draw) };
        drawn += usize::from(stand_in.is_ascii_alphanumeric() && !keep);
        shown.push(stand_in);
    }
    (shown, drawn)
}

fn kept_prefix(value: &[u8]) -> usize {
    let scheme = value.windows(3).position(|part| part == b"://").filter(|at| {
        *at <= 24 && value[..*at].iter().all(|byte| byte.is_ascii_lowercase() || b"+-.".contains(byte))
    });
    let token =
        PREFIXES.iter().filter(|prefix| value.starts_with(prefix.as_bytes())).map(|prefix| prefix.len());
    scheme.map(|at| at + 3).or_else(|| token.max()).unwrap_or(0)
}

/// Whether the digit at `at` is within `:digits` followed by `/` or the end, after a host.
fn is_url_port(value: &[u8], at: usize) -> bool {
    if !value[at].is_ascii_digit() || !value.windows(3).any(|part| part == b"://") {
        return false;
    }
    let digits =
        |part: &mut dyn Iterator<Item = &u8>| part.take(6).take_while(|byte| byte.is_ascii_digit()).count();
    let before = digits(&mut value[..at].iter().rev());
    let after = digits(&mut value[at..].iter());
    let colon = at.checked_sub(before + 1).map(|colon| value[colon]) == Some(b':');
    colon && before + after <= 5 && matches!(value.get(at + after), None | Some(b'/'))
}

fn same_class(byte: u8, draw: &mut Draw) -> u8 {
    match byte {
        b'a'..=b'z' => draw.letter(draw::LOWER),
        b'A'..=b'Z' => draw.letter(draw::UPPER),
        b'0'..=b'9' => draw.letter(draw::DIGIT),
        byte if byte.is_ascii() => byte,
        _ => b'x',
    }
}

/// For the fuzz target: any bytes, any seed.
#[doc(hidden)]
pub fn fuzz(input: &[u8]) {
    let (content, _) = placeholders(input, &mut Draw::new(&[7; 32], Path::new("/.env")));
    assert!(content.is_ascii() && content.len() <= input.len() + 2);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(original: &str) -> (String, Vec<Canary>) {
        let (content, canaries) =
            placeholders(original.as_bytes(), &mut Draw::new(&[3; 32], Path::new("/p/.env")));
        (String::from_utf8(content).unwrap(), canaries)
    }

    #[test]
    fn names_and_shapes_stay_and_values_go() {
        let original =
            "# old: sk-old-secret\nOPENAI_API_KEY=sk-proj-AbCd1234EfGh5678\nexport DB='pa55-Word' # note\n";
        let (content, canaries) = shown(original);
        let lines: Vec<&str> = content.lines().collect();
        assert_eq!(lines.len(), 2);
        let key = lines[0].strip_prefix("OPENAI_API_KEY=sk-proj-").unwrap();
        assert_eq!(key.len(), 16);
        assert_ne!(key, "AbCd1234EfGh5678");
        let classes =
            |text: &str| text.chars().map(|c| (c.is_ascii_digit(), c.is_uppercase())).collect::<Vec<_>>();
        assert_eq!(classes(key), classes("AbCd1234EfGh5678"));
        assert!(lines[1].starts_with("export DB='") && lines[1].ends_with('\''), "{content}");
        assert!(!content.contains("old") && !content.contains("note") && !content.contains("pa55"));
        assert_eq!(canaries[0], Canary { name: "OPENAI_API_KEY".into(), value: lines[0][15..].into() });
        assert_eq!(canaries.len(), 1, "a short value is no canary");
    }

    #[test]
    fn settings_stay() {
        let settings = "DEBUG=true\nNODE_ENV=production\nPORT=3000\nHOST=localhost\n";
        assert_eq!(shown(settings), (settings.to_owned(), vec![]));
    }

    #[test]
    fn urls_keep_their_scheme_and_port_and_nothing_else() {
        let (content, _) = shown("DATABASE_URL=postgres://admin:hunter2hunter2@db.internal:5432/app\n");
        assert!(content.starts_with("DATABASE_URL=postgres://") && content.contains(":5432/"), "{content}");
        for gone in ["admin", "hunter2", "internal", "/app"] {
            assert!(!content.contains(gone), "{content}");
        }
    }

    #[test]
    fn values_over_several_lines_are_replaced_whole() {
        let (content, _) =
            shown("KEY=\"-----BEGIN KEY\nMIIEsecret\\nmore\n-----END\"\nNEXT=value99value99\n");
        assert_eq!(content.lines().count(), 4, "{content}");
        assert!(
            !content.contains("secret") && content.contains("\\n") && content.contains("\nNEXT="),
            "{content}"
        );
    }

    #[test]
    fn lines_that_are_no_assignment_are_dropped() {
        let (content, _) =
            shown("MIIEsecretline\n  \n=x\n9A=1\nA B=c\n\"unclosed=1\nOK=\"never closed\nsecret\n");
        assert_eq!(content.lines().count(), 1, "{content}");
        assert!(content.starts_with("OK=\"") && !content.contains("closed"), "{content}");
    }

    #[test]
    fn larger_files_show_as_empty() {
        assert_eq!(shown(&"A=secretsecret\n".repeat(SIZE_MAX / 10)), (String::new(), vec![]));
    }

    proptest! {
        #[test]
        fn no_long_secret_survives(secret in "[a-z0-9]{16,60}", quote in "[\"'`]?", tail in ".{0,20}") {
            let (content, canaries) = shown(&format!("TOKEN={quote}{secret}{quote} # {tail}\n"));
            prop_assert!(!content.contains(&secret));
            prop_assert_eq!(canaries.len(), 1);
            prop_assert_eq!(canaries[0].value.len(), secret.len());
        }

        #[test]
        fn any_bytes_give_ascii_of_no_greater_length(input in prop::collection::vec(any::<u8>(), 0..400)) {
            fuzz(&input);
        }
    }
}
