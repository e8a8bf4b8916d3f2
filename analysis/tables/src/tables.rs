//! The tables that there are: one file here, and one line in [`ALL`].

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::SetError;
use crate::set::CaptureSet;
use crate::table::Table;

mod account;
mod captures;
mod clocks;
mod frame;
mod frames;
mod gaps;
mod rings;
mod slices;
mod sources;

pub(crate) use slices::Nested;

/// A table with its name; without a buffer it is a fixed one, which every set has.
#[derive(Debug)]
pub(crate) struct Named {
    pub buffer: Option<String>,
    pub name: String,
    pub table: Arc<dyn Table>,
}

impl Named {
    fn fixed(name: &str, table: impl Table + 'static) -> Named {
        Named { buffer: None, name: name.to_owned(), table: Arc::new(table) }
    }
}

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
