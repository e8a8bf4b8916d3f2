//! Kernel activity of the threads.

use ppt_query::{Engine, ThreadLabels};

use crate::error::ReportError;
use crate::text_rows;

/// States of a thread, in the order in which they are drawn.
pub const STATES: [&str; 4] = ["running", "runnable", "blocked", "unknown"];
/// Maximum number of threads that are shown: those that ran longest.
const THREADS: usize = 40;
/// Maximum number of system calls that are shown: those that took longest.
const CALLS: usize = 15;

/// Kernel activity of the threads.
#[derive(Debug)]
pub struct KernelFacts {
    pub threads: Vec<ThreadStates>,
    /// Number of threads that are not shown.
    pub more: usize,
    pub blocked: Vec<Calls>,
    pub calls: Vec<Calls>,
    /// Types of page faults, and their counts.
    pub faults: Vec<(String, u64)>,
}

/// Time of a thread in each of [`STATES`], in ns, and number of times it got a CPU.
#[derive(Debug)]
pub struct ThreadStates {
    pub host: String,
    pub pid: String,
    pub tid: String,
    /// Thread id and last name.
    pub label: String,
    pub ns: [i64; 4],
    pub runs: u64,
}

/// System calls of one name: count, failures, and total time in ns.
#[derive(Debug)]
pub struct Calls {
    /// None: unknown.
    pub name: Option<String>,
    pub count: u64,
    pub failed: u64,
    pub sum: f64,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

impl KernelFacts {
    pub(super) async fn gather(engine: &Engine) -> Result<Option<KernelFacts>, ReportError> {
        if !engine.set().has_kernel() {
            return Ok(None);
        }
        let mut threads: Vec<ThreadStates> = Vec::new();
        let labels = ThreadLabels::new(engine.set());
        let sql = "SELECT host, pid, tid, state, sum(dur), count(*) FROM thread_states \
                   GROUP BY host, pid, tid, state ORDER BY host, pid, tid, state";
        for row in text_rows::query(engine, sql).await? {
            let [host, pid, tid, state, ns, count] =
                <[String; 6]>::try_from(row).unwrap_or_default();
            let is_it = |states: &ThreadStates| {
                (&states.host, &states.pid, &states.tid) == (&host, &pid, &tid)
            };
            if !threads.last().is_some_and(is_it) {
                let label = tid
                    .parse()
                    .ok()
                    .and_then(|number| labels.label(&host, pid.parse().ok(), number));
                let label = label.unwrap_or_else(|| tid.clone());
                threads.push(ThreadStates { host, pid, tid, label, ns: [0; 4], runs: 0 });
            }
            let (Some(thread), Some(at)) =
                (threads.last_mut(), STATES.iter().position(|text| *text == state))
            else {
                continue;
            };
            thread.ns[at] = ns.parse().unwrap_or(0);
            if at == 0 {
                thread.runs = count.parse().unwrap_or(0);
            }
        }
        threads.sort_by_key(|thread| std::cmp::Reverse((thread.ns[0], thread.ns[1])));
        let more = threads.len().saturating_sub(THREADS);
        threads.truncate(THREADS);
        let columns = "count(*), count(*) FILTER (WHERE failed), sum(dur) AS s, \
                    approx_percentile_cont(dur, 0.5), approx_percentile_cont(dur, 0.99), max(dur)";
        let end = format!("GROUP BY name ORDER BY s DESC NULLS LAST, name LIMIT {CALLS}");
        let blocked = format!(
            "SELECT name, {columns} FROM (SELECT blocked_in AS name, false AS failed, dur \
             FROM thread_states WHERE state = 'blocked') {end}"
        );
        let calls = format!(
            "SELECT name, {columns} FROM (SELECT name, result < 0 AS failed, dur FROM syscalls) {end}"
        );
        let faults = "SELECT kind, count(*) AS n FROM faults GROUP BY kind ORDER BY n DESC, kind";
        let faults = text_rows::query(engine, faults).await?.into_iter();
        Ok(Some(KernelFacts {
            threads,
            more,
            blocked: text_rows::query(engine, &blocked).await?.into_iter().map(calls_of).collect(),
            calls: text_rows::query(engine, &calls).await?.into_iter().map(calls_of).collect(),
            faults: faults.map(|row| (row[0].clone(), row[1].parse().unwrap_or(0))).collect(),
        }))
    }
}

fn calls_of(row: Vec<String>) -> Calls {
    let number = |at: usize| row[at].parse::<f64>().ok();
    Calls {
        name: Some(row[0].clone()).filter(|text| !text.is_empty()),
        count: row[1].parse().unwrap_or(0),
        failed: row[2].parse().unwrap_or(0),
        sum: number(3).unwrap_or(0.0),
        p50: number(4),
        p99: number(5),
        max: number(6),
    }
}
