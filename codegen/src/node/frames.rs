//! The object of a frame, with the functions that write it.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::role::SpanHalf;

use super::comment::{about_field, doc};
use super::spelling::{
    AreaWrite, chosen, field_at, half_name, of_form, place, put, range, stamp_bit,
};
use crate::model::{BufferModel, FieldModel, FrameModel, ScopeInterval, WriteForm};
use crate::text::GeneratedText;

/// The number of 32-bit words of a stamp.
fn stamp_words(stored: Stored<'_>) -> u32 {
    stored.size() / 4
}

pub(super) fn emit(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    for &half in frame.halves() {
        names(frame, half, out);
        put_fields(model, frame, half, out);
    }
    for form in &frame.forms {
        if frame.given_in(form.half).count() > 0 {
            made(frame, form, out);
        }
    }
    if let Some(interval) = frame.interval() {
        scope(model, frame, interval, out);
    }
    let summary = format!("The frame `{}` of buffer `{}`.", frame.name, model.buffer());
    doc(&summary, frame.doc, &[], out);
    out.open(&format!("const ppt_frame_{} = Object.freeze({{", frame.name));
    out.line(
        "/** Whether somebody is attached who wants it: a load and a branch while nobody is. */",
    );
    out.open("on() {");
    out.line(&format!("return ppt_wanted({});", frame.id));
    out.close("},");
    for form in &frame.forms {
        method(frame, form, out);
    }
    if let Some(interval) = frame.interval() {
        scope_method(model, frame, interval.start, out);
    }
    out.close("});");
    out.line(&format!("exports.{0} = ppt_frame_{0};", frame.name));
    out.blank();
}

/// The fields of a frame that a method takes: of a scope, all except those that it stamps.
fn given<'m, 'a>(
    frame: &'m FrameModel<'a>,
    half: Option<SpanHalf>,
    scope: Option<ScopeInterval<&'m FieldModel<'a>>>,
) -> impl Iterator<Item = &'m FieldModel<'a>> {
    frame.given_in(half).filter(move |field| {
        scope.is_none_or(|scope| field.name != scope.start.name && field.name != scope.end.name)
    })
}

fn names(frame: &FrameModel<'_>, half: Option<SpanHalf>, out: &mut GeneratedText) {
    let names: Vec<_> = frame.given_in(half).map(|field| format!("'{}'", field.name)).collect();
    if !names.is_empty() {
        let list = list("const ppt_names_", &half_name(frame, half), " = new Set([", &names, "]);");
        out.lines(list.iter().map(String::as_str));
    }
}

/// Items on one line, or on a line each if there are many.
fn list(head: &str, name: &str, open: &str, items: &[String], tail: &str) -> Vec<String> {
    let line = format!("{head}{name}{open}{}{tail}", items.join(", "));
    if line.len() <= 100 {
        return vec![line];
    }
    let first = format!("{head}{name}{open}");
    let items = items.iter().map(|item| format!("    {item},"));
    std::iter::once(first).chain(items).chain([tail.to_owned()]).collect()
}

fn call(function: &str, values: &[String], tail: &str, out: &mut GeneratedText) {
    let lines = list("", function, "(", values, tail);
    out.lines(lines.iter().map(String::as_str));
}

fn open(head: &str, arguments: &[String], out: &mut GeneratedText) {
    let mut lines = list("", head, "(", arguments, ") {");
    let last = lines.pop().unwrap_or_default();
    out.lines(lines.iter().map(String::as_str));
    out.open(&last);
}

/// The function that writes the fields into the area.
fn put_fields(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    half: Option<SpanHalf>,
    out: &mut GeneratedText,
) {
    let arguments: Vec<_> = frame.given_in(half).map(|field| field.name.to_owned()).collect();
    open(&format!("function ppt_put_of_{}", half_name(frame, half)), &arguments, out);
    for field in frame.given_in(half) {
        if let Some(reading) = read_first(frame, field) {
            out.line(&format!("{} = {reading};", field.name));
        }
    }
    let stamped = frame.given().filter(|model| model.stamp.is_some()).count() as u32;
    for word in 0..stamped.div_ceil(32) {
        out.line(&format!("ppt_u32[{}] = 0;", 6 + word));
    }
    for field in frame.given_in(half) {
        let statement = put_field(model, frame, field);
        match stamp_bit(frame, field) {
            Some(bit) => {
                out.line(&format!("if ({} === ppt_NOW)", field.name));
                out.line(&format!("    ppt_u32[{}] |= {};", 6 + bit / 32, 1_u32 << (bit % 32)));
                out.line("else");
                out.line(&format!("    {statement}"));
            }
            None => out.line(&statement),
        }
    }
    out.close("}");
    out.blank();
}

/// The statement that reads a value before any is stored, because reading may run code of the program that
/// writes a frame.
fn read_first(frame: &FrameModel<'_>, field: &FieldModel<'_>) -> Option<String> {
    let (name, place) = (field.name, place(frame, field));
    match (field.stored, field.array) {
        (Stored::Bytes { .. }, _) => Some(format!("ppt_bytes_or_null({name}, {place})")),
        (Stored::Text { .. }, _) | (_, None) => None,
        (_, Some(count)) => Some(format!("ppt_elements({name}, {count}, {place})")),
    }
}

fn put_field(model: &BufferModel<'_>, frame: &FrameModel<'_>, field: &FieldModel<'_>) -> String {
    let (name, place) = (field.name, place(frame, field));
    let AreaWrite { suffix, unit } = put(field.stored);
    let at = field_at(model, frame, field) / unit;
    match (field.stored, field.array) {
        (Stored::Text { len }, _) => format!("ppt_put_{suffix}({at}, {len}, {name}, {place});"),
        (Stored::Bytes { len }, _) => format!("ppt_put_{suffix}({at}, {len}, {name});"),
        (stored, Some(count)) => {
            let stride = stored.size() / unit;
            format!("ppt_put_array(ppt_put_{suffix}, {at}, {stride}, {count}, {name}, {place});")
        }
        _ => format!("ppt_put_{suffix}({at}, {name}, {place});"),
    }
}

/// Statements that store the other data of a form, after the fields, as reading those may run code of the
/// program.
fn put_mark(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let Some(mark) = chosen(form) else { return };
    let place = format!("'{}.{} ({})'", frame.name, mark.field, mark.enum_type.name);
    let given = format!("ppt_needed({}, {place})", mark.field);
    match range(mark.enum_type.repr) {
        Some((min, max)) => {
            out.line(&format!("ppt_put_exact(4, ppt_integer({given}, {min}, {max}, {place}));"));
        }
        None => out.line(&format!("ppt_put_i64(4, {given}, {place});")),
    }
}

/// The function that writes a frame whose fields a function makes.
fn made(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let half = half_name(frame, form.half);
    let mark = chosen(form).map(|mark| mark.field.to_owned());
    let arguments: Vec<_> = mark.into_iter().chain(["ppt_make".into()]).collect();
    open(&format!("function ppt_made_{}", of_form(frame, form)), &arguments, out);
    let stamped = frame.own_stamp().is_some();
    if stamped {
        out.line("ppt_native.ticks();");
        out.line("const ppt_low = ppt_i32[0], ppt_high = ppt_i32[1];");
    }
    out.line(&format!(
        "const ppt_fields = ppt_made(ppt_make, ppt_names_{half}, '{}');",
        frame.name
    ));
    out.lines(["if (ppt_fields === null)", "    return;"]);
    let values: Vec<_> =
        frame.given_in(form.half).map(|field| format!("ppt_fields.{}", field.name)).collect();
    call(&format!("ppt_put_of_{half}"), &values, ");", out);
    put_mark(frame, form, out);
    if stamped {
        out.lines(["ppt_i32[0] = ppt_low;", "ppt_i32[1] = ppt_high;"]);
    }
    out.line(&format!("ppt_native.{}();", of_form(frame, form)));
    out.close("}");
    out.blank();
}

fn about(form: &WriteForm<'_>) -> String {
    use crate::model::MarkValue;
    match form.mark.as_ref().map(|mark| (mark.field, &mark.value)) {
        None => "Writes a frame, if somebody is attached.".into(),
        Some((_, MarkValue::Named(value, _))) => {
            format!("Writes a frame as `{value}`, if somebody is attached.")
        }
        Some((field, MarkValue::Argument(_))) => {
            format!("Writes a frame as that {field}, if somebody is attached.")
        }
    }
}

/// The doc comments of a method's arguments.
pub(super) fn about_form(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let mark = chosen(form).map(|mark| format!("@param {} which it is", mark.field));
    let fields = frame.given_in(form.half);
    let tags = fields.map(|field| format!("@param {} {}", field.name, about_field(field)));
    doc(&about(form), "", &mark.into_iter().chain(tags).collect::<Vec<_>>(), out);
}

fn method(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    about_form(frame, form, out);
    let fields: Vec<_> = frame.given_in(form.half).map(|field| field.name.to_owned()).collect();
    let mark = chosen(form).map(|mark| mark.field.to_owned());
    let arguments: Vec<_> = mark.iter().cloned().chain(fields.iter().cloned()).collect();
    open(form.verb, &arguments, out);
    out.line(&format!("if (ppt_page[1] === 0 || !ppt_enabled({}))", frame.id));
    out.line("    return;");
    if let Some(first) = fields.first() {
        let given: Vec<_> = mark.into_iter().chain([first.clone()]).collect();
        out.line(&format!("if (typeof {first} === 'function')"));
        out.line(&format!("    return ppt_made_{}({});", of_form(frame, form), given.join(", ")));
    }
    call(&format!("ppt_put_of_{}", half_name(frame, form.half)), &fields, ");", out);
    put_mark(frame, form, out);
    if frame.own_stamp().is_some() {
        out.line("ppt_i32[0] = ppt_i32[1] = 0;");
    }
    out.line(&format!("ppt_native.{}();", of_form(frame, form)));
    out.close("},");
}

/// The class of an interval.
fn scope(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    interval: ScopeInterval<&FieldModel<'_>>,
    out: &mut GeneratedText,
) {
    let ScopeInterval { start, end } = interval;
    let name = frame.name;
    let words = stamp_words(start.stored);
    let form = &frame.forms[0];
    out.open(&format!("class ppt_scope_of_{name} {{"));
    out.open("constructor(open) {");
    out.line("this.ppt_open = open;");
    (0..words).for_each(|word| out.line(&format!("this.ppt_{word} = ppt_i32[{word}];")));
    out.close("}");
    out.blank();
    out.open("abandon() {");
    // All callers share the inactive one, because it is never written to.
    out.lines(["if (this.ppt_open)", "    this.ppt_open = false;"]);
    out.close("}");
    out.blank();
    let fields: Vec<_> =
        given(frame, None, Some(interval)).map(|field| field.name.to_owned()).collect();
    open("end", &fields, out);
    out.lines(["if (!this.ppt_open)", "    return;", "this.ppt_open = false;"]);
    if let Some(first) = fields.first() {
        out.open(&format!("if (typeof {first} === 'function') {{"));
        out.line(&format!("const ppt_fields = ppt_made({first}, ppt_names_{name}, '{name}');"));
        out.lines(["if (ppt_fields === null)", "    return;"]);
        let value = |field: &FieldModel<'_>| stamps_or(field, interval, "ppt_fields.");
        let values: Vec<_> = frame.given_in(None).map(value).collect();
        call(&format!("ppt_put_of_{name}"), &values, ");", out);
        out.close("} else {");
        out.open_again();
    }
    let values: Vec<_> = frame.given_in(None).map(|field| stamps_or(field, interval, "")).collect();
    call(&format!("ppt_put_of_{name}"), &values, ");", out);
    if !fields.is_empty() {
        out.close("}");
    }
    let at = field_at(model, frame, start) / 4;
    for word in 0..words {
        out.line(&format!("ppt_i32[{}] = this.ppt_{word};", at + word));
    }
    let bit = stamp_bit(frame, end).expect("an end is stamped");
    out.line(&format!("ppt_u32[{}] |= {};", 6 + bit / 32, 1_u32 << (bit % 32)));
    out.line(&format!("ppt_native.{}();", of_form(frame, form)));
    out.close("}");
    out.close("}");
    out.line(&format!("const ppt_off_{name} = new ppt_scope_of_{name}(false);"));
    out.blank();
}

/// The value of a field when a scope is written.
fn stamps_or(
    field: &FieldModel<'_>,
    ScopeInterval { start, end }: ScopeInterval<&FieldModel<'_>>,
    prefix: &str,
) -> String {
    if field.name == start.name || field.name == end.name {
        "0".into()
    } else {
        format!("{prefix}{}", field.name)
    }
}

fn scope_method(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    start: &FieldModel<'_>,
    out: &mut GeneratedText,
) {
    let name = frame.name;
    let about = format!(
        "Stamps `{}` now. What it returns stamps the end, and writes the frame with the other fields.",
        start.name
    );
    doc(&about, "", &[], out);
    out.open("scope() {");
    out.line(&format!("if (ppt_page[1] === 0 || !ppt_enabled({}))", frame.id));
    out.line(&format!("    return ppt_off_{name};"));
    out.line(&format!("ppt_native.{}();", model.stamp_of(start).name));
    out.line(&format!("return new ppt_scope_of_{name}(true);"));
    out.close("},");
}
