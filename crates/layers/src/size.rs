//! How much layers take.

use std::path::PathBuf;

use crate::layer::Layer;
use crate::links::{Known, Links};
use crate::{Error, Kind};

/// What layers take on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes on disk, each file once: holes take nothing, what is shared with other layers counts.
    pub bytes: u64,
    /// Paths, whiteouts included.
    pub entries: u64,
    /// Whether all was counted.
    pub is_whole: bool,
}

/// What one or more layers take on disk. At most `entries` paths are looked at; beyond, the answer is "at least".
///
/// # Errors
/// [`Error::Open`] and [`Error::Read`].
pub fn size(layers: &[PathBuf], entries: u64) -> Result<Size, Error> {
    let mut size = Size { is_whole: true, ..Size::default() };
    for path in layers {
        count(&Layer::open(path)?, entries, &mut size)?;
    }
    Ok(size)
}

fn count(layer: &Layer, most: u64, size: &mut Size) -> Result<(), Error> {
    let mut links = Links::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let open = layer.folder(&folder)?;
        for name in layer.names(&open, &folder)? {
            let name = crate::beneath::as_path(&name).as_os_str();
            let path = folder.join(name);
            let Some(stat) = layer.stat(&open, name, &path)? else { continue };
            if size.entries == most {
                size.is_whole = false;
                return Ok(());
            }
            size.entries += 1;
            let is_folder = Kind::of(&stat) == Kind::Folder;
            #[allow(clippy::useless_conversion, reason = "the width differs between architectures")]
            let names = if is_folder { 1 } else { stat.st_nlink.into() };
            if !matches!(links.note((stat.st_dev, stat.st_ino), names, &path), Known::Again(_)) {
                size.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            }
            if is_folder {
                folders.push(path);
            }
        }
    }
    Ok(())
}
