//! The masks of feeds' segments, for new files.

use std::collections::BTreeMap;
use std::sync::Arc;

use ppt_capture::{Chosen, Flip};

/// The disabled bits, by segment and bit, with the flip that states them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disabled(BTreeMap<(u64, Chosen), Arc<Flip>>);

impl Disabled {
    /// Records a flip of one of the segments.
    pub fn take(&mut self, flip: &Arc<Flip>) {
        for &(chosen, enabled) in &flip.changes {
            if enabled {
                _ = self.0.remove(&(flip.nonce, chosen));
            } else {
                _ = self.0.insert((flip.nonce, chosen), flip.clone());
            }
        }
    }

    /// The segment has ended.
    pub fn forget(&mut self, nonce: u64) {
        self.0.retain(|&(of, _), _| of != nonce);
    }

    /// The flips that a new file has to state.
    pub fn base(&self) -> Vec<Flip> {
        let mut flips: Vec<(&Arc<Flip>, Flip)> = Vec::new();
        for (&(_, chosen), of) in &self.0 {
            let at =
                flips.iter().position(|(flip, _)| Arc::ptr_eq(flip, of)).unwrap_or_else(|| {
                    flips.push((of, Flip { is_base: true, changes: Vec::new(), ..(**of).clone() }));
                    flips.len() - 1
                });
            flips[at].1.changes.push((chosen, false));
        }
        flips.into_iter().map(|(_, flip)| flip).collect()
    }
}

/// Bytes of a flip's chunk, without its header.
pub(crate) fn bytes(flip: &Flip) -> usize {
    flip.changes.len() * 8 + flip.rings.len() * 24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_begins_with_what_is_disabled_then() {
        let flip = |nonce, mono_ns, changes: &[(u32, bool)]| {
            let changes = changes.iter().map(|&(number, on)| (Chosen(number), on)).collect();
            Arc::new(Flip { nonce, mono_ns, changes, ..Flip::default() })
        };
        let mut disabled = Disabled::default();
        disabled.take(&flip(1, 10, &[(0, false), (1, false), (256, false)]));
        disabled.take(&flip(2, 11, &[(0, false)]));
        disabled.take(&flip(1, 12, &[(1, true), (2, false)]));
        let said = |disabled: &Disabled| {
            let base = disabled.base();
            let disables = |flip: &Flip| flip.changes.iter().all(|(_, enabled)| !enabled);
            assert!(base.iter().all(|flip| flip.is_base && disables(flip)));
            let of = |flip: &Flip| {
                let numbers: Vec<_> = flip.changes.iter().map(|change| change.0.0).collect();
                (flip.nonce, flip.mono_ns, numbers)
            };
            base.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(said(&disabled), [(1, 10, vec![0, 256]), (1, 12, vec![2]), (2, 11, vec![0])]);
        disabled.forget(1);
        assert_eq!(said(&disabled), [(2, 11, vec![0])]);
        disabled.take(&flip(2, 13, &[(0, true)]));
        assert!(said(&disabled).is_empty());
    }
}
