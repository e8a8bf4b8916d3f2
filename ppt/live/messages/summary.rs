//! The account of every frame, and what went wrong.

use std::time::Duration;

use ppt_listener::{BrokenRing, CaptureSummary, Cause};
use ppt_text::grouped;

use crate::code::Code;
use crate::live::outputs::Kept;
use crate::measure::bytes;
use crate::{report, stdout};

/// Reports errors; returns whether there were none. `buffers` are the names of the feeds.
pub(in crate::live) fn problems(
    name: &str,
    kept: Kept,
    buffers: &[String],
    summary: &CaptureSummary,
) -> bool {
    let mut ok = true;
    let before = match kept {
        Kept::All => "the frames captured before that are in the file",
        Kept::Some => "not all of the frames captured before that are in a file",
        Kept::None => "there is no file any more: the frames captured before that are lost",
    };
    // The reader of a pipe may stop reading.
    let error = summary.error.as_ref().filter(|error| !stdout::is_closed(error));
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
    for (buffer, feed) in buffers.iter().zip(&summary.feeds) {
        if let Some(message) = given_up(buffer, &feed.broken) {
            report::error(Code::RingGivenUp, message);
            ok = false;
        }
    }
    ok
}

/// The message about the rings of `buffer` that were given up, if there are any.
fn given_up(buffer: &str, broken: &[BrokenRing]) -> Option<String> {
    let BrokenRing { ring, cursor } = broken.first()?;
    let step = format!("went from {} to {}", cursor.next, cursor.tail);
    let why = "the shared memory is probably corrupted";
    Some(match broken.len() {
        1 => format!("ring {ring} was given up: its cursor {step}: {why}"),
        count => format!(
            "{count} rings of {buffer} were given up, ring {ring} because its cursor {step}: {why}"
        ),
    })
}

/// The destination of the captured frames.
pub(in crate::live) fn destination(name: &str, kept: Kept, summary: &CaptureSummary) -> String {
    // ppt does not count the frames in a file that replaced a lost one.
    match kept {
        Kept::All => format!("{name}: {}", bytes(summary.bytes)),
        Kept::Some => format!("{name} does not hold all of them"),
        Kept::None => format!("{name} is gone, and they with it"),
    }
}

/// Reports the number of frames, the rate and the losses. `done` is the verb, `destination` the
/// files.
pub(in crate::live) fn summary(
    (done, destination): (&str, &str),
    summary: &CaptureSummary,
    time: Duration,
) {
    let seconds = time.as_secs_f64();
    let rate = summary.captured() as f64 / seconds.max(0.001);
    let causes = |counts: [(Cause, u64); 3]| {
        let named: Vec<_> = counts
            .iter()
            .filter(|count| count.1 > 0)
            .map(|(cause, count)| format!("{} {}", cause.text(), grouped(*count)))
            .collect();
        if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
    };
    let (lost, dropped) = (summary.lost(), summary.dropped());
    let left_out = match summary.left_out() {
        0 => String::new(),
        count => format!("left out {}, ", grouped(count)),
    };
    report::note(format_args!(
        "{done} {} frames in {seconds:.1} s ({}/s), {left_out}lost {}{}, dropped {}{}; {destination}",
        grouped(summary.captured()),
        grouped(rate as u64),
        grouped(lost.total()),
        causes(lost.by_cause()),
        grouped(dropped.total()),
        causes(dropped.by_cause()),
    ));
    let enough = summary
        .feeds
        .iter()
        .filter(|feed| feed.lost.overrun > 0)
        .filter_map(|feed| feed.enough_slots);
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

#[cfg(test)]
mod tests {
    use ppt_listener::BrokenCursor;

    use super::*;

    #[test]
    fn rings_that_were_given_up_share_one_message() {
        let broken = |ring| BrokenRing { ring, cursor: BrokenCursor { next: 100, tail: 95 } };
        let all: Vec<_> = (0..64).map(broken).collect();
        assert_eq!(given_up("game", &[]), None);
        let one = "ring 7 was given up: its cursor went from 100 to 95: the shared memory is \
                   probably corrupted";
        assert_eq!(given_up("game", &all[7..8]).unwrap(), one);
        let many = "64 rings of game were given up, ring 0 because its cursor went from 100 to \
                    95: the shared memory is probably corrupted";
        assert_eq!(given_up("game", &all).unwrap(), many);
    }
}
