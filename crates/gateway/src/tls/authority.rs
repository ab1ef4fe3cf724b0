//! The session's certificate authority. Its key never leaves memory, and what it signs is trusted inside only.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::Offset;
use jiff::{Span, Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use redoma_policy::Host;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

/// Signs certificates for the hosts of one session.
///
/// It is not constrained to names: which hosts a session reaches is not known when it begins (`ask`, `allow`), and clients
/// disagree about constraints on addresses. What keeps it harmless is that nobody outside the session trusts it.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// All hosts have the same: making one takes longer than signing.
    leaf_key: KeyPair,
    leaves: Mutex<HashMap<Host, Arc<CertifiedKey>>>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate could not be made.
    #[error("a certificate could not be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// It could not be used.
    #[error("a certificate could not be used: {0}")]
    Use(#[from] rustls::Error),
}

/// Longer than a session; clients refuse what is valid for years.
const DAYS: i64 = 30;
/// As many hosts as a session talks to; with more, all are made anew.
const MOST_LEAVES: usize = 4096;

impl Authority {
    /// A new one. Takes well under a millisecond.
    ///
    /// # Errors
    /// [`TlsError::Certificate`] when there is no randomness.
    pub fn new(session: &str) -> Result<Self, TlsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&format!("Redoma session {session}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        limit(&mut params);
        let certificate = params.self_signed(&key)?.der().clone();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
            leaf_key: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
            leaves: Mutex::default(),
        })
    }

    /// Its certificate, for those inside to trust.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The same as PEM (RFC 7468).
    #[must_use]
    pub fn pem(&self) -> String {
        let body = data_encoding::BASE64.encode(&self.certificate);
        let lines: String =
            body.as_bytes().chunks(64).map(|line| format!("{}\n", line.escape_ascii())).collect();
        format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
    }

    /// A certificate for a host, with its key.
    pub(crate) fn leaf(&self, host: &Host) -> Result<Arc<CertifiedKey>, TlsError> {
        if let Some(leaf) = self.leaves().get(host) {
            return Ok(Arc::clone(leaf));
        }
        let leaf = Arc::new(self.sign(host)?);
        let mut leaves = self.leaves();
        if leaves.len() >= MOST_LEAVES {
            leaves.clear();
        }
        Ok(Arc::clone(leaves.entry(host.clone()).or_insert(leaf)))
    }

    fn sign(&self, host: &Host) -> Result<CertifiedKey, TlsError> {
        let mut params = CertificateParams::default();
        let text = host.to_string();
        // Longer common names are not valid (RFC 5280, appendix A.1), and nobody reads them.
        params.distinguished_name = name(if text.len() <= 64 { &text } else { "Redoma" });
        params.subject_alt_names = vec![match host {
            Host::Name(host) => SanType::DnsName(host.as_str().try_into()?),
            Host::Address(address) => SanType::IpAddress(IpAddr::to_canonical(address)),
        }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        limit(&mut params);
        let certificate = params.signed_by(&self.leaf_key, &self.issuer)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key)?;
        // With the authority's own, for clients that look for what they know.
        Ok(CertifiedKey::new(vec![certificate.der().clone(), self.certificate.clone()], key))
    }

    fn leaves(&self) -> std::sync::MutexGuard<'_, HashMap<Host, Arc<CertifiedKey>>> {
        self.leaves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

fn name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// From yesterday, since clocks differ.
fn limit(params: &mut CertificateParams) {
    let today = Offset::UTC.to_datetime(Timestamp::now()).date();
    let day = |span: Span| {
        let day = today.saturating_add(span);
        rcgen::date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
    };
    params.not_before = day(-1.days());
    params.not_after = day(DAYS.days());
}
