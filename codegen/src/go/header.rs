//! `frames_cgo.h`: the C functions that Go calls. Each gets a frame by value, and writes it by C's writer: C
//! never accesses Go's memory.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::block_macro;

use super::native::added;
use super::spelling::{chosen, of_form};
use crate::c::comment::banner;
use crate::c::commit::{FrameOrHalf, call_close};
use crate::c::types::{half_type, int_type};
use crate::model::{BufferModel, FrameModel, MarkValue, Stamp, WriteForm};
use crate::text::GeneratedText;

const FIXED: &str = include_str!("../../runtime/go/frames.h");
const HASHES: &str = include_str!("../../runtime/go/hash.h");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    out.line(&banner(model, "What Go calls of C"));
    let guard = format!("{}_GO_H", model.symbol("").to_uppercase().trim_end_matches('_'));
    out.lines([&*format!("#ifndef {guard}"), &*format!("#define {guard}")]);
    out.line(&format!("#include \"{}.h\"", model.stem));
    out.block(FIXED);
    out.blank();
    page(model, &mut out);
    let buffer = model.buffer();
    function("void prepare(void)", &[format!("ppt_{buffer}_prepare();")], &mut out);
    function("void allow_attach(void)", &["ppt_allow_attach();".into()], &mut out);
    for stamp in &model.stamps {
        now(model, stamp, &mut out);
    }
    if model.hashes {
        out.block(HASHES);
        out.blank();
    }
    for frame in &model.frames {
        for form in &frame.forms {
            write(model, frame, form, &mut out);
        }
    }
    for metric in &model.metrics {
        let (verb, (ty, _)) = (metric.shape.verb(), added(metric));
        let body = format!("{}(value);", block_macro(verb, &metric.name));
        function(&format!("void {verb}_{}({ty} value)", metric.name), &[body], &mut out);
    }
    out.line(&format!("#endif /* {guard} */"));
    out.finish()
}

/// `head` is without the prefix of all names.
fn function(head: &str, body: &[String], out: &mut GeneratedText) {
    let (ty, rest) = head.split_once(' ').unwrap_or(("void", head));
    let (star, rest) = rest.strip_prefix('*').map_or(("", rest), |rest| ("*", rest));
    out.open(&format!("PPT_GO {ty} {star}pptgo_{rest} {{"));
    out.lines(body.iter().map(String::as_str));
    out.close("}");
    out.blank();
}

fn page(model: &BufferModel<'_>, out: &mut GeneratedText) {
    out.line("#if PPT1_ENABLED");
    let control = format!("return (uint64_t *)(void *)&{};", model.symbol("control"));
    function("uint64_t *page(void)", &[control], out);
    out.line("#else /* nobody is ever attached */");
    let none = ["static uint64_t none[64];", "return none;"].map(String::from);
    function("uint64_t *page(void)", &none, out);
    out.line("#endif");
    out.blank();
}

fn now(model: &BufferModel<'_>, stamp: &Stamp<'_>, out: &mut GeneratedText) {
    let call = format!("ppt_{}_{}()", model.buffer(), stamp.name);
    let ty = crate::c::types::element_type(stamp.stored);
    let get = format!("{ty} const now = {call};");
    let seconds = "now.tv_sec * INT64_C(1000000000)";
    let result = match stamp.stored {
        Stored::Timeval => format!("return {seconds} + now.tv_usec * INT64_C(1000);"),
        Stored::Timespec => format!("return {seconds} + now.tv_nsec;"),
        _ => "return (int64_t)now;".into(),
    };
    function(&format!("int64_t {}(void)", stamp.name), &[get, result], out);
    if let Some(length) = stamp.length() {
        let stamps = "(uint64_t)start, (uint64_t)end";
        let body = format!("return ppt_{}_{length}({stamps});", model.buffer());
        function(&format!("int64_t {length}(int64_t start, int64_t end)"), &[body], out);
    }
}

/// The function that writes a frame and stamps its fields with the value NOW.
fn write(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
    out: &mut GeneratedText,
) {
    let half = form.half;
    let mut body = Vec::new();
    for field in frame.given_in(half).filter(|field| field.stamp.is_some()) {
        let now = format!("ppt_{}_{}()", model.buffer(), model.stamp_of(field).name);
        let value = match field.stored {
            Stored::Timeval | Stored::Timespec => format!("f.{}.tv_sec", field.name),
            _ if field.is_ticks() => format!("(int64_t)f.{}", field.name),
            _ => format!("f.{}", field.name),
        };
        body.push(format!("if ({value} == PPTGO_NOW)"));
        body.push(format!("    f.{} = {now};", field.name));
    }
    let mark = form.mark.as_ref().map(|mark| match &mark.value {
        MarkValue::Named(_, enumerator) => enumerator.clone(),
        MarkValue::Argument(_) => "ppt_mark".into(),
    });
    let ticks = format!("{}()", model.symbol("ticks"));
    let close = call_close(model, FrameOrHalf { frame, half }, "&f", mark.as_deref(), &ticks);
    body.push(format!("{close};"));
    let chosen = chosen(form)
        .map_or_else(String::new, |mark| format!("{} ppt_mark, ", int_type(mark.enum_type.repr)));
    let head = format!("void {}({chosen}{} f)", of_form(frame, form), half_type(frame, half));
    function(&head, &body, out);
}
