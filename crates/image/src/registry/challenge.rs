//! How a registry says that it wants to know who asks: RFC 9110, section 11.6.1.

use reqwest::header::HeaderValue;
use serde::Deserialize;

/// What it takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password.
    Basic,
    /// A token from somewhere.
    Bearer(Realm),
}

/// Where tokens are to be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Realm {
    pub(super) url: String,
    pub(super) service: Option<String>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

// === impl Challenge ===

impl Challenge {
    /// The one that is understood; a token before a password, which is sent less often then.
    pub(super) fn best<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (mut basic, mut bearer) = (None, None);
        for challenge in headers.filter_map(|header| http_auth::parse_challenges(header).ok()).flatten() {
            if challenge.scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Self::Basic);
            } else if challenge.scheme.eq_ignore_ascii_case("bearer") {
                bearer = bearer.or_else(|| Realm::of(&challenge).map(Self::Bearer));
            }
        }
        bearer.or(basic)
    }
}

impl Realm {
    fn of(challenge: &http_auth::ChallengeRef) -> Option<Self> {
        let value = |name: &str| {
            let named = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value.to_unescaped())
        };
        Some(Self { url: value("realm")?, service: value("service") })
    }
}

/// The header that shows the token of an answer. Both names of it are in use.
pub(super) fn token(answer: &[u8]) -> Option<HeaderValue> {
    let Token { token, access_token } = serde_json::from_slice(answer).ok()?;
    bearer(&token.or(access_token).filter(|token| !token.is_empty())?)
}

/// A header that is not shown in any trace.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(headers: &[&str]) -> Option<Challenge> {
        Challenge::best(headers.iter().copied())
    }

    #[test]
    fn a_token_is_preferred_to_a_password() {
        let bearer = r#"Bearer realm="https://auth.example.com/token",service="reg",scope="x""#;
        let wanted = Realm { url: "https://auth.example.com/token".into(), service: Some("reg".into()) };
        assert_eq!(best(&["Basic realm=\"r\"", bearer]), Some(Challenge::Bearer(wanted)));
        assert_eq!(best(&["Basic realm=\"r\""]), Some(Challenge::Basic));
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        assert_eq!(best(&[]), None);
        assert_eq!(best(&["Negotiate", "Bearer service=\"no realm\"", "\u{7f}="]), None);
    }

    #[test]
    fn tokens_have_two_names_and_are_no_headers_of_their_own() {
        assert_eq!(token(br#"{"token":"a"}"#).unwrap(), "Bearer a");
        assert_eq!(token(br#"{"access_token":"b"}"#).unwrap(), "Bearer b");
        assert!(
            token(br#"{"token":"a\r\nX: y"}"#).is_none()
                && token(b"{}").is_none()
                && token(br#"{"token":""}"#).is_none()
        );
    }
}
