//! Filters frames of several sources as they arrive.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use ppt_capture::columns::{Time, frame_id};
use ppt_capture::{ClockReading, ClockTable, FramesHead, Source, Stamps, TimeNamespace};
use ppt_frame_dsl::Schema;

use crate::error::{ExpressionError, Problem};
use crate::frame_kind::FrameKind;
use crate::predicate::Predicate;
use crate::program::CheckedExpression;
use crate::row::{Chunk, PredicateRow};

/// Decides for which frames an expression holds, while sources arrive and clocks are read.
///
/// Times of ticks are converted with the readings so far. A complete capture also has later
/// readings, so it may give a time that differs by some nanoseconds.
#[derive(Debug)]
pub struct Sieve {
    predicate: Predicate,
    clocks: ClockTable,
    buffers: HashMap<(String, u64), Arc<SievedBuffer>>,
    feeds: HashMap<usize, SievedFrames>,
}

/// A buffer, in any process.
#[derive(Debug)]
struct SievedBuffer {
    name: String,
    schema: Schema,
}

/// The frames of a buffer of a process.
#[derive(Debug)]
struct SievedFrames {
    buffer: Arc<SievedBuffer>,
    multi: bool,
    /// By kind. `None` for a kind that lacks a field.
    programs: Vec<Option<CheckedExpression>>,
    namespace: TimeNamespace,
    pid: u32,
}

impl Sieve {
    /// A sieve without sources.
    pub fn new(predicate: Predicate) -> Sieve {
        let (buffers, feeds) = Default::default();
        Sieve { predicate, clocks: ClockTable::default(), buffers, feeds }
    }

    /// Introduces sources, with numbers chosen by the caller.
    ///
    /// # Errors
    /// The expression does not match the kinds of frames of the accepted sources together with
    /// these. Then all frames of these sources pass.
    pub fn introduce(&mut self, new: &[(usize, &Source)]) -> Result<(), ExpressionError> {
        let (mut new_feeds, mut added) = (Vec::new(), Vec::new());
        for &(number, source) in new {
            self.feeds.remove(&number);
            // Frames with an unreadable schema cannot be read.
            let Ok(schema) = Schema::from_json(&source.schema_json) else { continue };
            let name = source.buffer.clone();
            let new = || Arc::new(SievedBuffer { name: name.clone(), schema });
            let key = (name.clone(), source.schema_hash);
            if let Entry::Vacant(place) = self.buffers.entry(key.clone()) {
                place.insert(new());
                added.push(key.clone());
            }
            new_feeds.push((number, source, self.buffers[&key].clone()));
        }
        let buffers: Vec<Arc<SievedBuffer>> = self.buffers.values().cloned().collect();
        let kinds = |buffer: &'_ Arc<SievedBuffer>| buffer.schema.frames.len();
        let frame_kinds: Vec<FrameKind<'_>> = buffers
            .iter()
            .flat_map(|buffer| {
                let kind =
                    |frame| FrameKind { buffer: &buffer.name, schema: &buffer.schema, frame };
                buffer.schema.frames.iter().map(kind)
            })
            .collect();
        let compiled = self.predicate.compile(&frame_kinds);
        // A source without a field may coexist with others that have it. A source with a field of
        // another type is excluded, so that later sources are not affected.
        let is_absent = |error: &ExpressionError| matches!(error.problem, Problem::NoField { .. });
        if compiled.as_ref().is_err_and(|error| !is_absent(error)) {
            self.buffers.retain(|key, _| !added.contains(key));
        }
        let programs = compiled?;
        for (number, source, buffer) in new_feeds {
            let index =
                buffers.iter().position(|entry| Arc::ptr_eq(entry, &buffer)).unwrap_or_default();
            let before: usize = buffers[..index].iter().map(kinds).sum();
            let feed = SievedFrames {
                buffer: buffer.clone(),
                multi: buffer.schema.multi(),
                programs: programs[before..before + kinds(&buffer)].to_vec(),
                namespace: source.process.time_namespace(),
                pid: source.process.pid,
            };
            self.feeds.insert(number, feed);
        }
        Ok(())
    }

    /// Adds clock readings.
    pub fn clocks(&mut self, readings: &[ClockReading]) {
        self.clocks.add(readings);
    }

    /// Decides for each of the frames of source `number` with this head whether the expression
    /// holds. Frames that cannot be read pass.
    pub fn wants(&self, number: usize, head: &FramesHead, frames: &[u8], wanted: &mut Vec<bool>) {
        self.each(number, head, frames, |_, _, _, is_true| wanted.push(is_true.unwrap_or(true)));
    }

    /// Calls `found` for each of the frames of source `number` with this head for which the
    /// expression holds, with its sequence number and its time, ns of CLOCK_MONOTONIC, if it has
    /// one that can be converted. Frames that cannot be read are not found.
    pub fn find(
        &self,
        number: usize,
        head: &FramesHead,
        frames: &[u8],
        mut found: impl FnMut(u64, Option<u64>),
    ) {
        let Some(feed) = self.feeds.get(&number) else { return };
        let stamps = Stamps::new(&self.clocks, head.drained_mono_ns, feed.namespace);
        let offset = self.clocks.epoch_offset();
        self.each(number, head, frames, |seqno, id, bytes, is_true| {
            if is_true != Some(true) {
                return;
            }
            let frame = feed.buffer.schema.frames.get(id);
            let at = frame.and_then(|frame| frame.at()).and_then(Time::from_field);
            let epoch = at.and_then(|time| time.epoch(time.word(bytes), &stamps, offset));
            let mono = epoch.zip(offset).and_then(|(epoch, offset)| epoch.checked_sub(offset));
            found(seqno, mono.and_then(|ns| u64::try_from(ns).ok()));
        });
    }

    /// Calls `tell` with sequence number, kind and bytes of each frame, and whether the expression
    /// holds. `None`: the frame cannot be read.
    fn each(
        &self,
        number: usize,
        head: &FramesHead,
        frames: &[u8],
        mut tell: impl FnMut(u64, usize, &[u8], Option<bool>),
    ) {
        let frames = (head.first_seq..).zip(frames.chunks_exact((head.stride as usize).max(1)));
        let Some(feed) = self.feeds.get(&number) else {
            return frames.for_each(|(seqno, bytes)| tell(seqno, 0, bytes, None));
        };
        let stamps = Stamps::new(&self.clocks, head.drained_mono_ns, feed.namespace);
        let offset = self.clocks.epoch_offset();
        let chunk = Chunk { stamps: &stamps, offset, head, pid: feed.pid };
        for (seqno, bytes) in frames {
            let id = if feed.multi { usize::from(frame_id(bytes)) } else { 0 };
            let row = PredicateRow { chunk: &chunk, seqno, bytes };
            let is_true = |program: &Option<CheckedExpression>| {
                program.as_ref().is_some_and(|program| program.matches(&row) == Some(true))
            };
            tell(seqno, id, bytes, feed.programs.get(id).map(is_true));
        }
    }
}
