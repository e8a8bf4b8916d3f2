//! The queues of a run: their jobs, their workers and their parameters.

use std::collections::HashMap;

use super::arrival_order::queue_arrivals;
use super::disjoint_sets::DisjointSets;
use super::moments::{Moments, NONE};

/// A job that is served in the order of arrival. The jobs of a queue follow each other in that order.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedJob {
    pub put: u32,
    pub take: u32,
    pub queue: u32,
    /// The time from `put` until it is in the queue.
    pub late: i64,
}

/// The parameters of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobQueue {
    /// The smallest time from the arrival of a job until an idle worker has it.
    pub base: i64,
    /// The time after its last job until a worker asks again; None if it does not.
    pub again: Option<i64>,
}

/// The queues of a run.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub jobs: Vec<QueuedJob>,
    pub queues: Vec<JobQueue>,
    /// For each thread, the queue that it serves, or [`NONE`].
    pub queue_of_thread: Vec<u32>,
    /// Jobs that are plain edges, as their thread is not a worker of one queue.
    pub bound: Vec<(u32, u32)>,
}

/// A hypothesis is better than another if it leaves less than this share of the other's unexplained time …
const MAX_LEFT_SHARE: f64 = 0.5;
/// … and the difference is more than this share of all waiting.
const MIN_DIFFERENCE: f64 = 0.01;
/// If at least this share of keys is distinct, keys name jobs, not queues.
const MIN_DISTINCT_KEYS: f64 = 0.9;

/// Finds the queues of jobs, which are (put, take, key) with indexes of `moments`. `asks` has for each take the
/// work of its thread before it.
pub(super) fn queues(moments: &Moments, jobs: &[(u32, u32, u64)], asks: &[i64]) -> Queues {
    let mut found = Queues { queue_of_thread: vec![NONE; moments.threads], ..Queues::default() };
    let mut takes = vec![0u32; moments.len()];
    jobs.iter().for_each(|job| takes[job.1 as usize] += 1);
    let (single, batched): (Vec<_>, Vec<_>) =
        jobs.iter().partition(|job| takes[job.1 as usize] == 1);
    found.bound = batched.iter().map(|job: &(u32, u32, u64)| (job.0, job.1)).collect();
    let mut lines = lines(moments, &single);
    unmix(moments, &mut lines, &mut found.bound);
    for line in lines {
        let shared = Served::new(moments, &line, asks);
        let separate: Vec<_> =
            by_thread(moments, &line).iter().map(|jobs| Served::new(moments, jobs, asks)).collect();
        let left = separate.iter().map(|served| served.left).sum();
        let is_separate = is_better(left, shared.left, shared.waiting);
        let served = if is_separate { separate } else { vec![shared] };
        for served in served {
            let queue = found.queues.len() as u32;
            for thread in &served.threads {
                found.queue_of_thread[*thread as usize] = queue;
            }
            found.jobs.extend(served.jobs.iter().map(|job| QueuedJob { queue, ..*job }));
            found.queues.push(served.queue);
        }
    }
    found
}

/// Whether a hypothesis that leaves `left` unexplained is better than one that leaves `other`.
fn is_better(left: i128, other: i128, waiting: i128) -> bool {
    (left as f64) < MAX_LEFT_SHARE * other as f64
        && (other - left) as f64 > MIN_DIFFERENCE * waiting as f64
}

/// Jobs as (put, take).
type JobLine = Vec<(u32, u32)>;

/// Groups jobs that may wait in one queue.
fn lines(moments: &Moments, jobs: &[(u32, u32, u64)]) -> Vec<JobLine> {
    let kind = |entry: &(u32, u32, u64)| (moments.name[entry.1 as usize], moments.process(entry.1));
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(kind);
    let mut lines = Vec::new();
    for jobs in jobs.chunk_by(|one, other| kind(one) == kind(other)) {
        let mut keys: Vec<u64> = jobs.iter().map(|job| job.2).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() as f64 >= MIN_DISTINCT_KEYS * jobs.len() as f64 {
            lines.push(jobs.iter().map(|job| (job.0, job.1)).collect());
            continue;
        }
        // The keys of which one thread takes jobs are one queue.
        let mut groups = DisjointSets::default();
        let mut nodes: HashMap<(bool, u64), usize> = HashMap::new();
        let mut node = |member| *nodes.entry(member).or_insert_with(|| groups.another());
        let pairs: Vec<_> = jobs
            .iter()
            .map(|job| (node((false, job.2)), node((true, moments.thread[job.1 as usize].into()))))
            .collect();
        for (key, thread) in &pairs {
            groups.join(*key, *thread);
        }
        let mut of_group: HashMap<usize, usize> = HashMap::new();
        for (job, (key, _)) in jobs.iter().zip(&pairs) {
            let line = *of_group.entry(groups.root(*key)).or_insert_with(|| {
                lines.push(JobLine::new());
                lines.len() - 1
            });
            lines[line].push((job.0, job.1));
        }
    }
    lines
}

/// Removes the jobs of threads that take from several queues, and adds them to `bound`: such a thread itself
/// chooses the queue.
fn unmix(moments: &Moments, lines: &mut [JobLine], bound: &mut Vec<(u32, u32)>) {
    let mut first = vec![NONE; moments.threads];
    let mut mixed = vec![false; moments.threads];
    for (line, jobs) in lines.iter().enumerate() {
        for &(_, take) in jobs {
            let thread = moments.thread[take as usize] as usize;
            let line = line as u32;
            mixed[thread] |= first[thread] != NONE && first[thread] != line;
            first[thread] = line;
        }
    }
    for jobs in lines {
        jobs.retain(|&(put, take)| {
            let mixed = mixed[moments.thread[take as usize] as usize];
            if mixed {
                bound.push((put, take));
            }
            !mixed
        });
    }
}

fn by_thread(moments: &Moments, line: &JobLine) -> Vec<JobLine> {
    let thread = |entry: &(u32, u32)| moments.thread[entry.1 as usize];
    let mut line = line.clone();
    line.sort_by_key(thread);
    line.chunk_by(|one, other| thread(one) == thread(other)).map(<[_]>::to_vec).collect()
}

/// A queue and its workers in the recorded run.
struct Served {
    jobs: Vec<QueuedJob>,
    threads: Vec<u32>,
    queue: JobQueue,
    /// The sum of times between the presence of a job and a free worker and the take: unexplained.
    left: i128,
    /// The sum of times of jobs in the queue.
    waiting: i128,
}

impl Served {
    fn new(moments: &Moments, line: &JobLine, asks: &[i64]) -> Served {
        let mut threads: Vec<_> = line.iter().map(|line| moments.thread[line.1 as usize]).collect();
        threads.sort_unstable();
        threads.dedup();
        let time = |at: u32| moments.time[at as usize];
        let ask = |take: u32| {
            let before = moments.before(take).map(time);
            before.map_or((i64::MIN, i64::MIN), |before| (before + asks[take as usize], before))
        };
        let asks_before_takes: Vec<_> = line.iter().map(|job| ask(job.1)).collect();
        let soon = line.iter().map(|line| asks[line.1 as usize]).min().unwrap_or(0);
        let lasts = threads
            .iter()
            .map(|&thread| time(moments.last(thread)))
            .map(|number| (number + soon, number));
        let asks_again = asks_before_takes.iter().copied().chain(lasts).collect();
        let leaving = Served::with(moments, line, asks_before_takes, None, &threads);
        let staying = Served::with(moments, line, asks_again, Some(soon), &threads);
        if is_better(leaving.left, staying.left, staying.waiting) { leaving } else { staying }
    }

    fn with(
        moments: &Moments,
        line: &JobLine,
        mut asks: Vec<(i64, i64)>,
        again: Option<i64>,
        threads: &[u32],
    ) -> Served {
        let time = |at: u32| moments.time[at as usize];
        let mut line = line.clone();
        line.sort_unstable_by_key(|&(put, take)| (time(put), time(take), take));
        asks.sort_unstable();
        let times: Vec<_> = line.iter().map(|line| (time(line.0), time(line.1))).collect();
        let arrived = queue_arrivals(&times, &asks);
        let job = |(&(put, take), arrived): (&(u32, u32), i64)| QueuedJob {
            put,
            take,
            queue: 0,
            late: arrived - time(put),
        };
        let mut jobs: Vec<_> = line.iter().zip(arrived).map(job).collect();
        let arrived = |job: &QueuedJob| time(job.put) + job.late;
        jobs.sort_by_key(arrived);
        let queued = |job: &QueuedJob| time(job.take) - arrived(job);
        let base = jobs.iter().map(queued).min().unwrap_or(0);
        let waiting = jobs.iter().map(|job| i128::from(queued(job))).sum();
        let unexplained = |(job, ask): (&QueuedJob, &(i64, i64))| {
            time(job.take) - (arrived(job) + base).max(ask.0)
        };
        let left = jobs.iter().zip(&asks).map(|entry| i128::from(unexplained(entry))).sum();
        Served { jobs, threads: threads.to_vec(), queue: JobQueue { base, again }, left, waiting }
    }
}
