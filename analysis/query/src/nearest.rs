//! What was meant by a name that is not there.

/// The one of `there` that is spelt nearly as `name`.
pub(crate) fn nearest(name: &str, there: &[String]) -> Option<String> {
    let distance = |other: &String| strsim::damerau_levenshtein(name, other);
    let nearest = there.iter().min_by_key(|other| distance(other))?;
    (distance(nearest) <= 1 + name.len() / 3).then(|| nearest.clone())
}
