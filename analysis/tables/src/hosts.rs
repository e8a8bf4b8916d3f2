//! On which clock the times of each capture were read, and which of them can be compared.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ppt_capture::Alignment;

/// The clocks of the captures of a set, by the number of the capture.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    of: Vec<CaptureClock>,
    /// The name of the host whose clock gives all times, where there are several.
    reference: Option<String>,
    numbers: HashMap<String, usize>,
    /// Hosts for a part of whose captures nothing bounds times, and that part.
    unbounded: BTreeMap<String, f64>,
}

/// The clock of a capture.
#[derive(Debug, Clone)]
pub(crate) struct CaptureClock {
    /// Times of one clock are exact beside each other.
    pub number: u32,
    /// Which host, in one boot.
    pub host: u32,
    /// Times of one scale can be compared.
    pub scale: u32,
    pub bounds: TimeBounds,
}

/// How far times are from the truth, on the clock that gives them.
#[derive(Debug, Clone)]
pub(crate) enum TimeBounds {
    /// At most this many ns.
    Error(i64),
    /// By readings between the hosts.
    Aligned(Arc<Alignment>),
}

impl Clocks {
    pub(crate) fn new(of: Vec<CaptureClock>, ids: impl Iterator<Item = String>) -> Clocks {
        let numbers = ids.zip(0..).collect();
        Clocks { of, reference: None, numbers, unbounded: BTreeMap::new() }
    }

    /// The clock of this host gives the times.
    pub(crate) fn told_by(self, reference: String, unbounded: BTreeMap<String, f64>) -> Clocks {
        Clocks { reference: Some(reference), unbounded, ..self }
    }

    /// Hosts for a part of whose captures readings leave open when anything was, and that part, up to 1.
    pub fn unbounded(&self) -> &BTreeMap<String, f64> {
        &self.unbounded
    }

    /// The host whose clock gives the times, if readings joined it with others.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// The number of the capture with this id.
    pub fn capture(&self, id: &str) -> Option<usize> {
        self.numbers.get(id).copied()
    }

    /// The number of a capture's clock: times of one clock are exact beside each other.
    pub fn number(&self, capture: usize) -> u32 {
        self.of.get(capture).map_or(u32::MAX, |clock| clock.number)
    }

    /// The number of a capture's host.
    pub fn host(&self, capture: usize) -> u32 {
        self.of.get(capture).map_or(u32::MAX, |clock| clock.host)
    }

    /// How times of a capture came to be on the clock of the reference.
    pub(crate) fn alignment(&self, capture: usize) -> Option<&Alignment> {
        match &self.of.get(capture)?.bounds {
            TimeBounds::Error(_) => None,
            TimeBounds::Aligned(alignment) => Some(alignment),
        }
    }

    /// Whether all times are exact beside each other.
    pub(crate) fn are_exact(&self) -> bool {
        self.of.iter().all(|clock| matches!(clock.bounds, TimeBounds::Error(0)))
    }

    /// How wide bounds are at most, in ns.
    pub(crate) fn widest(&self) -> i64 {
        let width = |clock: &CaptureClock| match &clock.bounds {
            TimeBounds::Error(error) => error.saturating_mul(2),
            TimeBounds::Aligned(alignment) => alignment.widest(),
        };
        self.of.iter().map(width).max().unwrap_or_default()
    }

    /// The scale of a capture's times: those of one scale can be compared.
    pub(crate) fn scale(&self, capture: usize) -> u32 {
        self.of.get(capture).map_or(u32::MAX, |clock| clock.scale)
    }

    /// Between which times a time of a capture was, in ns since the epoch. None where nothing bounds it.
    pub fn around(&self, capture: usize, ts: i64) -> Option<(i64, i64)> {
        match &self.of.get(capture)?.bounds {
            TimeBounds::Error(error) => {
                Some((ts.saturating_sub(*error), ts.saturating_add(*error)))
            }
            TimeBounds::Aligned(alignment) => alignment.bounds(ts),
        }
    }
}
