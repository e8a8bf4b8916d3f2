//! Captures from the capture writer: everything that programs can write, and everything that can be
//! missing.

use ppt_capture::EndReason;
use serde_json::Value;

use crate::numbers::maker::{MONO, Maker, REAL};

pub const MS: u64 = 1_000_000;

/// A capture, or several that belong together.
pub struct MadeCapture {
    pub name: &'static str,
    pub files: Vec<Vec<u8>>,
    /// One for each source, as JSON.
    pub schemas: Vec<String>,
    /// Facts that no dump shows, for each file; None: unknown.
    pub told: Option<Vec<Vec<Value>>>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC in ns; None: unknown.
    pub offset: Option<u64>,
}

/// The captures of a maker, with a name.
pub fn made(name: &'static str, maker: Maker, reason: EndReason) -> MadeCapture {
    let schemas = maker.schemas().map(|schema| schema.to_json()).collect();
    let (files, told) = maker.end(reason);
    MadeCapture { name, files, schemas, told: Some(told), offset: Some(REAL - MONO) }
}

/// Element `n` modulo the length; lists of different lengths combine in every way.
pub fn turn<T: Copy>(values: &[T], n: u64) -> T {
    values[(n % values.len() as u64) as usize]
}
