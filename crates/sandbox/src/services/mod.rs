//! Groups of services: what a file says about them ([`file`]), and bringing them up and down ([`up`]).
//!
//! There is no list of groups: a group is what its members' labels say, in the drivers' own stores.

pub mod file;
mod health;
mod native;
mod peapod;
mod up;

pub use file::{Group, Health, Service, ServicesError};
pub use up::{Member, Progress, Ups, down, members, up};
