//! What a run says about its parts: the costs of ways, the rests, the order of program and causes.

use super::cause_edges::{CauseEdges, QUEUED, Work, came, sent, works};
use super::contention::{Causes, Contention, Programs, Slices, crowded};
use super::contexts::{Contexts, contexts_of};
use super::doubt::{CROWDED, RetimeRefusal};
use super::doubted::Doubted;
use super::moments::{Moments, NONE, ran};
use super::queues::{JobQueue, QueuedJob, queues};
use super::recording::{MeasuredLength, NameId, NameTable, Recording, Vertex};

/// Above this share, backward edges cannot be the noise of clocks.
const BACKWARD: f64 = 0.01;

/// Clocks of CPUs differ by less, in ns.
const ROUNDING: u64 = 1_000;

/// The twin of a vertex in the other regime is drawn from this many earlier vertices, so that one vertex does
/// not serve as the twin of all that follow it.
const NEAR: usize = 64;

/// A recorded run that can be timed again.
#[derive(Debug)]
pub struct RetimeModel {
    pub(super) names: NameTable,
    pub(super) moments: Moments,
    /// For each vertex, what lies between it and the one before in its thread.
    pub(super) work: Vec<Work>,
    /// For each vertex, r.
    pub(super) rest: Vec<i64>,
    pub(super) waited: Vec<bool>,
    /// One of the same name shortly before it (else after it) that was in the other regime, or [`NONE`].
    pub(super) twin: Vec<u32>,
    /// For each vertex, in which activities its program edge is.
    pub(super) context: Vec<u32>,
    pub(super) contexts: Contexts,
    pub(super) ways: CauseEdges,
    pub(super) outside: Vec<bool>,
    /// For each vertex the job that it takes, or [`NONE`].
    pub(super) job: Vec<u32>,
    pub(super) jobs: Vec<QueuedJob>,
    pub(super) queues: Vec<JobQueue>,
    /// For each thread the queue that it serves, or [`NONE`].
    pub(super) pool: Vec<u32>,
    /// Intervals and spans, by name and time.
    pub(super) measured: Vec<MeasuredLength>,
    /// What the kernel recorded of CPUs.
    pub(super) contention: Option<Contention>,
    /// What frames that are missing touch.
    pub(super) doubted: Doubted,
    /// Names of intervals.
    pub(super) activities: Vec<NameId>,
    /// Where each vertex of the recording is.
    pub(super) place: Vec<u32>,
    notes: Notes,
}

/// What the model did with a run that a reader should know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes {
    /// So many vertices.
    pub vertices: usize,
    /// So many causes that are not program order.
    pub edges: usize,
    /// Of them, these end before they begin, by their stamps: they are ignored.
    pub backward: usize,
    /// Jobs whose service is simulated.
    pub jobs: usize,
    /// Jobs that stay with the thread that took them, as it does not take from one queue alone, or
    /// takes several at once.
    pub bound: usize,
    /// Queues that are simulated.
    pub queues: usize,
}

impl RetimeModel {
    /// What `recording` says.
    ///
    /// # Errors
    /// Effects are stamped before their causes, or threads waited for CPUs in an order that nobody can tell.
    pub fn new(mut recording: Recording) -> Result<RetimeModel, RetimeRefusal> {
        let mut doubted = Doubted::new(&recording);
        recording.apart(&mut doubted);
        let mut model = RetimeModel::of_parts(recording)?;
        model.doubted = doubted;
        Ok(model)
    }

    fn of_parts(mut recording: Recording) -> Result<RetimeModel, RetimeRefusal> {
        if recording.states.is_empty() {
            return RetimeModel::learn(recording);
        }
        let model = RetimeModel::learn(recording.clone())?;
        if model.comes_out() {
            return Ok(model);
        }
        // Without contention it comes out, which says nothing if there was much of it.
        let share = crowded(&recording);
        if share > CROWDED {
            return Err(RetimeRefusal::Crowded { share });
        }
        recording.states.clear();
        RetimeModel::learn(recording)
    }

    /// Whether the run as it was comes out, to a microsecond.
    fn comes_out(&self) -> bool {
        let off = |(now, was): (&i64, &i64)| now.abs_diff(*was) > ROUNDING;
        let replay = self.as_it_was();
        replay.is_ok_and(|replay| !replay.time.iter().zip(&self.moments.time).any(off))
    }

    fn learn(recording: Recording) -> Result<RetimeModel, RetimeRefusal> {
        let (moments, place) = Moments::new(&recording);
        let at = |vertex: Vertex| place[vertex.0 as usize];
        let pair = |from: Vertex, to: Vertex| (at(from), at(to));
        let mut notes = Notes {
            vertices: moments.len(),
            edges: recording.edges.len() + recording.jobs.len(),
            ..Notes::default()
        };
        let forward =
            |(from, to): (u32, u32)| moments.time[from as usize] <= moments.time[to as usize];
        let mut edges: Vec<_> = recording.edges.iter().map(|edge| pair(edge.0, edge.1)).collect();
        let mut jobs: Vec<_> =
            recording.jobs.iter().map(|job| (at(job.put), at(job.take), job.key)).collect();
        edges.retain(|&edge| forward(edge));
        jobs.retain(|job| forward((job.0, job.1)));
        notes.backward = notes.edges - edges.len() - jobs.len();
        if notes.backward as f64 > BACKWARD * notes.edges as f64 {
            return Err(RetimeRefusal::Backward { backward: notes.backward, of: notes.edges });
        }
        // Program order says so already.
        edges.retain(|edge| moments.thread[edge.0 as usize] != moments.thread[edge.1 as usize]);

        let mut outside = vec![false; moments.len()];
        recording.outside.iter().for_each(|&vertex| outside[at(vertex) as usize] = true);
        let came = came(&moments, &edges, &jobs, &outside);

        let mut contexts = Contexts::default();
        let context = contexts_of(&recording, &moments, &place, &mut contexts);
        let ran = ran(&recording, &moments);
        let mut work = works(&moments, &came, &ran);
        let told = (!recording.states.is_empty()).then(|| {
            let sent = sent(&moments, &edges, &jobs);
            Programs::new(&recording, &moments, &sent, &outside, &work)
        });
        if let Some((programs, _)) = &told {
            for at in 0..moments.len() as u32 {
                let program = programs.of(at);
                if let Some(before) = moments.before(at) {
                    let full = program.asked - moments.time[before as usize];
                    work[at as usize] = Work { full, ran: program.ran_before.min(full) };
                }
            }
        }

        let asks: Vec<_> = work.iter().map(|work| work.full).collect();
        let found = queues(&moments, &jobs, &asks);
        (notes.jobs, notes.bound) = (found.jobs.len(), found.bound.len());
        notes.queues = found.queues.len();
        edges.extend(
            found.bound.iter().filter(|&&(from, to)| {
                moments.thread[from as usize] != moments.thread[to as usize]
            }),
        );
        let ways = CauseEdges::new(&moments, &edges, &found.jobs);
        let mut job = vec![NONE; moments.len()];
        for (index, known) in found.jobs.iter().enumerate() {
            job[known.take as usize] = index as u32;
        }

        let mut measured: Vec<_> = recording
            .intervals
            .iter()
            .chain(&recording.spans)
            .map(|interval| MeasuredLength {
                begin: Vertex(at(interval.begin)),
                end: Vertex(at(interval.end)),
                ..*interval
            })
            .collect();
        measured.sort_by_key(|length| (length.name, moments.time[length.begin.0 as usize]));
        let mut activities: Vec<_> =
            recording.intervals.iter().map(|interval| interval.name).collect();
        activities.sort_unstable();
        activities.dedup();

        let vertices = moments.len();
        let mut model = RetimeModel {
            names: recording.names,
            moments,
            work,
            rest: vec![0; vertices],
            waited: vec![false; vertices],
            twin: vec![NONE; vertices],
            context,
            contexts,
            ways,
            outside,
            job,
            jobs: found.jobs,
            queues: found.queues,
            pool: found.pool,
            measured,
            contention: None,
            doubted: Doubted::default(),
            activities,
            place,
            notes,
        };
        model.settle(&ran);
        if let Some((programs, slices)) = told {
            let slices = Slices::new(slices, programs.machines());
            let (contention, waited) =
                Contention::new(model.causes(), programs, slices, &model.asks());
            (model.contention, model.waited) = (Some(contention), waited);
        }
        model.pair_regimes(&came);
        Ok(model)
    }

    fn causes(&self) -> Causes<'_> {
        Causes {
            moments: &self.moments,
            ways: &self.ways,
            outside: &self.outside,
            job: &self.job,
            jobs: &self.jobs,
            queues: &self.queues,
        }
    }

    /// What the model did with the run.
    pub fn notes(&self) -> Notes {
        self.notes
    }

    /// Names of activities, in the order of the alphabet.
    pub fn activities(&self) -> Vec<&str> {
        let mut names: Vec<_> =
            self.activities.iter().map(|&activity| self.names.written(activity)).collect();
        names.sort_unstable();
        names
    }

    /// How long the thread of `at` was busy until there, if it had not waited.
    pub(super) fn asked(&self, at: u32) -> i64 {
        let before = self.moments.before(at);
        before.map_or(i64::MIN, |before| {
            self.moments.time[before as usize] + self.work[at as usize].full
        })
    }

    /// Finds what makes the run come out as it was.
    fn settle(&mut self, ran: &[i64]) {
        let time = &self.moments.time;
        let mut reached: Vec<_> = (0..self.moments.len())
            .map(|index| if self.outside[index] { time[index] } else { i64::MIN })
            .collect();
        for from in 0..self.moments.len() as u32 {
            for &(to, kind) in self.ways.from(from) {
                let to = to as usize;
                let base = if kind == QUEUED {
                    let job = self.jobs[self.job[to] as usize];
                    self.queues[job.queue as usize].base + job.late
                } else {
                    self.ways.base[kind as usize]
                };
                reached[to] = reached[to].max(time[from as usize] + base);
            }
        }
        let asked = self.asks();
        for at in 0..self.moments.len() {
            let job = self.job[at];
            let ready = if job == NONE { self.asked(at as u32) } else { asked[job as usize] };
            self.waited[at] = reached[at] > ready;
            if job != NONE || self.waited[at] {
                self.rest[at] = self.moments.time[at] - reached[at].max(ready);
            } else {
                // It waited for nothing: all of it is its own.
                let full = self.moments.step(at as u32);
                self.work[at] = Work { full, ran: if ran[at] < 0 { full } else { ran[at] } };
            }
        }
    }

    /// For each job, when the worker was free that it met.
    fn asks(&self) -> Vec<i64> {
        let mut asked: Vec<(u32, i64)> =
            self.jobs.iter().map(|job| (job.queue, self.asked(job.take))).collect();
        for (thread, &queue) in self.pool.iter().enumerate() {
            if queue != NONE
                && let Some(again) = self.queues[queue as usize].again
            {
                let last = self.moments.last(thread as u32);
                asked.push((queue, self.moments.time[last as usize] + again));
            }
        }
        asked.sort_unstable();
        let mut each = Vec::with_capacity(self.jobs.len());
        let mut next = 0;
        for job in &self.jobs {
            while asked[next].0 < job.queue {
                next += 1;
            }
            each.push(asked[next].1);
            next += 1;
        }
        each
    }

    /// Finds for each vertex that may wait one near it that did, if it did not, or the other way round.
    fn pair_regimes(&mut self, came: &[i64]) {
        let mut order: Vec<u32> = (0..self.moments.len() as u32)
            .filter(|&number| came[number as usize] != i64::MIN && !self.outside[number as usize])
            .collect();
        let key = |at: u32| (self.moments.name[at as usize], self.moments.time[at as usize], at);
        order.sort_unstable_by_key(|&number| key(number));
        let mut pair = |order: &mut dyn Iterator<Item = u32>| {
            let mut seen = [Vec::new(), Vec::new()];
            let mut name = NONE;
            for (nth, at) in order.enumerate() {
                if self.moments.name[at as usize] != name {
                    seen.iter_mut().for_each(Vec::clear);
                    name = self.moments.name[at as usize];
                }
                let waited = usize::from(self.waited[at as usize]);
                seen[waited].push(at);
                let others = &seen[1 - waited];
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
