//! A registry, as far as pulling needs it.
//!
//! <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pull>. There are crates for this; those that were looked
//! at read manifests and tokens of any length into memory, send passwords wherever a challenge says, and follow redirections out of
//! encryption. Everything a registry says is hostile here: answers are bounded, what is fetched is verified by its digest, and
//! nothing goes unencrypted but to this machine.

mod challenge;
mod credentials;
mod tls;

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use tokio::sync::Mutex;

use crate::limits::within;
use crate::manifest::ACCEPTED;
use crate::reference::is_loopback;
use crate::{Error, Limits, Reference};
use challenge::{Challenge, Realm};
pub use credentials::{Credentials, Secret};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a registry may say nothing.
const SILENCE: Duration = Duration::from_secs(60);
/// As many redirections as curl follows at most is a lot; blobs take one or two.
const REDIRECTIONS: usize = 10;
/// How much is read of an answer that says no.
const REFUSAL: u64 = 16 << 10;
/// How much a token may be.
const TOKEN: u64 = 1 << 20;

/// One repository of a registry.
pub(crate) struct Registry {
    http: Client,
    reference: Reference,
    credentials: Credentials,
    limits: Limits,
    /// What the registry wanted when it was asked last.
    authorization: Mutex<Option<HeaderValue>>,
}

// === impl Registry ===

impl Registry {
    pub(crate) fn new(
        reference: &Reference,
        credentials: Credentials,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let is_local = is_loopback(reference.server());
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls::config()?)
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .redirect(Policy::custom(redirect))
            .user_agent(concat!("redoma/", env!("CARGO_PKG_VERSION")));
        if is_local {
            // A proxy could not reach it.
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| Error::Tls { why: reasons(&error) })?;
        let authorization = Mutex::new(credentials.bearer());
        Ok(Self { http, reference: reference.clone(), credentials, limits: *limits, authorization })
    }

    /// The document that `version`, a tag or a digest, leads to.
    pub(crate) async fn manifest(&self, version: &str) -> Result<Vec<u8>, Error> {
        let response = self.get(&format!("manifests/{version}"), &ACCEPTED.join(", ")).await?;
        self.read(response, self.limits.document, "the size of a manifest").await
    }

    /// A small blob.
    pub(crate) async fn document(&self, digest: crate::Digest) -> Result<Vec<u8>, Error> {
        let response = self.blob(digest).await?;
        self.read(response, self.limits.document, "the size of a configuration").await
    }

    /// A blob, to be read in pieces.
    pub(crate) async fn blob(&self, digest: crate::Digest) -> Result<Response, Error> {
        self.get(&format!("blobs/{digest}"), "*/*").await
    }

    /// Why the rest of an answer did not come.
    pub(crate) fn broken(&self, error: reqwest::Error) -> Error {
        Error::Unreachable { host: self.reference.registry().into(), why: reasons(&error.without_url()) }
    }

    async fn get(&self, path: &str, accept: &str) -> Result<Response, Error> {
        let response = self.ask(path, accept).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return self.accepted(response).await;
        }
        let Some(challenge) = challenge(response.headers()) else { return Err(self.unauthorized()) };
        let authorization = self.authorize(&challenge).await?;
        *self.authorization.lock().await = Some(authorization);
        let response = self.ask(path, accept).await?;
        self.accepted(response).await
    }

    async fn ask(&self, path: &str, accept: &str) -> Result<Response, Error> {
        let server = self.reference.server();
        let scheme = if is_loopback(server) { "http" } else { "https" };
        let url = format!("{scheme}://{server}/v2/{}/{path}", self.reference.repository());
        let mut request = self.http.get(url).header(ACCEPT, accept);
        if let Some(authorization) = &*self.authorization.lock().await {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        request.send().await.map_err(|error| self.broken(error))
    }

    /// The answer, if it is one.
    async fn accepted(&self, response: Response) -> Result<Response, Error> {
        let status = response.status();
        let host = self.reference.registry().to_owned();
        match status {
            _ if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.unauthorized()),
            StatusCode::NOT_FOUND => Err(Error::NotFound { host, reference: self.reference.to_string() }),
            _ => {
                let text = self.read(response, REFUSAL, "the length of a refusal").await.unwrap_or_default();
                Err(Error::Refused { host, status: status.as_u16(), message: message(&text, status) })
            }
        }
    }

    fn unauthorized(&self) -> Error {
        Error::Unauthorized {
            host: self.reference.registry().into(),
            who: self.credentials.who(),
            repository: self.reference.repository().into(),
        }
    }

    /// What has to be said to be let in.
    async fn authorize(&self, challenge: &Challenge) -> Result<HeaderValue, Error> {
        match challenge {
            Challenge::Basic => self.credentials.basic().ok_or_else(|| self.unauthorized()),
            Challenge::Bearer(realm) => self.token(realm).await,
        }
    }

    /// Asks for a token: <https://distribution.github.io/distribution/spec/auth/token/>, and `oauth` beside it.
    async fn token(&self, realm: &Realm) -> Result<HeaderValue, Error> {
        let scope = format!("repository:{}:pull", self.reference.repository());
        let url = self.encrypted(&realm.url)?;
        let service = realm.service.as_deref().unwrap_or_default();
        let request = match &self.credentials {
            Credentials::Identity(token) => self.http.post(url).form(&[
                ("grant_type", "refresh_token"),
                ("client_id", "redoma"),
                ("refresh_token", token.reveal()),
                ("service", service),
                ("scope", &scope),
            ]),
            other => {
                let request = self.http.get(url).query(&[("service", service), ("scope", &scope)]);
                match other.basic() {
                    Some(basic) => request.header(AUTHORIZATION, basic),
                    None => request,
                }
            }
        };
        let response = request.send().await.map_err(|error| self.broken(error))?;
        let response = self.accepted(response).await.map_err(|error| match error {
            Error::NotFound { .. } => self.unauthorized(),
            other => other,
        })?;
        let text = self.read(response, TOKEN, "the size of a token").await?;
        challenge::token(&text).ok_or_else(|| self.unauthorized())
    }

    /// Passwords go to where nobody else can listen.
    fn encrypted(&self, url: &str) -> Result<Url, Error> {
        let parsed = Url::parse(url).ok().filter(is_private);
        let host = self.reference.registry().to_owned();
        parsed.ok_or_else(|| Error::Insecure { host, what: "a password", url: url.to_owned() })
    }

    async fn read(&self, mut response: Response, limit: u64, what: &'static str) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.broken(error))? {
            within(what, (bytes.len() + piece.len()) as u64, limit)?;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

/// Whether nobody can listen on the way to this place.
fn is_private(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => url.host_str().is_some_and(is_loopback),
        _ => false,
    }
}

fn redirect(attempt: reqwest::redirect::Attempt) -> reqwest::redirect::Action {
    if attempt.previous().len() > REDIRECTIONS {
        return attempt.error("it redirects without end");
    }
    if is_private(attempt.url()) {
        attempt.follow()
    } else {
        attempt.error("it redirects to a place that is not encrypted")
    }
}

fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    Challenge::best(texts)
}

/// The registry's own words, shortened.
fn message(text: &[u8], status: StatusCode) -> String {
    let usual = || status.canonical_reason().unwrap_or("no reason").to_owned();
    let value: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    let own = value["errors"][0]["message"].as_str().filter(|own| !own.is_empty());
    own.map_or_else(usual, |own| own.chars().take(200).collect())
}

/// The error and what caused it, innermost last; without the URL, which may hold a signature.
fn reasons(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string);
    causes.last().unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> bool {
        is_private(&Url::parse(text).unwrap())
    }

    #[test]
    fn nothing_goes_unencrypted_but_to_this_machine() {
        assert!(
            url("https://example.com/")
                && url("http://127.0.0.1:5000/")
                && url("http://[::1]/")
                && url("http://localhost/")
        );
        assert!(
            !url("http://example.com/") && !url("ftp://localhost/") && !url("http://127.0.0.1.example.com/")
        );
    }

    #[test]
    fn what_a_registry_says_is_shortened() {
        let long = format!(r#"{{"errors":[{{"message":"{}"}}]}}"#, "a".repeat(500));
        assert_eq!(message(long.as_bytes(), StatusCode::BAD_GATEWAY).len(), 200);
        assert_eq!(message(b"<html>", StatusCode::BAD_GATEWAY), "Bad Gateway");
    }
}
