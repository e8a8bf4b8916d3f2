//! `STEM_jni.c`: the functions that the classes call. Each makes a frame of its arguments, and writes it by C's
//! writer.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::Metric;

use super::native::{
    ALLOW, HASH, HASH_U64, HASH128, Native, PREPARE, TICKS, of_form, of_metric, of_stamp, word_name,
};
use super::passing::{Passing, packed, passing, words_of_all};
use crate::c::comment::banner;
use crate::c::commit::{FrameOrHalf, call_close};
use crate::c::metrics::argument;
use crate::c::types::{half_type, int_type};
use crate::model::{BufferModel, FieldModel, FrameModel, MarkValue, Stamp, WriteForm};
use crate::text::GeneratedText;

const FIXED: &str = include_str!("../../runtime/java/jni.c");
const HASHES: &str = include_str!("../../runtime/java/hash.c");

pub(super) fn emit(model: &BufferModel<'_>, natives: &[Native]) -> String {
    let mut out = GeneratedText::new();
    out.line(&banner(model, "Java's library"));
    out.line("#include <jni.h>");
    out.line(&format!("#include \"{}.h\"", model.stem));
    out.blank();
    out.line("#if PPT1_ENABLED");
    out.block(FIXED);
    out.blank();
    let page = &natives[0];
    let control = model.symbol("control");
    function(model, page, &[format!("return pptjni_page(ppt_env, &{control}, v_part);")], &mut out);
    let find = |name: &str| natives.iter().find(|native| native.name == name);
    let mut define = |name: &str, body: &[String]| {
        let native = find(name).expect("what is declared is defined");
        function(model, native, body, &mut out);
    };
    let buffer = model.buffer();
    define(PREPARE, &[format!("ppt_{buffer}_prepare();")]);
    define(ALLOW, &["ppt_allow_attach();".into()]);
    for stamp in &model.stamps {
        define(&of_stamp(stamp), &now(model, stamp));
        if let Some(length) = stamp.length() {
            let call = format!("ppt_{buffer}_{length}((uint64_t)v_start, (uint64_t)v_end)");
            define(&format!("ppt_{length}"), &[format!("return {call};")]);
        }
    }
    if find(TICKS).is_some() {
        define(TICKS, &[format!("return (jlong){}();", model.symbol("ticks"))]);
    }
    for frame in &model.frames {
        for form in &frame.forms {
            define(&of_form(frame, form), &write(model, frame, form));
        }
    }
    for metric in &model.metrics {
        define(&of_metric(metric), &[add(metric)]);
    }
    if model.hashes {
        hashes(model, natives, &mut out);
    }
    out.line("#else /* nothing is compiled in */");
    let off = ["(void)v_part;".to_owned(), "return 0;".to_owned()];
    function(model, page, &off, &mut out);
    out.line("#endif");
    out.finish()
}

/// The name by which the JVM finds a function.
fn mangled(package: &str, function: &str) -> String {
    let escaped = |name: &str| name.replace('_', "_1").replace('.', "_");
    format!("Java_{}_PptRuntime_{}", escaped(package), escaped(function))
}

fn c_type(ty: &str) -> &'static str {
    match ty {
        "void" => "void",
        "int" => "jint",
        "long" => "jlong",
        "float" => "jfloat",
        "double" => "jdouble",
        "boolean" => "jboolean",
        "long[]" => "jlongArray",
        "byte[]" => "jbyteArray",
        _ => "jobject",
    }
}

/// The name of an argument in C, where a field may have the name of a type.
fn c_name(name: &str) -> String {
    if name.starts_with("ppt_") { name.into() } else { format!("v_{name}") }
}

fn function(model: &BufferModel<'_>, native: &Native, body: &[String], out: &mut GeneratedText) {
    let mut arguments = vec!["JNIEnv *ppt_env".to_owned(), "jclass ppt_class".into()];
    let typed =
        native.arguments.iter().map(|(ty, name)| format!("{} {}", c_type(ty), c_name(name)));
    arguments.extend(typed);
    let (result, name) = (c_type(native.result), mangled(model.package(), &native.name));
    let head = format!("JNIEXPORT {result} JNICALL {name}({});", arguments.join(", "));
    out.line(&head);
    out.open(&(head.trim_end_matches(';').to_owned() + " {"));
    out.line("(void)ppt_env;");
    out.line("(void)ppt_class;");
    out.lines(body.iter().map(String::as_str));
    out.close("}");
    out.blank();
}

fn now(model: &BufferModel<'_>, stamp: &Stamp<'_>) -> Vec<String> {
    let now = format!("ppt_{}_{}()", model.buffer(), stamp.name);
    let seconds = "(int64_t)t.tv_sec * 1000000000";
    match stamp.stored {
        Stored::Timeval => vec![
            format!("struct timeval t = {now};"),
            format!("return {seconds} + t.tv_usec * 1000;"),
        ],
        Stored::Timespec => {
            vec![format!("struct timespec t = {now};"), format!("return {seconds} + t.tv_nsec;")]
        }
        _ => vec![format!("return (jlong){now};")],
    }
}

/// The body of the function that writes a frame.
fn write(model: &BufferModel<'_>, frame: &FrameModel<'_>, form: &WriteForm<'_>) -> Vec<String> {
    let half = form.half;
    let mut body = Vec::new();
    if frame.own_stamp().is_some() {
        let ticks = model.symbol("ticks");
        body.push(format!("uint64_t at = ppt_at != 0 ? (uint64_t)ppt_at : {ticks}();"));
    }
    body.push(format!("{} f = {{0}};", half_type(frame, half)));
    match passing(frame, half) {
        Passing::Arguments => {
            for field in frame.given_in(half) {
                match packed(field) {
                    None => body.push(format!(
                        "f.{} = {};",
                        field.name,
                        number(field.stored, &c_name(field.name))
                    )),
                    Some(words) => {
                        for word in 0..words {
                            body.extend(unpacked(field, word, &word_name(field, word)));
                        }
                    }
                }
            }
        }
        Passing::Words => {
            let words = words_of_all(frame, half);
            body.push(format!("jlong words[{words}];"));
            body.push(format!(
                "(*ppt_env)->GetLongArrayRegion(ppt_env, ppt_words, 0, {words}, words);"
            ));
            let mut at = 0;
            for field in frame.given_in(half) {
                match packed(field) {
                    None => body.push(format!("f.{} = {};", field.name, bits(field.stored, at))),
                    Some(words) => body.extend(all_unpacked(field, at, words)),
                }
                at += packed(field).unwrap_or(1);
            }
        }
    }
    if let Some(interval) = frame.interval() {
        let now = format!("ppt_{}_{}()", model.buffer(), model.stamp_of(interval.end).name);
        body.push("if (ppt_ends)".into());
        body.push(format!("    f.{} = {now};", interval.end.name));
    }
    let mark = form.mark.as_ref().map(|mark| match &mark.value {
        MarkValue::Named(_, enumerator) => enumerator.clone(),
        MarkValue::Argument(_) => format!("({})ppt_mark", int_type(mark.enum_type.repr)),
    });
    let close = call_close(model, FrameOrHalf { frame, half }, "&f", mark.as_deref(), "at");
    body.push(format!("{close};"));
    body
}

/// A Java number as the field's type.
fn number(stored: Stored<'_>, value: &str) -> String {
    match stored {
        Stored::Int(int) => format!("({}){value}", int_type(int)),
        Stored::Enum(declared) => format!("({}){value}", int_type(declared.repr)),
        Stored::Bool => format!("{value} != 0"),
        Stored::Timeval => format!("pptjni_timeval({value})"),
        Stored::Timespec => format!("pptjni_timespec({value})"),
        Stored::F32 | Stored::F64 | Stored::Text { .. } | Stored::Bytes { .. } => value.to_owned(),
    }
}

/// A word as the field's type.
fn bits(stored: Stored<'_>, at: u32) -> String {
    match stored {
        Stored::F32 => format!("pptjni_float(words[{at}])"),
        Stored::F64 => format!("pptjni_double(words[{at}])"),
        other => number(other, &format!("words[{at}]")),
    }
}

/// The size of a field in a frame, if the same bytes are passed.
fn bytes(field: &FieldModel<'_>) -> Option<u32> {
    match field.stored {
        Stored::Timeval | Stored::Timespec => None,
        stored => Some(stored.size() * field.array.unwrap_or(1)),
    }
}

/// The statement that stores a word of a field; None if the field is a single number.
fn unpacked(field: &FieldModel<'_>, word: u32, value: &str) -> Option<String> {
    let name = field.name;
    Some(match bytes(field) {
        None => format!("f.{name}[{word}] = {};", number(field.stored, value)),
        Some(bytes) => {
            let count = bytes.saturating_sub(word * 8).min(8);
            format!("memcpy((char *)f.{name} + {}, &{value}, {count});", word * 8)
        }
    })
}

/// The statements that store all words of a field.
fn all_unpacked(field: &FieldModel<'_>, at: u32, words: u32) -> Vec<String> {
    let name = field.name;
    match bytes(field) {
        None => vec![
            format!("for (unsigned i = 0; i < {words}; i++)"),
            format!("    f.{name}[i] = {};", number(field.stored, &format!("words[{at} + i]"))),
        ],
        Some(bytes) => vec![format!("memcpy(f.{name}, words + {at}, {bytes});")],
    }
}

/// The call that adds.
fn add(metric: &Metric) -> String {
    let ty = argument(metric).0;
    format!("ppt_{}_{}(({ty})v_value);", metric.shape.verb(), metric.name)
}

fn hashes(model: &BufferModel<'_>, natives: &[Native], out: &mut GeneratedText) {
    out.block(HASHES);
    out.blank();
    for native in natives {
        let body: &[&str] = match native.name.as_str() {
            HASH => &[
                "pptjni_view view;",
                "if (!pptjni_open(ppt_env, v_data, &view))",
                "    return 0;",
                "uint64_t const hash = ppt_hash(view.bytes, (size_t)view.length);",
                "pptjni_close(ppt_env, v_data, &view);",
                "return (jlong)hash;",
            ],
            HASH_U64 => &["return (jlong)ppt_hash_u64((uint64_t)v_number);"],
            HASH128 => &[
                "pptjni_view view;",
                "if (!pptjni_open(ppt_env, v_data, &view))",
                "    return 0;",
                "ppt_hash128_t const hash = ppt_hash128(view.bytes, (size_t)view.length);",
                "pptjni_close(ppt_env, v_data, &view);",
                "jbyteArray bytes = (*ppt_env)->NewByteArray(ppt_env, sizeof hash.bytes);",
                "if (bytes != 0)",
                "    (*ppt_env)->SetByteArrayRegion(ppt_env, bytes, 0, sizeof hash.bytes,",
                "                                   (const jbyte *)hash.bytes);",
                "return bytes;",
            ],
            _ => continue,
        };
        let body: Vec<_> = body.iter().map(|line| (*line).to_owned()).collect();
        function(model, native, &body, out);
    }
}
