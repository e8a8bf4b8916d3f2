//! Dictionaries of words, and of the values of enums.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringArray;
use ppt_capture::columns::EnumNames;

/// A dictionary of words; all batches of a table share it.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    words: Vec<String>,
    keys: HashMap<String, i32>,
}

impl Dictionary {
    /// The key of `word`, which is added if it is absent.
    pub fn key(&mut self, word: &str) -> i32 {
        if let Some(&key) = self.keys.get(word) {
            return key;
        }
        let key = self.words.len() as i32;
        self.words.push(word.to_owned());
        self.keys.insert(word.to_owned(), key);
        key
    }

    /// The key of `word`, if the dictionary has it.
    pub fn get(&self, word: &str) -> Option<i32> {
        self.keys.get(word).copied()
    }

    /// The words, in the order of their keys.
    pub fn array(&self) -> Arc<StringArray> {
        Arc::new(StringArray::from_iter_values(&self.words))
    }
}

/// The dictionary keys of the values of an enum.
#[derive(Debug, Default)]
pub(crate) struct EnumKeys {
    /// The smallest value, to which `dense[0]` belongs.
    least: i128,
    /// Keys of successive values; a negative key means that the value has no name. Empty: the range is
    /// too wide.
    dense: Vec<i32>,
    /// Values and keys, sorted by value.
    sparse: Vec<(i128, i32)>,
}

/// Largest range of enum values that is looked up by index.
const MAX_DENSE_RANGE: i128 = 4096;

impl EnumKeys {
    /// The keys of `names` in `dictionary`, to which the names are added.
    pub fn new(names: &EnumNames, dictionary: &mut Dictionary) -> EnumKeys {
        let sparse: Vec<_> =
            names.iter().map(|(value, name)| (value, dictionary.key(name))).collect();
        let mut keys = EnumKeys { least: 0, dense: Vec::new(), sparse };
        if let (Some(&(least, _)), Some(&(most, _))) = (keys.sparse.first(), keys.sparse.last())
            && most - least < MAX_DENSE_RANGE
        {
            keys.least = least;
            keys.dense.resize((most - least) as usize + 1, -1);
            for &(value, key) in &keys.sparse {
                keys.dense[(value - least) as usize] = key;
            }
        }
        keys
    }

    /// The key of a value, if it has a name.
    #[inline]
    pub fn get(&self, value: i128) -> Option<i32> {
        if self.dense.is_empty() {
            let found = self.sparse.binary_search_by_key(&value, |entry| entry.0).ok()?;
            return Some(self.sparse[found].1);
        }
        let at = usize::try_from(value.checked_sub(self.least)?).ok()?;
        self.dense.get(at).copied().filter(|&key| key >= 0)
    }
}
