//! The state of a capture while it is written: rates, percentiles, values, losses.
//!
//! A [`Tally`] reads the chunks of a capture as they arrive. It keeps sums, sketches and the latest frames,
//! in bounded memory. A [`LiveReader`] reads a growing capture or a stream in a thread. A [`Picture`] is
//! the state of a tally at one moment. Its texts come from the target, so the caller must escape them for
//! display.
#![forbid(unsafe_code)]

mod follow;
mod frame_kind;
mod frequent;
mod key_field;
mod last_names;
mod latest_frames;
mod live_metrics;
mod picture;
mod rate;
mod recent_keys;
mod recent_numbers;
mod span_pairs;
mod tally;

pub use follow::{CapturePhase, LiveReader};
pub use latest_frames::Latest;
pub use picture::{
    ClockBound, FieldPicture, KindPicture, MeasuredValues, MetricPicture, NumberSpread, Picture,
    SpanPicture, ThreadPicture, WordSample,
};
pub use ppt_capture::{CaptureError, Cause, HistogramCells};
pub use ppt_stats::DistinctCount;
pub use rate::SECONDS;
pub use tally::{Tally, TallyRange};
