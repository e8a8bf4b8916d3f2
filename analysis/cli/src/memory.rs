//! Memory limit of questions.

use std::fmt;
use std::fs;

/// Bytes of a process besides its questions: the engine itself, lists of chunks, buffers of files.
const ENGINE_BYTES: usize = 24 << 20;

/// Memory limit of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes; None if the free memory is unknown.
    pub(crate) bytes: Option<usize>,
    /// Whether `--memory` was given.
    pub(crate) is_given: bool,
}

impl Memory {
    /// `--memory`, or half of the free memory: other programs need some, too.
    pub(crate) fn new(given: Option<usize>) -> Memory {
        Memory { bytes: given.or_else(half_of_what_is_free), is_given: given.is_some() }
    }

    /// Maximum bytes of the whole process.
    pub(crate) fn of_process(self) -> Option<usize> {
        self.bytes.map(|bytes| bytes.saturating_add(ENGINE_BYTES))
    }

    /// Maximum bytes of the values of fields before their percentiles are rounded to three digits: half
    /// of `--memory`, because values are copied when threads merge theirs; otherwise at most `most`,
    /// because selecting among more values takes longer.
    pub(crate) fn of_values(self, most: usize) -> usize {
        match self.bytes {
            Some(bytes) if self.is_given => bytes / 2,
            bytes => bytes.map_or(most, |bytes| bytes.min(most)),
        }
    }

    /// The message for a question that needs more.
    pub(crate) fn exceeded(self) -> String {
        let hint = "ask for less (fewer columns, groups or rows; --from and --to)";
        match self.bytes {
            Some(_) if self.is_given => format!(
                "out of memory: the question needs more than --memory {self}: allow more, or {hint}"
            ),
            Some(_) => format!(
                "out of memory: the question needs more than half of what is free ({self}): allow \
                 more with --memory, or {hint}"
            ),
            None => format!("out of memory: {hint}"),
        }
    }
}

impl fmt::Display for Memory {
    /// In the format of `--memory`: `64M`, `7.3G`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.unwrap_or_default();
        let units = [(30, "G"), (20, "M"), (10, "K")];
        let (shift, unit) =
            units.into_iter().find(|(shift, _)| bytes >> shift > 0).unwrap_or((0, ""));
        match bytes & ((1 << shift) - 1) {
            0 => write!(f, "{}{unit}", bytes >> shift),
            _ => write!(f, "{:.1}{unit}", bytes as f64 / (1u64 << shift) as f64),
        }
    }
}

/// Half of the free memory of the host, or of the control group of this process.
fn half_of_what_is_free() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    let groups = ppt_now::memory_groups("/proc".as_ref(), "self");
    let of_groups = groups.iter().map(|group| group.left).min().unwrap_or(u64::MAX);
    Some((kib << 10).min(usize::try_from(of_groups).unwrap_or(usize::MAX)) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_they_are_typed() {
        let text = |bytes| Memory { bytes: Some(bytes), is_given: true }.to_string();
        assert_eq!(text(64 << 20), "64M");
        assert_eq!(text(3 << 30), "3G");
        assert_eq!(text(1000), "1000");
        assert_eq!(text((1 << 30) + (1 << 29)), "1.5G");
    }

    #[test]
    fn values_take_more_only_if_they_may() {
        let of = |bytes, is_given| Memory { bytes, is_given }.of_values(1000);
        assert_eq!(of(Some(5000), false), 1000);
        assert_eq!(of(Some(500), false), 500);
        assert_eq!(of(None, false), 1000);
        assert_eq!(of(Some(5000), true), 2500);
    }
}
