//! Bounds of a query, as far as heads of chunks can rule out rows.

use std::collections::BTreeSet;
use std::fmt;

/// A range of numbers, both ends included.
pub type Range = (i64, i64);

/// A number that the heads of chunks bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display)]
#[strum(serialize_all = "snake_case")]
#[expect(missing_docs, reason = "named after the columns")]
pub enum BoundedNumber {
    Ts,
    Drained,
    /// `coalesce(ts, drained)`, which `--from` and `--to` bound.
    Time,
    Seqno,
    Ring,
    Tid,
    Pid,
}

/// A text that heads of chunks, or their sources, determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display)]
#[strum(serialize_all = "snake_case")]
#[expect(missing_docs, reason = "named after the columns")]
pub enum BoundedText {
    Capture,
    Buffer,
    Segment,
    Host,
    Frame,
    Name,
}

/// The kind of bounds that apply to a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named after the types that they hold")]
pub enum Bounded {
    Number(BoundedNumber),
    Word(BoundedText),
}

/// Bounds of the wanted rows. A scan may skip rows outside of them, but need not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    numbers: Vec<(BoundedNumber, Range)>,
    words: Vec<(BoundedText, BTreeSet<String>)>,
}

impl Bounds {
    /// Restricts `number` to a range, in addition to its present bounds.
    pub fn within(&mut self, number: BoundedNumber, range: Range) {
        match self.numbers.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => *known = (known.0.max(range.0), known.1.min(range.1)),
            None => self.numbers.push((number, range)),
        }
    }

    /// Restricts a text to one of `words`, in addition to its present bounds.
    pub fn one_of(&mut self, word: BoundedText, words: BTreeSet<String>) {
        match self.words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, known)) => known.retain(|text| words.contains(text)),
            None => self.words.push((word, words)),
        }
    }

    /// The intersection with other bounds.
    #[must_use]
    pub fn and(mut self, other: Bounds) -> Bounds {
        other.numbers.into_iter().for_each(|(number, range)| self.within(number, range));
        other.words.into_iter().for_each(|(word, words)| self.one_of(word, words));
        self
    }

    /// Bounds that include all rows within these bounds or within others.
    #[must_use]
    pub fn or(self, other: &Bounds) -> Bounds {
        let numbers = self.numbers.into_iter().filter_map(|(number, (from, to))| {
            let (other_from, other_to) = other.range(number)?;
            Some((number, (from.min(other_from), to.max(other_to))))
        });
        let words = self.words.into_iter().filter_map(|(word, mut words)| {
            words.extend(other.words_of(word)?.iter().cloned());
            Some((word, words))
        });
        Bounds { numbers: numbers.collect(), words: words.collect() }
    }

    /// The bounds of these numbers and words only.
    #[must_use]
    pub fn only(&self, numbers: &[BoundedNumber], words: &[BoundedText]) -> Bounds {
        Bounds {
            numbers: self
                .numbers
                .iter()
                .filter(|number| numbers.contains(&number.0))
                .copied()
                .collect(),
            words: self.words.iter().filter(|entry| words.contains(&entry.0)).cloned().collect(),
        }
    }

    /// Whether there are no bounds.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.words.is_empty()
    }

    /// The bounds of a number, if it has any.
    pub fn range(&self, number: BoundedNumber) -> Option<Range> {
        self.numbers.iter().find(|entry| entry.0 == number).map(|number| number.1)
    }

    /// Whether `value` is within the bounds of `number`. NULL is not within any bounds.
    pub fn has(&self, number: BoundedNumber, value: Option<i64>) -> bool {
        self.range(number)
            .is_none_or(|(from, to)| value.is_some_and(|value| from <= value && value <= to))
    }

    /// Whether a range of values overlaps the bounds of `number`.
    pub fn overlaps(&self, number: BoundedNumber, values: Range) -> bool {
        self.range(number).is_none_or(|(from, to)| values.0 <= to && from <= values.1)
    }

    /// Whether `text` is within the bounds of `word`.
    pub fn has_word(&self, word: BoundedText, text: &str) -> bool {
        self.words_of(word).is_none_or(|words| words.contains(text))
    }

    /// The wanted words, if there are bounds.
    pub fn words_of(&self, word: BoundedText) -> Option<&BTreeSet<String>> {
        self.words.iter().find(|entry| entry.0 == word).map(|entry| &entry.1)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separate = "";
        for (number, range) in &self.numbers {
            write!(f, "{separate}{number}")?;
            match *range {
                (from, i64::MAX) => write!(f, ">={from}")?,
                (i64::MIN, to) => write!(f, "<={to}")?,
                (from, to) => write!(f, "={from}..={to}")?,
            }
            separate = " ";
        }
        for (word, words) in &self.words {
            write!(f, "{separate}{word} in {words:?}")?;
            separate = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_meet() {
        let mut bounds = Bounds::default();
        assert!(bounds.has(BoundedNumber::Ts, None) && bounds.is_empty());
        bounds.within(BoundedNumber::Ts, (i64::MIN, 10));
        bounds.within(BoundedNumber::Ts, (5, i64::MAX));
        bounds.one_of(BoundedText::Frame, ["a", "b"].map(str::to_owned).into());
        bounds.one_of(BoundedText::Frame, ["b", "c"].map(str::to_owned).into());
        assert!(
            bounds.has(BoundedNumber::Ts, Some(10)) && !bounds.has(BoundedNumber::Ts, Some(11))
        );
        assert!(!bounds.has(BoundedNumber::Ts, None), "NULL is no number");
        assert!(
            bounds.overlaps(BoundedNumber::Ts, (10, 20))
                && !bounds.overlaps(BoundedNumber::Ts, (11, 20))
        );
        assert!(
            bounds.has_word(BoundedText::Frame, "b") && !bounds.has_word(BoundedText::Frame, "a")
        );
        assert_eq!(bounds.to_string(), r#"ts=5..=10 frame in {"b"}"#);
        assert!(bounds.only(&[BoundedNumber::Pid], &[]).is_empty());

        let mut other = Bounds::default();
        other.one_of(BoundedText::Frame, ["x".to_owned()].into());
        assert_eq!(bounds.clone().or(&other).to_string(), r#"frame in {"b", "x"}"#);
        assert_eq!(bounds.and(other).to_string(), "ts=5..=10 frame in {}");
    }
}
