//! Functions by address.

/// The functions of a file or of JIT code, by address.
#[derive(Debug, Clone, Default)]
pub struct FunctionTable {
    functions: Vec<Function>,
    /// The innermost function from each address on; [`NOBODY`] for none.
    segments: Vec<(u64, u32)>,
    /// The text that contains all names.
    names: Vec<u8>,
}

const NOBODY: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Function {
    start: u64,
    name: TextRange,
}

/// A range of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TextRange {
    pub at: u32,
    pub len: u32,
}

impl TextRange {
    fn of_text(self, text: &[u8]) -> Option<&[u8]> {
        text.get(self.at as usize..)?.get(..self.len as usize)
    }
}

/// A function to be added to a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub start: u64,
    /// The end address, exclusive.
    pub end: u64,
    /// Whether `end` is stated by the symbol. Otherwise the function ends at the next function, or
    /// at `end`.
    pub is_sized: bool,
    pub name: TextRange,
    /// Of several functions with the same range, the one with the highest rank is used.
    pub rank: u8,
}

impl FunctionTable {
    /// A table of the functions in `all`, in any order; their names are ranges of `names`. Where
    /// functions overlap, the one that begins later is used.
    pub(crate) fn of_candidates(mut all: Vec<Candidate>, names: Vec<u8>) -> FunctionTable {
        // Outer functions first, and the best of equal ones.
        all.sort_by(|a, b| {
            let by_end = || b.end.cmp(&a.end).then(b.rank.cmp(&a.rank)).then(a.name.cmp(&b.name));
            a.start.cmp(&b.start).then_with(by_end)
        });
        all.dedup_by(|later, earlier| (later.start, later.end) == (earlier.start, earlier.end));
        let mut table = FunctionTable { names, ..FunctionTable::default() };
        // The open functions with their ends, the innermost last.
        let mut open: Vec<(u64, u32)> = Vec::new();
        for (index, candidate) in all.iter().enumerate() {
            table.close(&mut open, candidate.start);
            let behind = || all[index + 1..].iter().map(|next| next.start);
            let next = || behind().find(|&next| next > candidate.start).unwrap_or(u64::MAX);
            let end = if candidate.is_sized { candidate.end } else { candidate.end.min(next()) };
            let number = table.functions.len() as u32;
            table.functions.push(Function { start: candidate.start, name: candidate.name });
            table.begin(candidate.start, number);
            open.push((end, number));
        }
        table.close(&mut open, u64::MAX);
        table.functions.shrink_to_fit();
        table.segments.shrink_to_fit();
        table
    }

    /// From `address` on, the innermost function is `number`.
    fn begin(&mut self, address: u64, number: u32) {
        match self.segments.last_mut() {
            Some(last) if last.0 == address => last.1 = number,
            Some(last) if last.1 == number => {}
            _ => self.segments.push((address, number)),
        }
    }

    /// Closes the open functions that end at or before `address`.
    fn close(&mut self, open: &mut Vec<(u64, u32)>, address: u64) {
        while let Some(&(end, _)) = open.last() {
            if end > address {
                break;
            }
            open.pop();
            // An outer function that ended inside has no range left.
            while open.last().is_some_and(|outer| outer.0 <= end) {
                open.pop();
            }
            self.begin(end, open.last().map_or(NOBODY, |outer| outer.1));
        }
    }

    /// The linker's symbol of the function at `address`, and the offset of the address in the
    /// function.
    pub fn find(&self, address: u64) -> Option<(&[u8], u64)> {
        let behind = self.segments.partition_point(|segment| segment.0 <= address);
        let (_, number) = *self.segments.get(behind.checked_sub(1)?)?;
        let function = self.functions.get(number as usize)?;
        Some((function.name.of_text(&self.names)?, address - function.start))
    }

    /// Whether it has no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.functions[..]) + size_of_val(&self.segments[..]) + self.names.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A table of functions with an end or 0, and their ranks.
    fn table(all: &[(u64, u64, &str, u8)]) -> FunctionTable {
        let mut names = Vec::new();
        let mut candidates = Vec::new();
        for &(start, end, name, rank) in all {
            candidates.push(Candidate {
                start,
                end: if end == 0 { 75 } else { end },
                is_sized: end != 0,
                name: TextRange { at: names.len() as u32, len: name.len() as u32 },
                rank,
            });
            names.extend_from_slice(name.as_bytes());
        }
        FunctionTable::of_candidates(candidates, names)
    }

    fn at(table: &FunctionTable, address: u64) -> Option<(&str, u64)> {
        table.find(address).map(|(name, offset)| (str::from_utf8(name).unwrap(), offset))
    }

    #[test]
    fn the_innermost_function_has_an_address() {
        let table = table(&[
            (10, 20, "first", 0),
            (30, 60, "outer", 0),
            (40, 50, "inner", 0),
            (70, 0, "no_size", 0),
            (73, 0, "nor_this", 0),
            (80, 90, "last", 0),
        ]);
        let expected = [
            (9, None),
            (10, Some(("first", 0))),
            (19, Some(("first", 9))),
            (20, None),
            (30, Some(("outer", 0))),
            (40, Some(("inner", 0))),
            (50, Some(("outer", 20))),
            (60, None),
            (70, Some(("no_size", 0))),
            (72, Some(("no_size", 2))),
            (74, Some(("nor_this", 1))),
            (75, None),
            (80, Some(("last", 0))),
            (90, None),
            (u64::MAX, None),
        ];
        for (address, name) in expected {
            assert_eq!(at(&table, address), name, "{address}");
        }
        assert_eq!(FunctionTable::default().find(0), None);
    }

    #[test]
    fn of_equal_ones_the_best_is_shown() {
        let table = table(&[(16, 32, "local", 0), (16, 32, "global", 2), (16, 32, "weak", 1)]);
        assert_eq!(at(&table, 20), Some(("global", 4)));
    }

    proptest! {
        /// Compares the table with a search through all functions.
        #[test]
        fn it_finds_what_a_search_finds(
            ranges in prop::collection::vec((0u64..100, 1u64..40), 0..20),
        ) {
            let all: Vec<(u64, u64, &str, u8)> =
                ranges.iter().map(|&(start, len)| (start, start + len, "f", 0)).collect();
            let table = table(&all);
            for address in 0..150 {
                let holding = all.iter().filter(|function| function.0 <= address && address < function.1);
                // The function that begins last.
                let expected = holding.map(|function| function.0).max();
                let found = table.find(address).map(|(_, offset)| address - offset);
                match (expected, found) {
                    (None, found) => prop_assert_eq!(found, None),
                    // An outer function may be unknown after an inner one that exceeds it.
                    (Some(_), None) => {}
                    (Some(expected), Some(found)) => {
                        let is_there = all.iter().any(|function| function.0 == found && address < function.1);
                        prop_assert!(is_there && found <= expected, "{} {} {}", address, found, expected);
                    }
                }
            }
            // Each start address of a function belongs to that function.
            for it in &all {
                prop_assert_eq!(table.find(it.0).map(|(_, offset)| offset), Some(0));
            }
        }
    }
}
