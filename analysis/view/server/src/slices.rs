//! Conditions and commands for queries of the table `slices`.

use crate::error::HttpRefusal;
use crate::times::time;

/// The SQL condition that slices begin from `from` (included) to `to` (excluded).
pub(crate) fn within(from: &str, to: &str) -> Result<String, HttpRefusal> {
    let (from, to) = (time(from)?, time(to)?);
    Ok(format!("ts >= to_timestamp_nanos({from}) AND ts < to_timestamp_nanos({to})"))
}

/// The command for a query in a terminal. The page replaces CAPTURE.
pub(crate) fn sql_command(sql: &str) -> String {
    format!("ppt sql CAPTURE \"{sql}\"")
}
