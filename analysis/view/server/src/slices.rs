//! What is asked of the table `slices`, and how it is asked in a terminal.

use crate::error::HttpRefusal;
use crate::times::time;

/// The condition that slices begin from `from` on and before `to`.
pub(crate) fn within(from: &str, to: &str) -> Result<String, HttpRefusal> {
    let (from, to) = (time(from)?, time(to)?);
    Ok(format!("ts >= to_timestamp_nanos({from}) AND ts < to_timestamp_nanos({to})"))
}

/// The command that asks it; the page puts its captures in place of CAPTURE.
pub(crate) fn sql_command(sql: &str) -> String {
    format!("ppt sql CAPTURE \"{sql}\"")
}
