//! Check digits.

/// Luhn's (ISO/IEC 7812-1, annex B).
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &digit)| {
            let value = u32::from(digit.wrapping_sub(b'0'));
            if place % 2 == 0 { value } else { value * 2 / 10 + value * 2 % 10 }
        })
        .sum();
    sum.is_multiple_of(10) && !all_same(digits)
}

/// A person's number: nine digits, and two that follow from them.
pub(super) fn cpf(digits: &[u8]) -> bool {
    let weights = |length: usize| (2..=length as u32 + 1).rev().collect::<Vec<_>>();
    digits.len() == 11
        && digits.iter().all(u8::is_ascii_digit)
        && !all_same(digits)
        && check_digit(&digits[..9], &weights(9)) == digits[9]
        && check_digit(&digits[..10], &weights(10)) == digits[10]
}

/// A company's number: twelve digits or capital letters (a letter counts as its code less that of `0`), and two digits
/// that follow from them.
pub(super) fn cnpj(number: &[u8]) -> bool {
    const WEIGHTS: [u32; 13] = [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2];
    number.len() == 14
        && number[..12].iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && !all_same(number)
        && check_digit(&number[..12], &WEIGHTS[1..]) == number[12]
        && check_digit(&number[..13], &WEIGHTS) == number[13]
}

fn check_digit(number: &[u8], weights: &[u32]) -> u8 {
    let sum: u32 =
        number.iter().zip(weights).map(|(&byte, weight)| u32::from(byte.wrapping_sub(b'0')) * weight).sum();
    match sum % 11 {
        0 | 1 => b'0',
        rest => b'0' + (11 - rest) as u8,
    }
}

fn all_same(number: &[u8]) -> bool {
    number.windows(2).all(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_are_those_of_their_authorities() {
        assert!(luhn(b"4539578763621486") && !luhn(b"4539578763621487") && !luhn(b"0000000000000000"));
        assert!(cpf(b"52998224725") && !cpf(b"52998224724") && !cpf(b"11111111111"));
        assert!(cnpj(b"11222333000181") && !cnpj(b"11222333000180"));
        assert!(cnpj(b"12ABC34501DE35") && !cnpj(b"12ABC34501DE36"), "the authority's own example");
    }
}
