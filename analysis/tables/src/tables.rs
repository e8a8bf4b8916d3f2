//! All tables: each is a file in this folder, and a line in [`ALL`].

use std::sync::Arc;

use crate::error::SetError;
use crate::set::CaptureSet;

mod account;
mod captures;
mod chains;
mod clock_bounds;
mod clocks;
mod edges;
mod frame;
mod frames;
mod gaps;
mod kernel;
mod keyed_frames;
mod masks;
mod metrics;
mod modules;
mod named;
mod pair_planner;
mod points;
mod rings;
mod slices;
mod sources;
mod spans;
mod threads;
mod triggers;

pub use frame::SYMBOL;
pub(crate) use named::{NamedTable, TableSubject};

/// Makes the tables of a module: a fixed number, or one for each frame name.
type Make = fn(&Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError>;

/// The functions that make all tables.
pub(crate) const ALL: [Make; 20] = [
    frame::make,
    frames::make,
    spans::make,
    chains::make,
    slices::make,
    points::make,
    edges::make,
    gaps::make,
    metrics::make,
    kernel::make,
    triggers::make,
    masks::make,
    threads::make,
    modules::make,
    account::make,
    rings::make,
    sources::make,
    clocks::make,
    clock_bounds::make,
    captures::make,
];
