//! What somebody may have meant.

/// The name that is spelt most nearly so, if one is.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let far = |it: &str| strsim::damerau_levenshtein(&it.to_lowercase(), &name.to_lowercase());
    let near = names.map(|it| (far(it), it)).min_by_key(|it| it.0)?;
    (near.0 <= name.chars().count().max(2) / 2).then(|| near.1.to_owned())
}
