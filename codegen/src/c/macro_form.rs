//! The macro form: fields of the thread's frame, and the function that writes it.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::{field_macro, stamp_macro};
use ppt_frame_dsl::schema::FieldType;

use super::commit::{FrameOrHalf, call_close, inline};
use super::types::{element_type, half_type, int_type};
use crate::model::{BufferModel, FieldModel, FormMark, FrameModel, MarkValue, WriteForm};
use crate::text::GeneratedText;

/// The write of the macro form.
pub(super) fn write_frame(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
    out: &mut GeneratedText,
) {
    let symbol = model.symbol(&format!("frame_{}", frame.name));
    let on = format!("if ({}())", model.on_function(frame.name));
    out.line("/* The macro form: writes the thread's frame. */");
    out.open(&format!("{} void {} {{", inline(frame), write_frame_head(frame, form)));
    let value = form.mark.as_ref().map(|mark| match &mark.value {
        MarkValue::Named(_, enumerator) => enumerator,
        MarkValue::Argument(_) => mark.field,
    });
    let now = format!("{}()", model.symbol("ticks"));
    let stored = FrameOrHalf { frame, half: form.half };
    match form.half {
        None => {
            let close = call_close(model, stored, &format!("&{symbol}"), value, &now);
            out.lines([&*on, &*format!("    {close};")]);
        }
        Some(_) => {
            out.open(&format!("{on} {{"));
            out.line(&format!("{} f;", half_type(frame, form.half)));
            out.line(&format!("memcpy(&f, &{symbol}, sizeof f);"));
            out.line(&format!("{};", call_close(model, stored, "&f", value, &now)));
            out.close("}");
        }
    }
    out.close("}");
    out.blank();
}

/// The name and the parameters of the macro form's function.
pub(super) fn write_frame_head(
    frame: &FrameModel<'_>,
    WriteForm { verb, mark, .. }: &WriteForm<'_>,
) -> String {
    let argument = match mark {
        Some(FormMark { field, enum_type, value: MarkValue::Argument(_), .. }) => {
            format!("{} {field}", int_type(enum_type.repr))
        }
        _ => "void".into(),
    };
    format!("ppt_{verb}_{}_frame({argument})", frame.name)
}

/// Typed copies for array fields of the macro form.
pub(super) fn setters(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let symbol = model.symbol(&format!("frame_{}", frame.name));
    for field in frame.given().filter(|model| model.length().is_some()) {
        let name = field.name;
        let function = model.symbol(&format!("set_{}_{name}", frame.name));
        let ty = element_type(field.stored);
        out.open(&format!("static inline void {function}(const {ty} *from) {{"));
        match field.stored {
            Stored::Text { len } => {
                out.line(&format!("ppt1_text({symbol}.{name}, from, {len});"));
            }
            _ => out.line(&format!("memcpy({symbol}.{name}, from, sizeof {symbol}.{name});")),
        }
        out.close("}");
        out.blank();
    }
}

/// The expression that converts a value of the program to the field's type, if it is not always an integer.
pub(super) fn addressed(field: &FieldModel<'_>) -> &'static str {
    if *field.ty == FieldType::Addr { "PPT_ADDR" } else { "" }
}

/// The macro form: `WRITE_<FRAME>_<FIELD>(v)`, and `…_TIMESTAMP()` for times.
pub(super) fn field_macros(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    out: &mut GeneratedText,
) {
    let symbol = model.symbol(&format!("frame_{}", frame.name));
    out.line("/* The macro form: sets fields of the thread's frame, on or off; only stamps check the gate. */");
    for field in frame.given() {
        let (name, setting) = (field.name, field_macro(frame.name, field.name));
        if field.length().is_some() {
            let setter = model.symbol(&format!("set_{}_{name}", frame.name));
            out.line(&format!("#define {setting}(ppt_v) {setter}(ppt_v)"));
        } else {
            let to = addressed(field);
            // No field has the name of the parameter.
            out.line(&format!("#define {setting}(ppt_v) ((void)({symbol}.{name} = {to}(ppt_v)))"));
        }
        if field.stamp.is_some() {
            let stamp = model.stamp_of(field);
            let now = match stamp.clock {
                Some(_) => format!("ppt_{}_{}", model.buffer(), stamp.name),
                None => model.symbol("ticks"),
            };
            let (stamping, on) = (stamp_macro(frame.name, name), model.on_function(frame.name));
            let field = format!("{symbol}.{name}");
            out.line(&format!("#define {stamping}() \\"));
            out.line(&format!(
                "    ({on}() ? (void)({field} = {now}()) : (void)memset(&{field}, 0, sizeof {field}))"
            ));
        }
    }
    out.blank();
}
