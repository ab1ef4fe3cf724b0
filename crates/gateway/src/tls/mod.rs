//! TLS on both sides of the gateway: the client is answered as if by the server, with a certificate of the session's own
//! authority, and the server is verified as any client would.

mod authority;
pub(crate) mod hello;
mod inspector;
mod trust;
mod upstream;

pub use authority::{Authority, TlsError};
pub use trust::{Leads, Trust};

pub(crate) use hello::{ClientHello, ServerName};
pub(crate) use inspector::{AcceptError, Inspector};
pub(crate) use upstream::{Upstream, add_details};

/// Protocols that are looked into, as ALPN names them (RFC 7301).
pub(crate) const HTTP2: &[u8] = b"h2";
pub(crate) const HTTP1: &[u8] = b"http/1.1";
