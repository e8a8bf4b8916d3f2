//! The state of a capture while it is written: rates, percentiles, values, losses.
//!
//! A [`Tally`] reads the chunks of a capture as they arrive, and keeps sums, sketches and the
//! latest frames, in bounded memory. A [`GrowingCapture`] reads a growing capture or a stream in its own
//! thread. A [`Picture`] is the state of a tally at one moment. Its text comes from the target, so
//! the caller must escape it for display.
#![forbid(unsafe_code)]

mod follow;
mod frame_kind;
mod frequent;
mod keep;
mod keys;
mod last_names;
mod metrics;
mod pairs;
mod picture;
mod rate;
mod recent;
mod tally;

pub use follow::{GrowingCapture, Phase};
pub use keep::Latest;
pub use picture::{
    ClockBound, FieldPicture, KindPicture, MeasuredValues, MetricPicture, NumberSpread, Picture,
    SpanPicture, ThreadPicture, WordSample,
};
pub use ppt_capture::{CaptureError, Cause, HistogramCells};
pub use ppt_stats::DistinctCount;
pub use rate::SECONDS;
pub use tally::{Tally, TallyRange};
