//! The worth of a faster part: the times of a recorded run, recomputed with other speeds.
//!
//! A [`RecordedRun`] has vertices, which are points and the begins and ends of intervals and spans, and the
//! relations between them: program order, causes, queues. [`RetimeModel::new`] learns from it the cost of each
//! edge without waiting, and the residual time of each vertex. [`RetimeModel::replay`] then computes the new
//! times:
//!
//! `t(v) = max over its edges of (t(source) + base(edge)) + r(v)`
//!
//! The base of an edge is the smallest time of any edge between the same two names. The base of program order
//! is its length; into a vertex that waited, it is the time for which the kernel saw the thread running, or
//! else the smallest time of such a step among those that began after all causes had arrived. The residual
//! `r(v) ≥ 0` reproduces the recorded run exactly. The CPU time of a named activity is divided by its speed. So
//! edges have slack, and a faster part can be worth nothing.
//!
//! **Queues** are simulated, because another thread may come first: the n-th put job meets the n-th request of
//! a worker, and begins at the later of the two (Lindley; for several workers Kiefer and Wolfowitz). The work
//! of a worker from one take to the next belongs to the job and moves with it. So a replay is a simulation of
//! events in the order of their new times; a vertex between puts and takes gets its time as soon as its
//! predecessors have theirs.
//!
//! **Two regimes**: being woken costs more than finding work waiting. A vertex that waits in the replay but not
//! in the recording, or the other way round, takes `r` from a nearby vertex of its name in that regime.
//!
//! **Doubt**: missing frames divide the run (`split_at_losses.rs`). The parts before, between and after are
//! runs of their own, and no metric counts times that the loss affects (`doubtful_times.rs`).
//!
//! Not modelled:
//! - CPUs that become free, unless the states of threads are known ([`RecordedRun::state`]): a thread that waited
//!   for a CPU waits as long again.
//! - Changed batching: a thread that takes two messages at once still takes two.
//! - Timeouts and retries, which a faster part would avoid, and deadlines: a thread that sleeps until an
//!   instant sleeps as long as before.
//! - The order in which a lock is taken: it stays the same.
//! - Bounded queues, except where the run met their bound.
//! - Caches, clock frequencies and compilers, for which half the work is rarely half the time.

mod arrival_order;
mod cause_edges;
mod contention;
mod contexts;
mod critical_paths;
mod disjoint_sets;
mod doubtful_times;
mod figures;
mod job_queues;
mod loss_free;
mod metric;
mod model;
mod moments;
mod recorded_run;
mod refusal;
mod replay_engine;
mod replay_result;
mod speed;
mod split_at_losses;
mod unseen_waits;
mod waiting_line;
mod worth;

pub use figures::{BlockBootstrap, Figures};
pub use metric::{Metric, MetricError, MetricMistake, MetricUnavailable, Ratios};
pub use model::{ModelNotes, RetimeModel};
pub use recorded_run::{NameId, RecordedRun, ThreadId, ThreadState, VertexId};
pub use refusal::{Evidence, PointCount, RetimeRefusal};
pub use replay_result::Replay;
pub use speed::{ActivityError, Speed, SpeedError, Speeds};
pub use worth::{MetricQuestion, NO_GAIN, Ranked, SpeedVerdict, SpeedWorth};
