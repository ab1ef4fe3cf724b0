//! TLS as everywhere in Redoma: one provider, the system's authorities (`SSL_CERT_FILE` names others).

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use crate::Error;

pub(super) fn config() -> Result<ClientConfig, Error> {
    let failed = |why: String| Error::Tls { why };
    let mut roots = RootCertStore::empty();
    // Without authorities every registry elsewhere is refused, and one on this machine is still reached.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| failed(error.to_string()))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
