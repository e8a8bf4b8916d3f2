//! Follows requests from service to service: which process answered the call that an interval waited for, and
//! what that process did. This comes from the programs' own points (see `identity`), or from the frames of
//! `libppt-with.so`: `called` and `served`, and the points between them.

use std::collections::{HashMap, HashSet};

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, cast as cast_to, lit};
use datafusion::prelude::{DataFrame, ident};
use ppt_tables::ThreadLabels;

use super::answer::{FrameOrigin, ServiceCall, SlowInterval};
use super::cells::{long, text};
use crate::engine::Engine;
use crate::error::QueryError;

/// The largest number of services that are followed, one after the other.
const MAX_SERVICES: usize = 4;
/// The least share of an interval that a call must take to be followed.
const MIN_SHARE: f64 = 0.05;
/// The name of intervals that are requests.
const SERVED: &str = "served.request";
/// The largest number of calls to look at: an interval as long as the capture contains all of its calls.
const MAX_CALLS: usize = 100_000;

/// A moment in a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ServiceTime {
    host: String,
    pid: i64,
    ts: i64,
}

/// A call of another service.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    /// The begin of the call, and its process.
    start: ServiceTime,
    /// The time at which the first byte of the answer came in, ns since the epoch.
    first: i64,
    /// The time at which the last byte came in, ns since the epoch.
    to: i64,
    service: String,
}

/// Host, process and thread.
type ServiceThread = (String, i64, i64);

/// Intervals, and the calls that led to them: each with the number of its caller in the level before.
struct Level {
    calls: Vec<(usize, ServiceCall)>,
    intervals: Vec<SlowInterval>,
}

impl Engine {
    /// To each interval that waited for a call, adds the request in the service that was called.
    pub(crate) async fn follow_calls(
        &self,
        slow: Vec<SlowInterval>,
    ) -> Result<Vec<SlowInterval>, QueryError> {
        let mut levels = vec![Level { calls: Vec::new(), intervals: slow }];
        while let Some(callers) = levels.last().filter(|_| levels.len() <= MAX_SERVICES) {
            let (calls, requests): (Vec<_>, Vec<_>) =
                self.answering_requests(&callers.intervals).await?.into_iter().unzip();
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

    /// The requests by which other services answered a call of each interval: the number of the interval, the
    /// call, and the request.
    async fn answering_requests(
        &self,
        slow: &[SlowInterval],
    ) -> Result<Vec<((usize, ServiceCall), SlowInterval)>, QueryError> {
        let mut found = self.of_same_identity(slow).await?;
        let done: HashSet<usize> = found.iter().map(|((number, _), _)| *number).collect();
        let calls = self.calls(slow).await?;
        if calls.is_empty() {
            return Ok(found);
        }
        let answers = self.answers_of(slow).await?;
        let followed: Vec<(usize, &Call, bool)> = slow
            .iter()
            .enumerate()
            .filter(|(number, _)| !done.contains(number))
            .filter_map(|(number, slow)| {
                let thread = (slow.host.clone(), slow.pid?.into(), slow.tid?.into());
                let answer = answers.get(&frame_origin(slow)).copied();
                let within = (slow.ts, slow.ts.saturating_add(slow.dur));
                let (call, others) = worth_following(calls.get(&thread)?, within, answer)?;
                Some((number, call, others))
            })
            .collect();
        let taken = self.times_taken(followed.iter().map(|(_, call, _)| &call.start)).await?;
        let requests = self.requests(taken.values().map(|(at, _)| at)).await?;
        let labels = ThreadLabels::new(self.set());
        found.extend(followed.into_iter().filter_map(|(number, call, had_others)| {
            let (at, thread) = taken.get(&call.start)?;
            let mut request = requests.get(at)?.clone();
            request.tid = i32::try_from(*thread).ok();
            // Before it took up the request, the thread did something else. That time is part of the
            // call, too; time after the caller had its answer is not.
            let end = request.ts.saturating_add(request.dur).min(call.to);
            let taken_after = request.ts.saturating_sub(call.start.ts).max(0);
            request.ts -= taken_after;
            request.dur = end.saturating_sub(request.ts).max(0);
            let pid = u32::try_from(at.pid).ok()?;
            let call = ServiceCall {
                service: call.service.clone(),
                identity: None,
                ts: call.start.ts,
                dur: call.to.saturating_sub(call.start.ts).max(0),
                taken_after,
                had_others,
                process_name: labels.name(&at.host, pid, pid).map(str::to_owned),
                request: request.clone(),
            };
            Some(((number, call), request))
        }));
        Ok(found)
    }

    /// The calls that began in these intervals, by the threads that made them.
    async fn calls(
        &self,
        slow: &[SlowInterval],
    ) -> Result<HashMap<ServiceThread, Vec<Call>>, QueryError> {
        let mut calls: HashMap<ServiceThread, Vec<Call>> = HashMap::new();
        // Also of intervals that did not wait: an event loop serves other requests meanwhile.
        let ends = slow.iter().map(|slow| (slow.ts, slow.ts.saturating_add(slow.dur)));
        let is_within = |&(from, to): &(i64, i64)| {
            number("call_start").gt_eq(lit(from)).and(number("call_start").lt(lit(to)))
        };
        let within = disjoint(ends.collect()).iter().map(is_within).collect();
        let (Some(within), Some(rows)) = (any_of(within), self.unwindowed_frames("net", "called")?)
        else {
            return Ok(calls);
        };
        let rows = among(rows, "pid", slow.iter().filter_map(|slow| slow.pid.map(i64::from)))?;
        let rows = among(rows, "tid", slow.iter().filter_map(|slow| slow.tid.map(i64::from)))?;
        let rows = rows.filter(within)?.limit(0, Some(MAX_CALLS + 1))?;
        let words = [word("host"), word("peer")];
        let numbers = ["pid", "call_start", "first", "call_end", "port", "tid"].map(number);
        let mut count = 0;
        for batch in selected(rows, words.into_iter().chain(numbers))?.collect().await? {
            count += batch.num_rows();
            for row in 0..batch.num_rows() {
                let text = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let [Some(pid), Some(ts), Some(first), Some(to), Some(port), Some(tid)] =
                    [2, 3, 4, 5, 6, 7].map(|at| long(&batch, at, row))
                else {
                    continue;
                };
                let start = ServiceTime { host: text(0), pid, ts };
                let service = if port == 0 { text(1) } else { format!(":{port}") };
                let call = Call { start, first, to, service };
                calls.entry((call.start.host.clone(), pid, tid)).or_default().push(call);
            }
        }
        Ok(if count > MAX_CALLS { HashMap::new() } else { calls })
    }

    /// When, and in which thread, the called processes took up these calls.
    async fn times_taken(
        &self,
        starts: impl Iterator<Item = &ServiceTime> + Clone,
    ) -> Result<HashMap<ServiceTime, (ServiceTime, i64)>, QueryError> {
        let mut taken = HashMap::new();
        let Some(edges) =
            self.unwindowed_table("edges")?.filter(|_| starts.clone().next().is_some())
        else {
            return Ok(taken);
        };
        let points = word("src_point").eq(lit("asked")).and(word("dst_point").eq(lit("taken")));
        let rows = edges.filter(points.and(word("certainty").eq(lit("certain"))))?;
        let rows = among(rows, "src_pid", starts.clone().map(|start| start.pid))?;
        let rows = among(rows, "src_ts", starts.map(|start| start.ts))?;
        let words = [word("src_host"), word("dst_host")];
        let numbers = ["src_pid", "src_ts", "dst_pid", "dst_ts", "dst_tid"].map(number);
        for batch in selected(rows, words.into_iter().chain(numbers))?.collect().await? {
            for row in 0..batch.num_rows() {
                let host = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let [Some(pid), Some(ts), Some(dst_pid), Some(dst_ts), Some(thread)] =
                    [2, 3, 4, 5, 6].map(|at| long(&batch, at, row))
                else {
                    continue;
                };
                let at = ServiceTime { host: host(1), pid: dst_pid, ts: dst_ts };
                taken.insert(ServiceTime { host: host(0), pid, ts }, (at, thread));
            }
        }
        Ok(taken)
    }

    /// For the intervals that are requests: when their answers began.
    async fn answers_of(
        &self,
        slow: &[SlowInterval],
    ) -> Result<HashMap<FrameOrigin, i64>, QueryError> {
        let mut answers = HashMap::new();
        let requests = || slow.iter().filter(|slow| slow.name == SERVED);
        let served = self.unwindowed_frames("net", "served")?;
        let Some(served) = served.filter(|_| requests().next().is_some()) else {
            return Ok(answers);
        };
        let rows = among(served, "pid", requests().filter_map(|slow| slow.pid.map(i64::from)))?;
        let rows = among(rows, "seqno", requests().filter_map(|slow| slow.seqno))?;
        let words = ["capture", "buffer", "segment"].map(word);
        let numbers = ["ring", "seqno", "first"].map(number);
        for batch in selected(rows, words.into_iter().chain(numbers))?.collect().await? {
            for row in 0..batch.num_rows() {
                let text = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let [ring, seqno, first] = [3, 4, 5].map(|at| long(&batch, at, row));
                let (capture, buffer, segment) = (text(0), text(1), text(2));
                if let Some(first) = first {
                    answers.insert(FrameOrigin { capture, buffer, segment, ring, seqno }, first);
                }
            }
        }
        Ok(answers)
    }

    /// The requests that began at these moments.
    async fn requests(
        &self,
        moments: impl Iterator<Item = &ServiceTime> + Clone,
    ) -> Result<HashMap<ServiceTime, SlowInterval>, QueryError> {
        let mut requests = HashMap::new();
        let served = self.unwindowed_frames("net", "served")?;
        let has_moments = moments.clone().next().is_some();
        let Some(served) = served.filter(|_| has_moments) else { return Ok(requests) };
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
                let slow = SlowInterval {
                    name: SERVED.to_owned(),
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
                requests.insert(ServiceTime { host: text(3), pid, ts }, slow);
            }
        }
        Ok(requests)
    }
}

/// Sorts stretches of time, and joins those that touch or overlap.
fn disjoint(mut all: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    all.sort_unstable();
    let mut disjoint: Vec<(i64, i64)> = Vec::new();
    for (from, to) in all {
        match disjoint.last_mut().filter(|last| from <= last.1) {
            Some(last) => last.1 = last.1.max(to),
            None => disjoint.push((from, to)),
        }
    }
    disjoint
}

/// Joins conditions by OR; None if there are none. Built by halves, so that the expression is not too deep.
fn any_of(mut all: Vec<Expr>) -> Option<Expr> {
    if all.len() < 2 {
        return all.pop();
    }
    let rest = all.split_off(all.len() / 2);
    Some(any_of(all)?.or(any_of(rest)?))
}

pub(super) fn frame_origin(slow: &SlowInterval) -> FrameOrigin {
    FrameOrigin {
        capture: slow.capture.clone(),
        buffer: slow.buffer.clone(),
        segment: slow.segment.clone(),
        ring: slow.ring,
        seqno: slow.seqno,
    }
}

/// Chooses the call that began in an interval and took most of it, if it took enough; also returns
/// whether another call was open at the same time. If so, the thread serves several requests at once.
/// Then the chosen call is the one whose answer came last before this request's own answer began: an
/// event loop passes on what it has just received.
fn worth_following(
    calls: &[Call],
    (from, to): (i64, i64),
    answer: Option<i64>,
) -> Option<(&Call, bool)> {
    let share = |call: &Call| call.to.min(to).saturating_sub(call.start.ts);
    let began = || calls.iter().filter(|call| call.start.ts >= from && call.start.ts < to);
    let longest = began().max_by_key(|call| (share(call), std::cmp::Reverse(call.start.ts)))?;
    let others = calls.iter().any(|call| {
        call.start != longest.start && call.start.ts < longest.to && call.to > longest.start.ts
    });
    let passed_on = answer.filter(|_| others).and_then(|answer| {
        // If the answer still goes on, only its first byte is known to have come.
        let came = |call: &&Call| if call.to <= answer { call.to } else { call.first };
        began().filter(|call| call.first <= answer).max_by_key(came)
    });
    let call = passed_on.unwrap_or(longest);
    is_worth_following(share(call), to.saturating_sub(from)).then_some((call, others))
}

/// Whether `share` is large enough a part of `whole`.
pub(super) fn is_worth_following(share: i64, whole: i64) -> bool {
    share as f64 >= MIN_SHARE * whole as f64
}

pub(super) fn word(name: &str) -> Expr {
    cast_to(ident(name), DataType::Utf8)
}

pub(super) fn number(name: &str) -> Expr {
    cast_to(ident(name), DataType::Int64)
}

/// The rows whose number in column `name` is one of `all`.
pub(super) fn among(
    rows: DataFrame,
    name: &str,
    all: impl Iterator<Item = i64>,
) -> Result<DataFrame, QueryError> {
    let mut all: Vec<i64> = all.collect();
    all.sort_unstable();
    all.dedup();
    Ok(rows.filter(number(name).in_list(all.into_iter().map(lit).collect(), false))?)
}

/// Selects columns, and names them by number: `c0`, `c1`, and so on.
pub(super) fn selected(
    rows: DataFrame,
    columns: impl Iterator<Item = Expr>,
) -> Result<DataFrame, QueryError> {
    let columns = columns.zip(0..).map(|(column, n)| column.alias(format!("c{n}")));
    Ok(rows.select(columns.collect::<Vec<_>>())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(from: i64, to: i64) -> Call {
        let at = |ts| ServiceTime { host: String::new(), pid: 1, ts };
        Call { start: at(from), first: to, to, service: ":80".into() }
    }

    fn found(calls: &[Call], within: (i64, i64), answer: Option<i64>) -> Option<(i64, bool)> {
        worth_following(calls, within, answer).map(|(call, others)| (call.start.ts, others))
    }

    #[test]
    fn stretches_that_touch_are_one() {
        assert_eq!(
            disjoint(vec![(5, 7), (0, 3), (3, 4), (1, 2), (9, 9)]),
            [(0, 4), (5, 7), (9, 9)]
        );
        assert_eq!(any_of(Vec::new()), None);
        let deep = any_of((0..1000).map(|n| ident("ts").eq(lit(n))).collect()).unwrap();
        assert_eq!(deep.to_string().matches(" OR ").count(), 999);
    }

    #[test]
    fn the_call_that_took_most_of_the_interval_is_followed() {
        let calls = [call(0, 90), call(110, 120), call(120, 180), call(190, 400)];
        let found = |from, to| found(&calls, (from, to), None);
        assert_eq!(found(100, 200), Some((120, false)));
        assert_eq!(found(100, 300), Some((190, false)), "it counts up to the end of the interval");
        assert_eq!(found(91, 110), None, "none began in it");
        assert_eq!(found(105, 10_000), None, "too little of it");
    }

    #[test]
    fn of_several_at_once_it_is_the_one_that_was_passed_on() {
        let calls = [call(10, 60), call(12, 90), call(50, 70)];
        assert_eq!(found(&calls, (0, 100), None), Some((12, true)));
        assert_eq!(found(&calls, (0, 100), Some(61)), Some((10, true)));
        assert_eq!(found(&calls, (0, 100), Some(75)), Some((50, true)));
        assert_eq!(found(&calls, (0, 100), Some(5)), Some((12, true)), "no answer had come");
        let began = |from, first, to| Call { first, ..call(from, to) };
        let calls = [began(10, 50, 70), began(20, 60, 90), began(30, 40, 200)];
        assert_eq!(found(&calls, (0, 100), Some(71)), Some((10, true)), "it came in two pieces");
        assert_eq!(
            found(&calls, (0, 100), Some(45)),
            Some((30, true)),
            "it is passed on in pieces"
        );
        // One after the other: the longest counts, not the last.
        assert_eq!(found(&[call(10, 60), call(70, 80)], (0, 100), Some(85)), Some((10, false)));
    }
}
