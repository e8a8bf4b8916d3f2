//! Ids of interned words.

use std::collections::HashMap;

use super::encode::{Event, Note};
use crate::values;

/// Maximum number of interned words of a machine; further words are written in place.
const MAX_WORDS: usize = 4096;

/// Ids of interned words.
#[derive(Debug)]
pub(super) struct InternedWords {
    ids: HashMap<String, u64>,
    /// By kind and column.
    columns: Vec<Vec<InternedNumbers>>,
}

/// Ids of the words of a dictionary.
#[derive(Debug, Default)]
struct InternedNumbers {
    list: Option<values::WordColumn>,
    /// By key; 0: not yet interned.
    numbers: Vec<u64>,
}

impl InternedWords {
    /// No words yet, for `kinds` kinds.
    pub fn new(kinds: usize) -> InternedWords {
        InternedWords { ids: HashMap::new(), columns: (0..kinds).map(|_| Vec::new()).collect() }
    }

    /// The word of a row in a column of a kind; `event` interns it if it is new. None if NULL.
    pub fn note<'a>(
        &mut self,
        kind: usize,
        column: usize,
        of: &'a values::WordColumn,
        row: usize,
        event: &mut Event,
    ) -> Option<Note<'a>> {
        let (key, columns) = (of.key(row)? as usize, &mut self.columns[kind]);
        if columns.len() <= column {
            columns.resize_with(column + 1, InternedNumbers::default);
        }
        let numbers = &mut columns[column];
        if !numbers.list.as_ref().is_some_and(|list| list.is_of_list(of)) {
            *numbers = InternedNumbers { list: Some(of.clone()), numbers: Vec::new() };
        }
        if let Some(&number) = numbers.numbers.get(key).filter(|number| **number != 0) {
            return Some(Note::TextIid(number));
        }
        let word = of.get(row)?;
        let number = match self.ids.get(word) {
            Some(&number) => number,
            None if self.ids.len() == MAX_WORDS => return Some(Note::Text(word)),
            None => {
                let number = self.ids.len() as u64 + 1;
                self.ids.insert(word.to_owned(), number);
                event.intern(number, word);
                number
            }
        };
        if numbers.numbers.len() <= key {
            numbers.numbers.resize(key + 1, 0);
        }
        numbers.numbers[key] = number;
        Some(Note::TextIid(number))
    }
}
