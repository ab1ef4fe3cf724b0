//! What may not leave, whatever the host.

use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;

use crate::refuse::Refusal;
use crate::{Flow, Reason};

/// Looks at what leaves in requests, and puts credentials in on the way.
pub(crate) trait Guard: Send + Sync {
    /// Looks at a request's head and puts credentials in; the names of those that were put in.
    ///
    /// # Errors
    /// When something is in it that does not belong there.
    fn head(&self, flow: &Flow, parts: &mut Parts) -> Result<Vec<String>, Refusal>;

    /// Whether the head can only be looked at once the whole body is there: its hash is then in `parts`.
    fn needs_body(&self, flow: &Flow, parts: &Parts) -> bool;

    /// What will look at the request's body; none if nothing has to.
    fn body(&self, flow: &Arc<Flow>, parts: &Parts) -> Option<Box<dyn Scan>>;

    /// What will look at a connection that is no HTTP any more, or never was; none if nothing has to.
    fn connection(&self, flow: &Arc<Flow>, framing: Framing) -> Option<Box<dyn Scan>>;
}

/// How what a client says is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Not at all.
    None,
    /// In masked frames (RFC 6455).
    WebSocket,
}

/// Looks at a body while it streams.
pub(crate) trait Scan: Send {
    /// The next piece.
    ///
    /// # Errors
    /// When it must not go on; what was looked at before has left.
    fn push(&mut self, piece: &[u8]) -> Result<(), Reason>;

    /// What comes after the body.
    ///
    /// # Errors
    /// As [`Scan::push`].
    fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), Reason>;

    /// There is no more.
    ///
    /// # Errors
    /// As [`Scan::push`].
    fn end(&mut self) -> Result<(), Reason>;
}
