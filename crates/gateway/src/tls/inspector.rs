//! The side towards the client: answers as the server would.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use redoma_audit::Text;
use redoma_audit::event::Tls;
use redoma_policy::Host;
use rustls::server::{ClientHello, ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Authority, TlsError};
use crate::Recorder;

/// Answers TLS clients with certificates of the session's authority.
pub(crate) struct Inspector {
    authority: Authority,
    tickets: Option<Arc<dyn ProducesTickets>>,
    recorder: Option<Arc<Recorder>>,
    configs: Mutex<HashMap<Role, Arc<ServerConfig>>>,
}

/// Whom it is answered as, and in which protocol.
type Role = (Host, Option<Vec<u8>>);

/// Why a client is not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcceptError {
    /// It takes no certificate but the server's own.
    #[error("the client refused the session's certificate ({0})")]
    Pinned(String),
    /// There is no certificate for the host.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// It broke off, or spoke no TLS.
    #[error("the client could not be answered: {0}")]
    Io(#[from] io::Error),
}

const MOST_CONFIGS: usize = 4096;

impl Inspector {
    /// The secrets of its connections are told to `recorder`, if there is one.
    pub(crate) fn new(authority: Authority, recorder: Option<Arc<Recorder>>) -> Self {
        // Without tickets clients shake hands anew each time, which works as well.
        let tickets = rustls::crypto::aws_lc_rs::Ticketer::new().ok();
        Self { authority, tickets, recorder, configs: Mutex::default() }
    }

    /// Answers as `host`, in the one protocol that the server agreed on, if any.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        host: &Host,
        protocol: Option<&[u8]>,
    ) -> Result<(TlsStream<S>, Tls), AcceptError> {
        let config = self.config(host, protocol)?;
        let stream = TlsAcceptor::from(config).accept(stream).await.map_err(AcceptError::from_io)?;
        let details = details(&stream);
        Ok((stream, details))
    }

    fn config(&self, host: &Host, protocol: Option<&[u8]>) -> Result<Arc<ServerConfig>, TlsError> {
        let key = (host.clone(), protocol.map(<[u8]>::to_vec));
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(&key) {
            return Ok(Arc::clone(config));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let leaf = self.authority.leaf(host)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::ALL_VERSIONS)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(leaf)));
        config.alpn_protocols = protocol.map(<[u8]>::to_vec).into_iter().collect();
        if let Some(tickets) = &self.tickets {
            config.ticketer = Arc::clone(tickets);
        }
        if let Some(recorder) = &self.recorder {
            config.key_log = Arc::<Recorder>::clone(recorder);
        }
        if configs.len() >= MOST_CONFIGS {
            configs.clear();
        }
        Ok(Arc::clone(configs.entry(key).or_insert(Arc::new(config))))
    }
}

/// The host was decided on before: whatever else the client says, this is its certificate.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

fn details<S>(stream: &TlsStream<S>) -> Tls {
    let (_, connection) = stream.get_ref();
    let text = |debug: Option<String>| debug.map(|text| Text::from(text.as_str()));
    Tls {
        sni: connection.server_name().map(Text::from),
        alpn: connection.alpn_protocol().map(|name| Text::from(&*String::from_utf8_lossy(name))),
        version: text(connection.protocol_version().map(super::upstream::version_name)).unwrap_or_default(),
        cipher: text(connection.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite())))
            .unwrap_or_default(),
        ..Tls::default()
    }
}

impl AcceptError {
    fn from_io(error: io::Error) -> Self {
        let alert = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match alert {
            Some(rustls::Error::AlertReceived(alert)) if is_about_certificates(*alert) => {
                Self::Pinned(format!("{alert:?}"))
            }
            // Some leave without a word.
            _ if error.kind() == io::ErrorKind::UnexpectedEof => Self::Pinned("it hung up".to_owned()),
            _ => Self::Io(error),
        }
    }
}

fn is_about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
    )
}
