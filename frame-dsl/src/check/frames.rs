//! Frames: the combination of their fields, their time, their size.

use std::collections::HashMap;

use super::attributes;
use super::fields::{DraftField, Types};
use super::halves;
use super::kinds::{self, OwnEnum};
use super::names::{self, Declared};
use super::options::TimeMeaning;
use super::points;
use super::threads;
use crate::ast::{self, FrameFile};
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::mistake::{AttributeMistake, FrameMistake, NameKind, NameMistake};
use crate::schema::{Field, Frame, IntervalEnd, MAX_FIELDS, MAX_FRAME_BYTES, MAX_FRAMES, Schema};

/// Frames above this many bytes get a hint.
const LARGE_FRAME_BYTES: u32 = 512;
/// Number of system clock stamps in a frame that gets a hint.
const MANY_STAMPS: usize = 3;

/// A frame without offsets.
pub(super) struct Draft {
    pub frame: Frame,
    pub places: FramePlaces,
    /// The enum of the field that ppt adds to it.
    pub own: Option<OwnEnum>,
}

/// The spans of a frame and its fields in the file.
pub(super) struct FramePlaces {
    pub name: SourceRange,
    pub fields: Vec<SourceRange>,
}

/// The frames of a file. A name that is declared twice appears once.
pub(super) fn frames(file: &FrameFile, time: TimeMeaning, sink: &mut DiagnosticSink) -> Vec<Draft> {
    if let Some(first) = file.frames.get(MAX_FRAMES) {
        let mistake = FrameMistake::TooManyFrames { count: file.frames.len() };
        sink.report(first.name.span.clone(), mistake);
    }
    let mut enums = HashMap::new();
    for it in &file.enums {
        enums.entry(it.name.text.as_str()).or_insert(&it.name.span);
    }
    let types = Types::from_file(file, time);
    let mut declared = Declared::default();
    let mut drafts = Vec::new();
    for frame in file.frames.iter().take(MAX_FRAMES) {
        names::check(NameKind::Frame, &frame.name, sink);
        if let Some(other) = enums.get(frame.name.text.as_str()) {
            let note = DiagnosticNote { span: (*other).clone(), label: "the enum".to_owned() };
            let mistake = NameMistake::FrameAndEnum { name: frame.name.text.clone() };
            sink.report_with(frame.name.span.clone(), mistake, [note]);
        }
        let draft = draft(frame, &types, sink);
        if declared.insert(NameKind::Frame, &frame.name.text, &frame.name.span, sink) {
            drafts.extend(draft);
        }
    }
    drafts
}

fn draft(frame: &ast::FrameDecl, types: &Types<'_>, sink: &mut DiagnosticSink) -> Option<Draft> {
    if frame.fields.is_empty() && !frame.damaged {
        let mistake = FrameMistake::EmptyFrame { name: frame.name.text.clone() };
        sink.report(frame.name.span.clone(), mistake);
    }
    let attributes = attributes::of_frame(&frame.attributes, sink);
    let said = kinds::find_role_attribute(&frame.attributes, sink);
    let halves = frame.fields.iter().map(|field| 1 + usize::from(field.interval.is_some()));
    let count = halves.sum::<usize>() + if said.is_some() { 2 } else { 0 };
    if count > MAX_FIELDS {
        let mistake = FrameMistake::TooManyFields { name: frame.name.text.clone(), count };
        sink.report(frame.name.span.clone(), mistake);
        return None;
    }
    for field in &frame.fields {
        kinds::field_name(said.as_ref(), &field.name, sink);
    }
    let mut fields: Vec<DraftField> =
        frame.fields.iter().flat_map(|field| types.fields(field, sink)).collect();
    names_are_distinct(&mut fields, sink);
    kinds::keys(frame, said.as_ref(), &mut fields, sink);
    points::sides(frame, &mut fields, sink);
    threads::mark(kinds::kind(said.as_ref()), &mut fields, sink);
    halves::halves(frame, kinds::kind(said.as_ref()), &mut fields, sink);
    let own = said.as_ref().and_then(|said| kinds::complete(frame, said, &mut fields, sink));
    place_in_time(&mut fields, sink);
    let (fields, places) = fields.into_iter().map(|draft| (draft.field, draft.place)).unzip();
    let name = frame.name.text.clone();
    let doc = frame.doc.clone();
    let kind = kinds::kind(said.as_ref()).to_owned();
    let extra = said.as_ref().map(kinds::RoleAttribute::extra).unwrap_or_default();
    Some(Draft {
        frame: Frame { name, kind, size: 0, fields, doc, attributes, extra },
        places: FramePlaces { name: frame.name.span.clone(), fields: places },
        own,
    })
}

/// Checks that no two fields have one name, including the halves of intervals. The second is
/// reported and dropped.
fn names_are_distinct(fields: &mut Vec<DraftField>, sink: &mut DiagnosticSink) {
    let mut declared = Declared::default();
    let mut reported = None;
    let mut keep = Vec::with_capacity(fields.len());
    for DraftField { field, place, .. } in fields.iter() {
        // The halves of an interval have one span, so only one error is reported.
        let mut silent = DiagnosticSink::default();
        let again = reported.as_ref() == Some(place);
        let sink = if again { &mut silent } else { &mut *sink };
        let fresh = declared.insert(NameKind::Field, &field.name, place, sink);
        if !fresh {
            reported = Some(place.clone());
        }
        keep.push(fresh);
    }
    let mut keep = keep.into_iter();
    fields.retain(|_| keep.next().unwrap_or(true));
}

/// Marks the field that gives the frame its time: the one with `@at`, or else the end of the last
/// time interval, or else the last time. CPU time does not qualify.
fn place_in_time(fields: &mut [DraftField], sink: &mut DiagnosticSink) {
    let marked: Vec<(usize, SourceRange)> = fields
        .iter()
        .enumerate()
        .filter_map(|(index, draft)| draft.at.clone().map(|place| (index, place)))
        .collect();
    let mut chosen: Option<&(usize, SourceRange)> = None;
    for one in &marked {
        if let Some(mistake) = not_in_time(&fields[one.0].field) {
            sink.report(one.1.clone(), mistake);
        } else if let Some((_, first)) = chosen {
            let note = DiagnosticNote { span: first.clone(), label: "first given here".to_owned() };
            sink.report_with(one.1.clone(), AttributeMistake::AtTwice, [note]);
        } else {
            chosen = Some(one);
        }
    }
    let last = |fits: &dyn Fn(&Field) -> bool| {
        fields.iter().rposition(|draft| not_in_time(&draft.field).is_none() && fits(&draft.field))
    };
    let is_end = |field: &Field| {
        field.interval.as_ref().is_some_and(|interval| interval.edge == IntervalEnd::End)
    };
    let at = match chosen {
        Some((index, _)) => Some(*index),
        None => last(&is_end).or_else(|| last(&|_| true)),
    };
    if let Some(at) = at {
        fields[at].field.at = true;
    }
}

/// Why a field cannot give its frame a time.
fn not_in_time(field: &Field) -> Option<AttributeMistake> {
    if !field.ty.is_time() {
        return Some(AttributeMistake::AtNotTime);
    }
    if field.array.is_some() {
        return Some(AttributeMistake::AtArray);
    }
    let clock = field.ty.clock().filter(|clock| clock.is_cpu())?;
    Some(AttributeMistake::AtCpuClock { word: clock.word() })
}

/// Checks the size of frames: more than [`MAX_FRAME_BYTES`] is an error, more than usual a hint.
pub(super) fn sizes(schema: &Schema, places: &[FramePlaces], sink: &mut DiagnosticSink) {
    for (frame, place) in schema.frames.iter().zip(places) {
        let (name, bytes) = (frame.name.clone(), frame.size);
        if bytes > MAX_FRAME_BYTES {
            let largest = frame.fields.iter().max_by_key(|field| field.bytes(schema));
            let largest = largest.map_or_else(String::new, |field| {
                format!("`{}` with {} bytes", field.name, field.bytes(schema))
            });
            sink.report(place.name.clone(), FrameMistake::FrameTooLarge { name, bytes, largest });
        } else if bytes > LARGE_FRAME_BYTES {
            sink.report(place.name.clone(), FrameMistake::LargeFrame { name, bytes });
        }
    }
}

/// Reading system clocks several times costs more than writing the frame. Fields with an explicit
/// clock (`@clock`) do not count.
pub(super) fn stamps(schema: &Schema, places: &[FramePlaces], sink: &mut DiagnosticSink) {
    let by_system = |field: &&Field| {
        field.ty.clock().is_some_and(|clock| !clock.is_cpu())
            && field.array.is_none()
            && !field.attributes.iter().any(|attribute| attribute.name == "clock")
    };
    for (frame, place) in schema.frames.iter().zip(places) {
        let stamps = frame.fields.iter().filter(by_system).count();
        if stamps >= MANY_STAMPS {
            let name = frame.name.clone();
            sink.report(place.name.clone(), FrameMistake::ManyStamps { name, stamps });
        }
    }
}
