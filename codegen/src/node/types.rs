//! `index.d.ts`: the declarations of the module for TypeScript and editors.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::Metric;
use ppt_frame_dsl::schema::Enum;

use super::comment::{about_field, banner, doc};
use super::frames::about_form;
use super::module::{
    ABOUT_ALLOW, ABOUT_FAILURE, ABOUT_HASHES, ABOUT_ON, ABOUT_PREPARE, about_stamp, about_value,
    literal,
};
use super::spelling::{chosen, half_name, lower_camel};
use crate::c::metrics::{about, argument};
use crate::model::{ABOUT_LENGTH, BufferModel, FieldModel, FrameModel, WriteForm};
use crate::text::GeneratedText;

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "Types", "//", &mut out);
    // Without this, all declarations would be exports.
    out.lines(["export {};", ""]);
    out.line("type ppt_none = null | undefined;");
    out.line("type ppt_integer = number | bigint;");
    out.lines(["declare const ppt_of_now: unique symbol;", "interface ppt_now {"]);
    out.lines(["    readonly [ppt_of_now]: true;", "}"]);
    out.line("type ppt_list<T> = readonly T[] | (ArrayBufferView & ArrayLike<T>);");
    out.blank();
    public(model, &mut out);
    model.schema.enums.iter().for_each(|declared| enumeration(declared, &mut out));
    model.frames.iter().for_each(|frame| of_frame(model, frame, &mut out));
    model.metrics.iter().for_each(|declared| metric(declared, &mut out));
    out.finish()
}

fn public(model: &BufferModel<'_>, out: &mut GeneratedText) {
    doc("Stands for the time of the call in a field that can be stamped.", "", &[], out);
    out.line("export const NOW: ppt_now;");
    let mut function = |about: &str, declared: &str| {
        doc(about, "", &[], out);
        out.line(&format!("export const {declared};"));
    };
    function(ABOUT_ON, "on: () => boolean");
    function(ABOUT_FAILURE, "failure: () => Error | null");
    function(ABOUT_PREPARE, "prepare: () => void");
    function(ABOUT_ALLOW, "allowAttach: () => void");
    for stamp in &model.stamps {
        function(&about_stamp(stamp), &format!("{}: () => bigint", lower_camel(&stamp.name)));
        if let Some(length) = stamp.length() {
            let name = lower_camel(&length);
            let declared = format!("{name}: (start: ppt_integer, end: ppt_integer) => number");
            function(ABOUT_LENGTH, &declared);
        }
    }
    if model.hashes {
        let data = "(data: string | ArrayBufferView | ppt_none) =>";
        function(ABOUT_HASHES[0], &format!("hash: {data} bigint"));
        function(ABOUT_HASHES[1], "hashU64: (number: ppt_integer) => bigint");
        function(ABOUT_HASHES[2], &format!("hash128: {data} Uint8Array"));
    }
    out.blank();
}

fn enumeration(declared: &Enum, out: &mut GeneratedText) {
    let name = &declared.name;
    doc(&format!("The enum `{name}`."), &declared.doc, &[], out);
    out.open(&format!("export const {name}: {{"));
    for (value, number) in &declared.values {
        out.line(&format!("readonly {value}: {};", literal(*number)));
    }
    out.close("};");
    out.line(&format!("export type {name} = (typeof {name})[keyof typeof {name}];"));
    out.blank();
}

/// The type of an argument.
fn hint(field: &FieldModel<'_>) -> String {
    let element = match field.stored {
        // Numbers without a name are valid, too.
        Stored::Enum(declared) => &*format!("{} | ppt_integer", declared.name),
        Stored::Int(_) | Stored::Timeval | Stored::Timespec => "ppt_integer",
        Stored::F32 | Stored::F64 => "number",
        Stored::Bool => "boolean",
        Stored::Text { .. } => "string",
        Stored::Bytes { .. } => "ArrayBufferView",
    };
    let given = match (field.array, field.stamp) {
        (Some(_), _) => format!("ppt_list<{element}>"),
        (None, Some(_)) => format!("{element} | ppt_now"),
        _ => element.into(),
    };
    format!("{given} | ppt_none")
}

fn of_frame(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    for &half in frame.halves() {
        out.open(&format!("interface ppt_fields_of_{} {{", half_name(frame, half)));
        for field in frame.given_in(half) {
            out.line(&format!("/** {} */", about_field(field)));
            out.line(&format!("{}?: {};", field.name, hint(field)));
        }
        out.close("}");
    }
    let summary = format!("The frame `{}` of buffer `{}`.", frame.name, model.buffer());
    doc(&summary, frame.doc, &[], out);
    out.open(&format!("export const {}: {{", frame.name));
    out.line(
        "/** Whether somebody is attached who wants it: a load and a branch while nobody is. */",
    );
    out.line("on(): boolean;");
    for form in &frame.forms {
        methods(frame, form, out);
    }
    if let Some(interval) = frame.interval() {
        let about = format!(
            "Stamps `{}` now. What it returns stamps `{}`, and writes the frame.",
            interval.start.name, interval.end.name
        );
        doc(&about, "", &[], out);
        out.open("scope(): {");
        doc("No frame after all.", "", &[], out);
        out.line("abandon(): void;");
        let unstamped = frame
            .given()
            .filter(|field| field.name != interval.start.name && field.name != interval.end.name);
        let unstamped: Vec<_> = unstamped.collect();
        let tags =
            unstamped.iter().map(|field| format!("@param {} {}", field.name, about_field(field)));
        doc("Writes the frame.", "", &tags.collect::<Vec<_>>(), out);
        let arguments = unstamped.iter().map(|field| format!("{}?: {}", field.name, hint(field)));
        out.line(&format!("end({}): void;", arguments.collect::<Vec<_>>().join(", ")));
        if !unstamped.is_empty() {
            doc(&filled(), "", &[], out);
            let fields = format!("ppt_fields_of_{}", frame.name);
            let (start, end) = (interval.start.name, interval.end.name);
            out.line(&format!(
                "end(fields: () => Omit<{fields}, '{start}' | '{end}'> | null): void;"
            ));
        }
        out.close("};");
    }
    out.close("};");
    out.blank();
}

fn filled() -> String {
    "Writes a frame of the fields that a function returns. It runs only while somebody is attached; \
     fields that are not there are 0; null: no frame."
        .into()
}

fn methods(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let mark = chosen(form).map(|mark| format!("{}: {}", mark.field, mark.enum_type.name));
    about_form(frame, form, out);
    let fields = frame.given_in(form.half);
    let fields = fields.map(|field| format!("{}?: {}", field.name, hint(field)));
    let arguments: Vec<_> = mark.iter().cloned().chain(fields).collect();
    out.line(&format!("{}({}): void;", form.verb, arguments.join(", ")));
    if frame.given_in(form.half).count() > 0 {
        doc(&filled(), "", &[], out);
        let make = format!("fields: () => ppt_fields_of_{} | null", half_name(frame, form.half));
        let arguments: Vec<_> = mark.into_iter().chain([make]).collect();
        out.line(&format!("{}({}): void;", form.verb, arguments.join(", ")));
    }
}

fn metric(metric: &Metric, out: &mut GeneratedText) {
    let (name, verb, value) = (&metric.name, metric.shape.verb(), argument(metric).1);
    doc(&format!("The {} `{name}`.", metric.shape.kind()), &metric.doc, &[], out);
    out.open(&format!("export const {name}: {{"));
    out.line("/** Whether somebody is attached who wants it. */");
    out.line("on(): boolean;");
    doc(&format!("{}, if somebody is attached.", about(metric)), "", &[about_value(metric)], out);
    out.line(&format!("{verb}({value}: ppt_integer): void;"));
    out.close("};");
    out.blank();
}
