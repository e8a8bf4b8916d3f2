//! Pictures of captures: the page of `ppt report`, the plots of `ppt plot`, and
//! [`panels`] that show what a formula says beside what was measured.
//!
//! [`Facts::gather`] asks an [`Engine`](ppt_query::Engine); [`page`] makes one file of the answers: no
//! network, no foreign script. Charts are SVG, drawn here once for readers with and without script and
//! for paper; a script adds what moves: the timeline and what hovers. What comes from a target is text
//! everywhere, and stays so (`html.rs`).
//!
//! The size of a page does not follow from the size of captures: times are cut into a fixed number of slices
//! and buckets, and single frames are on the page for small captures, and else around what took longest.
#![forbid(unsafe_code)]

mod axis;
mod bytes;
mod chart;
mod error;
mod facts;
mod flame;
mod frames;
mod html;
mod page;
mod panels;
mod percentiles;
mod picture;
mod plot;
pub mod points;
mod rows;
mod span;
mod timeline;
mod times;
mod views;

pub use error::ReportError;
pub use facts::{Ask, Facts};
pub use flame::{FlamePlot, flame};
pub use page::page;
pub use panels::{Panel, PanelLine, panels};
pub use plot::{Plot, PlotForm, plot};
