//! Names of intervals, spans and points.

/// Whether a name means this interval: all of it, or its last part.
pub(super) fn is_named(whole: &str, name: &str) -> bool {
    let ends = whole.strip_suffix(name);
    ends.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_name_will_do() {
        assert!(is_named("serve.work", "work") && is_named("serve.work", "serve.work"));
        assert!(!is_named("serve.work", "ork") && !is_named("serve.work", "serve"));
    }
}
