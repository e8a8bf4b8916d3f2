//! Formats numbers for people: the functions of `ppt-text`, and times.

pub use ppt_text::{bucket, counted_up, duration, grouped, measured, three};

/// A time in UTC.
pub fn time(ns: i64) -> String {
    let since = std::time::Duration::from_nanos(ns.unsigned_abs());
    if ns >= 0 {
        humantime::format_rfc3339_nanos(std::time::UNIX_EPOCH + since).to_string()
    } else {
        format!("{ns} ns")
    }
}
