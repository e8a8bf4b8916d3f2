//! In which functions threads ran, by their stacks.

use crate::text::grouped;

/// With fewer stacks than this, shares are too uncertain to show.
const MIN_STACKS: u64 = 5;
/// The largest number of functions that are shown.
const MAX_SHOWN: usize = 3;
/// The least share of the stacks that a function must have to be shown.
const MIN_SHARE: f64 = 0.05;

/// The number of stacks that had each function as the innermost one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// All stacks.
    pub stacks: u64,
    /// Functions, the most frequent first.
    pub functions: Vec<(String, u64)>,
}

impl FunctionCounts {
    pub(super) fn add(&mut self, function: &str, count: u64) {
        self.stacks += count;
        match self.functions.iter_mut().find(|known| known.0 == function) {
            Some(known) => known.1 += count,
            None => self.functions.push((function.to_owned(), count)),
        }
    }

    pub(super) fn add_all(&mut self, other: &FunctionCounts) {
        other.functions.iter().for_each(|(function, count)| self.add(function, *count));
    }

    pub(super) fn sort(&mut self) {
        self.functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }

    /// `of 42 stacks, 62 % in rdbSaveRio, 20 % in je_malloc`; None where they are too few.
    pub fn text(&self) -> Option<String> {
        if self.stacks < MIN_STACKS {
            return None;
        }
        let share = |count: u64| count as f64 / self.stacks as f64;
        let shown = self.functions.iter().take(MAX_SHOWN).enumerate();
        let shown = shown.filter(|(rank, function)| *rank == 0 || share(function.1) >= MIN_SHARE);
        let shown: Vec<String> = shown
            .map(|(_, (function, count))| {
                let name = function.rsplit_once(" (").map_or(function.as_str(), |parts| parts.0);
                format!("{:.0} % in {name}", 100.0 * share(*count))
            })
            .collect();
        Some(format!("of {} stacks, {}", grouped(self.stacks), shown.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_shown_if_there_are_enough_stacks() {
        let mut counts = FunctionCounts::default();
        counts.add("je_malloc (redis-server)", 2);
        assert_eq!(counts.text(), None);
        counts.add("rdbSaveRio (redis-server)", 7);
        counts.add("je_malloc (redis-server)", 1);
        counts.sort();
        let words = counts.text().unwrap();
        assert_eq!(words, "of 10 stacks, 70 % in rdbSaveRio, 30 % in je_malloc");
        let mut more = FunctionCounts::default();
        more.add("rare", 1);
        more.add("usual", 99);
        more.add_all(&counts);
        more.sort();
        assert_eq!((more.stacks, more.functions[0].0.as_str()), (110, "usual"));
        assert!(!more.text().unwrap().contains("rare"));
    }
}
