//! The model of a run: the costs of edges, the residuals, the queues and CPUs.

use super::cause_edges::{CauseEdges, QUEUED, Work, cause_arrivals, cause_times, works};
use super::contention::{
    Contention, LearnedContention, ModelParts, Slices, ThreadSteps, crowded_share,
};
use super::contexts::{Contexts, contexts_of};
use super::doubtful_times::DoubtfulTimes;
use super::job_queues::{JobQueue, QueuedJob, Queues, queues};
use super::moments::{Moments, NONE, ran};
use super::recorded_run::{MeasuredLength, NameId, NameTable, RecordedRun, VertexId};
use super::refusal::{MAX_CROWDED_SHARE, MAX_UNSEEN_WAIT_SHARE, RetimeRefusal};
use super::unseen_waits::unseen_wait_share;

/// The largest share of backward edges that may be noise of clocks.
const MAX_BACKWARD_SHARE: f64 = 0.01;

/// The largest deviation of a reproduced run, in ns: more than the difference of the clocks of CPUs.
const ROUNDING: u64 = 1_000;

/// The twin of a vertex in the other regime is drawn from this many earlier vertices, so that one vertex does
/// not serve as the twin of all that follow it.
const NEAR: usize = 64;

/// A recorded run that can be replayed.
#[derive(Debug)]
pub struct RetimeModel {
    pub(super) names: NameTable,
    pub(super) moments: Moments,
    /// For each vertex, the work since the previous vertex of its thread.
    pub(super) work: Vec<Work>,
    /// For each vertex, the residual time r.
    pub(super) residual: Vec<i64>,
    /// For each vertex, whether it waited.
    pub(super) waited: Vec<bool>,
    /// For each vertex, another of its name in the other regime, shortly before it or else after it, or
    /// [`NONE`].
    pub(super) twin: Vec<u32>,
    /// For each vertex, the context of its program edge.
    pub(super) context: Vec<u32>,
    pub(super) contexts: Contexts,
    pub(super) cause_edges: CauseEdges,
    /// For each vertex, whether it has a cause outside of the recording.
    pub(super) outside: Vec<bool>,
    /// For each vertex, the job that it takes, or [`NONE`].
    pub(super) job_of_vertex: Vec<u32>,
    pub(super) jobs: Vec<QueuedJob>,
    pub(super) queues: Vec<JobQueue>,
    /// For each thread, the queue that it serves, or [`NONE`].
    pub(super) queue_of_thread: Vec<u32>,
    /// Intervals and spans, sorted by name and time.
    pub(super) measured: Vec<MeasuredLength>,
    /// The contention for CPUs, if the kernel recorded it.
    pub(super) contention: Option<Contention>,
    /// The times that missing frames affect.
    pub(super) doubtful: DoubtfulTimes,
    /// Names of intervals.
    pub(super) activities: Vec<NameId>,
    /// The index of each vertex in `moments`, by its id in the recording.
    pub(super) vertex_index: Vec<u32>,
    /// The times of a replay with the recorded speeds, if they are not the recorded times.
    pub(super) unlike_run: Option<Vec<i64>>,
    notes: ModelNotes,
}

/// Properties of a model that a reader of predictions should know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelNotes {
    /// The number of vertices.
    pub vertices: usize,
    /// The number of causes other than program order.
    pub edges: usize,
    /// The number of those whose effect is stamped before the cause: they are ignored.
    pub backward: usize,
    /// The number of jobs whose service is simulated.
    pub jobs: usize,
    /// The number of jobs that stay with the thread that took them, because it takes from several queues, or
    /// several jobs at once.
    pub bound: usize,
    /// The number of simulated queues.
    pub queues: usize,
    /// A replay with the recorded speeds does not have the recorded times.
    pub is_unlike_run: bool,
}

impl RetimeModel {
    /// Learns a model from a recording.
    ///
    /// # Errors
    /// Effects are stamped before their causes, threads waited for CPUs in an unknown order, or they waited for other
    /// threads and no edge shows it.
    pub fn new(mut recording: RecordedRun) -> Result<RetimeModel, RetimeRefusal> {
        // The stages: losses split the recording; `learn` finds causes, contexts, work, queues, unseen waits,
        // residuals, the contention for CPUs and twins, in this order; with contention, a replay checks the model.
        let mut doubtful = DoubtfulTimes::new(&recording);
        recording.split_at_losses(&mut doubtful);
        let mut model = RetimeModel::learn_checked(recording)?;
        model.doubtful = doubtful;
        Ok(model)
    }

    /// Learns a model, and checks whether it reproduces the run. A model of rare contention that does not is learned
    /// again without contention.
    fn learn_checked(mut recording: RecordedRun) -> Result<RetimeModel, RetimeRefusal> {
        if recording.states.is_empty() {
            return RetimeModel::learn(recording);
        }
        let mut model = RetimeModel::learn(recording.clone())?;
        let replay = model.as_it_was();
        if replay.as_ref().is_ok_and(|replay| model.are_recorded(&replay.time)) {
            return Ok(model);
        }
        let share = crowded_share(&recording);
        if share <= MAX_CROWDED_SHARE {
            recording.states.clear();
            return RetimeModel::learn(recording);
        }
        // A model without contention reproduces any run, which proves nothing if contention was frequent. This
        // one may still have the same distributions.
        let replay = replay.map_err(|_| RetimeRefusal::Crowded { share })?;
        model.unlike_run = Some(replay.time);
        model.notes.is_unlike_run = true;
        Ok(model)
    }

    /// Whether these times are the recorded ones, to [`ROUNDING`].
    fn are_recorded(&self, times: &[i64]) -> bool {
        let off = |(now, was): (&i64, &i64)| now.abs_diff(*was) > ROUNDING;
        !times.iter().zip(&self.moments.time).any(off)
    }

    fn learn(recording: RecordedRun) -> Result<RetimeModel, RetimeRefusal> {
        let (moments, vertex_index) = Moments::new(&recording);
        let mut causes = ForwardCauses::new(&recording, &moments, &vertex_index)?;
        let mut outside = vec![false; moments.len()];
        for vertex in &recording.outside {
            outside[vertex_index[vertex.0 as usize] as usize] = true;
        }
        let cause_arrivals = cause_arrivals(&moments, &causes.edges, &causes.jobs, &outside);
        let mut contexts = Contexts::default();
        let context = contexts_of(&recording, &moments, &vertex_index, &mut contexts);
        let ran = ran(&recording, &moments);
        let mut work = works(&moments, &cause_arrivals, &ran);
        let scheduled = (!recording.states.is_empty()).then(|| {
            let caused = cause_times(&moments, &causes.edges, &causes.jobs);
            ThreadSteps::new(&recording, &moments, &caused, &outside, &work)
        });
        if let Some((thread_steps, _)) = &scheduled {
            use_recorded_work(&mut work, &moments, thread_steps);
        }
        let (cause_edges, found) = causes.find_queues(&moments, &work);
        let has_cause = |at: u32| cause_edges.into[at as usize] > 0 || outside[at as usize];
        let share = unseen_wait_share(&recording, &moments, &vertex_index, has_cause);
        if share > MAX_UNSEEN_WAIT_SHARE {
            return Err(RetimeRefusal::UnseenWaits { share });
        }
        let vertices = moments.len();
        let mut model = RetimeModel {
            measured: measured_lengths(&recording, &moments, &vertex_index),
            activities: activity_names(&recording),
            job_of_vertex: job_of_vertex(&found.jobs, vertices),
            names: recording.names,
            moments,
            work,
            residual: vec![0; vertices],
            waited: vec![false; vertices],
            twin: vec![NONE; vertices],
            context,
            contexts,
            cause_edges,
            outside,
            jobs: found.jobs,
            queues: found.queues,
            queue_of_thread: found.queue_of_thread,
            contention: None,
            doubtful: DoubtfulTimes::default(),
            vertex_index,
            unlike_run: None,
            notes: causes.notes,
        };
        model.learn_residuals(&ran);
        if let Some((thread_steps, slices)) = scheduled {
            let slices = Slices::new(slices, thread_steps.machines());
            let LearnedContention { contention, waited } =
                Contention::learn(model.parts(), thread_steps, slices, &model.asks());
            (model.contention, model.waited) = (Some(contention), waited);
        }
        model.pair_regimes(&cause_arrivals);
        Ok(model)
    }

    fn parts(&self) -> ModelParts<'_> {
        ModelParts {
            moments: &self.moments,
            cause_edges: &self.cause_edges,
            outside: &self.outside,
            job_of_vertex: &self.job_of_vertex,
            jobs: &self.jobs,
            queues: &self.queues,
        }
    }

    /// Properties of the model that a reader of predictions should know.
    pub fn notes(&self) -> ModelNotes {
        self.notes
    }

    /// The names of activities, sorted.
    pub fn activities(&self) -> Vec<&str> {
        let mut names: Vec<_> =
            self.activities.iter().map(|&activity| self.names.written(activity)).collect();
        names.sort_unstable();
        names
    }

    /// The time at which the thread of `at` would have got there without waiting.
    pub(super) fn asked(&self, at: u32) -> i64 {
        let before = self.moments.before(at);
        before.map_or(i64::MIN, |before| {
            self.moments.time[before as usize] + self.work[at as usize].full
        })
    }

    /// Finds the residuals that reproduce the recorded run.
    fn learn_residuals(&mut self, ran: &[i64]) {
        let time = &self.moments.time;
        let mut arrived: Vec<_> = (0..self.moments.len())
            .map(|index| if self.outside[index] { time[index] } else { i64::MIN })
            .collect();
        for from in 0..self.moments.len() as u32 {
            for &(to, kind) in self.cause_edges.from(from) {
                let to = to as usize;
                let base = if kind == QUEUED {
                    let job = self.jobs[self.job_of_vertex[to] as usize];
                    self.queues[job.queue as usize].base + job.late
                } else {
                    self.cause_edges.base[kind as usize]
                };
                arrived[to] = arrived[to].max(time[from as usize] + base);
            }
        }
        let asked = self.asks();
        for at in 0..self.moments.len() {
            let job = self.job_of_vertex[at];
            let free = if job == NONE { self.asked(at as u32) } else { asked[job as usize] };
            self.waited[at] = arrived[at] > free;
            if job != NONE || self.waited[at] {
                self.residual[at] = self.moments.time[at] - arrived[at].max(free);
            } else {
                // It did not wait: the whole time is work.
                let full = self.moments.time_since_previous(at as u32);
                self.work[at] = Work { full, ran: if ran[at] < 0 { full } else { ran[at] } };
            }
        }
    }

    /// For each job, the time at which its worker was free.
    fn asks(&self) -> Vec<i64> {
        let mut asked: Vec<(u32, i64)> =
            self.jobs.iter().map(|job| (job.queue, self.asked(job.take))).collect();
        for (thread, &queue) in self.queue_of_thread.iter().enumerate() {
            if queue != NONE
                && let Some(again) = self.queues[queue as usize].again
            {
                let last = self.moments.last(thread as u32);
                asked.push((queue, self.moments.time[last as usize] + again));
            }
        }
        asked.sort_unstable();
        let mut of_jobs = Vec::with_capacity(self.jobs.len());
        let mut next = 0;
        for job in &self.jobs {
            while asked[next].0 < job.queue {
                next += 1;
            }
            of_jobs.push(asked[next].1);
            next += 1;
        }
        of_jobs
    }

    /// Finds the twin of each vertex that may wait.
    fn pair_regimes(&mut self, cause_arrivals: &[i64]) {
        let may_wait =
            |at: &u32| cause_arrivals[*at as usize] != i64::MIN && !self.outside[*at as usize];
        let mut order: Vec<u32> = (0..self.moments.len() as u32).filter(may_wait).collect();
        let key = |at: u32| (self.moments.name[at as usize], self.moments.time[at as usize], at);
        order.sort_unstable_by_key(|&number| key(number));
        let mut pair = |order: &mut dyn Iterator<Item = u32>| {
            let mut earlier = [Vec::new(), Vec::new()];
            let mut name = NONE;
            for (nth, at) in order.enumerate() {
                if self.moments.name[at as usize] != name {
                    earlier.iter_mut().for_each(Vec::clear);
                    name = self.moments.name[at as usize];
                }
                let waited = usize::from(self.waited[at as usize]);
                earlier[waited].push(at);
                let others = &earlier[1 - waited];
                if self.twin[at as usize] == NONE && !others.is_empty() {
                    let near = &others[others.len().saturating_sub(NEAR)..];
                    self.twin[at as usize] = near[nth % near.len()];
                }
            }
        };
        pair(&mut order.iter().copied());
        pair(&mut order.iter().rev().copied());
    }
}

/// The causes of a recording that do not lead back in time, with indexes of [`Moments`].
struct ForwardCauses {
    edges: Vec<(u32, u32)>,
    /// (put, take, key).
    jobs: Vec<(u32, u32, u64)>,
    notes: ModelNotes,
}

impl ForwardCauses {
    fn new(
        recording: &RecordedRun,
        moments: &Moments,
        vertex_index: &[u32],
    ) -> Result<ForwardCauses, RetimeRefusal> {
        let at = |vertex: VertexId| vertex_index[vertex.0 as usize];
        let mut notes = ModelNotes {
            vertices: moments.len(),
            edges: recording.edges.len() + recording.jobs.len(),
            ..ModelNotes::default()
        };
        let is_forward =
            |from: u32, to: u32| moments.time[from as usize] <= moments.time[to as usize];
        let mut edges: Vec<_> =
            recording.edges.iter().map(|&(from, to)| (at(from), at(to))).collect();
        let mut jobs: Vec<_> =
            recording.jobs.iter().map(|job| (at(job.put), at(job.take), job.key)).collect();
        edges.retain(|&(from, to)| is_forward(from, to));
        jobs.retain(|&(put, take, _)| is_forward(put, take));
        notes.backward = notes.edges - edges.len() - jobs.len();
        if notes.backward as f64 > MAX_BACKWARD_SHARE * notes.edges as f64 {
            return Err(RetimeRefusal::Backward { backward: notes.backward, of: notes.edges });
        }
        // Within a thread, program order implies the edge.
        edges.retain(|edge| moments.thread[edge.0 as usize] != moments.thread[edge.1 as usize]);
        Ok(ForwardCauses { edges, jobs, notes })
    }

    /// Finds the queues of the jobs. Jobs without a queue become edges.
    fn find_queues(&mut self, moments: &Moments, work: &[Work]) -> (CauseEdges, Queues) {
        let asks: Vec<_> = work.iter().map(|work| work.full).collect();
        let found = queues(moments, &self.jobs, &asks);
        (self.notes.jobs, self.notes.bound) = (found.jobs.len(), found.bound.len());
        self.notes.queues = found.queues.len();
        self.edges.extend(
            found.bound.iter().filter(|&&(from, to)| {
                moments.thread[from as usize] != moments.thread[to as usize]
            }),
        );
        (CauseEdges::new(moments, &self.edges, &found.jobs), found)
    }
}

/// Replaces the work before each vertex by that which the kernel recorded.
fn use_recorded_work(work: &mut [Work], moments: &Moments, thread_steps: &ThreadSteps) {
    for at in 0..moments.len() as u32 {
        let step = thread_steps.step_to(at);
        if let Some(before) = moments.before(at) {
            let full = step.asked - moments.time[before as usize];
            work[at as usize] = Work { full, ran: step.ran_before.min(full) };
        }
    }
}

/// For each vertex, the job that it takes, or [`NONE`].
fn job_of_vertex(jobs: &[QueuedJob], vertices: usize) -> Vec<u32> {
    let mut job_of_vertex = vec![NONE; vertices];
    for (index, job) in jobs.iter().enumerate() {
        job_of_vertex[job.take as usize] = index as u32;
    }
    job_of_vertex
}

/// Intervals and spans with indexes of `moments`, sorted by name and time.
fn measured_lengths(
    recording: &RecordedRun,
    moments: &Moments,
    vertex_index: &[u32],
) -> Vec<MeasuredLength> {
    let at = |vertex: VertexId| VertexId(vertex_index[vertex.0 as usize]);
    let mut measured: Vec<_> = recording
        .intervals
        .iter()
        .chain(&recording.spans)
        .map(|length| MeasuredLength { begin: at(length.begin), end: at(length.end), ..*length })
        .collect();
    measured.sort_by_key(|length| (length.name, moments.time[length.begin.0 as usize]));
    measured
}

fn activity_names(recording: &RecordedRun) -> Vec<NameId> {
    let mut names: Vec<_> = recording.intervals.iter().map(|interval| interval.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
