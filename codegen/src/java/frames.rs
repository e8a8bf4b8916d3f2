//! The class of a frame: methods that write it, and a class that holds its fields until it is written.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::upper_camel;

use super::comment::{about_field, banner, javadoc};
use super::holder::holder_class;
use super::native::{TICKS, of_form, of_stamp, set_by_ppt, word_name};
use super::passing::{Passing, is_method, packed, passing};
use super::spelling::{argument_type, holder_name, kept_type};
use super::statements::{as_kept, call, checks, passer, signature, size_argument, writer};
use crate::model::{
    BufferModel, FieldModel, FormMark, FrameModel, MarkValue, ScopeInterval, WriteForm,
};
use crate::text::GeneratedText;

pub(super) fn emit(model: &BufferModel<'_>, frame: &FrameModel<'_>) -> String {
    let mut out = GeneratedText::new();
    let name = upper_camel(frame.name);
    banner(model, "A frame", &mut out);
    let summary =
        format!("The frame {{@code {}}} of buffer {{@code {}}}.", frame.name, model.buffer());
    javadoc(&summary, frame.doc, &[], &mut out);
    out.open(&format!("public final class {name} {{"));
    out.open(&format!("private {name}() {{"));
    out.close("}");
    out.blank();
    javadoc(
        "{@return whether somebody is attached who wants it: a load and a branch}",
        "",
        &[],
        &mut out,
    );
    out.open("public static boolean on() {");
    out.line(&format!("return PptRuntime.isWanted({});", frame.id));
    out.close("}");
    out.blank();
    for form in &frame.forms {
        if is_method(frame, form.half) {
            positional(frame, form, &mut out);
        }
        if frame.given_in(form.half).count() > 0 {
            filled(frame, form, &mut out);
        }
        if passing(frame, form.half) == Passing::Arguments {
            passed(frame, form, &mut out);
        }
    }
    if let Some(interval) = frame.interval() {
        scope(model, frame, interval, &mut out);
    }
    for &half in frame.halves() {
        holder_class(frame, half, &mut out);
    }
    out.close("}");
    out.finish()
}

/// The type and the name of the parameter that chooses the mark.
fn mark_argument<'a>(form: &WriteForm<'a>) -> Option<(String, &'a str)> {
    match &form.mark {
        Some(FormMark { field, enum_type, value: MarkValue::Argument(_), .. }) => {
            Some((upper_camel(&enum_type.name), field))
        }
        _ => None,
    }
}

fn about(form: &WriteForm<'_>) -> String {
    match form.mark.as_ref().map(|mark| (mark.field, &mark.value)) {
        None => "Writes a frame, if somebody is attached.".into(),
        Some((_, MarkValue::Named(value, _))) => {
            format!("Writes a frame as {{@code {value}}}, if somebody is attached.")
        }
        Some((field, MarkValue::Argument(_))) => {
            format!("Writes a frame as that {field}, if somebody is attached.")
        }
    }
}

/// The arguments for the fields that ppt sets: the mark, its stamp, and no end of an interval.
fn set_in_call(frame: &FrameModel<'_>, form: &WriteForm<'_>, at: &str, ends: &str) -> Vec<String> {
    let value = |(_, name): (&'static str, String)| match name.as_str() {
        "ppt_at" => at.to_owned(),
        "ppt_ends" => ends.to_owned(),
        _ => "ppt_mark".into(),
    };
    set_by_ppt(frame, form).into_iter().map(value).collect()
}

/// Statements that convert the mark to a number.
fn number_of_mark(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    if let Some((ty, field)) = mark_argument(form) {
        let message = format!("\"{}.{field} ({ty}): null is none\"", frame.name);
        out.line(&format!("if ({field} == null)"));
        out.line(&format!("    throw new java.lang.IllegalArgumentException({message});"));
        out.line(&format!("long ppt_mark = {field}.number();"));
    }
}

/// The method with an argument for each field.
fn positional(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let half = form.half;
    let mut arguments = Vec::new();
    let mut tags = Vec::new();
    if let Some((ty, field)) = mark_argument(form) {
        arguments.push(format!("{ty} {field}"));
        tags.push(format!("@param {field} which it is"));
    }
    for field in frame.given_in(half) {
        arguments.push(format!("{} {}", argument_type(field), field.name));
        tags.push(format!("@param {} {}", field.name, about_field(field)));
    }
    javadoc(&about(form), "", &tags, out);
    signature(&format!("public static void {}", form.verb), &arguments, out);
    out.line(&format!("if (!PptRuntime.isWanted({}))", frame.id));
    out.line("    return;");
    number_of_mark(frame, form, out);
    match passing(frame, half) {
        Passing::Arguments => {
            let mut values = set_in_call(frame, form, "0", "false");
            values.extend(frame.given_in(half).map(|field| as_kept(field, field.name)));
            call(&passer(form), &values, out);
        }
        Passing::Words => {
            out.line(&format!("{0} ppt_frame = new {0}(true);", holder_name(half)));
            for field in frame.given_in(half) {
                out.line(&format!("ppt_frame.{0}({0});", field.name));
            }
            let values = set_in_call(frame, form, "0", "false");
            call(&format!("ppt_frame.{}", writer(form)), &values, out);
        }
    }
    out.close("}");
    out.blank();
}

/// The method whose argument sets the fields.
fn filled(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let holder = holder_name(form.half);
    let mut arguments = Vec::new();
    let mut tags = Vec::new();
    if let Some((ty, field)) = mark_argument(form) {
        arguments.push(format!("{ty} {field}"));
        tags.push(format!("@param {field} which it is"));
    }
    arguments.push(format!("java.util.function.Consumer<{holder}> ppt_fill"));
    tags.push("@param ppt_fill sets fields; it runs only while somebody is attached".into());
    javadoc(&about(form), "", &tags, out);
    signature(&format!("public static void {}", form.verb), &arguments, out);
    out.line(&format!("if (!PptRuntime.isWanted({}))", frame.id));
    out.line("    return;");
    number_of_mark(frame, form, out);
    if frame.own_stamp().is_some() {
        out.line(&format!("long ppt_at = PptRuntime.{TICKS}();"));
    }
    out.line(&format!("{holder} ppt_frame = new {holder}(true);"));
    out.line("ppt_fill.accept(ppt_frame);");
    let values = set_in_call(frame, form, "ppt_at", "false");
    call(&format!("ppt_frame.{}", writer(form)), &values, out);
    out.close("}");
    out.blank();
}

/// The method that checks numbers, converts other values to words, and calls C.
fn passed(frame: &FrameModel<'_>, form: &WriteForm<'_>, out: &mut GeneratedText) {
    let half = form.half;
    let set = set_by_ppt(frame, form);
    let mut arguments: Vec<_> = set.iter().map(|(ty, name)| format!("{ty} {name}")).collect();
    let fields = || frame.given_in(half);
    arguments.extend(fields().map(|field| format!("{} {}", kept_type(field), field.name)));
    signature(&format!("private static void {}", passer(form)), &arguments, out);
    for field in fields() {
        checks(frame, field, field.name, out);
    }
    for field in fields() {
        if let Stored::Text { len } = field.stored {
            text(field, len, out);
        }
    }
    let mut values: Vec<_> = set.into_iter().map(|(_, name)| name).collect();
    for field in fields() {
        match packed(field) {
            None => values.push(field.name.to_owned()),
            Some(words) => values.extend((0..words).map(|word| match field.stored {
                Stored::Text { .. } => word_name(field, word),
                _ => format!("PptRuntime.word({}, {}{word})", field.name, size_argument(field)),
            })),
        }
    }
    call(&format!("PptRuntime.{}", of_form(frame, form)), &values, out);
    out.close("}");
    out.blank();
}

/// Local variables with the words of a text.
fn text(field: &FieldModel<'_>, len: u32, out: &mut GeneratedText) {
    let words: Vec<_> =
        (0..packed(field).unwrap_or(0)).map(|word| word_name(field, word)).collect();
    for (index, word) in words.iter().enumerate() {
        out.line(&format!("long {word} = PptRuntime.ascii({}, {index});", field.name));
    }
    out.open(&format!("if (({}) < 0) {{", words.join(" | ")));
    let utf8 = format!("ppt_{}", field.name);
    out.line(&format!("byte[] {utf8} = PptRuntime.utf8({}, {len});", field.name));
    for (index, word) in words.iter().enumerate() {
        out.line(&format!("{word} = PptRuntime.word({utf8}, {index});"));
    }
    out.close("}");
}

/// The class that stamps an interval, and the method that makes it.
fn scope(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    ScopeInterval { start, end }: ScopeInterval<&FieldModel<'_>>,
    out: &mut GeneratedText,
) {
    let stamp = model.stamp_of(start);
    let about = format!(
        "Stamps {{@code {}}} now, and {{@code {}}} when it is closed, which writes the frame: for \
         {{@code try}} with resources.",
        start.name, end.name
    );
    javadoc(
        &about,
        "",
        &["@return a scope that does nothing while nobody is attached".into()],
        out,
    );
    out.open("public static Scope scope() {");
    out.line(&format!("if (!PptRuntime.isWanted({}))", frame.id));
    out.line("    return Scope.PPT_OFF;");
    out.line("Scope ppt_scope = new Scope(true);");
    let now = of_stamp(stamp);
    out.line(&format!("ppt_scope.{}(PptRuntime.{now}());", start.name));
    out.line("return ppt_scope;");
    out.close("}");
    out.blank();
    let about = "A frame that is written when it is closed. A scope is of one thread at a time.";
    javadoc(about, "", &[], out);
    out.open("public static final class Scope extends Frame implements java.lang.AutoCloseable {");
    out.line("private static final Scope PPT_OFF = new Scope(false);");
    out.line("private boolean ppt_open;");
    out.blank();
    out.open("private Scope(boolean live) {");
    out.line("super(live);");
    out.line("ppt_open = live;");
    out.close("}");
    out.blank();
    javadoc("No frame after all.", "", &[], out);
    out.open("public void abandon() {");
    // All threads share the inactive one, because it is never written to.
    out.line("if (ppt_open)");
    out.line("    ppt_open = false;");
    out.close("}");
    out.blank();
    javadoc(&format!("Stamps {{@code {}}}, and writes the frame.", end.name), "", &[], out);
    out.line("@java.lang.Override");
    out.open("public void close() {");
    out.line("if (!ppt_open)");
    out.line("    return;");
    out.line("ppt_open = false;");
    let form = &frame.forms[0];
    call(&writer(form), &set_in_call(frame, form, "0", "true"), out);
    out.close("}");
    out.close("}");
    out.blank();
}
