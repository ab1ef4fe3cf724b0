//! Turns a resolved policy into a running, confined process tree.
//!
//! The way in is [`Jail::start`], which forks init; [`init`] raises the sandbox in the order that its code shows and
//! then starts commands. A [`Blueprint`] says what to build. What the kernel here can enforce is found by [`Probes`].

mod attributes;
mod blueprint;
mod caller;
mod canary;
mod channel;
mod child;
mod confine;
mod error;
mod guest;
mod identity;
mod init;
mod jail;
pub mod limits;
mod network;
mod preface;
mod probe;
mod reap;
mod root;
mod seccomp;
mod sockets;
mod spawn;
mod supervisor;

pub use blueprint::{Blueprint, Canary, Cover, Grant, Layers, Piece, Privileges, Rights, Root, Wire};
pub use channel::{Channel, Ending, Enforced, Ids, Terminal};
pub use child::as_root_of;
pub use error::{Failure, JailError, Step};
pub use guest::{Guest, GuestCommand, Reaped, confine_guest, guest_calls, receive_network, serve_network};
pub use identity::Identity;
pub use jail::{Event, Exec, Jail, Raising, Running};
pub use network::{Entrance, Sockets, Wires};
pub use preface::{Preface, Token};
pub use probe::{LANDLOCK_TIER_ABI, Missing, Probes, fingerprint, landlock_abi};
pub use redoma_policy::Tier;
