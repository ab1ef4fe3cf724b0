//! Values that are known, in all the ways in which they are usually written.

use std::collections::{BTreeSet, HashMap};

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, Encoding, HEXLOWER, HEXUPPER};

use super::{Class, Judged, Spot};
use crate::secrets::Secret;

/// A value to look for.
pub(crate) struct Known {
    /// Whose it is: a variable, or a decoy's field.
    pub(crate) name: String,
    pub(crate) class: Class,
    pub(crate) value: Secret<String>,
}

/// The values by what they begin with.
pub(super) struct Needles {
    by_start: HashMap<[u8; 3], Vec<Needle>>,
}

struct Needle {
    bytes: Vec<u8>,
    class: Class,
    name: String,
}

/// What is shorter is found by chance.
const SHORTEST: usize = 8;

// === impl Needles ===

impl Needles {
    pub(super) fn new<'a>(known: impl Iterator<Item = &'a Known>) -> Self {
        let mut needles = Self { by_start: HashMap::new() };
        for known in known.filter(|known| known.value.expose().len() >= SHORTEST) {
            for bytes in forms(known.value.expose()) {
                needles.insert(Needle { bytes, class: known.class, name: known.name.clone() });
            }
        }
        needles
    }

    fn insert(&mut self, needle: Needle) {
        if let [one, two, three, ..] = *needle.bytes {
            self.by_start.entry([one, two, three]).or_default().push(needle);
        }
    }

    pub(super) fn beginnings(&self) -> impl Iterator<Item = [u8; 3]> {
        self.by_start.keys().copied()
    }

    pub(super) fn judge(&self, spot: Spot<'_>) -> Judged {
        let rest = spot.rest();
        let [one, two, three, ..] = *rest else { return Judged::Nothing };
        let mut judged = Judged::Nothing;
        for needle in self.by_start.get(&[one, two, three]).into_iter().flatten() {
            if rest.starts_with(&needle.bytes) {
                return Judged::Found(needle.class, needle.name.clone().into(), String::new());
            }
            if !spot.ended && needle.bytes.starts_with(rest) {
                judged = Judged::Open;
            }
        }
        judged
    }
}

/// The value as it is, and as encodings write it.
fn forms(value: &str) -> BTreeSet<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = BTreeSet::from([bytes.to_vec()]);
    for encoding in [&BASE64_NOPAD, &BASE64URL_NOPAD] {
        forms.extend((0..3).map(|before| in_base64(bytes, before, encoding)));
    }
    forms.extend([&HEXLOWER, &HEXUPPER].map(|encoding| encoding.encode(bytes).into_bytes()));
    forms.extend([percent(bytes, &HEXUPPER, "%20"), percent(bytes, &HEXLOWER, "%20")]);
    forms.insert(percent(bytes, &HEXUPPER, "+"));
    forms.extend(in_json(value));
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// The characters that the value alone decides, when `before` bytes (of every three) stand before it.
fn in_base64(value: &[u8], before: usize, encoding: &Encoding) -> Vec<u8> {
    let mut padded = vec![0; before];
    padded.extend_from_slice(value);
    let encoded = encoding.encode(&padded);
    let first = (before * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    encoded.as_bytes().get(first..end).unwrap_or_default().to_vec()
}

/// As URLs and forms write it.
fn percent(value: &[u8], hex: &Encoding, space: &str) -> Vec<u8> {
    let mut written = Vec::new();
    for byte in value {
        match byte {
            b' ' => written.extend_from_slice(space.as_bytes()),
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) => written.push(*byte),
            byte => {
                written.push(b'%');
                written.extend_from_slice(hex.encode(&[*byte]).as_bytes());
            }
        }
    }
    written
}

/// As JSON writers do: the least that must be, with `/` too, and with what HTML would read.
fn in_json(value: &str) -> [Vec<u8>; 3] {
    let quoted = serde_json::Value::from(value).to_string();
    let plain = quoted[1..quoted.len() - 1].to_owned();
    let careful = ["<", ">", "&", "'"].iter().fold(plain.clone(), |text, unsafe_in_html| {
        let code = unsafe_in_html.as_bytes()[0];
        text.replace(unsafe_in_html, &format!("\\u{code:04x}"))
    });
    [plain.clone().into_bytes(), plain.replace('/', "\\/").into_bytes(), careful.into_bytes()]
}
