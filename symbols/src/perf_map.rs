//! `/tmp/perf-PID.map`: the names that JIT compilers give their code, for perf and similar tools.
//!
//! A line is `START SIZE name`, in hex. A compiler appends lines while it runs, including for
//! reused addresses: the last line counts.

use std::collections::BTreeMap;

use crate::functions::{Candidate, FunctionTable, TextRange};
use crate::limits;

/// The functions in the text of such a map. Invalid lines are ignored.
pub fn parsed(text: Vec<u8>) -> FunctionTable {
    let mut last: BTreeMap<u64, Candidate> = BTreeMap::new();
    let mut at = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if let Some(candidate) = candidate(line, at) {
            if last.len() >= limits::FUNCTIONS {
                break;
            }
            last.insert(candidate.start, candidate);
        }
        at += line.len();
    }
    FunctionTable::of_candidates(last.into_values().collect(), text)
}

/// The function of the line that begins at `at` in the text.
fn candidate(line: &[u8], at: usize) -> Option<Candidate> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let space = |from: usize| Some(from + line.get(from..)?.iter().position(|&byte| byte == b' ')?);
    let first = space(0)?;
    let second = space(first + 1)?;
    let start = hex(&line[..first])?;
    let end = start.checked_add(hex(&line[first + 1..second])?)?;
    let len = (line.len() - second - 1).min(limits::NAME_BYTES);
    let name = TextRange { at: u32::try_from(at + second + 1).ok()?, len: len as u32 };
    (end > start && len > 0).then_some(Candidate { start, end, is_sized: true, name, rank: 0 })
}

fn hex(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    is_hex.then(|| u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_an_address() {
        let text = "7f00 20 LazyCompile:~run script.js:1\nrubbish\n7f40 0 none\n7f40\n-1 2 x\n\
                    7f60 10 \n0x7f20 10 stub\n7f00 10 LazyCompile:*run script.js:1";
        let table = parsed(text.into());
        let at = |address| {
            let found = table.find(address);
            found.map(|(name, offset)| (str::from_utf8(name).unwrap().to_owned(), offset))
        };
        assert_eq!(at(0x7f08), Some(("LazyCompile:*run script.js:1".into(), 8)));
        assert_eq!(at(0x7f10), None, "the first line holds no more");
        assert_eq!(at(0x7f2f), Some(("stub".into(), 15)));
        assert_eq!((at(0x7f40), at(0x7f60)), (None, None));
        assert!(parsed(b"\xff \xff \xff\n".to_vec()).is_empty());
    }
}
