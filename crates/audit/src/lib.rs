//! The event model and the append-only, hash-chained, signed log.
