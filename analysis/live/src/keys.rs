//! The number of distinct keys in the latest frames.

use ppt_capture::frame_dsl::schema::{Field, FieldType, Schema};
use ppt_stats::{Budget, Distinct, DistinctCount, DistinctValue};

/// The keys in the frames of the latest one or two equal periods.
#[derive(Debug)]
pub(crate) struct RecentKeys {
    place: KeyPlace,
    /// Length of a period in ns; None: a single period.
    stretch: Option<u64>,
    /// The number of the second period.
    current: u64,
    halves: [Distinct; 2],
    budget: Budget,
}

/// The position of the key in a frame.
#[derive(Debug, Clone, Copy)]
struct KeyPlace {
    at: usize,
    len: usize,
    /// Whether bytes after the first zero are ignored.
    is_text: bool,
}

impl RecentKeys {
    /// The key in `field`, if the field identifies objects.
    pub fn new(
        schema: &Schema,
        field: &Field,
        stretch: Option<u64>,
        budget: &Budget,
    ) -> Option<RecentKeys> {
        let is_identity = field.is_key() || field.hash().is_some();
        let place = KeyPlace {
            at: field.offset as usize,
            len: field.ty.size(schema) as usize,
            is_text: matches!(field.ty, FieldType::Char { .. }),
        };
        let halves = [Distinct::new(budget), Distinct::new(budget)];
        let budget = budget.clone();
        is_identity.then(|| RecentKeys { place, stretch, current: 0, halves, budget })
    }

    /// Adds frames drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], now: u64) {
        let stretch = self.stretch.map_or(0, |stretch| now / stretch);
        if stretch > self.current {
            let last = std::mem::replace(&mut self.halves[1], Distinct::new(&self.budget));
            let follows = stretch == self.current + 1;
            self.halves[0] = if follows { last } else { Distinct::new(&self.budget) };
            self.current = stretch;
        }
        let KeyPlace { at, len, is_text } = self.place;
        for bytes in rows.iter().filter_map(|row| row.get(at..at + len)) {
            let end = bytes.iter().position(|byte| *byte == 0).filter(|_| is_text).unwrap_or(len);
            self.halves[1].push(DistinctValue::Bytes(bytes[..end].into()));
        }
    }

    /// The number of distinct keys remembered at `now`.
    pub fn count(&self, now: u64) -> DistinctCount {
        let is_over =
            self.stretch.map_or(0, |stretch| (now / stretch).saturating_sub(self.current));
        match is_over {
            0 => self.halves[1].count_with(&self.halves[0]),
            1 => self.halves[1].count(),
            _ => DistinctCount { count: 0, exact: true },
        }
    }
}
