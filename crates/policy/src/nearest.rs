//! What somebody may have meant.

/// The known name most like a misspelt one, if one is near enough to be worth naming.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let best = scored.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 > 0.8).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_guess_is_not() {
        let known = ["filesystem", "network", "limits"];
        assert_eq!(nearest("filesytem", known), Some("filesystem"));
        assert_eq!(nearest("limit", known), Some("limits"));
        assert_eq!(nearest("zebra", known), None);
    }
}
