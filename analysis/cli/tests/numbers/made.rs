//! The captures that the capture writer makes: what programs can write, and what can go missing.

use ppt_capture::EndReason;
use serde_json::Value;

use crate::maker::{MONO, Maker, REAL};

pub const MS: u64 = 1_000_000;

/// A capture, or several that belong together.
pub struct MadeCapture {
    pub name: &'static str,
    pub files: Vec<Vec<u8>>,
    /// Of each source, as JSON.
    pub schemas: Vec<String>,
    /// What no dump shows, file by file, where it is known.
    pub told: Option<Vec<Vec<Value>>>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC in ns, where it is known.
    pub offset: Option<u64>,
}

/// The captures of a maker, under a name.
pub fn made(name: &'static str, maker: Maker, reason: EndReason) -> MadeCapture {
    let schemas = maker.schemas().map(|schema| schema.to_json()).collect();
    let (files, told) = maker.end(reason);
    MadeCapture { name, files, schemas, told: Some(told), offset: Some(REAL - MONO) }
}

/// A value of a list, by turns; lists of different lengths meet in every way.
pub fn turn<T: Copy>(values: &[T], n: u64) -> T {
    values[(n % values.len() as u64) as usize]
}
