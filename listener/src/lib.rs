//! Drains the rings of attached buffers into a capture, and accounts for every frame.
//!
//! It runs at least three threads, none of which affects a writer:
//!
//! * **drain** polls the cursor of every ring, copies new frames, validates them, and hands chunks
//!   on. It sleeps as long as the fullest ring allows ([`PeakHold`]) and never waits for anything
//!   else.
//! * **disk** writes the chunks into a capture. A bounded queue lies between drain and disk: frames
//!   that a slow disk does not take in time are lost by cause `disk`, and counted. Other
//!   [sinks](Sink) may take the same frames [in parallel](PreparedListener::add_sink), each with its own thread
//!   and queue.
//! * **keeper** populates rings before threads claim them, and frees those of dead threads.
//!
//! For every ring `captured + lost + left_out == next_seq - first_seq` holds exactly, in all cases:
//! see [`FrameAccount`].
//!
//! # Order of calls
//! Make a [`Feed`] for each buffer before its gate opens, call [`Listener::start`], and open the
//! gates. Later feeds are [added](Listener::add), and [retired](Listener::retire) when their
//! targets are gone. A feed may continue in [another segment](Listener::extend), larger than one
//! that was [undersized](Listener::undersized). At the end, close the gates (or wait for the target
//! to end), then call [`Listener::finish`]. While it runs, [`Listener::wake`] signals that it ended
//! by itself, and [`Listener::progress`] reports its progress.
#![forbid(unsafe_code)]

mod account;
mod buffer;
mod cadence;
mod cells;
mod chunk;
mod counted_output;
mod direct;
mod drain;
mod error;
mod feed;
mod filter;
mod flight;
mod header;
mod introductions;
mod keeper;
mod lanes;
mod ledger;
mod limit;
mod listener;
mod masks;
mod open;
mod options;
mod origins;
mod owners;
mod pace;
mod progress;
mod queue;
mod recording;
mod ring;
mod rotate;
mod sink;
mod summary;
mod tally;
mod thread_names;
mod threads;
mod watched;
mod worker;

pub use account::{Closing, FrameAccount};
pub use cells::FoundCells;
pub use chunk::Frames;
pub use direct::DirectFile;
pub use error::ListenerError;
pub use feed::{Alive, Feed, Unattended};
pub use filter::{Filter, SharedFilter};
pub use flight::{
    Content, Flight, FlightOptions, FlightProgress, LEAST_MEMORY, News, TriggerHit, TriggerWatch,
    WindowFiles,
};
pub use header::header;
pub use limit::empty_size;
pub use listener::{Listener, PreparedListener};
pub use options::{ListenerOptions, Rate, Silence};
pub use pace::PeakHold;
/// Types of the capture format that describe a capture.
pub use ppt_capture::{
    Cause, Chosen, ClockReading, Codec, Dropped, EndReason, FileHeader, Flip, FlipRing, FramesHead,
    Lost, Module, Modules, Process, Segment as ListedSegment, Source, Stretch, ThreadName,
    TriggerCause,
};
/// The cursor of a [`BrokenRing`].
pub use ppt_segment::BrokenCursor;
pub use progress::Progress;
pub use rotate::{CaptureFiles, Rotation, nowhere};
pub use sink::{Ending, Introduction, Sink, SinkOutcome};
pub use summary::{BrokenRing, CaptureSummary, ExtraSinkSummary, FeedSummary, Undersized};
pub use tally::{FeedTally, RingFill, SessionTally, Tallies};
pub use thread_names::NameChanges;

/// One bit, for the writers that set it and for the readers that test it.
const _: () = assert!(
    ppt_capture::frame_dsl::schema::STAMP_IS_MONOTONIC
        == ppt_segment::abi::clock_kind::STAMP_IS_MONOTONIC
);
