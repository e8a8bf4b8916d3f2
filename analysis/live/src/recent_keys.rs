//! The number of distinct keys in the latest frames.

use ppt_capture::frame_dsl::schema::{Field, Schema};
use ppt_stats::{Budget, Distinct, DistinctCount, DistinctValue};

use crate::key_field::KeyField;

/// The keys in the frames of the latest one or two equal periods.
#[derive(Debug)]
pub(crate) struct RecentKeys {
    field: KeyField,
    /// The length of a period in ns. None if all time is one period.
    period: Option<u64>,
    /// The number of the second period.
    current: u64,
    /// The keys of the two periods, earlier first.
    periods: [Distinct; 2],
    budget: Budget,
}

impl RecentKeys {
    /// None unless the field is a key or a hash.
    pub fn new(
        schema: &Schema,
        field: &Field,
        period: Option<u64>,
        budget: &Budget,
    ) -> Option<RecentKeys> {
        let is_identity = field.is_key() || field.hash().is_some();
        let field = KeyField::new(schema, field);
        let periods = [Distinct::new(budget), Distinct::new(budget)];
        let budget = budget.clone();
        is_identity.then(|| RecentKeys { field, period, current: 0, periods, budget })
    }

    /// Adds frames drained at `now`.
    pub fn add(&mut self, rows: &[&[u8]], now: u64) {
        let number = self.period.map_or(0, |period| now / period);
        if number > self.current {
            let last = std::mem::replace(&mut self.periods[1], Distinct::new(&self.budget));
            let follows = number == self.current + 1;
            self.periods[0] = if follows { last } else { Distinct::new(&self.budget) };
            self.current = number;
        }
        for key in rows.iter().filter_map(|row| self.field.value(row)) {
            self.periods[1].push(DistinctValue::Bytes(key.into()));
        }
    }

    /// The number of distinct keys remembered at `now`.
    pub fn count(&self, now: u64) -> DistinctCount {
        let elapsed = self.period.map_or(0, |period| (now / period).saturating_sub(self.current));
        match elapsed {
            0 => self.periods[1].count_with(&self.periods[0]),
            1 => self.periods[1].count(),
            _ => DistinctCount { count: 0, exact: true },
        }
    }
}
