//! Times in requests: decimal strings of nanoseconds since the epoch, because numbers of JSON lose digits.

use crate::error::Refusal;

/// A time, as requests state it.
pub(crate) fn time(text: &str) -> Result<i64, Refusal> {
    let refusal = || Refusal::bad(format!("`{text:.40}` is no time: nanoseconds since the epoch"));
    text.parse().map_err(|_| refusal())
}
