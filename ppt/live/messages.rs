//! The messages of a capture on stderr, from `attached:` to the summary.

mod attached;
mod changes;
mod summary;

pub(super) use attached::attached;
pub(super) use changes::{
    ended, fell_over, grew, miscounts, never_fetched, stuck, ticks_given_up, unmappable, went_back,
};
pub(super) use summary::{destination, problems, summary};
