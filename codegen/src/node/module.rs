//! `index.js`: an object for each frame, enum, counter and histogram.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::schema::Enum;

use super::comment::{banner, doc};
use super::frames;
use super::spelling::{area_bytes, escaped, lower_camel, made};
use crate::c::metrics::{about, argument};
use crate::model::{ABOUT_LENGTH, BufferModel, Stamp};
use crate::text::GeneratedText;

const RUNTIME: &str = include_str!("../../runtime/node/runtime.js");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "Node's module", "//", &mut out);
    out.line("'use strict';");
    out.blank();
    out.line("const ppt_fs = require('node:fs'), ppt_node_path = require('node:path');");
    out.line(&format!(
        "const PPT_BUFFER = '{}', PPT_ADDON = '{}_node';",
        model.buffer(),
        escaped(model.stem)
    ));
    out.line(&format!("const PPT_MADE = '{}', PPT_AREA = {};", made(model), area_bytes(model)));
    out.block(RUNTIME);
    out.blank();
    public(model, &mut out);
    model.schema.enums.iter().for_each(|declared| enumeration(declared, &mut out));
    model.frames.iter().for_each(|frame| frames::emit(model, frame, &mut out));
    model.metrics.iter().for_each(|declared| metric(model, declared, &mut out));
    out.finish()
}

fn public(model: &BufferModel<'_>, out: &mut GeneratedText) {
    out.line("exports.NOW = ppt_NOW;");
    let mut function = |name: &str, arguments: &str, about: &str, body: &[String]| {
        doc(about, "", &[], out);
        out.open(&format!("exports.{name} = ({arguments}) => {{"));
        out.lines(body.iter().map(String::as_str));
        out.close("};");
    };
    let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    function("on", "", ABOUT_ON, &lines(&["return ppt_page[1] !== 0;"]));
    function("failure", "", ABOUT_FAILURE, &lines(&["return ppt_failure;"]));
    let prepare = ["if (ppt_page[1] !== 0)", "    ppt_native.prepare();"];
    function("prepare", "", ABOUT_PREPARE, &lines(&prepare));
    let allow = ["if (PPT_PRESENT)", "    ppt_native.allow_attach();"];
    function("allowAttach", "", ABOUT_ALLOW, &lines(&allow));
    for stamp in &model.stamps {
        let mut body = lines(&["if (ppt_page[1] === 0)", "    return 0n;"]);
        body.push(format!("ppt_native.{}();", stamp.name));
        body.push(format!("return {};", nanoseconds(stamp)));
        function(&lower_camel(&stamp.name), "", &about_stamp(stamp), &body);
        if let Some(length) = stamp.length() {
            let name = lower_camel(&length);
            let mut body = lines(&["if (!PPT_PRESENT)", "    return -1;"]);
            for (at, argument) in [(0, "start"), (2, "end")] {
                body.push(format!("ppt_put_u64({at}, {argument}, '{name} ({argument})');"));
            }
            body.push(format!("ppt_native.{length}();"));
            body.push("return Number(ppt_i64[0]);".into());
            function(&name, "start, end", ABOUT_LENGTH, &body);
        }
    }
    if model.hashes {
        let given = |function: &str, absent: &str| {
            let mut body = lines(&["if (!PPT_PRESENT || data === undefined || data === null)"]);
            body.push(format!("    return {absent};"));
            body.push(format!(
                "ppt_native.{function}(typeof data === 'string' ? Buffer.from(data) \
                 : ppt_bytes(data, '{function} (data)'));"
            ));
            body
        };
        let mut hash = given("hash", "0n");
        hash.push("return ppt_u64[0];".into());
        function("hash", "data", ABOUT_HASHES[0], &hash);
        let number = [
            "if (!PPT_PRESENT)",
            "    return 0n;",
            "ppt_put_u64(0, ppt_needed(number, 'hashU64 (number)'), 'hashU64 (number)');",
            "ppt_native.hash_u64();",
            "return ppt_u64[0];",
        ];
        function("hashU64", "number", ABOUT_HASHES[1], &lines(&number));
        let mut hash = given("hash128", "new Uint8Array(16)");
        hash.push("return ppt_u8.slice(0, 16);".into());
        function("hash128", "data", ABOUT_HASHES[2], &hash);
    }
    out.blank();
}

pub(super) const ABOUT_ON: &str = "Whether somebody is attached: a load and a branch.";
pub(super) const ABOUT_FAILURE: &str =
    "Why the addon could not be loaded, so that no frames are written; null if it is there.";
pub(super) const ABOUT_PREPARE: &str =
    "Does the slow work of this thread's first frame in advance.";
pub(super) const ABOUT_ALLOW: &str =
    "Lets every process of this user attach, even if Yama allows only ancestors.";
pub(super) const ABOUT_HASHES: [&str; 3] = [
    "The hash of bytes, or of a text's UTF-8, for fields of type `hash`: XXH3, 64 bits; 0 of none.",
    "The hash of the 8 bytes of a number.",
    "The same as `hash` for fields of type `hash128`, as 16 bytes.",
];

pub(super) fn about_stamp(stamp: &Stamp<'_>) -> String {
    let unit = if stamp.clock.is_some() { ", in nanoseconds" } else { "" };
    format!("{}{unit}; 0 while nobody is attached.", stamp.about())
}

/// The values that C has stored at the start of the area.
fn nanoseconds(stamp: &Stamp<'_>) -> &'static str {
    match stamp.stored {
        Stored::Timeval => "ppt_i64[0] * 1000000000n + ppt_i64[1] * 1000n",
        Stored::Timespec => "ppt_i64[0] * 1000000000n + ppt_i64[1]",
        _ if stamp.clock.is_none() => "ppt_u64[0]",
        _ => "ppt_i64[0]",
    }
}

/// The literal of an enum's value: a number if that is exact, otherwise a bigint.
pub(super) fn literal(value: i128) -> String {
    let is_safe = value.unsigned_abs() < 1 << 53;
    format!("{value}{}", if is_safe { "" } else { "n" })
}

fn enumeration(declared: &Enum, out: &mut GeneratedText) {
    doc(&format!("The enum `{}`.", declared.name), &declared.doc, &[], out);
    out.open(&format!("exports.{} = Object.freeze({{", declared.name));
    for (name, value) in &declared.values {
        out.line(&format!("{name}: {},", literal(*value)));
    }
    out.close("});");
    out.blank();
}

/// The values that a counter or a histogram takes.
pub(super) fn about_value(metric: &Metric) -> String {
    let values = match metric.shape {
        MetricShape::Counter => "how much; unsigned",
        MetricShape::UpDownCounter => "how much; negative to take from it",
        MetricShape::Exponential => "nanoseconds",
        MetricShape::Linear { .. } => "from 0 to 4294967295",
    };
    let unit = if metric.unit.is_empty() { String::new() } else { format!("; in {}", metric.unit) };
    let unit = crate::c::comment::comment(&unit).replace('@', "(at)");
    format!("@param {} {values}{unit}", argument(metric).1)
}

fn metric(model: &BufferModel<'_>, metric: &Metric, out: &mut GeneratedText) {
    let (name, verb) = (&metric.name, metric.shape.verb());
    let value = argument(metric).1;
    let bit = model.bit_of(metric);
    doc(&format!("The {} `{name}`.", metric.shape.kind()), &metric.doc, &[], out);
    out.open(&format!("exports.{name} = Object.freeze({{"));
    out.line("/** Whether somebody is attached who wants it. */");
    out.open("on() {");
    out.line(&format!("return ppt_wanted({bit});"));
    out.close("},");
    doc(&format!("{}, if somebody is attached.", about(metric)), "", &[about_value(metric)], out);
    out.open(&format!("{verb}({value}) {{"));
    out.line(&format!("if (ppt_page[1] === 0 || !ppt_enabled({bit}))"));
    out.line("    return;");
    let place = format!("'{name} ({})'", metric.shape.ty());
    let needed = format!("ppt_needed({value}, {place})");
    match metric.shape {
        MetricShape::Counter => out.line(&format!("ppt_put_u64(0, {needed}, {place});")),
        MetricShape::UpDownCounter | MetricShape::Exponential => {
            out.line(&format!("ppt_put_i64(0, {needed}, {place});"));
        }
        MetricShape::Linear { .. } => out.line(&format!("ppt_put_u32(0, {needed}, {place});")),
    }
    out.line(&format!("ppt_native.{verb}_{name}();"));
    out.close("},");
    out.close("});");
    out.blank();
}
