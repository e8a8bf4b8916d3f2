//! Captures in the formats of other programs: Perfetto, CTF, Chrome's JSON, OpenTelemetry.
//!
//! A [`Trace`] receives events, each a row of an [`EventSchema`], in the order of their begins (of
//! equal begins, the longest first), and writes them as they come: it keeps only open events. The
//! caller provides and sorts the rows.
//!
//! Any text may be a target's. Each format escapes text by its own rules.

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
