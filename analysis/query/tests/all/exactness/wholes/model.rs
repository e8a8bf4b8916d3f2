//! What the tables of spans and chains say, by looking at all pairs of frames.

use super::generator::{Hole, REAL, WholesWorld, WrittenFrames};
use crate::support::Row;

pub const SPANS: [(usize, &str, bool); 4] =
    [(0, "request", false), (1, "retry", true), (2, "visit", false), (3, "trip", true)];

impl WrittenFrames {
    /// In the order of time, ties by what names them.
    fn order(&self) -> (Option<u64>, u32, u64, String, usize) {
        (self.at, self.ring, self.seq, format!("{:016x}", self.nonce), self.capture)
    }

    /// Whether another frame may be of the same span or chain.
    fn goes_with(&self, other: &WrittenFrames) -> bool {
        let text = |frames: &WrittenFrames| match frames.kind {
            1 => frames.text.split('\0').next(),
            _ => None,
        };
        let scope = match self.kind {
            0 | 1 => (self.boot, self.pid) == (other.boot, other.pid),
            _ => self.boot == other.boot,
        };
        self.kind == other.kind && self.key == other.key && text(self) == text(other) && scope
    }

    fn named(&self) -> [Option<String>; 4] {
        let capture = format!("{:02x}", self.capture + 1).repeat(8);
        let names =
            [capture, format!("{:016x}", self.nonce), self.ring.to_string(), self.seq.to_string()];
        names.map(Some)
    }
}

/// Whether a frame that goes with `of` may be missing between these times.
fn may_miss(world: &WholesWorld, of: &WrittenFrames, from: i128, to: i128) -> bool {
    let in_scope = |hole: &&Hole| match of.kind {
        0 | 1 => (hole.boot, hole.pid) == (of.boot, of.pid),
        _ => hole.boot == of.boot,
    };
    world.holes.iter().filter(in_scope).any(|hole| hole.times.0 <= to && from <= hole.times.1)
}

/// The rows of spans, by looking for each end at all begins.
pub fn spans(world: &WholesWorld, kind: usize, fifo: bool) -> Vec<Row> {
    let mut frames: Vec<&WrittenFrames> =
        world.written.iter().filter(|frames| frames.kind == kind && !frames.lost).collect();
    frames.sort_by_key(|frame| frame.order());
    let mut partner: Vec<Option<usize>> = vec![None; frames.len()];
    for end in 0..frames.len() {
        if frames[end].mark != 1 || frames[end].at.is_none() {
            continue;
        }
        let is_free = |&begin: &usize| {
            let written_frames = frames[begin];
            written_frames.mark == 0
                && written_frames.at.is_some()
                && partner[begin].is_none()
                && written_frames.goes_with(frames[end])
        };
        let begin = if fifo { (0..end).find(is_free) } else { (0..end).rev().find(is_free) };
        if let Some(begin) = begin {
            (partner[begin], partner[end]) = (Some(end), Some(begin));
        }
    }
    let mut rows = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let (begin, end) = match (frame.mark, partner[at]) {
            (0, other) => (Some(*frame), other.map(|index| frames[index])),
            (_, Some(_)) => continue,
            (_, None) => (None, Some(*frame)),
        };
        let unclear = frames.iter().any(|frames| frames.at.is_none() && frames.goes_with(frame));
        let state = match (begin, end) {
            (Some(_), Some(_)) => "closed",
            _ if unclear => "lost",
            (Some(written_frames), None) => {
                if may_miss(world, written_frames, written_frames.at.unwrap().into(), i128::MAX) {
                    "lost"
                } else {
                    "open"
                }
            }
            (_, Some(written_frames)) => {
                if may_miss(world, written_frames, i128::MIN, written_frames.at.unwrap().into()) {
                    "lost"
                } else {
                    "orphan"
                }
            }
            (None, None) => unreachable!(),
        };
        let own = begin.or(end).unwrap();
        let epoch = |frames: &WrittenFrames| Some((REAL + frames.at?).to_string());
        let dur = begin.zip(end).and_then(|(begin, end)| Some((end.at? - begin.at?).to_string()));
        let mut row: Row = own.named().into();
        row.extend([Some(own.pid.to_string()), epoch(own), Some(own.key.to_string()), dur]);
        match end {
            Some(end) => {
                row.extend(end.named().into_iter().skip(1));
                row.extend([Some((100 + end.ring).to_string()), Some(end.pid.to_string())]);
            }
            None => row.extend([const { None }; 5]),
        }
        let value = |frames: Option<&WrittenFrames>| frames.map(|frames| frames.value.to_string());
        row.extend([value(begin), begin.and_then(epoch), value(end), end.and_then(epoch)]);
        row.push(Some(state.to_owned()));
        rows.push(row);
    }
    rows.sort();
    rows
}

/// The rows of chains.
pub fn chains(world: &WholesWorld) -> Vec<Row> {
    let mut left: Vec<&WrittenFrames> =
        world.written.iter().filter(|frames| frames.kind == 4 && !frames.lost).collect();
    left.sort_by_key(|frames| (frames.at.is_none(), frames.order()));
    let steps = ["start", "dsp", "send"];
    let mut rows = Vec::new();
    while let Some(&first) = left.first() {
        let (own, other): (Vec<&WrittenFrames>, Vec<&WrittenFrames>) =
            left.into_iter().partition(|frames| frames.goes_with(first));
        left = other;
        let of = |step: usize| own.iter().filter(move |frames| usize::from(frames.mark) == step);
        let time: Vec<Option<u64>> =
            (0..3).map(|step| of(step).filter_map(|frames| frames.at).min()).collect();
        let named = |wanted: &dyn Fn(usize) -> bool| -> String {
            let found: Vec<&str> =
                (0..3).filter(|&index| wanted(index)).map(|index| steps[index]).collect();
            found.join(",")
        };
        let twice = named(&|step| of(step).count() > 1);
        let surely_absent = named(&|step| {
            let before = time[..step].iter().flatten().max().map_or(i128::MIN, |&max| max.into());
            let after =
                time[step + 1..].iter().flatten().min().map_or(i128::MAX, |&min| min.into());
            let (from, to) = (before.min(after), before.max(after));
            of(step).count() == 0 && !may_miss(world, first, from, to)
        });
        let unclear = own.iter().any(|frames| frames.at.is_none() || frames.mark > 2);
        let all_there = (0..3).all(|step| of(step).count() > 0);
        let state = match () {
            () if !twice.is_empty() => format!("repeated {twice}"),
            () if unclear => "lost".to_owned(),
            () if !surely_absent.is_empty() => format!("missing {surely_absent}"),
            () if !all_there => "lost".to_owned(),
            () if time[0] <= time[1] && time[1] <= time[2] => "complete".to_owned(),
            () => "out of order".to_owned(),
        };
        let between =
            |from: usize, to: usize| Some((time[to]? as i64 - time[from]? as i64).to_string());
        let epoch = |at: Option<u64>| at.map(|at| (REAL + at).to_string());
        let mut row: Row = first.named().into();
        row.extend([epoch(first.at), Some(first.key.to_string()), between(0, 2)]);
        row.extend(time.iter().map(|&number| epoch(number)));
        row.extend([between(0, 1), between(1, 2), Some(state)]);
        rows.push(row);
    }
    rows.sort();
    rows
}
