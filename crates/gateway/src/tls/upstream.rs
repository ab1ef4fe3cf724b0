//! The side towards the server, verified as any client would.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use redoma_audit::Text;
use redoma_audit::event::Tls;
use redoma_policy::Host;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connects to servers that have a certificate which this machine trusts.
#[derive(Default)]
pub(crate) struct Upstream {
    /// Read when first needed: it takes milliseconds.
    base: OnceCell<ClientConfig>,
    /// One for each list of protocols, so that sessions are resumed.
    configs: Mutex<HashMap<Vec<Vec<u8>>, Arc<ClientConfig>>>,
}

/// Why a server is not talked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Its certificate is not valid for it.
    #[error("the certificate of {host} {problem}")]
    Certificate { host: Host, problem: String },
    /// The handshake went wrong.
    #[error("TLS with {host} failed: {source}")]
    Handshake {
        host: Host,
        #[source]
        source: io::Error,
    },
    /// There is nothing to verify it by.
    #[error("this machine's certificate authorities could not be read: {0}")]
    Roots(String),
}

/// More lists of protocols than clients have.
const MOST_CONFIGS: usize = 64;

impl Upstream {
    /// Speaks TLS as a client of `host`, offering these protocols.
    pub(crate) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        host: &Host,
        protocols: &[Vec<u8>],
    ) -> Result<TlsStream<S>, UpstreamError> {
        let config = self.config(protocols).await?;
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.as_str().to_owned()),
            Host::Address(address) => Ok(ServerName::from(*address)),
        };
        let name = name.map_err(|_| UpstreamError::Certificate {
            host: host.clone(),
            problem: "cannot be verified: it is no name that certificates have".to_owned(),
        })?;
        let connected = TlsConnector::from(config).connect(name, stream).await;
        connected.map_err(|source| UpstreamError::from_io(host, source))
    }

    async fn config(&self, protocols: &[Vec<u8>]) -> Result<Arc<ClientConfig>, UpstreamError> {
        let base = self.base.get_or_try_init(base).await?;
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(protocols) {
            return Ok(Arc::clone(config));
        }
        let mut config = base.clone();
        config.alpn_protocols = protocols.to_vec();
        let config = Arc::new(config);
        if configs.len() < MOST_CONFIGS {
            configs.insert(protocols.to_vec(), Arc::clone(&config));
        }
        Ok(config)
    }
}

async fn base() -> Result<ClientConfig, UpstreamError> {
    let failed = |problem: &dyn std::fmt::Display| UpstreamError::Roots(problem.to_string());
    let found =
        tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await.map_err(|e| failed(&e))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let first = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        return Err(UpstreamError::Roots(first));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::ALL_VERSIONS);
    Ok(versions.map_err(|e| failed(&e))?.with_root_certificates(roots).with_no_client_auth())
}

/// Adds what was agreed on with the server.
pub(crate) fn add_details<S>(stream: &TlsStream<S>, details: &mut Tls) {
    let (_, connection) = stream.get_ref();
    let version = connection.protocol_version().map(version_name);
    details.upstream_version = version.map(|version| Text::from(version.as_str()));
    let certificate = connection.peer_certificates().and_then(<[_]>::first);
    details.certificate = certificate.map(|certificate| {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, certificate);
        Text::from(data_encoding::HEXLOWER.encode(digest.as_ref()).as_str())
    });
}

pub(super) fn version_name(version: ProtocolVersion) -> String {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2".to_owned(),
        ProtocolVersion::TLSv1_3 => "TLSv1.3".to_owned(),
        other => format!("{other:?}"),
    }
}

impl UpstreamError {
    fn from_io(host: &Host, source: io::Error) -> Self {
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let problem = match inner {
            Some(rustls::Error::InvalidCertificate(problem)) => Some(in_words(problem)),
            _ => None,
        };
        match problem {
            Some(problem) => Self::Certificate { host: host.clone(), problem },
            None => Self::Handshake { host: host.clone(), source },
        }
    }
}

fn in_words(problem: &CertificateError) -> String {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "was signed by nobody whom this machine trusts (or by itself)".to_owned()
        }
        CertificateError::NotValidForName => "is for another name".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } => {
            // As in `DnsName("example.com")`.
            let name = |shown: &String| shown.split('"').nth(1).unwrap_or(shown).to_owned();
            format!("is for another name: {}", presented.iter().map(name).collect::<Vec<_>>().join(", "))
        }
        CertificateError::Revoked => "was revoked".to_owned(),
        other => format!("is not valid: {other}"),
    }
}
