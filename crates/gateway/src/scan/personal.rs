//! What says who somebody is: cards, national numbers of Brazil, telephone numbers, e-mail addresses.
//!
//! Any eleven digits are a CPF once in a hundred times. So a number counts only as people write it, or behind its own
//! name, and check digits must be right.

mod check;
mod table;

use check::{cnpj, cpf, luhn};
use table::Table;

use super::{Class, Judged, Spot};

/// The rules for personal data.
pub(super) struct Personal {
    table: &'static Table,
    /// Bytes that something begins at, or is told by.
    anchors: [bool; 256],
}

/// As many bytes as decide about a number, with what must not follow it.
const LONGEST: usize = 26;
/// A domain's longest that is looked at.
const DOMAIN: usize = 80;
/// How far before a number its name stands.
const NAME_BEFORE: usize = 24;

// === impl Personal ===

impl Personal {
    pub(super) fn built_in() -> Self {
        let mut anchors = [false; 256];
        b"0123456789+(/@".iter().for_each(|&byte| anchors[usize::from(byte)] = true);
        Self { table: Table::built_in(), anchors }
    }

    /// Calls `each` with the places from `from` on that something may be at.
    pub(super) fn places(&self, bytes: &[u8], from: usize, mut each: impl FnMut(usize)) {
        let mut previous = from.checked_sub(1).map_or(b' ', |at| bytes[at]);
        for (at, &byte) in bytes.iter().enumerate().skip(from) {
            // Numbers begin where no word goes on: most digits of most texts end here.
            let inner =
                byte.is_ascii_digit() && (previous.is_ascii_alphanumeric() || b"._+".contains(&previous));
            if self.anchors[usize::from(byte)] && !inner {
                each(at);
            }
            previous = byte;
        }
    }

    pub(super) fn judge(&self, spot: Spot<'_>) -> Judged {
        match spot.rest()[0] {
            b'@' => self.address(spot),
            b'/' => self.written_cnpj(spot),
            b'+' | b'(' => self.telephone(spot),
            _ => self.number(spot),
        }
    }

    /// A card or a CPF, from its first digit on; a CNPJ without its dots.
    fn number(&self, spot: Spot<'_>) -> Judged {
        if spot.rest().len() < LONGEST && !spot.ended {
            return Judged::Open;
        }
        let text = &spot.rest()[..LONGEST.min(spot.rest().len())];
        if let Some(name) = self.card(text) {
            return personal(name, &text[..4]);
        }
        let named = |name: &[u8]| {
            let before = spot.before();
            let near = before[before.len().saturating_sub(NAME_BEFORE)..].to_ascii_lowercase();
            near.windows(name.len()).any(|part| part == name)
        };
        let plain = run(text, u8::is_ascii_alphanumeric);
        let written = shaped(text, b"ddd.ddd.ddd-dd").filter(|_| !goes_on(text, 14));
        let bare = (plain.len() == 11 && named(b"cpf")).then(|| plain.to_vec());
        if written.or(bare).is_some_and(|digits| cpf(&digits) && !self.table.is_example(&digits)) {
            return personal("cpf", &text[..2]);
        }
        if plain.len() == 14 && named(b"cnpj") && cnpj(plain) && !self.table.is_example(plain) {
            return personal("cnpj", &text[..2]);
        }
        Judged::Nothing
    }

    /// The kind of card, if it is written as one: in one piece, or in the groups that are on the card.
    fn card(&self, text: &[u8]) -> Option<&'static str> {
        const GROUPS: [&[u8]; 3] = [b"dddd dddd dddd dddd", b"dddd dddddd ddddd", b"dddd dddddd dddd"];
        let plain = run(text, u8::is_ascii_digit);
        let apart = |groups: &[u8]| shaped(text, groups).filter(|_| !goes_on(text, groups.len()));
        let whole = || (plain.len() >= 13 && !goes_on(text, plain.len())).then(|| plain.to_vec());
        let digits = GROUPS.iter().find_map(|groups| apart(groups)).or_else(whole)?;
        let name = self.table.issuer(&digits)?;
        (luhn(&digits) && !self.table.is_example(&digits)).then_some(name)
    }

    /// `12.ABC.345/01DE-35`, by its slash: letters may stand where digits did (2026 on).
    fn written_cnpj(&self, spot: Spot<'_>) -> Judged {
        const BEFORE: usize = 10;
        const WHOLE: usize = 18;
        let Some(start) = spot.before().len().checked_sub(BEFORE).map(|_| spot.at - BEFORE) else {
            return Judged::Nothing;
        };
        let text = &spot.bytes[start..];
        let begins_word = Spot { at: start, ..spot }.begins_word();
        if !begins_word || shaped(text, b"xx.xxx.xxx").is_none() {
            return Judged::Nothing;
        }
        if text.len() <= WHOLE && !spot.ended {
            return Judged::Open;
        }
        match shaped(text, b"xx.xxx.xxx/xxxx-dd") {
            Some(number) if !goes_on(text, WHOLE) && cnpj(&number) && !self.table.is_example(&number) => {
                personal("cnpj", &number[..2])
            }
            _ => Judged::Nothing,
        }
    }

    /// `+55 11 91234-5678` (E.164) and `(11) 91234-5678`.
    fn telephone(&self, spot: Spot<'_>) -> Judged {
        if spot.rest().len() < LONGEST && !spot.ended {
            return Judged::Open;
        }
        let text = &spot.rest()[..LONGEST.min(spot.rest().len())];
        // A `+` at the beginning of a line is a patch's, and one between words a sum's.
        let before = spot.before().last();
        let stands_free = before.is_none_or(|byte| b" \"':=>,;(\t".contains(byte));
        if text[0] == b'(' {
            let national =
                [&b"(dd) ddddd-dddd"[..], b"(dd)ddddd-dddd", b"(dd) dddd-dddd", b"(dd) ddddd dddd"];
            let found =
                national.iter().find(|shape| shaped(text, shape).is_some() && !goes_on(text, shape.len()));
            // Ten to nineteen are no areas, nor are those that end in 0.
            let area = text.get(1..3).is_some_and(|area| area[0] != b'0' && area[1] != b'0');
            return if found.is_some() && area {
                personal("telephone", &text[1..3])
            } else {
                Judged::Nothing
            };
        }
        let number = run(&text[1..], |byte| byte.is_ascii_digit() || b" -()".contains(byte));
        let digits: Vec<u8> = number.iter().copied().filter(u8::is_ascii_digit).collect();
        let apart = number.trim_ascii_end().len() > digits.len();
        let international =
            matches!(digits.len(), 10..=15) && digits[0] != b'0' && number[0].is_ascii_digit();
        let fiction = digits.windows(5).any(|part| part == b"55501");
        let sum = number.windows(3).any(|part| part == b" - ") || goes_on(text, 1 + number.len());
        if international
            && !fiction
            && !sum
            && stands_free
            && (apart || before.is_some_and(|byte| *byte != b' '))
        {
            return personal("telephone", &digits[..2]);
        }
        Judged::Nothing
    }

    /// By its `@`.
    fn address(&self, spot: Spot<'_>) -> Judged {
        let before = spot.before();
        let is_user = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(byte);
        let user = &before[before.len() - before.iter().rev().take_while(is_user).count()..];
        let rest = &spot.rest()[1..];
        let is_domain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
        let domain = run(&rest[..DOMAIN.min(rest.len())], is_domain);
        if user.is_empty() || user.len() > 64 {
            return Judged::Nothing;
        }
        if domain.len() == rest.len() && rest.len() < DOMAIN && !spot.ended {
            return Judged::Open;
        }
        let authority = rest.get(domain.len()) == Some(&b':')
            && rest.get(domain.len() + 1).is_none_or(|byte| *byte != b' ');
        let in_url = before[..before.len() - user.len()].ends_with(b"//")
            || before[..before.len() - user.len()].ends_with(b":");
        let domain = String::from_utf8_lossy(domain).trim_end_matches(['.', '-']).to_ascii_lowercase();
        let user = String::from_utf8_lossy(user).to_ascii_lowercase();
        if authority || in_url || !self.table.is_mail(&user, &domain) {
            return Judged::Nothing;
        }
        let shown = user.get(..1).unwrap_or_default().as_bytes().to_vec();
        personal("e-mail", &shown)
    }
}

fn personal(name: &'static str, shown: &[u8]) -> Judged {
    Judged::Found(Class::Personal, name.into(), format!("{}…", String::from_utf8_lossy(shown)))
}

/// What `text` begins with, as long as it `is`.
fn run(text: &[u8], is: impl Fn(&u8) -> bool) -> &[u8] {
    &text[..text.iter().take_while(|byte| is(byte)).count()]
}

/// Whether a number goes on after `length` bytes.
fn goes_on(text: &[u8], length: usize) -> bool {
    let next = text.get(length).copied().unwrap_or(b' ');
    let after = text.get(length + 1).copied().unwrap_or(b' ');
    next.is_ascii_alphanumeric() || next == b'_' || (b".-/".contains(&next) && after.is_ascii_alphanumeric())
}

/// The letters and digits of what `text` begins with, if it has the `shape`: `d` is a digit, `x` one or a capital letter, a
/// space or `-` between groups may be either, everything else is itself.
fn shaped(text: &[u8], shape: &[u8]) -> Option<Vec<u8>> {
    let text = text.get(..shape.len())?;
    let separator = text.iter().find(|byte| b" -".contains(byte)).copied().unwrap_or(b' ');
    let fits = |(&byte, &wanted): (&u8, &u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
        b' ' if !shape.contains(&b'-') => byte == separator,
        wanted => byte == wanted,
    };
    let all = text.iter().zip(shape).all(fits);
    all.then(|| text.iter().copied().filter(u8::is_ascii_alphanumeric).collect())
}
