//! Attributes: `@at`, `@unit("B")`, and those that are reserved for later versions.

use std::collections::HashMap;

use super::names;
use super::options::{self, ChosenClock};
use ppt_text::nearest;

use crate::ast;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::mistake::{AttributeMistake, MetricMistake, NameKind};
use crate::role::{IN, OUT, SpanHalf};
use crate::schema::Attribute;

const KNOWN: [&str; 18] = [
    "at", "unit", "clock", "group", "name", "track", "flow", "counter", "span", "chain", "key",
    "raw", "point", "in", "out", "begin", "end", "thread",
];

/// The meaning of the attributes of a field.
#[derive(Default)]
pub(super) struct FieldAttributes {
    /// The span of `@at`.
    pub at: Option<SourceRange>,
    /// The span of `@key`.
    pub key: Option<SourceRange>,
    /// The span of `@raw`.
    pub raw: Option<SourceRange>,
    /// The span of `@thread`.
    pub thread: Option<SourceRange>,
    /// `@in(…)` and `@out(…)`.
    pub sides: Vec<PointSide>,
    /// `@begin` and `@end`, with their spans.
    pub halves: Vec<(SpanHalf, SourceRange)>,
    pub unit: String,
    /// `@clock(…)` with its span.
    pub clock: Option<(ChosenClock, SourceRange)>,
    /// All attributes, as kept in the schema.
    pub kept: Vec<Attribute>,
}

/// One side of a point to which a field belongs, and the hash type.
#[derive(Clone)]
pub(super) struct PointSide {
    /// Key in JSON, and name of the attribute.
    pub key: &'static str,
    pub ty: ast::SourceWord,
    /// From `@` to the closing bracket.
    pub place: SourceRange,
}

/// The attributes of a field.
pub(super) fn of_field(
    attributes: &[ast::Attribute],
    sink: &mut DiagnosticSink,
) -> FieldAttributes {
    known_and_single(attributes, sink);
    let mut said = FieldAttributes { kept: kept(attributes), ..FieldAttributes::default() };
    for attribute in attributes {
        match attribute.name.text.as_str() {
            "at" if attribute.arguments.is_empty() => said.at = Some(attribute.span.clone()),
            "at" => wrong_form(attribute, "@at", sink),
            "key" if attribute.arguments.is_empty() => said.key = Some(attribute.span.clone()),
            "key" => wrong_form(attribute, "@key", sink),
            "raw" if attribute.arguments.is_empty() => said.raw = Some(attribute.span.clone()),
            "raw" => wrong_form(attribute, "@raw", sink),
            "thread" if attribute.arguments.is_empty() => {
                said.thread = Some(attribute.span.clone());
            }
            "thread" => wrong_form(attribute, "@thread", sink),
            "in" => side(attribute, IN, "@in(messageid)", &mut said, sink),
            "out" => side(attribute, OUT, "@out(payload)", &mut said, sink),
            "begin" => half(attribute, SpanHalf::Begin, "@begin", &mut said, sink),
            "end" => half(attribute, SpanHalf::End, "@end", &mut said, sink),
            "span" | "chain" | "point" => {
                let name = attribute.name.text.clone();
                sink.report(attribute.span.clone(), AttributeMistake::AttributeOnField { name });
            }
            "unit" => said.unit = unit(attribute, sink),
            "clock" => match only_argument(attribute) {
                Some(word) => {
                    let clock = options::field_clock(word, sink);
                    said.clock = clock.map(|clock| (clock, attribute.span.clone()));
                }
                None => wrong_form(attribute, "@clock(monotonic)", sink),
            },
            "group" => group(attribute, sink),
            _ => {}
        }
    }
    said
}

/// The attributes of a frame, as kept in the schema.
pub(super) fn of_frame(attributes: &[ast::Attribute], sink: &mut DiagnosticSink) -> Vec<Attribute> {
    known_and_single(attributes, sink);
    for attribute in attributes {
        match attribute.name.text.as_str() {
            name @ ("at" | "unit" | "clock" | "key" | "raw" | "in" | "out" | "begin" | "end"
            | "thread") => {
                let name = name.to_owned();
                sink.report(attribute.span.clone(), AttributeMistake::AttributeOnFrame { name });
            }
            "group" => group(attribute, sink),
            _ => {}
        }
    }
    kept(attributes)
}

/// The meaning of the attributes of a counter or a histogram.
pub(super) struct MetricAttributes {
    pub unit: String,
    /// All attributes, as kept in the schema.
    pub kept: Vec<Attribute>,
}

/// The attributes of a counter or a histogram.
pub(super) fn of_metric(
    attributes: &[ast::Attribute],
    sink: &mut DiagnosticSink,
) -> MetricAttributes {
    known_and_single(attributes, sink);
    let mut said = MetricAttributes { unit: String::new(), kept: kept(attributes) };
    for attribute in attributes {
        match attribute.name.text.as_str() {
            "unit" => said.unit = unit(attribute, sink),
            "group" => group(attribute, sink),
            name @ ("at" | "clock" | "key" | "raw" | "span" | "chain" | "point" | "in" | "out"
            | "begin" | "end" | "thread") => {
                let name = name.to_owned();
                sink.report(attribute.span.clone(), MetricMistake::AttributeOnMetric { name });
            }
            _ => {}
        }
    }
    said
}

fn half(
    attribute: &ast::Attribute,
    half: SpanHalf,
    form: &'static str,
    said: &mut FieldAttributes,
    sink: &mut DiagnosticSink,
) {
    if !attribute.arguments.is_empty() {
        wrong_form(attribute, form, sink);
    } else if said.halves.iter().all(|(known, _)| *known != half) {
        // If it is given twice, the first counts.
        said.halves.push((half, attribute.span.clone()));
    }
}

fn side(
    attribute: &ast::Attribute,
    key: &'static str,
    form: &'static str,
    said: &mut FieldAttributes,
    sink: &mut DiagnosticSink,
) {
    let is_word = |text: &str| !text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let ty = match attribute.arguments.as_slice() {
        [one] if !one.quoted && is_word(&one.word.text) => &one.word,
        _ => return wrong_form(attribute, form, sink),
    };
    names::check(NameKind::HashType, ty, sink);
    // If it is given twice, the first counts.
    if said.sides.iter().all(|side| side.key != key) {
        said.sides.push(PointSide { key, ty: ty.clone(), place: attribute.span.clone() });
    }
}

fn unit(attribute: &ast::Attribute, sink: &mut DiagnosticSink) -> String {
    match only_argument(attribute) {
        Some(unit) if !unit.text.is_empty() => unit.text.clone(),
        _ => {
            wrong_form(attribute, "@unit(\"B\")", sink);
            String::new()
        }
    }
}

fn known_and_single(attributes: &[ast::Attribute], sink: &mut DiagnosticSink) {
    let mut seen = HashMap::new();
    for attribute in attributes {
        let name = attribute.name.text.as_str();
        if let Some(first) = seen.insert(name, attribute.span.clone()) {
            let note = DiagnosticNote { span: first, label: "first given here".to_owned() };
            let mistake = AttributeMistake::AttributeTwice { name: name.to_owned() };
            sink.report_with(attribute.span.clone(), mistake, [note]);
        } else if !KNOWN.contains(&name) {
            let suggestion = if sink.is_full() { None } else { nearest(name, KNOWN) };
            let mistake = AttributeMistake::UnknownAttribute { name: name.to_owned(), suggestion };
            sink.report(attribute.span.clone(), mistake);
        }
    }
}

fn group(attribute: &ast::Attribute, sink: &mut DiagnosticSink) {
    if only_argument(attribute).is_none() {
        wrong_form(attribute, "@group(net)", sink);
    }
}

fn only_argument(attribute: &ast::Attribute) -> Option<&ast::SourceWord> {
    match attribute.arguments.as_slice() {
        [one] => Some(&one.word),
        _ => None,
    }
}

fn wrong_form(attribute: &ast::Attribute, form: &'static str, sink: &mut DiagnosticSink) {
    let name = attribute.name.text.clone();
    sink.report(attribute.span.clone(), AttributeMistake::AttributeArguments { name, form });
}

fn kept(attributes: &[ast::Attribute]) -> Vec<Attribute> {
    let args = |attribute: &ast::Attribute| {
        attribute.arguments.iter().map(|argument| argument.word.text.clone()).collect()
    };
    attributes
        .iter()
        .map(|attribute| Attribute { name: attribute.name.text.clone(), args: args(attribute) })
        .collect()
}
