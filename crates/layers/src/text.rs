//! How the content of a path differs, for reading.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use similar::{Algorithm, TextDiff};

/// Larger files are summed up like binary ones: nobody reads such a diff.
const TEXT_MAX: u64 = 1 << 20;

/// After this long the rest of a file is shown as replaced: some texts are made to be slow.
const TIME_MAX: Duration = Duration::from_secs(2);

/// How content differs. Text and link targets come from inside: escape them before a terminal sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Only names, modes or kinds differ.
    None,
    /// A unified diff, with `---` and `+++` lines.
    Text(String),
    /// Sizes in bytes, of what there was and what there is: not text, or too large to be shown.
    Binary {
        /// Before.
        old: Option<u64>,
        /// After.
        new: Option<u64>,
    },
    /// Where a link led and leads; what was no link is missing.
    Link {
        /// Before.
        old: Option<Vec<u8>>,
        /// After.
        new: Option<Vec<u8>>,
    },
}

/// The text in a file: UTF-8 without NUL, of bounded size.
pub fn of(file: impl Read) -> Option<String> {
    let mut content = Vec::new();
    file.take(TEXT_MAX + 1).read_to_end(&mut content).ok()?;
    let is_text = content.len() as u64 <= TEXT_MAX && !content.contains(&0);
    String::from_utf8(content).ok().filter(|_| is_text)
}

/// A unified diff of a file that was there or not (`had`) and is there or not (`has`).
pub fn unified(path: &Path, had: bool, has: bool, before: &str, after: &str) -> String {
    let name =
        |side, exists| if exists { format!("{side}/{}", path.display()) } else { "/dev/null".to_owned() };
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(TIME_MAX).diff_lines(before, after);
    diff.unified_diff().header(&name("a", had), &name("b", has)).to_string()
}
