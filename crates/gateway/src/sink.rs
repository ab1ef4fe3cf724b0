//! Where events go.

use redoma_audit::Event;

/// Takes what happens for the record, in the order in which it is told.
///
/// It returns when the event cannot be lost by this process any more; it may block for as long as that takes.
pub trait Sink: Send + Sync {
    /// Takes one event.
    fn tell(&self, event: Event);
}
