//! OCI images as layers on disk.
//!
//! [`Images`] is the store: one folder per layer, in overlayfs format, named by the digest of its content, and one file per name.
//! [`pull`](Images::fetch) and [`import`](Images::import) bring images in, in two steps that can run in two processes: what
//! talks to strangers fetches verified blobs, and what writes files unpacks one blob at a time. [`unpack`] is the part that
//! trusts nothing of what it reads.
//!
//! # What it promises
//! An image is there whole or not at all, whenever the process is killed: a layer gets its name when it is unpacked and
//! verified, and the image's name comes last. Layers that several images have are stored once. What an image is called by is what was
//! verified: every blob by digest and size, every layer by its content, the whole by the digest of its manifest.

mod archive;
mod blob;
mod config;
mod decompress;
mod digest;
mod error;
mod image;
mod import;
mod limits;
mod manifest;
mod pull;
mod reference;
mod registry;
mod store;
#[cfg(test)]
mod tape;
mod unpack;

pub use blob::{Blob, Fetched};
pub use config::{Config, Healthcheck};
pub use digest::{DiffId, Digest};
pub use error::Error;
pub use image::Image;
pub use limits::Limits;
pub use pull::Progress;
pub use reference::Reference;
pub use registry::{Credentials, Secret};
pub use store::{About, Exclusive, Held, Images, Pruned};
pub use unpack::{Ownership, Unpacked, unpack};
