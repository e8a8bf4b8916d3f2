//! Cached answers with a limited lifetime.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lifetime of an answer.
const A_WHILE: Duration = Duration::from_millis(500);

/// The last answer to a question that many buffers ask in sequence, about once a second. All clones
/// share the answer.
#[derive(Debug)]
pub struct TimedCache<T>(Arc<Mutex<Option<(Instant, T)>>>);

impl<T> Default for TimedCache<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for TimedCache<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Clone> TimedCache<T> {
    /// Returns the last answer if it is still valid, otherwise the answer of `look`.
    pub(crate) fn found(&self, look: impl FnOnce() -> T) -> T {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((when, found)) if when.elapsed() < A_WHILE => found.clone(),
            _ => last.insert((Instant::now(), look())).1.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_a_while() {
        let lately = TimedCache::default();
        assert_eq!([1, 2].map(|value| lately.clone().found(|| value)), [1, 1]);
        lately.0.lock().unwrap().as_mut().unwrap().0 -= A_WHILE;
        assert_eq!([3, 4].map(|value| lately.found(|| value)), [3, 3]);
    }
}
