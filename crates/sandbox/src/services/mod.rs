//! Groups of services: several sandboxes that one file describes, and that reach each other by name.
//!
//! A file is read ([`parse`]), what it says is made ready for this machine ([`Plan`]), and [`up`] brings that about through
//! whichever driver. There is no list of groups: sandboxes know by their labels which they belong to.

mod down;
mod error;
mod file;
mod health;
mod load;
mod logs;
mod model;
mod order;
mod plan;
mod started;
mod up;
mod variables;

pub use down::{Which, down, services_of, stop_all};
pub use error::ServicesError;
pub use file::{FILE_LIMIT, NAMES, parse};
pub use load::{Loaded, is_services_file, load};
pub use logs::{Line, follow, last_lines};
pub use model::{Beginning, Bind, Condition, Group, Health, Probe, Service};
pub use order::order;
pub use plan::{Plan, Planned, Ready};
pub use up::{Step, Up};
