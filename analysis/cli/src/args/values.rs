//! Numbers and times of several commands.

use ppt_text::argument;

pub(super) fn nanoseconds(text: &str) -> Result<i64, String> {
    i64::try_from(argument::duration(text)?.as_nanos()).map_err(|error| error.to_string())
}

pub(super) fn slowest(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|index| (1..=10_000).contains(index));
    count.ok_or("from 1 to 10000".into())
}
