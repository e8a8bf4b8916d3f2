//! The class that holds the fields of a frame until it is written.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::role::SpanHalf;

use super::comment::{about_field, javadoc};
use super::native::{of_form, set_by_ppt};
use super::passing::{Passing, packed, passing, words_of_all};
use super::spelling::{argument_type, enum_range, holder_name, kept_type, place};
use super::statements::{
    as_kept, call, checks, checks_length, passer, signature, size_argument, writer,
};
use crate::model::{FieldModel, FrameModel, WriteForm};
use crate::text::GeneratedText;

pub(super) fn holder_class(
    frame: &FrameModel<'_>,
    half: Option<SpanHalf>,
    out: &mut GeneratedText,
) {
    let name = holder_name(half);
    let about = match half {
        None => "The fields of a frame. Those that are not set are 0.".into(),
        Some(half) => format!("The fields of its {}. Those that are not set are 0.", half.word()),
    };
    javadoc(&about, "", &[], out);
    out.open(&format!("public static class {name} {{"));
    out.line("private final boolean ppt_live;");
    for field in frame.given_in(half) {
        out.line(&format!("private {} {};", kept_type(field), field.name));
    }
    out.blank();
    out.open(&format!("private {name}(boolean live) {{"));
    out.line("ppt_live = live;");
    out.close("}");
    out.blank();
    for field in frame.given_in(half) {
        setters(frame, field, name, out);
    }
    for form in frame.forms.iter().filter(|form| form.half == half) {
        write(frame, form, out);
    }
    out.close("}");
    out.blank();
}

fn setters(frame: &FrameModel<'_>, field: &FieldModel<'_>, holder: &str, out: &mut GeneratedText) {
    let mut tags = vec![format!("@param value {}", about_field(field))];
    tags.push("@return this".into());
    let name = field.name;
    let mut setter = |ty: &str, body: &dyn Fn(&mut GeneratedText)| {
        javadoc(&format!("Sets {{@code {name}}}."), "", &tags, out);
        out.open(&format!("public {holder} {name}({ty} value) {{"));
        out.open("if (ppt_live) {");
        body(out);
        out.close("}");
        out.line("return this;");
        out.close("}");
        out.blank();
    };
    setter(&argument_type(field), &|out| {
        checks(frame, field, "value", out);
        match field.stored {
            Stored::Enum(_) => out.line(&format!("this.{name} = {};", as_kept(field, "value"))),
            _ => out.line(&format!("this.{name} = {};", copy(field, "value"))),
        }
    });
    // Numbers without a name are valid, too.
    if let Stored::Enum(declared) = field.stored {
        setter(kept_type(field).as_str(), &|out| {
            checks_length(frame, field, "value", out);
            if let Some((min, max)) = enum_range(declared.repr) {
                let check = if field.array.is_some() { "fit" } else { "fits" };
                let place = place(frame, field);
                out.line(&format!("PptRuntime.{check}(value, {min}, {max}, {place});"));
            }
            out.line(&format!("this.{name} = {};", copy(field, "value")));
        });
    }
}

/// A value to keep: arrays are copied, as the program may change them later.
fn copy(field: &FieldModel<'_>, value: &str) -> String {
    if field.array.is_some() || matches!(field.stored, Stored::Bytes { .. }) {
        format!("{value} == null ? null : {value}.clone()")
    } else {
        value.to_owned()
    }
}

/// The method that passes the fields to C.
fn write(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let half = form.half;
    let set = set_by_ppt(frame, form);
    let arguments: Vec<_> = set.iter().map(|(ty, name)| format!("{ty} {name}")).collect();
    signature(&format!("final void {}", writer(form)), &arguments, out);
    let mut values: Vec<_> = set.into_iter().map(|(_, name)| name).collect();
    match passing(frame, half) {
        Passing::Arguments => {
            values.extend(frame.given_in(half).map(|field| field.name.to_owned()));
            call(&passer(form), &values, out);
        }
        Passing::Words => {
            let words = words_of_all(frame, half);
            out.line(&format!("long[] ppt_words = new long[{words}];"));
            let mut at = 0;
            for field in frame.given_in(half) {
                out.line(&into_words(field, at));
                at += packed(field).unwrap_or(1);
            }
            values.push("ppt_words".into());
            call(&format!("PptRuntime.{}", of_form(frame, form)), &values, out);
        }
    }
    out.close("}");
    out.blank();
}

/// The statement that converts a field to words, from a word on.
fn into_words(field: &FieldModel<'_>, at: u32) -> String {
    let name = field.name;
    match (packed(field), field.stored) {
        (Some(words), Stored::Text { len }) => {
            format!("PptRuntime.put({name}, {len}, ppt_words, {at}, {words});")
        }
        (Some(words), _) => {
            let size = size_argument(field);
            format!("PptRuntime.put({name}, {size}ppt_words, {at}, {words});")
        }
        (None, stored) => {
            let bits = match stored {
                Stored::F32 => format!("java.lang.Float.floatToRawIntBits({name})"),
                Stored::F64 => format!("java.lang.Double.doubleToRawLongBits({name})"),
                Stored::Bool => format!("{name} ? 1 : 0"),
                _ => name.to_owned(),
            };
            format!("ppt_words[{at}] = {bits};")
        }
    }
}
