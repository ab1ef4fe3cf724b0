//! What stands inside for a credential: of the same shape, so that what checks the shape takes it, and drawn anew for each
//! session, so that nobody can guess it.

use redoma_audit::token_shapes;

use super::{Secret, SecretError};

/// Fewer drawn characters could be guessed, and be in a text by chance.
const FEWEST: usize = 16;

const LOWER_HEX: &[u8] = b"0123456789abcdef";
const UPPER_HEX: &[u8] = b"0123456789ABCDEF";
const DIGIT: &[u8] = b"0123456789";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Characters of the check sum at the end of GitHub's and npm's tokens.
const CHECK: usize = 6;

/// A placeholder for `real`.
pub(super) fn draw(real: &Secret<String>) -> Result<Secret<String>, SecretError> {
    let real = real.expose().as_bytes();
    let prefix = prefix(real);
    let body = &real[prefix..];
    let drawn = body.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    let mut shown = real[..prefix].to_vec();
    if drawn < FEWEST {
        // A short one gives up its length before it can be guessed.
        shown = b"redoma".to_vec();
        shown.extend(letters(&[b'a'; 26], LOWER_HEX)?);
    } else {
        let alphabet = [LOWER_HEX, UPPER_HEX].into_iter().find(|hex| of(body, hex));
        shown.extend(match alphabet {
            Some(hex) => letters(body, hex)?,
            None => body.iter().map(|&byte| same_class(byte)).collect::<Result<Vec<_>, _>>()?,
        });
        if has_check(real) {
            let end = shown.len() - CHECK;
            let check = check(&shown[..end]);
            shown[end..].copy_from_slice(&check);
        }
    }
    Ok(Secret::new(String::from_utf8_lossy(&shown).into_owned()))
}

/// How much of it every such token begins with.
fn prefix(real: &[u8]) -> usize {
    let fits = token_shapes()
        .map(redoma_audit::TokenShape::prefix)
        .filter(|prefix| real.starts_with(prefix.as_bytes()));
    fits.map(str::len).max().unwrap_or(0)
}

/// Whether it is digits of `hex` and dashes, letters among them.
fn of(body: &[u8], hex: &[u8]) -> bool {
    body.iter().all(|byte| hex.contains(byte) || *byte == b'-') && body.iter().any(u8::is_ascii_alphabetic)
}

/// As many of `alphabet`, with the dashes where they are.
fn letters(body: &[u8], alphabet: &[u8]) -> Result<Vec<u8>, SecretError> {
    body.iter().map(|&byte| if byte == b'-' { Ok(byte) } else { letter(alphabet) }).collect()
}

fn same_class(byte: u8) -> Result<u8, SecretError> {
    match byte {
        b'a'..=b'z' => letter(LOWER),
        b'A'..=b'Z' => letter(UPPER),
        b'0'..=b'9' => letter(DIGIT),
        byte if byte.is_ascii() => Ok(byte),
        _ => Ok(b'x'),
    }
}

/// One letter, each as likely as the others: bytes that would prefer the first are drawn again.
fn letter(alphabet: &[u8]) -> Result<u8, SecretError> {
    let fair = 256 / alphabet.len() * alphabet.len();
    loop {
        let mut byte = [0];
        aws_lc_rs::rand::fill(&mut byte).map_err(|_| SecretError::Random)?;
        if usize::from(byte[0]) < fair {
            return Ok(alphabet[usize::from(byte[0]) % alphabet.len()]);
        }
    }
}

/// Whether it ends with the check sum of what comes before it.
fn has_check(real: &[u8]) -> bool {
    let Some(end) = real.len().checked_sub(CHECK) else { return false };
    real[end..] == check(&real[..end])
}

/// CRC-32 of the characters between prefix and check sum, in six digits of base 62: what GitHub and npm publish as the
/// format of their tokens.
fn check(token: &[u8]) -> [u8; CHECK] {
    let body = token.iter().position(|&byte| byte == b'_').map_or(token, |at| &token[at + 1..]);
    let mut crc = flate2::Crc::new();
    crc.update(body);
    let mut rest = crc.sum() as usize;
    let mut digits = [b'0'; CHECK];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[rest % BASE62.len()];
        rest /= BASE62.len();
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(real: &str) -> String {
        draw(&Secret::new(real.to_owned())).unwrap().expose().clone()
    }

    #[test]
    fn prefixes_alphabets_and_check_sums_stay() {
        let key = drawn("sk-ant-api03-AbCd1234EfGh5678_-IjKl9012MnOp3456");
        assert!(key.starts_with("sk-ant-api03-") && &key[29..31] == "_-", "{key}");
        let id = drawn("0f8fad5b-d9cb-469f-a165-70867728950e");
        assert!(id.bytes().all(|byte| LOWER_HEX.contains(&byte) || byte == b'-'), "{id}");
        let mut token = b"ghp_16C7e42F292c6912E7710c838347Ae".to_vec();
        let sum = check(&token);
        token.extend(sum);
        let token = drawn(std::str::from_utf8(&token).unwrap());
        assert!(token.starts_with("ghp_") && has_check(token.as_bytes()), "{token}");
        let short = drawn("1234");
        assert!(short.starts_with("redoma") && short.len() == 32, "{short}");
    }

    proptest! {
        #[test]
        fn a_placeholder_is_of_the_same_shape_and_never_the_same(real in "(ghp_|sk-|AKIA|)[a-zA-Z0-9_-]{40,80}") {
            let one = drawn(&real);
            prop_assert_eq!(one.len(), real.len());
            prop_assert_ne!(&one, &real);
            prop_assert_ne!(&one, &drawn(&real));
            for (a, b) in one.bytes().zip(real.bytes()) {
                prop_assert_eq!(a.is_ascii_alphanumeric(), b.is_ascii_alphanumeric());
            }
        }
    }
}
