//! Suggests the intended name for an unknown one.

/// The name in `names` of which `word` is a misspelling, ignoring case. Errors are missing,
/// additional, wrong or swapped letters (optimal string alignment distance). One error is allowed
/// for every three letters of `word`, one in a shorter word, and fewer than the name has bytes:
/// `pid` is not a misspelt `end`. Of equally near names, the first is returned. Words and names
/// above 64 bytes, and names after the first 512, are not compared, which bounds the work.
pub fn nearest<S: AsRef<str>>(word: &str, names: impl IntoIterator<Item = S>) -> Option<S> {
    const MAX_CHARS: usize = 64;
    const MAX_NAMES: usize = 512;
    if word.len() > MAX_CHARS {
        return None;
    }
    let slips = (word.chars().count() / 3).max(1);
    let word = word.to_lowercase();
    let near = |name: S| {
        let text = name.as_ref();
        let distance = (text.len() <= MAX_CHARS)
            .then(|| strsim::osa_distance(&word, &text.to_lowercase()))
            .filter(|&distance| distance <= slips && distance < text.len())?;
        Some((distance, name))
    };
    let near = names.into_iter().take(MAX_NAMES).filter_map(near);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The end of a message about an unknown name: `` (did you mean `NAME`?)``, or empty.
pub fn did_you_mean(name: &Option<impl AsRef<str>>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!(" (did you mean `{}`?)", name.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_misspelling_is_near() {
        let names = ["pid", "tid", "kind", "spent", "handle", "frame", "buffer"];
        for (word, meant) in [
            ("end", None),
            ("pdi", Some("pid")),
            ("knd", Some("kind")),
            ("spnt", Some("spent")),
            ("hnadel", Some("handle")),
            ("Frame", Some("frame")),
            ("bufefr", Some("buffer")),
            ("SELECT", None),
            ("", None),
            (&"frame".repeat(1000), None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
        assert_eq!(nearest("x", ["y"]), None, "one letter for another is no misspelling");
    }

    #[test]
    fn a_sentence_goes_on() {
        assert_eq!(did_you_mean(&Some("pid")), " (did you mean `pid`?)");
        assert_eq!(did_you_mean(&None::<&str>), "");
    }
}
