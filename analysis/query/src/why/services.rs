//! Requests from service to service: which process answered the call that an interval waited for, and what that
//! process did. The frames of `libppt-with.so` say so: `called` and `served`, and the points between them.

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, cast as cast_to, lit};
use datafusion::prelude::{DataFrame, ident};
use ppt_tables::ThreadLabels;

use super::during::{long, text};
use super::slow::{ServiceCall, Slow};
use crate::engine::Engine;
use crate::error::QueryError;

/// Services that are followed, one behind the other.
const MOST: usize = 4;
/// The least share of an interval that a call takes, if it is worth following.
const WORTH: f64 = 0.05;

/// When something was seen in a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Moment {
    host: String,
    pid: i64,
    ts: i64,
}

/// A call of another service, and where that took it up.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    asked: Moment,
    to: i64,
    service: String,
    taken: Moment,
    /// The thread that took it up.
    thread: i64,
}

/// The thread of a process.
type Thread = (String, i64, i64);

/// Intervals, and the calls by which the ones before led to them: the number of the caller, and its call.
struct Level {
    calls: Vec<(usize, ServiceCall)>,
    intervals: Vec<Slow>,
}

impl Engine {
    /// Adds the request at the service that was called, to each interval that waited for one.
    pub(crate) async fn follow_calls(&self, slow: Vec<Slow>) -> Result<Vec<Slow>, QueryError> {
        let mut levels = vec![Level { calls: Vec::new(), intervals: slow }];
        while let Some(callers) = levels.last().filter(|_| levels.len() <= MOST) {
            let (calls, requests): (Vec<_>, Vec<_>) =
                self.answering(&callers.intervals).await?.into_iter().unzip();
            if calls.is_empty() {
                break;
            }
            levels.push(Level { calls, intervals: self.explain_time(requests).await? });
        }
        while let Some(Level { calls, intervals }) = levels.pop() {
            let Some(callers) = levels.last_mut() else { return Ok(intervals) };
            for ((caller, call), request) in calls.into_iter().zip(intervals) {
                let call = ServiceCall { request, ..call };
                callers.intervals[caller].answered_by = Some(Box::new(call));
            }
        }
        Ok(Vec::new())
    }

    /// The requests by which other services answered the longest call of each interval: the number of the
    /// interval, the call, and the request.
    async fn answering(
        &self,
        slow: &[Slow],
    ) -> Result<Vec<((usize, ServiceCall), Slow)>, QueryError> {
        let calls = self.calls(slow).await?;
        let longest: Vec<(usize, &Call, bool)> = slow
            .iter()
            .enumerate()
            .filter_map(|(number, slow)| {
                let thread = (slow.host.clone(), slow.pid?.into(), slow.tid?.into());
                let (call, others) = longest(calls.get(&thread)?, slow.ts, slow.ts + slow.dur)?;
                Some((number, call, others))
            })
            .collect();
        let requests = self.requests(longest.iter().map(|(_, call, _)| &call.taken)).await?;
        let labels = ThreadLabels::new(self.set());
        let found = longest.into_iter().filter_map(|(number, call, had_others)| {
            let mut request = requests.get(&call.taken)?.clone();
            request.tid = i32::try_from(call.thread).ok();
            // Until it took the request up, the thread did something else: that is part of the call, too.
            // What the thread did when the caller had the answer is not.
            let end = request.ts.saturating_add(request.dur).min(call.to);
            let taken_after = request.ts.saturating_sub(call.asked.ts).max(0);
            request.ts -= taken_after;
            request.dur = end.saturating_sub(request.ts);
            let pid = u32::try_from(call.taken.pid).ok()?;
            let call = ServiceCall {
                service: call.service.clone(),
                ts: call.asked.ts,
                dur: call.to - call.asked.ts,
                taken_after,
                had_others,
                process_name: labels.name(&call.taken.host, pid, pid).map(str::to_owned),
                request: request.clone(),
            };
            Some(((number, call), request))
        });
        Ok(found.collect())
    }

    /// The calls that began in these intervals, by the threads that made them. A frame `called` is written when the
    /// connection is used again, perhaps by another thread; the point `asked` has the thread.
    async fn calls(&self, slow: &[Slow]) -> Result<HashMap<Thread, Vec<Call>>, QueryError> {
        let mut calls: HashMap<Thread, Vec<Call>> = HashMap::new();
        let waited = |slow: &&Slow| slow.parts.iter().any(|part| part.part.is_wait());
        let all = || slow.iter().filter(waited);
        let ends = (
            all().map(|slow| slow.ts).min(),
            all().map(|slow| slow.ts.saturating_add(slow.dur)).max(),
        );
        let (Some(from), Some(to)) = ends else { return Ok(calls) };
        let called = self.whole_frames("net", "called")?;
        let (Some(edges), Some(called)) = (self.whole("edges")?, called) else { return Ok(calls) };

        let points = word("src_point").eq(lit("asked")).and(word("dst_point").eq(lit("taken")));
        let rows = edges.filter(points.and(word("certainty").eq(lit("certain"))))?;
        let rows = among(rows, "src_pid", all().filter_map(|slow| slow.pid.map(i64::from)))?;
        let rows = among(rows, "src_tid", all().filter_map(|slow| slow.tid.map(i64::from)))?;
        let is_within = number("src_ts").gt_eq(lit(from)).and(number("src_ts").lt(lit(to)));
        let words = [word("src_host"), word("dst_host")];
        let numbers = ["src_pid", "src_tid", "src_ts", "dst_pid", "dst_tid", "dst_ts"].map(number);
        let mut taken: HashMap<Moment, (i64, Moment, i64)> = HashMap::new();
        let rows = selected(rows.filter(is_within)?, words.into_iter().chain(numbers))?;
        for batch in rows.collect().await? {
            for row in 0..batch.num_rows() {
                let host = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let [Some(pid), Some(tid), Some(ts), Some(dst_pid), Some(dst_tid), Some(dst_ts)] =
                    [2, 3, 4, 5, 6, 7].map(|at| long(&batch, at, row))
                else {
                    continue;
                };
                let at = Moment { host: host(1), pid: dst_pid, ts: dst_ts };
                taken.insert(Moment { host: host(0), pid, ts }, (tid, at, dst_tid));
            }
        }
        if taken.is_empty() {
            return Ok(calls);
        }

        let rows = among(called, "pid", taken.keys().map(|asked| asked.pid))?;
        let rows = among(rows, "call_start", taken.keys().map(|asked| asked.ts))?;
        let words = [word("host"), word("peer")];
        let numbers = ["pid", "call_start", "call_end", "port"].map(number);
        for batch in selected(rows, words.into_iter().chain(numbers))?.collect().await? {
            for row in 0..batch.num_rows() {
                let text = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let [Some(pid), Some(ts), Some(to), Some(port)] =
                    [2, 3, 4, 5].map(|at| long(&batch, at, row))
                else {
                    continue;
                };
                let asked = Moment { host: text(0), pid, ts };
                let Some((tid, taken, thread)) = taken.remove(&asked) else { continue };
                let service = if port == 0 { text(1) } else { format!(":{port}") };
                let call = Call { asked, to, service, taken, thread };
                calls.entry((call.asked.host.clone(), pid, tid)).or_default().push(call);
            }
        }
        Ok(calls)
    }

    /// The requests that began at these moments.
    async fn requests(
        &self,
        moments: impl Iterator<Item = &Moment> + Clone,
    ) -> Result<HashMap<Moment, Slow>, QueryError> {
        let mut requests = HashMap::new();
        let served = self.whole_frames("net", "served")?;
        let is_asked = moments.clone().next().is_some();
        let Some(served) = served.filter(|_| is_asked) else { return Ok(requests) };
        let rows = among(served, "pid", moments.clone().map(|at| at.pid))?;
        let rows = among(rows, "request_start", moments.map(|at| at.ts))?;
        let words = ["capture", "buffer", "segment", "host", "bytes_in"].map(word);
        let numbers = ["ring", "seqno", "pid", "request_start", "request_end"].map(number);
        for batch in selected(rows, words.into_iter().chain(numbers))?.collect().await? {
            for row in 0..batch.num_rows() {
                let text = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let long = |at| long(&batch, at, row);
                let (Some(pid), Some(ts), Some(end)) = (long(7), long(8), long(9)) else {
                    continue;
                };
                let slow = Slow {
                    name: "served.request".to_owned(),
                    capture: text(0),
                    buffer: text(1),
                    segment: text(2),
                    host: text(3),
                    ring: long(5),
                    seqno: long(6),
                    pid: i32::try_from(pid).ok(),
                    tid: None,
                    thread: None,
                    ts,
                    dur: end.saturating_sub(ts).max(0),
                    is_span: false,
                    request: vec![("bytes_in".to_owned(), text(4))],
                    parts: Vec::new(),
                    answered_by: None,
                };
                requests.insert(Moment { host: text(3), pid, ts }, slow);
            }
        }
        Ok(requests)
    }
}

/// The call that began in an interval and took most of it, if it is worth following; and whether another one
/// was under way at the same time.
fn longest(calls: &[Call], from: i64, to: i64) -> Option<(&Call, bool)> {
    let share = |call: &Call| call.to.min(to).saturating_sub(call.asked.ts);
    let began = calls.iter().filter(|call| call.asked.ts >= from && call.asked.ts < to);
    let longest = began.max_by_key(|call| (share(call), std::cmp::Reverse(call.asked.ts)))?;
    let others = calls.iter().any(|call| {
        call.asked != longest.asked && call.asked.ts < longest.to && call.to > longest.asked.ts
    });
    let matters = share(longest) as f64 >= WORTH * to.saturating_sub(from) as f64;
    matters.then_some((longest, others))
}

fn word(name: &str) -> Expr {
    cast_to(ident(name), DataType::Utf8)
}

fn number(name: &str) -> Expr {
    cast_to(ident(name), DataType::Int64)
}

/// The rows whose number is one of these.
fn among(
    rows: DataFrame,
    name: &str,
    all: impl Iterator<Item = i64>,
) -> Result<DataFrame, QueryError> {
    let mut all: Vec<i64> = all.collect();
    all.sort_unstable();
    all.dedup();
    Ok(rows.filter(number(name).in_list(all.into_iter().map(lit).collect(), false))?)
}

/// Columns, called by their places.
fn selected(rows: DataFrame, columns: impl Iterator<Item = Expr>) -> Result<DataFrame, QueryError> {
    let columns = columns.zip(0..).map(|(column, n)| column.alias(format!("c{n}")));
    Ok(rows.select(columns.collect::<Vec<_>>())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(from: i64, to: i64) -> Call {
        let at = |ts| Moment { host: String::new(), pid: 1, ts };
        Call { asked: at(from), to, service: ":80".into(), taken: at(from), thread: 1 }
    }

    #[test]
    fn the_call_that_took_most_of_the_interval_is_followed() {
        let calls = [call(0, 90), call(110, 120), call(120, 180), call(190, 400)];
        let found =
            |from, to| longest(&calls, from, to).map(|(call, others)| (call.asked.ts, others));
        assert_eq!(found(100, 200), Some((120, false)));
        assert_eq!(found(100, 300), Some((190, false)), "it counts up to the end of the interval");
        assert_eq!(found(91, 110), None, "none began in it");
        assert_eq!(found(105, 10_000), None, "too little of it");
        let calls = [call(10, 60), call(50, 70)];
        let found = longest(&calls, 0, 100).map(|(call, others)| (call.asked.ts, others));
        assert_eq!(found, Some((10, true)));
    }
}
