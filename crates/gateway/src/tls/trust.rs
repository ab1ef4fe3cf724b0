//! What programs inside are told to trust: what the host trusts, and the session's authority.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use aws_lc_rs::digest;

use super::Authority;

/// Certificates for those inside.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The session's certificate alone (PEM), for programs that add it to their own.
    pub certificate: Vec<u8>,
    /// The host's certificates and the session's (PEM).
    pub bundle: Vec<u8>,
    /// Files of the host that programs read without being told to, by canonical path, with what they are to read there.
    pub replaced: BTreeMap<PathBuf, Vec<u8>>,
}

/// What a variable leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// [`Trust::certificate`].
    ToCertificate,
    /// [`Trust::bundle`].
    ToBundle,
}

/// Where systems keep their bundle; the first that exists is the host's.
const BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];

/// Where systems keep Java's.
const JAVA_STORES: [&str; 2] = ["/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts"];
/// Where Java itself does, for each version.
const JAVA_HOMES: &str = "/usr/lib/jvm";

/// The variables by which programs are told what to trust.
const VARIABLES: [(&str, Leads); 13] = [
    ("SSL_CERT_FILE", Leads::ToBundle),
    ("NODE_EXTRA_CA_CERTS", Leads::ToCertificate),
    ("REQUESTS_CA_BUNDLE", Leads::ToBundle),
    ("PIP_CERT", Leads::ToBundle),
    ("CURL_CA_BUNDLE", Leads::ToBundle),
    ("GIT_SSL_CAINFO", Leads::ToBundle),
    ("CARGO_HTTP_CAINFO", Leads::ToBundle),
    ("AWS_CA_BUNDLE", Leads::ToBundle),
    ("DENO_CERT", Leads::ToCertificate),
    ("NIX_SSL_CERT_FILE", Leads::ToBundle),
    ("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", Leads::ToBundle),
    ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", Leads::ToBundle),
    ("HTTPLIB2_CA_CERTS", Leads::ToBundle),
];

impl Trust {
    /// Reads what this host trusts, and adds the authority to it.
    #[must_use]
    pub fn of_host(authority: &Authority) -> Self {
        let certificate = authority.pem().into_bytes();
        let own =
            fs::read(BUNDLES.iter().find(|path| fs::exists(path).unwrap_or(false)).unwrap_or(&BUNDLES[0]));
        let bundle = [own.unwrap_or_default(), b"\n".to_vec(), certificate.clone()].concat();
        let mut replaced: BTreeMap<PathBuf, Vec<u8>> = BUNDLES
            .iter()
            .filter_map(|path| fs::canonicalize(path).ok())
            .map(|path| (path, bundle.clone()))
            .collect();
        let stores = java_stores();
        if !stores.is_empty() {
            let store = java_key_store(&bundle);
            replaced.extend(stores.into_iter().map(|path| (path, store.clone())));
        }
        Self { certificate, bundle, replaced }
    }

    /// Where systems keep their bundle, for a system that is not this host's.
    pub fn bundles() -> impl Iterator<Item = PathBuf> {
        BUNDLES.iter().map(PathBuf::from)
    }

    /// The variables that programs are to have, and what each leads to.
    pub fn variables() -> impl Iterator<Item = (&'static str, Leads)> {
        VARIABLES.into_iter()
    }
}

fn java_stores() -> Vec<PathBuf> {
    let homes = fs::read_dir(JAVA_HOMES).into_iter().flatten().flatten();
    let of_homes = homes.map(|home| home.path().join("lib/security/cacerts"));
    let of_system = JAVA_STORES.iter().map(PathBuf::from);
    of_system.chain(of_homes).filter_map(|path| fs::canonicalize(path).ok()).collect()
}

/// A key store as Java's default one is (`JKS`): every certificate of a PEM bundle as a trusted one. Its integrity is
/// checked by those who give the password that everybody knows.
fn java_key_store(bundle: &[u8]) -> Vec<u8> {
    const MAGIC: u32 = 0xfeed_feed;
    const VERSION: u32 = 2;
    const TRUSTED: u32 = 2;
    let certificates = certificates(bundle);
    let mut store = Vec::with_capacity(bundle.len());
    let text = |store: &mut Vec<u8>, text: &str| {
        store.extend((text.len() as u16).to_be_bytes());
        store.extend(text.as_bytes());
    };
    store.extend(MAGIC.to_be_bytes());
    store.extend(VERSION.to_be_bytes());
    store.extend((certificates.len() as u32).to_be_bytes());
    for (number, certificate) in certificates.iter().enumerate() {
        store.extend(TRUSTED.to_be_bytes());
        text(&mut store, &format!("certificate {number}"));
        store.extend(0u64.to_be_bytes());
        text(&mut store, "X.509");
        store.extend((certificate.len() as u32).to_be_bytes());
        store.extend(certificate);
    }
    let password = "changeit".encode_utf16().flat_map(u16::to_be_bytes);
    let keyed: Vec<u8> = password.chain(*b"Mighty Aphrodite").chain(store.iter().copied()).collect();
    store.extend(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &keyed).as_ref());
    store
}

/// Those of a PEM bundle that are whole.
fn certificates(bundle: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(bundle);
    let blocks = text.split("-----BEGIN CERTIFICATE-----").skip(1);
    blocks
        .filter_map(|block| block.split_once("-----END CERTIFICATE-----"))
        .filter_map(|(body, _)| {
            let body: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            data_encoding::BASE64.decode(&body).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_ends_with_the_sessions_certificate() {
        let authority = Authority::new("test").unwrap();
        let trust = Trust::of_host(&authority);
        let all = certificates(&trust.bundle);
        assert_eq!(all.last().map(Vec::as_slice), Some(authority.certificate().as_ref()));
        for (path, content) in &trust.replaced {
            assert!(content.len() > trust.certificate.len(), "{path:?}");
        }
    }

    #[test]
    fn a_key_store_has_every_certificate() {
        let authority = Authority::new("test").unwrap();
        let pem = authority.pem();
        let store = java_key_store(format!("{pem}# comment\n{pem}").as_bytes());
        assert_eq!(&store[..12], b"\xfe\xed\xfe\xed\0\0\0\x02\0\0\0\x02");
        let der = authority.certificate().as_ref();
        assert_eq!(store.windows(der.len()).filter(|window| *window == der).count(), 2);
    }
}
