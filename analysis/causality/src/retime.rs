//! What a faster part would be worth: a recorded run, timed again.
//!
//! A [`Recording`] has vertices, which are the begins and ends of intervals, spans and points, and what held
//! between them: program order, causes, queues. [`RetimeModel::new`] learns from it what each way costs without
//! waiting, and what else each vertex took. [`RetimeModel::replay`] then computes the new times:
//!
//! `t(v) = max over its edges of (t(source) + base(edge)) + r(v)`
//!
//! The base of an edge is the smallest value that any edge between the same two names showed. That of
//! program order is its length; into a vertex that waited, it is what the kernel saw running, or else
//! the smallest value that was shown where all was there when it began. `r(v) ≥ 0` makes the run as
//! it was come out exactly. What a named activity ran itself is divided by its speed. So edges have
//! slack, and a faster part can be worth nothing.
//!
//! **Queues** are simulated again, because another thread may come first: the n-th job that is put meets the
//! n-th time that a worker asks, and begins at the later of the two (Lindley; for several workers Kiefer and
//! Wolfowitz). What a worker does from one take to the next belongs to the job and moves with it. So a replay
//! is a simulation of events in the order of their new times; all that lies between puts and takes is timed as
//! soon as what it follows is timed.
//!
//! **Two regimes**: to be woken costs more than to find work waiting. Where a vertex waits now and did
//! not, or the other way round, it takes `r` from a vertex near it, of its name, that was in that regime.
//!
//! **Doubt**: where frames are missing, the run is taken apart (`apart.rs`). What lies before, between and
//! behind are runs of their own, and no metric counts what the loss touches (`doubted.rs`).
//!
//! What it cannot see:
//! - Processors that become free, where nobody says what threads did ([`Recording::state`]): who was ready
//!   to run and had none keeps that time.
//! - Changed batching: who takes two messages at once now still takes two.
//! - Timeouts and retries, which a faster part would spare, and deadlines: who sleeps until an instant
//!   sleeps as long as it did.
//! - The order in which a lock is taken: it stays as it was.
//! - Bounded queues, but where the run met their bound.
//! - Caches, clocks and compilers, for which half the work is rarely half the time.

mod apart;
mod cause_edges;
mod contention;
mod contexts;
mod critical;
mod doubt;
mod doubted;
mod engine;
mod figures;
mod groups;
mod known;
mod metric;
mod model;
mod moments;
mod order;
mod queues;
mod recording;
mod replay;
mod speed;
mod worth;

pub use doubt::{Evidence, PointSeen, RetimeRefusal};
pub use figures::{Figures, Resampling};
pub use metric::{Metric, MetricError, MetricMistake, NoMetric, Series};
pub use model::{Notes, RetimeModel};
pub use recording::{NameId, Recording, ThreadId, ThreadState, Vertex};
pub use replay::Replay;
pub use speed::{NoActivity, Speed, SpeedError, Speeds};
pub use worth::{MetricQuestion, Ranked, SpeedVerdict, SpeedWorth};
