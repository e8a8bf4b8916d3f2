//! Warnings about text that is allowed but probably a mistake.

use super::frames::FramePlaces;
use super::options;
use ppt_text::nearest;

use crate::ast::FrameFile;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink};
use crate::mistake::{BufferMistake, FrameMistake, OptionMistake, WARNINGS};
use crate::schema::{Frame, Schema};

/// Warns if frames of one buffer differ in size by more than this factor …
const UNEVEN: u32 = 4;
/// … and a slot has at least this many unused bytes.
const UNUSED_BYTES: u32 = 128;
/// Bytes of a ring above which a warning is given.
const LARGE_RING_BYTES: u64 = 64 << 20;

/// `option allow "CODE";` for each suppressed warning.
pub(super) fn allowed(file: &FrameFile, sink: &mut DiagnosticSink) {
    for setting in file.settings.iter().filter(|setting| setting.key.text == options::ALLOW) {
        let [argument] = setting.arguments.as_slice() else {
            sink.report(setting.span.clone(), OptionMistake::AllowForm);
            continue;
        };
        let code = argument.word.text.as_str();
        if let Some(known) = WARNINGS.into_iter().find(|known| *known == code) {
            sink.allow(known);
        } else {
            let word = code.to_owned();
            let suggestion = nearest(code, WARNINGS);
            let mistake = OptionMistake::UnknownWarning { word, suggestion };
            sink.report(argument.word.span.clone(), mistake);
        }
    }
}

/// Warnings about a whole buffer without errors.
pub(super) fn buffer(
    file: &FrameFile,
    schema: &Schema,
    places: &[FramePlaces],
    sink: &mut DiagnosticSink,
) {
    uneven(schema, places, sink);
    timeless(schema, places, sink);
    let bytes = u64::from(schema.stride) * u64::from(schema.slots);
    let slots = file.buffers.first().and_then(|buffer| buffer.slots.as_ref());
    if let Some(slots) = slots.filter(|_| bytes > LARGE_RING_BYTES) {
        let stride = schema.stride;
        sink.report(slots.span.clone(), BufferMistake::LargeRing { bytes, stride });
    }
}

/// Checks the unused room: all frames of a buffer have slots of one size.
fn uneven(schema: &Schema, places: &[FramePlaces], sink: &mut DiagnosticSink) {
    let wasteful = |frame: &Frame| {
        frame.size < schema.stride / UNEVEN && schema.stride - frame.size >= UNUSED_BYTES
    };
    let frames = || schema.frames.iter().zip(places);
    let small: Vec<_> = frames().filter(|(frame, _)| wasteful(frame)).collect();
    let smallest = small.iter().min_by_key(|(frame, _)| frame.size);
    let largest = frames().find(|(frame, _)| frame.size == schema.stride);
    if let (Some((frame, place)), Some((large, large_place))) = (smallest, largest) {
        let note = DiagnosticNote {
            span: large_place.name.clone(),
            label: format!("{} bytes: the slots have this size", large.size),
        };
        let mistake = FrameMistake::UnevenFrames {
            name: frame.name.clone(),
            bytes: frame.size,
            largest: large.name.clone(),
            stride: schema.stride,
            others: small.len() - 1,
        };
        sink.report_with(place.name.clone(), mistake, [note]);
    }
}

/// Checks for a frame without a time among frames that have one.
fn timeless(schema: &Schema, places: &[FramePlaces], sink: &mut DiagnosticSink) {
    let timed = |frame: &Frame| frame.fields.iter().any(|field| field.ty.is_time());
    if !schema.frames.iter().any(timed) {
        return;
    }
    for (frame, place) in schema.frames.iter().zip(places).filter(|(frame, _)| !timed(frame)) {
        sink.report(place.name.clone(), FrameMistake::TimelessFrame { name: frame.name.clone() });
    }
}
