//! The table of `data/personal.txt`, read once.

use std::sync::LazyLock;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("../../../data/personal.txt")));

/// The rules by kind.
#[derive(Default)]
pub(super) struct Table {
    cards: Vec<Card>,
    examples: Vec<&'static [u8]>,
    domains: Vec<&'static str>,
    users: Vec<&'static str>,
    endings: Vec<&'static str>,
}

struct Card {
    name: &'static str,
    prefixes: Vec<(&'static str, &'static str)>,
    lengths: Vec<usize>,
}

impl Table {
    pub(super) fn built_in() -> &'static Self {
        &TABLE
    }

    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            // A line that does not fit is caught by the test below, not by a user.
            let _ = table.add(&mut line.split_ascii_whitespace());
        }
        table
    }

    fn add(&mut self, fields: &mut dyn Iterator<Item = &'static str>) -> Option<()> {
        let (kind, value) = (fields.next()?, fields.next()?);
        match kind {
            "card" => self.cards.push(Card::parse(value, fields)?),
            "example" => self.examples.push(value.as_bytes()),
            "domain" => self.domains.push(value),
            "user" => self.users.push(value),
            "ending" => self.endings.push(value),
            _ => return None,
        }
        Some(())
    }

    pub(super) fn issuer(&self, digits: &[u8]) -> Option<&'static str> {
        self.cards.iter().find(|card| card.fits(digits)).map(|card| card.name)
    }

    pub(super) fn is_example(&self, number: &[u8]) -> bool {
        self.examples.contains(&number)
    }

    /// Whether mail can reach somebody there. The names are in lower case.
    pub(super) fn is_mail(&self, user: &str, domain: &str) -> bool {
        let Some((_, ending)) = domain.rsplit_once('.') else { return false };
        let letters = ending.len() >= 2 && ending.bytes().all(|byte| byte.is_ascii_lowercase());
        let labels = domain.split('.').all(|label| !label.is_empty() && !label.starts_with('-'));
        let below =
            |own: &&str| domain.strip_suffix(*own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        letters
            && labels
            && !self.domains.iter().any(below)
            && !self.users.contains(&user)
            && !self.endings.contains(&ending)
    }
}

impl Card {
    fn parse(name: &'static str, fields: &mut dyn Iterator<Item = &'static str>) -> Option<Self> {
        let prefixes =
            fields.next()?.split(',').map(|range| range.split_once('-').unwrap_or((range, range))).collect();
        let lengths = fields.next()?.split(',').map(|length| length.parse().ok()).collect::<Option<_>>()?;
        Some(Self { name, prefixes, lengths })
    }

    fn fits(&self, digits: &[u8]) -> bool {
        let begins = |&(first, last): &(&str, &str)| {
            digits
                .get(..first.len())
                .is_some_and(|start| (first.as_bytes()..=last.as_bytes()).contains(&start))
        };
        self.lengths.contains(&digits.len()) && self.prefixes.iter().any(begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule_with_a_reason() {
        let table = include_str!("../../../data/personal.txt");
        for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut fields = line.split_ascii_whitespace();
            assert!(Table::default().add(&mut fields).is_some() && fields.next().is_some(), "{line}");
        }
    }
}
