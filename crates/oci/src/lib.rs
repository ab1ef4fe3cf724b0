//! The driver for Docker and Podman: sandboxes that are containers of an engine, here or elsewhere.
//!
//! [`OciDriver`] speaks to the engine; the engine's own list is the only one, and of it only what has our labels can be
//! named. [`guest`] is what the same program does inside containers. With a network, a sandbox is two containers: a helper
//! that holds a network namespace with nothing but loopback in it, and the sandbox's own, which shares it without the right
//! to change it ([`network`]).

mod checkpoint;
mod container;
mod driver;
mod engine;
mod error;
mod files;
mod frames;
mod images;
mod inside;
mod labels;
mod logs;
mod network;
mod pack;
mod process;
mod profile;
mod snapshots;
mod statistics;
mod tool;
mod unpack;

pub use driver::{OciDriver, Setup};
pub use engine::{Engine, InvalidEngine};
pub use inside::guest;
