//! `frames_cgo.go`: copies a frame into C's struct, and passes it to C.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;

use super::comment::banner;
use super::package::tabs;
use super::spelling::{
    arguments, chosen, given, half_name, now, of_form, stored_type, stored_value,
};
use crate::c::types::{half_type, int_type};
use crate::model::{BufferModel, FieldModel, FrameModel, MemberKind, WriteForm};
use crate::text::GeneratedText;

const RUNTIME: &str = include_str!("../../runtime/go/native.go");
const HASHES: &str = include_str!("../../runtime/go/native_hash.go");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "Go's calls of C", &mut out);
    out.line("//go:build cgo && linux && (amd64 || arm64)");
    out.blank();
    out.line(&format!("package {}", model.buffer()));
    out.blank();
    out.line("// #include \"frames_cgo.h\"");
    out.line("import \"C\"");
    out.blank();
    out.open("import (");
    out.line("\"unicode/utf8\"");
    out.line("\"unsafe\"");
    out.close(")");
    out.blank();
    out.line("// The control page, in words: memory of C.");
    out.line("var ppt_page = (*[64]uint64)(unsafe.Pointer(C.pptgo_page()))");
    out.blank();
    for name in ["prepare", "allow_attach"] {
        function(&format!("ppt_{name}()"), &[format!("C.pptgo_{name}()")], &mut out);
    }
    out.block(RUNTIME);
    out.blank();
    for stamp in &model.stamps {
        let body = format!("return int64(C.pptgo_{}())", stamp.name);
        function(&format!("{}() int64", now(stamp)), &[body], &mut out);
        if let Some(length) = stamp.length() {
            let given = "C.int64_t(start), C.int64_t(end)";
            let body = format!("return int64(C.pptgo_{length}({given}))");
            function(&format!("ppt_{length}(start, end int64) int64"), &[body], &mut out);
        }
    }
    if model.hashes {
        out.block(HASHES);
        out.blank();
    }
    for frame in &model.frames {
        structure(frame, &mut out);
        for &half in frame.halves() {
            put(frame, half, &mut out);
        }
        for form in &frame.forms {
            pass(frame, form, &mut out);
        }
    }
    model.metrics.iter().for_each(|metric| add(model, metric, &mut out));
    tabs(&out.finish())
}

pub(super) fn function(head: &str, body: &[String], out: &mut GeneratedText) {
    out.open(&format!("func {head} {{"));
    out.lines(body.iter().map(String::as_str));
    out.close("}");
    out.blank();
}

/// The struct with C's layout.
fn structure(frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let name = format!("ppt_frame_{}", frame.name);
    let mut members = Vec::new();
    let mut asserted = vec![format!("const _ = -(unsafe.Sizeof({name}{{}}) ^ {})", frame.size)];
    for member in &frame.members {
        members.push(match member.kind {
            MemberKind::Sequence => ("_".into(), "uint64".into()),
            MemberKind::FrameId => ("_".into(), "uint16".into()),
            MemberKind::Padding(bytes) => ("_".into(), format!("[{bytes}]byte")),
            MemberKind::Field(index) => {
                let field = format!("c_{}", frame.fields[index].name);
                let offset = format!("unsafe.Offsetof({name}{{}}.{field})");
                asserted.push(format!("const _ = -({offset} ^ {})", member.offset));
                (field, stored_type(&frame.fields[index]))
            }
        });
    }
    let longest = members.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    out.line("// As C has it: what does not fit does not compile.");
    out.open(&format!("type {name} struct {{"));
    for (field, ty) in members {
        out.line(&format!("{field:longest$} {ty}"));
    }
    out.close("}");
    out.blank();
    out.lines(asserted.iter().map(String::as_str));
    out.blank();
}

/// The function that copies a frame into the struct with C's layout.
fn put(frame: &FrameModel<'_>, half: Option<SpanHalf>, out: &mut GeneratedText) {
    if frame.given_in(half).count() == 0 {
        return;
    }
    let (given, name) = (given(frame, half), half_name(frame, half));
    out.open(&format!("func ppt_put_{name}(c *ppt_frame_{}, f *{given}) {{", frame.name));
    for field in frame.given_in(half) {
        put_field(field, out);
    }
    out.close("}");
    out.blank();
}

fn put_field(field: &FieldModel<'_>, out: &mut GeneratedText) {
    let (to, from) = (format!("c.c_{}", field.name), format!("f.{}", upper_camel(field.name)));
    if let Stored::Text { len } = field.stored {
        return out.line(&format!("copy({to}[:], ppt_text({from}, {len}))"));
    }
    let value = stored_value(field, if field.array.is_some() { "value" } else { &from });
    match (value, field.array) {
        (None, _) => out.line(&format!("{to} = {from}")),
        (Some(value), None) => out.line(&format!("{to} = {value}")),
        (Some(value), Some(_)) => {
            out.open(&format!("for i, value := range {from} {{"));
            out.line(&format!("{to}[i] = {value}"));
            out.close("}");
        }
    }
}

/// The function that writes a frame by one form, while ppt is attached.
fn pass(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let name = of_form(frame, form);
    out.open(&format!("func ppt_{name}({}) {{", arguments(frame, form, "*")));
    out.open(&format!("if !ppt_enabled({}) {{", frame.id));
    out.line("return");
    out.close("}");
    out.line(&format!("var c ppt_frame_{}", frame.name));
    if frame.given_in(form.half).count() > 0 {
        out.line(&format!("ppt_put_{}(&c, f)", half_name(frame, form.half)));
    }
    let passed = format!("*(*C.{})(unsafe.Pointer(&c))", half_type(frame, form.half));
    let mark = chosen(form).map_or_else(String::new, |mark| {
        format!("C.{}({}), ", int_type(mark.enum_type.repr), mark.field)
    });
    out.line(&format!("C.pptgo_{name}({mark}{passed})"));
    out.close("}");
    out.blank();
}

/// The types of C and Go of the value that is added to a counter or a histogram.
pub(super) fn added(metric: &Metric) -> (&'static str, &'static str) {
    match metric.shape {
        MetricShape::Counter => ("uint64_t", "uint64"),
        MetricShape::UpDownCounter | MetricShape::Exponential => ("int64_t", "int64"),
        MetricShape::Linear { .. } => ("uint32_t", "uint32"),
    }
}

fn add(model: &BufferModel<'_>, metric: &Metric, out: &mut GeneratedText) {
    let (verb, (c, go)) = (metric.shape.verb(), added(metric));
    out.open(&format!("func ppt_{verb}_{}(value {go}) {{", metric.name));
    out.open(&format!("if ppt_enabled({}) {{", model.bit_of(metric)));
    out.line(&format!("C.pptgo_{verb}_{}(C.{c}(value))", metric.name));
    out.close("}");
    out.close("}");
    out.blank();
}
