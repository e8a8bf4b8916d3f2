//! The interface of a frame: its struct, and the functions that write it.

use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;

use super::comment::{about_field, doc};
use super::spelling::{arguments, given, given_type, now, of_form, passed, writer};
use crate::model::{BufferModel, FieldModel, FrameModel, MarkValue, ScopeInterval, WriteForm};
use crate::text::GeneratedText;

pub(super) fn emit(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    for &half in frame.halves() {
        structure(frame, half, out);
    }
    let camel = upper_camel(frame.name);
    let name = frame.name;
    out.line(&format!(
        "// On{camel} reports whether somebody is attached who wants frames `{name}`."
    ));
    out.open(&format!("func On{camel}() bool {{"));
    out.line(&format!("return ppt_on() && ppt_enabled({})", frame.id));
    out.close("}");
    out.blank();
    for form in &frame.forms {
        function(frame, form, out);
    }
    if let Some(interval) = frame.interval() {
        scope(model, frame, interval, out);
    }
}

fn structure(frame: &FrameModel<'_>, half: Option<SpanHalf>, out: &mut GeneratedText) {
    let name = given(frame, half);
    let summary = match half {
        None => format!("{name} is a frame `{}`", frame.name),
        Some(half) => format!("{name} is the {} of a span `{}`", half.word(), frame.name),
    };
    doc(&summary, frame.doc, out);
    if frame.given_in(half).count() == 0 {
        out.line(&format!("type {name} struct{{}}"));
        out.blank();
        return;
    }
    out.open(&format!("type {name} struct {{"));
    for field in frame.given_in(half) {
        let name = upper_camel(field.name);
        out.line(&format!("// {name}: {}", about_field(field)));
        out.line(&format!("{name} {}", given_type(field)));
    }
    out.close("}");
    out.blank();
}

/// The doc comment of a function that writes.
fn about(frame: &FrameModel<'_>, form: &WriteForm<'_>) -> String {
    let name = frame.name;
    match form.mark.as_ref().map(|mark| (mark.field, &mark.value)) {
        None => format!("writes a frame `{name}`, if somebody is attached."),
        Some((_, MarkValue::Named(value, _))) => {
            format!("writes a frame `{name}` as {value}, if somebody is attached.")
        }
        Some((field, MarkValue::Argument(_))) => {
            format!("writes a frame `{name}` as that {field}, if somebody is attached.")
        }
    }
}

fn function(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let name = writer(frame, form);
    out.line(&format!("// {name} {}", about(frame, form)));
    out.open(&format!("func {name}({}) {{", arguments(frame, form, "")));
    out.open("if ppt_on() {");
    out.line(&format!("ppt_{}({})", of_form(frame, form), passed(form, "&f")));
    out.close("}");
    out.close("}");
    out.blank();
}

/// The type of a begun interval, and its functions.
fn scope(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    ScopeInterval { start, end }: ScopeInterval<&FieldModel<'_>>,
    out: &mut GeneratedText,
) {
    let camel = upper_camel(frame.name);
    let [start_field, end_field] = [start, end].map(|field| upper_camel(field.name));
    out.line(&format!(
        "// ScopeOf{camel} is an interval that has begun: of no thread and no goroutine."
    ));
    out.open(&format!("type ScopeOf{camel} struct {{"));
    out.line("start int64");
    out.close("}");
    out.blank();
    out.line(&format!("// Start{camel} stamps {start_field} now. End stamps {end_field}."));
    out.line("// If nobody is attached, the interval does nothing.");
    out.open(&format!("func Start{camel}() (scope ScopeOf{camel}) {{"));
    out.open("if ppt_on() {");
    out.line(&format!("scope.start = ppt_start_{}()", frame.name));
    out.close("}");
    out.line("return scope");
    out.close("}");
    out.blank();
    out.open(&format!("func ppt_start_{}() int64 {{", frame.name));
    out.open(&format!("if !ppt_enabled({}) {{", frame.id));
    out.line("return 0");
    out.close("}");
    out.line(&format!("return {}()", now(model.stamp_of(start))));
    out.close("}");
    out.blank();
    out.line("// On reports whether End writes a frame.");
    out.open(&format!("func (scope *ScopeOf{camel}) On() bool {{"));
    out.line("return scope.start != 0");
    out.close("}");
    out.blank();
    out.line("// Abandon writes no frame after all.");
    out.open(&format!("func (scope *ScopeOf{camel}) Abandon() {{"));
    out.line("scope.start = 0");
    out.close("}");
    out.blank();
    out.line(&format!(
        "// End writes a frame `{}`, once, with the fields of f other than start and end.",
        frame.name
    ));
    out.open(&format!("func (scope *ScopeOf{camel}) End(f {camel}) {{"));
    out.open("if scope.start != 0 {");
    out.line(&format!("f.{start_field}, f.{end_field} = scope.start, NOW"));
    out.line("scope.start = 0");
    out.line(&format!("ppt_{}(&f)", of_form(frame, &frame.forms[0])));
    out.close("}");
    out.close("}");
    out.blank();
}
