//! Pictures of captures: the page of `ppt report`, the plots of `ppt plot`, and [`panels`], which
//! compare formulas with measurements.
//!
//! [`Facts::gather`] queries an [`Engine`](ppt_query::Engine); [`page`] makes one file of the answers,
//! without network access or foreign scripts. Charts are SVG, so they need no script and can be
//! printed. A script adds the timeline and tooltips. Text from a target is escaped everywhere
//! (`html.rs`).
//!
//! The size of a page is bounded: time is cut into a fixed number of slices and buckets. Small captures
//! have all their frames on the page, larger ones the frames around the slowest intervals.
#![forbid(unsafe_code)]

mod axis;
mod bytes;
mod error;
mod facts;
mod flame;
mod frame_facts;
mod html;
mod page;
mod page_svg;
mod panels;
mod plot;
pub mod points;
mod print_svg;
mod shown_percentiles;
mod span;
mod text_rows;
mod timeline_data;
mod times;
mod views;

pub use error::ReportError;
pub use facts::{Facts, PageRequest};
pub use flame::{FlamePlot, flame};
pub use page::page;
pub use panels::{Panel, PanelLine, panels};
pub use plot::{Plot, PlotForm, plot};
