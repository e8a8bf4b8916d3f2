//! Edge lines: which point may follow another.

use std::collections::HashMap;

use super::frames::Draft;
use super::names;
use ppt_text::nearest;

use crate::ast::{self, EdgeEnd, FrameFile, SourceWord};
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::edge::{self, EDGES, Edge, MAX_EDGES, Policy};
use crate::mistake::{DurationFault, EdgeMistake, NameKind, PointMistake};
use crate::role::{IN, OUT, POINT};
use crate::schema::{FieldType, MAX_NAME_BYTES};

/// Units of durations, in ns.
const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The key of a schema that lists them.
pub(super) fn extra(edges: &[Edge]) -> Option<(String, serde_json::Value)> {
    (!edges.is_empty()).then(|| (EDGES.to_owned(), edge::to_json(edges)))
}

/// The edges of a file with edge lines only. The points may be of any program.
pub(super) fn of_file(file: &FrameFile, sink: &mut DiagnosticSink) -> Vec<Edge> {
    edges(file, None, sink)
}

/// The edges of a frame file. Names that it does not declare belong to other programs.
pub(super) fn of_buffer(
    file: &FrameFile,
    buffer: &str,
    drafts: &[Draft],
    sink: &mut DiagnosticSink,
) -> Vec<Edge> {
    let edges = edges(file, Some(buffer), sink);
    for edge in file.edges.iter().take(MAX_EDGES) {
        let [from, to] = [&edge.from, &edge.to].map(|end| own(end, file, buffer, drafts, sink));
        if let (Some(from), Some(to)) = (from, to) {
            never_matches(edge, from, to, sink);
        }
    }
    edges
}

fn edges(file: &FrameFile, buffer: Option<&str>, sink: &mut DiagnosticSink) -> Vec<Edge> {
    if let Some(first) = file.edges.get(MAX_EDGES) {
        let mistake = EdgeMistake::TooManyEdges { count: file.edges.len() };
        sink.report(first.span.clone(), mistake);
    }
    let mut declared: HashMap<_, (Edge, &SourceRange)> = HashMap::new();
    let mut edges = Vec::new();
    for decl in file.edges.iter().take(MAX_EDGES) {
        for word in [&decl.from, &decl.to].into_iter().flat_map(end_words) {
            // Names of other programs can only be checked for their length.
            if word.span.len() > MAX_NAME_BYTES {
                names::check(NameKind::Frame, word, sink);
            }
        }
        let within = decl.within.as_ref().and_then(|word| duration(word, sink));
        let policy = decl.policy.as_ref().and_then(|word| policy(word, sink));
        let [from, to] = [&decl.from, &decl.to].map(text);
        let edge = Edge { from, to, within, policy: policy.unwrap_or_default() };
        let ends = [&decl.from, &decl.to].map(|end| unqualified(end, buffer));
        let Some((first, place)) = declared.get(&ends) else {
            declared.insert(ends, (edge.clone(), &decl.span));
            edges.push(edge);
            continue;
        };
        let note = DiagnosticNote { span: (*place).clone(), label: "first given here".to_owned() };
        let same = (first.within, first.policy) == (edge.within, edge.policy);
        let mistake = EdgeMistake::EdgeTwice { from: edge.from, to: edge.to, same };
        sink.report_with(decl.span.clone(), mistake, [note]);
    }
    edges
}

fn end_words(end: &EdgeEnd) -> impl Iterator<Item = &SourceWord> {
    end.buffer.iter().chain([&end.frame])
}

/// The end as written.
fn text(end: &EdgeEnd) -> String {
    match &end.buffer {
        Some(buffer) => format!("{}.{}", buffer.text, end.frame.text),
        None => end.frame.text.clone(),
    }
}

/// The names of an end, without the name of the file's own buffer.
fn unqualified<'a>(end: &'a EdgeEnd, own: Option<&str>) -> (Option<&'a str>, &'a str) {
    let buffer = end.buffer.as_ref().map(|word| word.text.as_str());
    (buffer.filter(|buffer| Some(*buffer) != own), &end.frame.text)
}

/// The point of this file that an end names.
fn own<'a>(
    end: &EdgeEnd,
    file: &FrameFile,
    buffer: &str,
    drafts: &'a [Draft],
    sink: &mut DiagnosticSink,
) -> Option<&'a Draft> {
    let (None, name) = unqualified(end, Some(buffer)) else { return None };
    if let Some(draft) = drafts.iter().find(|draft| draft.frame.name == name) {
        if draft.frame.kind != POINT {
            let note =
                DiagnosticNote { span: draft.places.name.clone(), label: "the frame".to_owned() };
            let mistake = EdgeMistake::EdgeOfNoPoint { name: name.to_owned() };
            sink.report_with(end.span.clone(), mistake, [note]);
            return None;
        }
        return Some(draft);
    }
    // An end without a buffer may be of another program, and a frame with mistakes may have no
    // draft.
    let frames = || file.frames.iter().map(|frame| frame.name.text.as_str());
    if end.buffer.is_some() && !file.damaged && !frames().any(|frame| frame == name) {
        let suggestion = if sink.is_full() { None } else { nearest(name, frames()) };
        let mistake = EdgeMistake::NoSuchPoint {
            buffer: buffer.to_owned(),
            name: name.to_owned(),
            suggestion: suggestion.map(str::to_owned),
        };
        sink.report(end.frame.span.clone(), mistake);
    }
    None
}

/// Checks that values of one hash type have one length. Otherwise they never match.
pub(super) fn widths(drafts: &[Draft], sink: &mut DiagnosticSink) {
    let mut first: HashMap<&str, (&FieldType, &SourceRange)> = HashMap::new();
    for Draft { frame, places, .. } in drafts {
        for (field, place) in frame.fields.iter().zip(&places.fields) {
            let types = [IN, OUT].into_iter().filter_map(|key| field.extra.get(key)?.as_str());
            for ty in types {
                let (other, span) = *first.entry(ty).or_insert((&field.ty, place));
                if *other == field.ty {
                    continue;
                }
                let note =
                    DiagnosticNote { span: span.clone(), label: "of another length".to_owned() };
                let mistake = PointMistake::TwoWidths { ty: ty.to_owned() };
                sink.report_with(place.clone(), mistake, [note]);
                break;
            }
        }
    }
}

/// Reports an edge whose source has no outgoing identity type that the target takes in.
fn never_matches(decl: &ast::EdgeDecl, from: &Draft, to: &Draft, sink: &mut DiagnosticSink) {
    // Points with mistakes have no sides.
    let (Some(first), Some(second)) = (from.frame.point(), to.frame.point()) else { return };
    let outs = if first.implied() { &first.ins } else { &first.outs };
    if outs.iter().any(|(ty, _)| second.ins.iter().any(|(other, _)| other == ty)) {
        return;
    }
    let types = |side: &[(&str, _)]| side.iter().map(|(ty, _)| (*ty).to_owned()).collect();
    let mistake = EdgeMistake::EdgeNeverMatches {
        from: from.frame.name.clone(),
        to: to.frame.name.clone(),
        out: types(outs),
        ins: types(&second.ins),
    };
    sink.report(decl.from.span.start..decl.to.span.end, mistake);
}

fn policy(word: &SourceWord, sink: &mut DiagnosticSink) -> Option<Policy> {
    let known = Policy::of_word(&word.text);
    if known.is_none() {
        let suggestion = nearest(&word.text, Policy::ALL.map(Policy::word));
        let mistake = EdgeMistake::UnknownPolicy { word: word.text.clone(), suggestion };
        sink.report(word.span.clone(), mistake);
    }
    known
}

fn duration(word: &SourceWord, sink: &mut DiagnosticSink) -> Option<u64> {
    match nanoseconds(&word.text) {
        Ok(within) => Some(within),
        Err(fault) => {
            let mistake = EdgeMistake::BadDuration { text: word.text.clone(), fault };
            sink.report(word.span.clone(), mistake);
            None
        }
    }
}

/// A duration in ns: digits, optionally a point and more digits, and a unit.
fn nanoseconds(text: &str) -> Result<u64, DurationFault> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic() || c == '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) {
        return Err(DurationFault::Malformed);
    }
    let Some((_, each)) = UNITS.into_iter().find(|(word, _)| *word == unit) else {
        return Err(match unit {
            "" => DurationFault::NoUnit,
            _ => DurationFault::UnknownUnit(nearest(unit, UNITS.map(|(word, _)| word))),
        });
    };
    let scale = 10u128.checked_pow(part.len() as u32).ok_or(DurationFault::Malformed)?;
    let digits = |text: &str| text.parse::<u128>().map_err(|_| DurationFault::TooLong);
    let total = digits(whole)?.checked_mul(each.into()).ok_or(DurationFault::TooLong)?;
    let rest = digits(part)?.checked_mul(each.into()).ok_or(DurationFault::Malformed)?;
    match total + rest / scale {
        _ if !rest.is_multiple_of(scale) => Err(DurationFault::Malformed),
        0 => Err(DurationFault::Zero),
        total => i64::try_from(total).map(i64::cast_unsigned).map_err(|_| DurationFault::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (text, ns) in [
            ("1ns", 1),
            ("20us", 20_000),
            ("500ms", 500_000_000),
            ("0.5s", 500_000_000),
            ("1.000000001s", 1_000_000_001),
            ("007s", 7_000_000_000),
            ("2min", 120_000_000_000),
            ("24h", 86_400_000_000_000),
            ("9223372036854775807ns", i64::MAX.cast_unsigned()),
        ] {
            assert_eq!(nanoseconds(text), Ok(ns), "{text}");
        }
        for (text, fault) in [
            ("500", DurationFault::NoUnit),
            ("500mss", DurationFault::UnknownUnit(Some("ms"))),
            ("5parsecs", DurationFault::UnknownUnit(None)),
            ("1_000ns", DurationFault::UnknownUnit(None)),
            ("-1ms", DurationFault::Malformed),
            ("1.2.3s", DurationFault::Malformed),
            ("1.s", DurationFault::Malformed),
            ("0.5ns", DurationFault::Malformed),
            ("0ms", DurationFault::Zero),
            ("0.0s", DurationFault::Zero),
            ("9223372036854775808ns", DurationFault::TooLong),
            ("99999999999999999h", DurationFault::TooLong),
            ("99999999999999999999999999999999999999999999ns", DurationFault::TooLong),
        ] {
            assert_eq!(nanoseconds(text), Err(fault), "{text}");
        }
        assert!(nanoseconds(&format!("0.{}1s", "0".repeat(60))).is_err());
    }
}
