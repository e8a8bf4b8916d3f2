//! Times in requests. They are decimal strings of nanoseconds since the epoch, because JSON numbers lose
//! digits.

use crate::error::HttpRefusal;

/// Parses a time of a request.
pub(crate) fn time(text: &str) -> Result<i64, HttpRefusal> {
    let refusal =
        || HttpRefusal::bad(format!("`{text:.40}` is no time: nanoseconds since the epoch"));
    text.parse().map_err(|_| refusal())
}
