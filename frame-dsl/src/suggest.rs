//! The known word that an unknown one was probably meant to be.

/// Types of other languages and what they are called here.
const ELSEWHERE: [(&str, &str); 49] = [
    ("unsigned", "u32"),
    ("signed", "i32"),
    ("uint", "u32"),
    ("long", "i64"),
    ("ulong", "u64"),
    ("short", "i16"),
    ("ushort", "u16"),
    ("byte", "u8"),
    ("uchar", "u8"),
    ("int8", "i8"),
    ("int16", "i16"),
    ("int32", "i32"),
    ("int64", "i64"),
    ("uint8", "u8"),
    ("uint16", "u16"),
    ("uint32", "u32"),
    ("uint64", "u64"),
    ("int8_t", "i8"),
    ("int16_t", "i16"),
    ("int32_t", "i32"),
    ("int64_t", "i64"),
    ("uint8_t", "u8"),
    ("uint16_t", "u16"),
    ("uint32_t", "u32"),
    ("uint64_t", "u64"),
    ("size_t", "u64"),
    ("ssize_t", "i64"),
    ("usize", "u64"),
    ("isize", "i64"),
    ("uintptr_t", "addr"),
    ("intptr_t", "addr"),
    ("void", "addr"),
    ("ptr", "addr"),
    ("pointer", "addr"),
    ("address", "addr"),
    ("function", "addr"),
    ("off_t", "i64"),
    ("pid_t", "i32"),
    ("time_t", "time"),
    ("timeval", "time"),
    ("timespec", "time"),
    ("timestamp", "time"),
    ("instant", "time"),
    ("float32", "f32"),
    ("float64", "f64"),
    ("real", "f64"),
    ("_Bool", "bool"),
    ("boolean", "bool"),
    ("string", "char name[16]"),
];

/// The name here of a type of another language.
pub(crate) fn from_elsewhere(word: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours)
}

/// The candidate nearest to `word`, if it is near enough to be a slip of the fingers.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A bound on the work, not on the language: longer words are not slips, and names in their
    // thousands are not read by anyone.
    const LONGEST: usize = 64;
    const MOST: usize = 512;
    if word.len() > LONGEST {
        return None;
    }
    let slips = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .take(MOST)
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| {
            let folded =
                strsim::osa_distance(&word.to_ascii_lowercase(), &candidate.to_ascii_lowercase());
            (folded, candidate)
        })
        .filter(|(distance, candidate)| *distance <= slips && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far() {
        let words = ["frame", "enum", "emit", "buffer", "option"];
        assert_eq!(nearest("fram", words), Some("frame"));
        assert_eq!(nearest("Frame", words), Some("frame"));
        assert_eq!(nearest("bufefr", words), Some("buffer"));
        assert_eq!(nearest("struct", words), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest(&"frame".repeat(1000), words), None);
    }
}
