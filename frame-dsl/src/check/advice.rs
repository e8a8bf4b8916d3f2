//! Warnings about text that is allowed and probably a mistake.

use super::frames::Places;
use super::options;
use ppt_text::nearest;

use crate::ast::FrameFile;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink};
use crate::mistake::{Mistake, WARNINGS};
use crate::schema::{Frame, Schema};

/// Frames of one buffer that differ by more than so many times …
const UNEVEN: u32 = 4;
/// … leave room unused in a slot: from so many bytes on it is worth a word.
const UNUSED_BYTES: u32 = 128;
/// A ring of more bytes per thread is worth a word.
const LARGE_RING_BYTES: u64 = 64 << 20;

/// `option allow "CODE";` for each warning that the file does not want.
pub(super) fn allowed(file: &FrameFile, sink: &mut DiagnosticSink) {
    for setting in file.settings.iter().filter(|setting| setting.key.text == options::ALLOW) {
        let [argument] = setting.arguments.as_slice() else {
            sink.report(setting.span.clone(), Mistake::AllowForm);
            continue;
        };
        let code = argument.word.text.as_str();
        if let Some(known) = WARNINGS.into_iter().find(|known| *known == code) {
            sink.allow(known);
        } else {
            let word = code.to_owned();
            let suggestion = nearest(code, WARNINGS);
            let mistake = Mistake::UnknownWarning { word, suggestion };
            sink.report(argument.word.span.clone(), mistake);
        }
    }
}

/// Advice about the whole of a buffer without errors.
pub(super) fn buffer(
    file: &FrameFile,
    schema: &Schema,
    places: &[Places],
    sink: &mut DiagnosticSink,
) {
    uneven(schema, places, sink);
    timeless(schema, places, sink);
    let bytes = u64::from(schema.stride) * u64::from(schema.slots);
    let slots = file.buffers.first().and_then(|buffer| buffer.slots.as_ref());
    if let Some(slots) = slots.filter(|_| bytes > LARGE_RING_BYTES) {
        let stride = schema.stride;
        sink.report(slots.span.clone(), Mistake::LargeRing { bytes, stride });
    }
}

/// All frames of a buffer have slots of one size.
fn uneven(schema: &Schema, places: &[Places], sink: &mut DiagnosticSink) {
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
        let mistake = Mistake::UnevenFrames {
            name: frame.name.clone(),
            bytes: frame.size,
            largest: large.name.clone(),
            stride: schema.stride,
            others: small.len() - 1,
        };
        sink.report_with(place.name.clone(), mistake, [note]);
    }
}

/// A frame without a time among frames that have one.
fn timeless(schema: &Schema, places: &[Places], sink: &mut DiagnosticSink) {
    let timed = |frame: &Frame| frame.fields.iter().any(|field| field.ty.is_time());
    if !schema.frames.iter().any(timed) {
        return;
    }
    for (frame, place) in schema.frames.iter().zip(places).filter(|(frame, _)| !timed(frame)) {
        sink.report(place.name.clone(), Mistake::TimelessFrame { name: frame.name.clone() });
    }
}
