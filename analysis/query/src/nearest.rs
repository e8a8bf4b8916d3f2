//! What was meant by a name that is not there.

/// The one of `there` that is spelt nearly as `name`.
pub(crate) fn nearest(name: &str, there: &[String]) -> Option<String> {
    let distance = |other: &String| strsim::damerau_levenshtein(name, other);
    let nearest = there.iter().min_by_key(|other| distance(other))?;
    // A third of the letters: `pid` is no misspelt `end`.
    let most = (name.chars().count() / 3).max(1);
    (distance(nearest) <= most).then(|| nearest.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_misspelling_is_near() {
        let there = ["pid", "tid", "kind", "spent", "handle"].map(String::from);
        for (name, meant) in [
            ("end", None),
            ("pdi", Some("pid")),
            ("knd", Some("kind")),
            ("spnt", Some("spent")),
            ("hnadel", Some("handle")),
            ("SELECT", None),
        ] {
            assert_eq!(nearest(name, &there).as_deref(), meant, "{name}");
        }
    }
}
