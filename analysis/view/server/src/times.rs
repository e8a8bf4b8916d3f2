//! Times in requests: decimal strings of nanoseconds since the epoch, because numbers of JSON lose digits.

use crate::error::HttpRefusal;

/// A time, as requests state it.
pub(crate) fn time(text: &str) -> Result<i64, HttpRefusal> {
    let refusal =
        || HttpRefusal::bad(format!("`{text:.40}` is no time: nanoseconds since the epoch"));
    text.parse().map_err(|_| refusal())
}
