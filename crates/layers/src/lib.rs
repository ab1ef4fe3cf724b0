//! Trees of files in overlayfs layers, read and changed from user space: nothing is mounted, and nothing in a layer is trusted.
//!
//! A layer is a folder in the format of overlayfs (Documentation/filesystems/overlayfs.rst of the kernel, with `userxattr`): a
//! character device 0:0 is a whiteout, and the attribute `user.overlay.opaque` hides what lower layers hold of a folder. A *chain*
//! is a list of layers, topmost first. [`Tree`] is what a chain shows when it is mounted, [`diff`] compares two chains, [`copy`],
//! [`remove_layer`] and [`size`] act on layers as they are, and [`pack`] writes what a chain shows as a tar stream.
//!
//! What is in a layer was written by a sandbox. So every folder and file is opened by openat2(2) below the layer's own descriptor,
//! with no link followed and no mount crossed; files are opened without waiting and looked at again when they are open; names are
//! bytes; all that is kept in memory is bounded. Paths longer than `PATH_MAX` (4096 bytes), which no program can name either, are
//! an error, but not for [`remove_layer`].
//!
//! What acts here has the rights of the calling process. For files that belong to ranges of user ids inside, enter a user namespace
//! first that maps them.

pub mod beneath;
mod compare;
mod copy;
mod diff;
mod entry;
mod error;
mod layer;
mod links;
mod pack;
pub mod remove;
mod size;
pub mod text;
mod tree;
mod xattr;

pub use copy::{Copied, copy, spread};
pub use diff::{Change, ChangeKind, Facts, diff};
pub use entry::{Entry, Kind};
pub use error::Error;
pub use pack::{Packed, pack};
pub use remove::remove_layer;
pub use size::{Size, size};
pub use tree::Tree;
