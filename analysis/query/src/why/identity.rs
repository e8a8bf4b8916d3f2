//! Follows requests from service to service by the points of the programs themselves: finds the interval of
//! another process whose frame has the same identity.

use std::collections::{HashMap, HashSet};

use datafusion::logical_expr::lit;
use datafusion::prelude::DataFrame;
use ppt_tables::ThreadLabels;

use super::answer::{FrameOrigin, ServiceCall, SlowInterval};
use super::cells::{long, text};
use super::request;
use super::services::{among, frame_origin, is_worth_following, number, selected, word};
use super::{as_intervals, intervals};
use crate::engine::Engine;
use crate::error::QueryError;

/// The largest number of frames with the wanted identities. With more, the identities are too common to mean
/// anything.
const MAX_FRAMES: usize = 100_000;

/// A hash type and a value.
type Identity = (String, String);

impl Engine {
    /// For each interval, the longest interval of another process whose frame has the same identity: the
    /// number of the interval, the call, and the interval in the other process.
    pub(super) async fn of_same_identity(
        &self,
        slow: &[SlowInterval],
    ) -> Result<Vec<((usize, ServiceCall), SlowInterval)>, QueryError> {
        let identities = self.identities(slow).await?;
        let frames = self.frames_with(identities.values().flatten()).await?;
        if frames.is_empty() {
            return Ok(Vec::new());
        }
        let mut candidates: HashMap<Identity, Vec<SlowInterval>> = HashMap::new();
        for other in self.intervals_of(frames.keys()).await? {
            for identity in &frames[&frame_origin(&other)] {
                candidates.entry(identity.clone()).or_default().push(other.clone());
            }
        }
        let labels = ThreadLabels::new(self.set());
        let found = slow.iter().enumerate().filter_map(|(number, slow)| {
            let own = identities.get(&frame_origin(slow))?.iter();
            let all = own.filter_map(|identity| Some((identity, candidates.get(identity)?)));
            let all = all.flat_map(|(identity, all)| all.iter().map(move |one| (identity, one)));
            let (identity, request) = all
                .filter(|(_, one)| is_within(one, slow))
                .max_by_key(|(_, one)| (one.dur, std::cmp::Reverse((one.ts, one.pid))))?;
            if !is_worth_following(request.dur, slow.dur) {
                return None;
            }
            let pid = u32::try_from(request.pid?).ok()?;
            let call = ServiceCall {
                service: request.name.clone(),
                identity: Some(identity.0.clone()),
                ts: request.ts,
                dur: request.dur,
                taken_after: 0,
                had_others: false,
                process_name: labels.name(&request.host, pid, pid).map(str::to_owned),
                request: request.clone(),
            };
            Some(((number, call), request.clone()))
        });
        Ok(found.collect())
    }

    /// The identities that entered or left the points whose frames have these intervals.
    async fn identities(
        &self,
        slow: &[SlowInterval],
    ) -> Result<HashMap<FrameOrigin, HashSet<Identity>>, QueryError> {
        let frames: HashSet<FrameOrigin> = slow.iter().map(frame_origin).collect();
        let mut identities: HashMap<FrameOrigin, HashSet<Identity>> = HashMap::new();
        let Some(points) = self.unwindowed_table("points")? else { return Ok(identities) };
        let rows = among(points, "pid", slow.iter().filter_map(|slow| slow.pid.map(i64::from)))?;
        let rows = among(rows, "seqno", slow.iter().filter_map(|slow| slow.seqno))?;
        for (frame, identity) in self.points(rows).await? {
            if frames.contains(&frame) {
                identities.entry(frame).or_default().insert(identity);
            }
        }
        Ok(identities)
    }

    /// The frames of points that have one of these identities. Empty if there are too many.
    async fn frames_with(
        &self,
        identities: impl Iterator<Item = &Identity>,
    ) -> Result<HashMap<FrameOrigin, HashSet<Identity>>, QueryError> {
        let wanted: HashSet<&Identity> = identities.collect();
        let mut frames: HashMap<FrameOrigin, HashSet<Identity>> = HashMap::new();
        let Some(points) = self.unwindowed_table("points")?.filter(|_| !wanted.is_empty()) else {
            return Ok(frames);
        };
        let mut hashes: Vec<&str> = wanted.iter().map(|identity| &*identity.1).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let one_of = |column: &str| {
            word(column).in_list(hashes.iter().map(|&hash| lit(hash)).collect(), false)
        };
        let rows = points.filter(one_of("in_hash").or(one_of("out_hash")))?;
        let rows = rows.limit(0, Some(MAX_FRAMES + 1))?;
        let found = self.points(rows).await?;
        if found.len() > MAX_FRAMES {
            return Ok(frames);
        }
        for (frame, identity) in found {
            if wanted.contains(&identity) {
                frames.entry(frame).or_default().insert(identity);
            }
        }
        Ok(frames)
    }

    /// The frames of these rows of points, each with its identities.
    async fn points(&self, rows: DataFrame) -> Result<Vec<(FrameOrigin, Identity)>, QueryError> {
        let words = ["capture", "buffer", "segment", "in_type", "in_hash", "out_type", "out_hash"];
        let columns = words.map(word).into_iter().chain(["ring", "seqno"].map(number));
        let mut found = Vec::new();
        for batch in selected(rows, columns)?.collect().await? {
            for row in 0..batch.num_rows() {
                let text = |at| text(&batch, at, row).unwrap_or_default().to_owned();
                let frame = FrameOrigin {
                    capture: text(0),
                    buffer: text(1),
                    segment: text(2),
                    ring: long(&batch, 7, row),
                    seqno: long(&batch, 8, row),
                };
                let sides = [(text(3), text(4)), (text(5), text(6))];
                let identities = sides.into_iter().filter(|identity| !identity.1.is_empty());
                found.extend(identities.map(|identity| (frame.clone(), identity)));
            }
        }
        Ok(found)
    }

    /// The intervals of these frames.
    async fn intervals_of(
        &self,
        frames: impl Iterator<Item = &FrameOrigin> + Clone,
    ) -> Result<Vec<SlowInterval>, QueryError> {
        let wanted: HashSet<&FrameOrigin> = frames.clone().collect();
        let mut found = Vec::new();
        for table in self.frames(None)? {
            let mut seqnos: Vec<i64> = frames
                .clone()
                .filter(|frame| frame.buffer == table.buffer)
                .filter_map(|frame| frame.seqno)
                .collect();
            seqnos.sort_unstable();
            seqnos.dedup();
            for interval in intervals(&table).iter().filter(|_| !seqnos.is_empty()) {
                let Some(rows) = self.unwindowed_frames(&table.buffer, &table.frame)? else {
                    continue;
                };
                let shown = request::shown(&table, false, &[]);
                let rows = as_intervals(rows, &table, interval, &shown)?;
                let rows = among(rows, "c5", seqnos.iter().copied())?;
                found.extend(self.read_intervals(rows, &table, interval, false, &shown).await?);
            }
        }
        found.retain(|slow| wanted.contains(&frame_origin(slow)));
        Ok(found)
    }
}

/// Whether `request` is of another process, begins within the interval, and is shorter than the interval.
fn is_within(request: &SlowInterval, slow: &SlowInterval) -> bool {
    let is_other = (&request.host, request.pid) != (&slow.host, slow.pid);
    let begins =
        request.ts.checked_sub(slow.ts).is_some_and(|after| (0..slow.dur).contains(&after));
    is_other && begins && request.dur < slow.dur
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(pid: i32, ts: i64, dur: i64) -> SlowInterval {
        SlowInterval {
            name: "job.handle".into(),
            capture: String::new(),
            buffer: "job".into(),
            segment: String::new(),
            ring: None,
            seqno: None,
            host: String::new(),
            pid: Some(pid),
            tid: None,
            thread: None,
            ts,
            dur,
            is_span: false,
            request: Vec::new(),
            parts: Vec::new(),
            answered_by: None,
        }
    }

    #[test]
    fn a_request_of_another_process_begins_within_the_interval() {
        let slow = interval(1, 100, 50);
        let within = |pid, ts, dur| is_within(&interval(pid, ts, dur), &slow);
        assert!(within(2, 100, 49) && within(2, 149, 10), "it may end a little later");
        assert!(!within(1, 110, 10), "the process itself");
        assert!(!within(2, 99, 60) && !within(2, 90, 10), "its caller");
        assert!(!within(2, 150, 1) && !within(2, i64::MIN, 1));
    }
}
