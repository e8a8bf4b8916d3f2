//! The account of every frame, and what went wrong.

use std::time::Duration;

use ppt_listener::{Cause, Summary};

use crate::code::Code;
use crate::live::outputs::Kept;
use crate::measure::{bytes, grouped};
use crate::{report, stdout};

/// Reports what went wrong; returns whether nothing did. `buffers` are the names of the feeds.
pub(in crate::live) fn problems(
    name: &str,
    kept: Kept,
    buffers: &[String],
    summary: &Summary,
) -> bool {
    let mut ok = true;
    let before = match kept {
        Kept::All => "the frames captured before that are in the file",
        Kept::Some => "not all of the frames captured before that are in a file",
        Kept::None => "there is no file any more: the frames captured before that are lost",
    };
    // The reader of a pipe may stop reading.
    let error = summary.error.as_ref().filter(|it| !stdout::is_closed(it));
    if let Some(error) = error {
        report::error(Code::CaptureFailed, format_args!("{name}: {error}\n  {before}"));
        ok = false;
    }
    for (buffer, _) in buffers.iter().zip(&summary.feeds).filter(|(_, feed)| feed.truncated) {
        report::error(
            Code::SegmentTruncated,
            format_args!(
                "{buffer}: its segment was truncated by somebody, and ppt gave it up\n  {before}"
            ),
        );
        ok = false;
    }
    for ring in summary.feeds.iter().flat_map(|feed| &feed.broken) {
        report::error(
            Code::RingGivenUp,
            format_args!(
                "ring {} was given up: its cursor went from {} to {}: the shared memory is \
                 probably corrupted",
                ring.ring, ring.cursor.next, ring.cursor.tail
            ),
        );
        ok = false;
    }
    ok
}

pub(in crate::live) fn summary(name: &str, kept: Kept, summary: &Summary, time: Duration) {
    let seconds = time.as_secs_f64();
    let rate = summary.captured() as f64 / seconds.max(0.001);
    let causes = |counts: [(Cause, u64); 3]| {
        let named: Vec<_> = counts
            .iter()
            .filter(|it| it.1 > 0)
            .map(|(cause, count)| format!("{} {}", cause.words(), grouped(*count)))
            .collect();
        if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
    };
    // Nobody has counted how many of them a file holds that began in the middle.
    let file = match kept {
        Kept::All => format!("{name}: {}", bytes(summary.bytes)),
        Kept::Some => format!("{name} does not hold all of them"),
        Kept::None => format!("{name} is gone, and they with it"),
    };
    let (lost, dropped) = (summary.lost(), summary.dropped());
    report::note(format_args!(
        "captured {} frames in {seconds:.1} s ({}/s), lost {}{}, dropped {}{}; {file}",
        grouped(summary.captured()),
        grouped(rate as u64),
        grouped(lost.total()),
        causes(lost.by_cause()),
        grouped(dropped.total()),
        causes(dropped.by_cause()),
    ));
    let enough =
        summary.feeds.iter().filter(|it| it.lost.overrun > 0).filter_map(|it| it.enough_slots);
    if let Some(slots) = enough.max() {
        report::note(format_args!("--slots {slots} would have sufficed"));
    }
    if dropped.no_ring > 0 {
        report::note(
            "more threads wrote at once than there were rings; attach again while they run, and \
             each gets a ring",
        );
    }
}
