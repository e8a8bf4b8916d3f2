//! The most frequent values, in constant memory.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// The number of values counted at the same time.
const MAX_VALUES: usize = 128;

/// Counts of the most frequent values, after Misra and Gries: a value with more than one in
/// [`MAX_VALUES`] of all occurrences is included, and no count is too high.
#[derive(Debug, Clone)]
pub(crate) struct Frequent<K> {
    counts: HashMap<K, u64>,
    /// The number of added values. [`Frequent::fade`] halves it.
    added: u64,
}

impl<K> Default for Frequent<K> {
    fn default() -> Self {
        Frequent { counts: HashMap::new(), added: 0 }
    }
}

impl<K: Eq + Hash> Frequent<K> {
    /// Adds a value.
    pub fn add<Q>(&mut self, value: &Q)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        self.added += 1;
        if let Some(count) = self.counts.get_mut(value) {
            *count += 1;
        } else if self.counts.len() < MAX_VALUES {
            self.counts.insert(value.to_owned(), 1);
        } else {
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// The number of values added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// The counted values, each with a lower bound of its count.
    pub fn iter(&self) -> impl Iterator<Item = (&K, u64)> {
        self.counts.iter().map(|(value, &count)| (value, count))
    }

    /// Halves all counts, so that new values weigh more.
    pub fn fade(&mut self) {
        self.counts.retain(|_, count| {
            *count /= 2;
            *count > 0
        });
        self.added /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_values_are_found_among_many_others() {
        let mut words = Frequent::<i128>::default();
        for value in 0..100_000_i128 {
            words.add(&(1000 + value));
            if value % 10 == 0 {
                words.add(&7);
            }
        }
        assert!(words.counts.len() <= MAX_VALUES);
        let found = words.iter().max_by_key(|entry| entry.1).unwrap();
        assert_eq!(*found.0, 7);
        assert!(
            found.1 <= 10_000 && found.1 > 10_000 - words.added() / MAX_VALUES as u64,
            "{}",
            found.1
        );
        assert_eq!(words.added(), 110_000);
    }

    #[test]
    fn few_values_are_counted_exactly() {
        let mut words = Frequent::<Vec<u8>>::default();
        (0..90).for_each(|index| words.add(&b"abc"[index % 3..][..1]));
        let mut counts: Vec<_> = words.iter().map(|(word, count)| (word.to_vec(), count)).collect();
        counts.sort();
        assert_eq!(counts, [(b"a".to_vec(), 30), (b"b".to_vec(), 30), (b"c".to_vec(), 30)]);
        words.fade();
        assert_eq!(words.added(), 45);
    }
}
