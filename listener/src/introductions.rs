//! Describes segments to sinks, before their first frames.

use std::sync::Arc;

use ppt_capture::stamps::Stamps;
use ppt_capture::{Cause, Gap};

use crate::feed::Feed;
use crate::sink::Introduction;
use crate::tally::FeedTally;

/// The offsets of times and kinds in the frames of each segment.
pub(crate) fn stamps(introductions: &[Introduction]) -> Vec<Arc<Stamps>> {
    introductions.iter().map(|introduction| introduction.stamps.clone()).collect()
}

/// The description of a segment, which precedes its first frame in the capture.
pub(crate) fn introduction(
    number: usize,
    segment_number: usize,
    feed: &Feed,
    tally: Option<Arc<FeedTally>>,
) -> Introduction {
    let stated = feed.unattended.iter().filter(|one| one.count > 0);
    let gaps = stated.clone().map(|one| Gap {
        source: 0, // the file assigns the number
        nonce: one.segment.nonce(),
        ring: one.ring,
        first_seq: one.first_seq,
        count: one.count,
        cause: Cause::Unattended,
    });
    let of_gaps = stated.map(|one| {
        let cursor = one.first_seq.saturating_sub(1).saturating_add(one.count);
        (one.segment.clone(), one.ring, cursor)
    });
    let starts = (0..).zip(&feed.first);
    let starts = starts.map(|(ring, &cursor)| (feed.segment.clone(), ring, cursor));
    Introduction {
        feed: number,
        segment_number,
        first: feed.first.clone(),
        cells: feed.cells.clone(),
        gaps: gaps.collect(),
        attended: of_gaps.chain(starts).collect(),
        stamps: Arc::new(Stamps::from_json(&feed.source.schema_json)),
        source: feed.source.clone(),
        segment: feed.segment.clone(),
        tally,
    }
}
