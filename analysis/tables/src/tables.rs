//! The tables that there are: one file here, and one line in [`ALL`].

use std::sync::Arc;

use crate::error::SetError;
use crate::set::CaptureSet;

mod account;
mod captures;
mod clocks;
mod frame;
mod frames;
mod gaps;
mod named;
mod rings;
mod slices;
mod sources;

pub(crate) use named::Named;

/// Makes the tables of one kind: one, or one for each frame name.
type Make = fn(&Arc<CaptureSet>) -> Result<Vec<Named>, SetError>;

/// What makes tables.
pub(crate) const ALL: [Make; 9] = [
    frame::make,
    frames::make,
    slices::make,
    gaps::make,
    account::make,
    rings::make,
    sources::make,
    clocks::make,
    captures::make,
];
