//! Captures for other people's programs: Perfetto, CTF, Chrome's JSON, OpenTelemetry.
//!
//! A [`Trace`] takes events, each a row of a [`EventSchema`], in the order of their beginnings (the longest of
//! those that begin together first), and writes them as they come: what it keeps is what is open, not
//! what was. Where the rows come from, and who sorts them, is the caller's affair.
//!
//! All text may be a target's. Each format says how text is put into it; nothing else is done to it.

#![forbid(unsafe_code)]

mod chrome;
mod ctf;
mod edges;
mod event;
mod events;
mod file_order;
mod frame_kind;
mod lanes;
mod merge;
mod metrics;
mod otlp;
mod perfetto;
mod selection;
mod source;
mod threads;
mod values;

pub use chrome::Chrome;
pub use ctf::Ctf;
pub use event::{COLUMNS, ClockPair, EventRole, EventRows, EventSchema, Marks, Trace, TraceFormat};
pub use events::Events;
pub use merge::{Merge, RowRun};
pub use otlp::{Encoding, GrowingOtlp, Otlp, OtlpFiles, RangeWholes, ReadRange, Resources};
pub use perfetto::Perfetto;
pub use selection::TraceSelection;
pub use source::Sources;
