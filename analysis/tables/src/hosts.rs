//! The clock of each capture's times, and which times can be compared.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ppt_capture::Alignment;

/// The clocks of a set's captures, by the number of the capture.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    captures: Vec<CaptureClock>,
    /// The host on whose clock all times are, if captures of several hosts were aligned.
    reference: Option<String>,
    numbers: HashMap<String, usize>,
    /// Hosts whose times are partly without bounds: the part of the capture, from 0 to 1.
    unbounded: BTreeMap<String, f64>,
}

/// The clock of a capture.
#[derive(Debug, Clone)]
pub(crate) struct CaptureClock {
    /// Times of the same clock have no error relative to each other.
    pub number: u32,
    /// Number of the host; each boot counts as another one.
    pub host: u32,
    /// Number of the time scale: times of the same scale can be compared.
    pub scale: u32,
    pub bounds: TimeBounds,
}

/// The bounds of times on the clock of the set.
#[derive(Debug, Clone)]
pub(crate) enum TimeBounds {
    /// The largest error, in ns.
    Error(i64),
    /// Bounds from readings between the hosts.
    Aligned(Arc<Alignment>),
}

impl Clocks {
    pub(crate) fn new(captures: Vec<CaptureClock>, ids: impl Iterator<Item = String>) -> Clocks {
        let numbers = ids.zip(0..).collect();
        Clocks { captures, reference: None, numbers, unbounded: BTreeMap::new() }
    }

    /// Sets the host on whose clock the times are.
    pub(crate) fn with_reference(
        self,
        reference: String,
        unbounded: BTreeMap<String, f64>,
    ) -> Clocks {
        Clocks { reference: Some(reference), unbounded, ..self }
    }

    /// Hosts whose times are partly without bounds: the largest such part of a capture, from 0 to 1.
    pub fn unbounded(&self) -> &BTreeMap<String, f64> {
        &self.unbounded
    }

    /// The host on whose clock the times are, if readings relate it to other hosts.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// The number of the capture with this id.
    pub fn capture(&self, id: &str) -> Option<usize> {
        self.numbers.get(id).copied()
    }

    /// The number of a capture's clock. Times of the same clock have no error relative to each other.
    pub fn number(&self, capture: usize) -> u32 {
        self.captures.get(capture).map_or(u32::MAX, |clock| clock.number)
    }

    /// The number of a capture's host.
    pub fn host(&self, capture: usize) -> u32 {
        self.captures.get(capture).map_or(u32::MAX, |clock| clock.host)
    }

    /// The alignment of a capture with the clock of the reference host.
    pub(crate) fn alignment(&self, capture: usize) -> Option<&Alignment> {
        match &self.captures.get(capture)?.bounds {
            TimeBounds::Error(_) => None,
            TimeBounds::Aligned(alignment) => Some(alignment),
        }
    }

    /// Whether no time has an error relative to another.
    pub(crate) fn are_exact(&self) -> bool {
        self.captures.iter().all(|clock| matches!(clock.bounds, TimeBounds::Error(0)))
    }

    /// The width of the widest bounds, in ns.
    pub(crate) fn widest(&self) -> i64 {
        let width = |clock: &CaptureClock| match &clock.bounds {
            TimeBounds::Error(error) => error.saturating_mul(2),
            TimeBounds::Aligned(alignment) => alignment.widest(),
        };
        self.captures.iter().map(width).max().unwrap_or_default()
    }

    /// The number of a capture's time scale: times of the same scale can be compared.
    pub(crate) fn scale(&self, capture: usize) -> u32 {
        self.captures.get(capture).map_or(u32::MAX, |clock| clock.scale)
    }

    /// The bounds of a time of a capture, ns since the epoch; None if it has no bounds.
    pub fn around(&self, capture: usize, ts: i64) -> Option<(i64, i64)> {
        match &self.captures.get(capture)?.bounds {
            TimeBounds::Error(error) => {
                Some((ts.saturating_sub(*error), ts.saturating_add(*error)))
            }
            TimeBounds::Aligned(alignment) => alignment.bounds(ts),
        }
    }
}
