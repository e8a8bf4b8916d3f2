//! `frames.go`: the package's interface for programs.

use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::schema::Enum;

use super::comment::{banner, doc};
use super::frames;
use super::spelling::{added, enum_value, has_lengths, int, now};
use crate::c::metrics::about;
use crate::model::{ABOUT_LENGTH, BufferModel, Stamp};
use crate::text::GeneratedText;

const RUNTIME: &str = include_str!("../../runtime/go/runtime.go");
const HASHES: &str = include_str!("../../runtime/go/hash.go");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "Go's package", &mut out);
    let buffer = model.buffer();
    out.line(&format!(
        "// Package {buffer} writes the frames of the buffer `{buffer}` while ppt is attached."
    ));
    out.line(&format!("package {buffer}"));
    out.blank();
    out.open("import (");
    out.line("\"sync/atomic\"");
    if has_lengths(model) {
        out.line("\"time\"");
    }
    if model.hashes {
        out.line("\"unsafe\"");
    }
    out.close(")");
    out.block(RUNTIME);
    out.blank();
    model.stamps.iter().for_each(|stamp| clock(stamp, &mut out));
    if model.hashes {
        out.block(HASHES);
        out.blank();
    }
    model.schema.enums.iter().for_each(|declared| enumeration(declared, &mut out));
    model.frames.iter().for_each(|frame| frames::emit(model, frame, &mut out));
    model.metrics.iter().for_each(|declared| metric(model, declared, &mut out));
    tabs(&out.finish())
}

/// The text as gofmt formats it: tabs, and one line end.
pub(super) fn tabs(text: &str) -> String {
    let mut tabbed = String::with_capacity(text.len());
    for line in text.trim_end().lines() {
        let rest = line.trim_start_matches(' ');
        tabbed.extend(std::iter::repeat_n('\t', (line.len() - rest.len()) / 4));
        tabbed += rest;
        tabbed.push('\n');
    }
    tabbed
}

fn clock(stamp: &Stamp<'_>, out: &mut GeneratedText) {
    let name = upper_camel(&stamp.name);
    let unit = if stamp.clock.is_some() { ", in nanoseconds" } else { "" };
    out.line(&format!("// {name}: {}{unit}; 0 while nobody is attached.", stamp.about()));
    out.open(&format!("func {name}() int64 {{"));
    out.open("if ppt_on() {");
    out.line(&format!("return {}()", now(stamp)));
    out.close("}");
    out.line("return 0");
    out.close("}");
    out.blank();
    if let Some(length) = stamp.length() {
        let name = upper_camel(&length);
        out.line(&format!("// {name}: {ABOUT_LENGTH}"));
        out.open(&format!("func {name}(start, end int64) time.Duration {{"));
        out.line(&format!("return time.Duration(ppt_{length}(start, end))"));
        out.close("}");
        out.blank();
    }
}

fn enumeration(declared: &Enum, out: &mut GeneratedText) {
    let name = upper_camel(&declared.name);
    doc(&format!("{name} is the enum `{}`", declared.name), &declared.doc, out);
    out.line(&format!("type {name} {}", int(declared.repr)));
    out.blank();
    let values =
        declared.values.iter().map(|(value, number)| (enum_value(declared, value), number));
    let values: Vec<_> = values.collect();
    let longest = values.iter().map(|(value, _)| value.len()).max().unwrap_or(0);
    out.line(&format!("// The values of {name}."));
    out.open("const (");
    for (value, number) in values {
        out.line(&format!("{value:longest$} {name} = {number}"));
    }
    out.close(")");
    out.blank();
}

fn metric(model: &BufferModel<'_>, metric: &Metric, out: &mut GeneratedText) {
    let (name, verb) = (&metric.name, metric.shape.verb());
    let camel = upper_camel(name);
    let (kind, bit) = (metric.shape.kind(), model.bit_of(metric));
    out.line(&format!(
        "// On{camel} reports whether somebody is attached who wants the {kind} `{name}`."
    ));
    out.open(&format!("func On{camel}() bool {{"));
    out.line(&format!("return ppt_on() && ppt_enabled({bit})"));
    out.close("}");
    out.blank();
    let function = upper_camel(verb) + &camel;
    let about = about(metric);
    let about = about[..1].to_ascii_lowercase() + &about[1..];
    doc(&format!("{function} {about}, if somebody is attached"), &metric.doc, out);
    let (argument, ty) = added(metric);
    out.open(&format!("func {function}({argument} {ty}) {{"));
    out.open("if ppt_on() {");
    let value = match metric.shape {
        MetricShape::Exponential => format!("int64({argument})"),
        _ => argument.into(),
    };
    out.line(&format!("ppt_{verb}_{name}({value})"));
    out.close("}");
    out.close("}");
    out.blank();
}
