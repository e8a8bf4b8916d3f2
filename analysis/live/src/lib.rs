//! What goes on in a capture while it is written: rates, percentiles, values, losses.
//!
//! A [`Tally`] takes in the chunks of a capture as they come, and keeps sums, sketches and the latest
//! frames, in memory that does not grow. A [`Watch`] reads a capture that grows, or a stream, in a
//! thread of its own. A [`Picture`] is what a tally says at one moment; text in it is the target's,
//! and whoever shows it escapes it.
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

pub use follow::{Phase, Watch};
pub use keep::Latest;
pub use picture::{
    ClockBound, FieldPicture, KindPicture, Measured, MetricPicture, Numbers, Picture, SpanPicture,
    ThreadPicture, Words,
};
pub use ppt_capture::{CaptureError, Cause, Histogram};
pub use ppt_stats::DistinctCount;
pub use rate::SECONDS;
pub use tally::{Span, Tally};
