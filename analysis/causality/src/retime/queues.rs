//! Which jobs wait in one queue, for which threads, and what the run says about its discipline.

use std::collections::HashMap;

use super::groups::Groups;
use super::moments::{Moments, NONE};
use super::order::arrivals;

/// A job that is served in the order in which jobs come. Those of a queue follow each other, as they
/// came.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedJob {
    pub put: u32,
    pub take: u32,
    pub queue: u32,
    /// From `put` until it is in the queue.
    pub late: i64,
}

/// A queue, and what is free for its jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobQueue {
    /// From where a job is in the queue until an idle worker has it, at least.
    pub base: i64,
    /// So long after its last job a worker asks again; None: it is gone.
    pub again: Option<i64>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub jobs: Vec<QueuedJob>,
    pub queues: Vec<JobQueue>,
    /// For each thread its queue, or [`NONE`].
    pub pool: Vec<u32>,
    /// Jobs whose thread is no mere worker: mere edges.
    pub bound: Vec<(u32, u32)>,
}

/// One hypothesis explains a run if it leaves less than this share of what another leaves …
const FAR_LESS: f64 = 0.5;
/// … and the difference is more than this share of all waiting.
const MATTERS: f64 = 0.01;
/// Keys that name jobs are nearly all different.
const MOSTLY: f64 = 0.9;

/// `jobs` are (put, take, key), places in `moments`. `asks` is what a thread does before each take.
pub(super) fn queues(moments: &Moments, jobs: &[(u32, u32, u64)], asks: &[i64]) -> Queues {
    let mut found = Queues { pool: vec![NONE; moments.threads], ..Queues::default() };
    let mut takes = vec![0u32; moments.len()];
    jobs.iter().for_each(|job| takes[job.1 as usize] += 1);
    let (alone, together): (Vec<_>, Vec<_>) =
        jobs.iter().partition(|job| takes[job.1 as usize] == 1);
    found.bound = together.iter().map(|entry: &(u32, u32, u64)| (entry.0, entry.1)).collect();
    let mut lines = lines(moments, &alone);
    unmix(moments, &mut lines, &mut found.bound);
    for line in lines {
        let whole = Served::new(moments, &line, asks);
        let apart = by_thread(moments, &line);
        let each: Vec<_> =
            apart.iter().map(|entries| Served::new(moments, entries, asks)).collect();
        let left = each.iter().map(|served| served.left).sum();
        let served = if better(left, whole.left, whole.waiting) { each } else { vec![whole] };
        for served in served {
            let queue = found.queues.len() as u32;
            for thread in &served.threads {
                found.pool[*thread as usize] = queue;
            }
            found.jobs.extend(served.jobs.iter().map(|job| QueuedJob { queue, ..*job }));
            found.queues.push(served.queue);
        }
    }
    found
}

fn better(left: i128, than: i128, waiting: i128) -> bool {
    (left as f64) < FAR_LESS * than as f64 && (than - left) as f64 > MATTERS * waiting as f64
}

type JobRanges = Vec<(u32, u32)>;

/// Jobs that may wait in one queue.
fn lines(moments: &Moments, jobs: &[(u32, u32, u64)]) -> Vec<JobRanges> {
    let kind = |entry: &(u32, u32, u64)| (moments.name[entry.1 as usize], moments.process(entry.1));
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(kind);
    let mut lines = Vec::new();
    for jobs in jobs.chunk_by(|one, other| kind(one) == kind(other)) {
        let mut keys: Vec<u64> = jobs.iter().map(|job| job.2).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() as f64 >= MOSTLY * jobs.len() as f64 {
            lines.push(jobs.iter().map(|job| (job.0, job.1)).collect());
            continue;
        }
        // A thread that takes of several keys serves them as one queue.
        let mut groups = Groups::default();
        let mut nodes: HashMap<(bool, u64), usize> = HashMap::new();
        let mut node = |of| *nodes.entry(of).or_insert_with(|| groups.another());
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
                lines.push(JobRanges::new());
                lines.len() - 1
            });
            lines[line].push((job.0, job.1));
        }
    }
    lines
}

/// A thread that takes from several queues decides itself from which.
fn unmix(moments: &Moments, lines: &mut [JobRanges], bound: &mut Vec<(u32, u32)>) {
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

fn by_thread(moments: &Moments, line: &JobRanges) -> Vec<JobRanges> {
    let thread = |entry: &(u32, u32)| moments.thread[entry.1 as usize];
    let mut line = line.clone();
    line.sort_by_key(thread);
    line.chunk_by(|one, other| thread(one) == thread(other)).map(<[_]>::to_vec).collect()
}

/// A queue and its workers, as the run was.
struct Served {
    jobs: Vec<QueuedJob>,
    threads: Vec<u32>,
    queue: JobQueue,
    /// What jobs took though one was there and a worker was free.
    left: i128,
    /// What jobs were in the queue.
    waiting: i128,
}

impl Served {
    fn new(moments: &Moments, line: &JobRanges, asks: &[i64]) -> Served {
        let mut threads: Vec<_> = line.iter().map(|line| moments.thread[line.1 as usize]).collect();
        threads.sort_unstable();
        threads.dedup();
        let time = |at: u32| moments.time[at as usize];
        let ask = |take: u32| {
            let before = moments.before(take).map(time);
            before.map_or((i64::MIN, i64::MIN), |before| (before + asks[take as usize], before))
        };
        let go: Vec<_> = line.iter().map(|line| ask(line.1)).collect();
        let soon = line.iter().map(|line| asks[line.1 as usize]).min().unwrap_or(0);
        let lasts = threads
            .iter()
            .map(|&thread| time(moments.last(thread)))
            .map(|number| (number + soon, number));
        let stay = go.iter().copied().chain(lasts).collect();
        let gone = Served::with(moments, line, go, None, &threads);
        let stayed = Served::with(moments, line, stay, Some(soon), &threads);
        if better(gone.left, stayed.left, stayed.waiting) { gone } else { stayed }
    }

    fn with(
        moments: &Moments,
        line: &JobRanges,
        mut asks: Vec<(i64, i64)>,
        again: Option<i64>,
        threads: &[u32],
    ) -> Served {
        let time = |at: u32| moments.time[at as usize];
        let mut line = line.clone();
        line.sort_unstable_by_key(|&(put, take)| (time(put), time(take), take));
        asks.sort_unstable();
        let times: Vec<_> = line.iter().map(|line| (time(line.0), time(line.1))).collect();
        let here = arrivals(&times, &asks);
        let job = |(&(put, take), here): (&(u32, u32), i64)| QueuedJob {
            put,
            take,
            queue: 0,
            late: here - time(put),
        };
        let mut jobs: Vec<_> = line.iter().zip(here).map(job).collect();
        let here = |job: &QueuedJob| time(job.put) + job.late;
        jobs.sort_by_key(here);
        let stays = |job: &QueuedJob| time(job.take) - here(job);
        let base = jobs.iter().map(stays).min().unwrap_or(0);
        let waiting = jobs.iter().map(|job| i128::from(stays(job))).sum();
        let rest =
            |(job, ask): (&QueuedJob, &(i64, i64))| time(job.take) - (here(job) + base).max(ask.0);
        let left = jobs.iter().zip(&asks).map(|entry| i128::from(rest(entry))).sum();
        Served { jobs, threads: threads.to_vec(), queue: JobQueue { base, again }, left, waiting }
    }
}
