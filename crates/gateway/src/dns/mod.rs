//! The resolver inside: it answers from its own table and asks nobody.

mod answer;
mod names;
mod serve;

pub(crate) use answer::{Opinion, answer};
pub(crate) use names::{Names, is_synthetic};
pub(crate) use serve::{Resolver, serve_tcp, serve_udp};
