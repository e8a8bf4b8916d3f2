//! What the tables of spans and chains say, by looking at all pairs of frames.

use super::generator::{Hole, REAL, World, Written};
use crate::support::Row;

pub const SPANS: [(usize, &str, bool); 4] =
    [(0, "request", false), (1, "retry", true), (2, "visit", false), (3, "trip", true)];

impl Written {
    /// In the order of time, ties by what names them.
    fn order(&self) -> (Option<u64>, u32, u64, String, usize) {
        (self.at, self.ring, self.seq, format!("{:016x}", self.nonce), self.capture)
    }

    /// Whether another frame may be of the same span or chain.
    fn goes_with(&self, other: &Written) -> bool {
        let text = |it: &Written| match it.kind {
            1 => it.text.split('\0').next(),
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
fn may_miss(world: &World, of: &Written, from: i128, to: i128) -> bool {
    let in_scope = |hole: &&Hole| match of.kind {
        0 | 1 => (hole.boot, hole.pid) == (of.boot, of.pid),
        _ => hole.boot == of.boot,
    };
    world.holes.iter().filter(in_scope).any(|it| it.times.0 <= to && from <= it.times.1)
}

/// The rows of spans, by looking for each end at all begins.
pub fn spans(world: &World, kind: usize, fifo: bool) -> Vec<Row> {
    let mut frames: Vec<&Written> =
        world.written.iter().filter(|it| it.kind == kind && !it.lost).collect();
    frames.sort_by_key(|it| it.order());
    let mut partner: Vec<Option<usize>> = vec![None; frames.len()];
    for end in 0..frames.len() {
        if frames[end].mark != 1 || frames[end].at.is_none() {
            continue;
        }
        let is_free = |&begin: &usize| {
            let it = frames[begin];
            it.mark == 0 && it.at.is_some() && partner[begin].is_none() && it.goes_with(frames[end])
        };
        let begin = match fifo {
            true => (0..end).find(is_free),
            false => (0..end).rev().find(is_free),
        };
        if let Some(begin) = begin {
            (partner[begin], partner[end]) = (Some(end), Some(begin));
        }
    }
    let mut rows = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let (begin, end) = match (frame.mark, partner[at]) {
            (0, other) => (Some(*frame), other.map(|it| frames[it])),
            (_, Some(_)) => continue,
            (_, None) => (None, Some(*frame)),
        };
        let unclear = frames.iter().any(|it| it.at.is_none() && it.goes_with(frame));
        let state = match (begin, end) {
            (Some(_), Some(_)) => "closed",
            _ if unclear => "lost",
            (Some(it), None) => match may_miss(world, it, it.at.unwrap().into(), i128::MAX) {
                true => "lost",
                false => "open",
            },
            (_, Some(it)) => match may_miss(world, it, i128::MIN, it.at.unwrap().into()) {
                true => "lost",
                false => "orphan",
            },
            (None, None) => unreachable!(),
        };
        let own = begin.or(end).unwrap();
        let epoch = |it: &Written| Some((REAL + it.at?).to_string());
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
        let value = |it: Option<&Written>| it.map(|it| it.value.to_string());
        row.extend([value(begin), begin.and_then(epoch), value(end), end.and_then(epoch)]);
        row.push(Some(state.to_owned()));
        rows.push(row);
    }
    rows.sort();
    rows
}

/// The rows of chains.
pub fn chains(world: &World) -> Vec<Row> {
    let mut left: Vec<&Written> =
        world.written.iter().filter(|it| it.kind == 4 && !it.lost).collect();
    left.sort_by_key(|it| (it.at.is_none(), it.order()));
    let steps = ["start", "dsp", "send"];
    let mut rows = Vec::new();
    while let Some(&first) = left.first() {
        let (own, other): (Vec<&Written>, Vec<&Written>) =
            left.into_iter().partition(|it| it.goes_with(first));
        left = other;
        let of = |step: usize| own.iter().filter(move |it| usize::from(it.mark) == step);
        let time: Vec<Option<u64>> =
            (0..3).map(|step| of(step).filter_map(|it| it.at).min()).collect();
        let named = |wanted: &dyn Fn(usize) -> bool| -> String {
            let found: Vec<&str> = (0..3).filter(|&it| wanted(it)).map(|it| steps[it]).collect();
            found.join(",")
        };
        let twice = named(&|step| of(step).count() > 1);
        let surely_absent = named(&|step| {
            let before = time[..step].iter().flatten().max().map_or(i128::MIN, |&it| it.into());
            let after = time[step + 1..].iter().flatten().min().map_or(i128::MAX, |&it| it.into());
            let (from, to) = (before.min(after), before.max(after));
            of(step).count() == 0 && !may_miss(world, first, from, to)
        });
        let unclear = own.iter().any(|it| it.at.is_none() || it.mark > 2);
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
        row.extend(time.iter().map(|&it| epoch(it)));
        row.extend([between(0, 1), between(1, 2), Some(state)]);
        rows.push(row);
    }
    rows.sort();
    rows
}
