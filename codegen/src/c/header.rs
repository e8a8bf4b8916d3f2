//! `STEM.h`: enums, structs, and both forms of writing a frame.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::{block_macro, claim_macro, field_macro, stamp_macro};
use ppt_frame_dsl::role::SpanHalf;

use super::comment::{banner, doc, literal};
use super::commit::{FrameOrHalf, call_close, close, commit, storing};
use super::gate::gate_functions;
use super::macro_form::{addressed, field_macros, setters, write_frame, write_frame_head};
use super::metrics;
use super::stores::Enums;
use super::structure::{assertions, members};
use super::types::{element_type, frame_type, half_type, int_type};
use super::unwritten;
use crate::model::{BufferModel, FormMark, FrameModel, MarkValue, WriteForm};
use crate::text::GeneratedText;

const FIXED: &str = include_str!("../../runtime/c/target.h");
const HASH: &str = include_str!("../../runtime/c/hash.h");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    out.line(&banner(model, "Frames"));
    let guard = format!("{}_H", model.symbol("").to_uppercase().trim_end_matches('_'));
    out.lines([&*format!("#ifndef {guard}"), &*format!("#define {guard}")]);
    out.blank();
    for header in ["stdbool.h", "stdint.h", "string.h", "sys/time.h", "time.h"] {
        out.line(&format!("#include <{header}>"));
    }
    out.block(FIXED);
    out.blank();
    hashes(model, &mut out);
    let frames = model.frames.iter().map(|frame| ("frame", frame.name));
    let metrics = model.metrics.iter().map(|metric| (metric.shape.kind(), metric.name.as_str()));
    let names = frames.chain(metrics).chain([("buffer", model.buffer())]);
    claim(model, &format!("{}.h", model.stem), names, &mut out);
    out.line("#ifdef __cplusplus");
    out.line("extern \"C\" {");
    out.line("#endif");
    out.blank();
    enums(model, &mut out);
    for frame in &model.frames {
        structure(frame, &mut out);
    }
    out.line("#if PPT1_ENABLED");
    out.blank();
    symbols(model, &mut out);
    for frame in &model.frames {
        let symbol = model.symbol(&format!("frame_{}", frame.name));
        out.line(&format!("extern PPT1_THREAD {} {symbol};", frame_type(frame)));
    }
    out.blank();
    gate_functions(model, &mut out);
    for frame in &model.frames {
        for &half in frame.halves() {
            let ty = half_type(frame, half);
            let stored = FrameOrHalf { frame, half };
            commit(model, stored, &ty, Enums::Integers, &mut out);
            close(model, stored, &ty, |declared| int_type(declared.repr).into(), &mut out);
        }
        for form in &frame.forms {
            write_frame(model, frame, form, &mut out);
        }
        setters(model, frame, &mut out);
    }
    for frame in &model.frames {
        field_macros(model, frame, &mut out);
    }
    for metric in &model.metrics {
        metrics::function(model, metric, &mut out);
    }
    out.line("#else /* nothing is compiled in; arguments are not evaluated */");
    out.blank();
    disabled(model, &mut out);
    out.line("#endif /* PPT1_ENABLED */");
    out.blank();
    for frame in &model.frames {
        for form in &frame.forms {
            block_form(model, frame, form, &mut out);
        }
    }
    unwritten::macros(model, &mut out);
    out.line("#ifdef __cplusplus");
    out.line("}");
    out.line("#endif");
    out.blank();
    out.line(&format!("#endif /* {guard} */"));
    out.finish()
}

/// The functions that compute hashes, if fields have that type.
pub(crate) fn hashes(model: &BufferModel<'_>, out: &mut GeneratedText) {
    if model.hashes {
        out.block(HASH);
        out.blank();
    }
}

/// An error with the names of two headers that declare the same name in one file.
pub(crate) fn claim<'n>(
    model: &BufferModel<'_>,
    header: &str,
    names: impl IntoIterator<Item = (&'static str, &'n str)>,
    out: &mut GeneratedText,
) {
    let me = format!("{header} (schema {:016x})", model.hash);
    for (what, name) in names {
        let claim = claim_macro(what, name);
        out.line(&format!("#ifdef {claim}"));
        out.line(&format!(
            "PPT1_ASSERT(0, \"ppt: {what} '{name}' is declared by \" {claim} \" and by {me}\");"
        ));
        out.line(&format!(
            "#error \"ppt: {what} '{name}' is declared by {me} and by another header: \
             see the assertion\""
        ));
        out.line("#endif");
        out.line(&format!("#define {claim} \"{me}\""));
    }
    out.blank();
}

fn enums(model: &BufferModel<'_>, out: &mut GeneratedText) {
    for (index, declared) in model.schema.enums.iter().enumerate() {
        let enumerator = |value: &str| model.enumerator(index, value);
        doc(&declared.doc, out);
        let fits = |value: i128| i32::try_from(value).is_ok();
        if declared.values.iter().all(|(_, value)| fits(*value)) {
            out.open("enum {");
            for (name, value) in &declared.values {
                out.line(&format!("{} = {},", enumerator(name), literal(*value)));
            }
            out.close("};");
        } else {
            // An enumerator of C11 is an int.
            for (name, value) in &declared.values {
                out.line(&format!("#define {} {}", enumerator(name), literal(*value)));
            }
        }
        out.blank();
    }
}

fn structure(frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let name = frame_type(frame);
    doc(frame.doc, out);
    out.open(&format!("typedef struct {name} {{"));
    members(frame, None, |field| element_type(field.stored).into(), out);
    out.close(&format!("}} {name};"));
    assertions(frame, None, &name, out);
    for &half in frame.halves().iter().filter(|half| half.is_some()) {
        let name = half_type(frame, half);
        let word = half.map_or("", SpanHalf::word);
        out.line(&format!("/* The same, with the fields of its {word}. */"));
        out.open(&format!("typedef struct {name} {{"));
        members(frame, half, |field| element_type(field.stored).into(), out);
        out.close(&format!("}} {name};"));
        assertions(frame, half, &name, out);
    }
}

/// The symbols that the linker must find. Their names carry ABI version and schema.
pub(crate) fn symbols(model: &BufferModel<'_>, out: &mut GeneratedText) {
    out.line(&format!("extern ppt1_control {};", model.symbol("control")));
    out.line(&format!("ppt1_thread *{}(unsigned frame);", model.symbol("begin")));
    out.line(&format!("void {}(ppt1_thread *thread);", model.symbol("end")));
    out.line(&format!("void {}(void);", model.symbol("prepare")));
    out.line(&format!("struct timespec {}(int clock);", model.symbol("clock")));
    out.line(&format!("uint64_t {}(void);", model.symbol("stamp")));
    if !model.metrics.is_empty() {
        metrics::symbols(model, out);
    }
}

/// The functions and macros of the header without effect, for programs that are compiled without ppt.
fn disabled(model: &BufferModel<'_>, out: &mut GeneratedText) {
    let name = model.buffer();
    out.line(&format!("static inline int ppt_{name}_on(void) {{ return 0; }}"));
    out.line(&format!("static inline void ppt_{name}_prepare(void) {{}}"));
    for (item, _) in model.bits() {
        out.line(&format!("static inline int {}(void) {{ return 0; }}", model.on_function(item)));
    }
    for stamp in &model.stamps {
        let ty = element_type(stamp.stored);
        out.open(&format!("static inline {ty} ppt_{name}_{}(void) {{", stamp.name));
        match stamp.stored {
            Stored::Timeval | Stored::Timespec => {
                out.lines([&*format!("{ty} never = {{0, 0}};"), "return never;"]);
            }
            _ => out.line("return 0;"),
        }
        out.close("}");
        if let Some(length) = stamp.length() {
            out.open(&format!(
                "static inline int64_t ppt_{name}_{length}(uint64_t start, uint64_t end) {{"
            ));
            out.lines(["(void)start;", "(void)end;", "return -1;"]);
            out.close("}");
        }
    }
    if model.frames.iter().any(|frame| frame.own_stamp().is_some()) {
        out.line(&format!(
            "static inline uint64_t {}(void) {{ return 0; }}",
            model.symbol("ticks")
        ));
    }
    for frame in &model.frames {
        for &half in frame.halves() {
            let (ty, stored) = (half_type(frame, half), FrameOrHalf { frame, half });
            let commit = storing(model, "commit", stored);
            out.line(&format!("static inline void {commit}(const {ty} *f) {{ (void)f; }}"));
            close(model, stored, &ty, |declared| int_type(declared.repr).into(), out);
        }
        for form in &frame.forms {
            let used = match &form.mark {
                Some(FormMark { field, value: MarkValue::Argument(_), .. }) => {
                    format!(" (void){field}; ")
                }
                _ => String::new(),
            };
            out.line(&format!("static inline void {} {{{used}}}", write_frame_head(frame, form)));
        }
        for field in frame.given() {
            let setter = field_macro(frame.name, field.name);
            let value = match addressed(field) {
                "" => "ppt_v".to_owned(),
                to => format!("{to}(ppt_v)"),
            };
            out.line(&format!("#define {setter}(ppt_v) ((void)sizeof({value}))"));
            if field.stamp.is_some() {
                let stamp = stamp_macro(frame.name, field.name);
                out.line(&format!("#define {stamp}() ((void)0)"));
            }
        }
    }
    for metric in &model.metrics {
        metrics::disabled(metric, out);
    }
    out.blank();
}

/// The block form: a loop over a frame of its own, which runs once while ppt is attached.
fn block_form(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
    out: &mut GeneratedText,
) {
    let ty = half_type(frame, form.half);
    let name = block_macro(form.verb, frame.name);
    let stored = FrameOrHalf { frame, half: form.half };
    let close = |mark: Option<&str>| call_close(model, stored, "&f", mark, "ppt_at_##f");
    let (arguments, last) = match form.mark.as_ref().map(|mark| &mark.value) {
        None => ("f", close(None)),
        Some(MarkValue::Named(_, enumerator)) => ("f", close(Some(enumerator))),
        Some(MarkValue::Argument(prefix)) => ("STEP, f", close(Some(&format!("{prefix}##STEP")))),
    };
    out.line(&format!("/* {name}({arguments}) {{ f.field = value; }} runs its block only while"));
    out.line(
        " * somebody is attached and writes the frame at its end; `break`, `return` and `goto`",
    );
    out.line(
        " * out of it abandon the frame. `continue` does not: it ends the block, and writes it. */",
    );
    out.line(&format!("#define {name}({arguments}) PPT1_BLOCK \\"));
    out.line(&format!(
        "    for (int ppt_on_##f = {}(); ppt_on_##f; ppt_on_##f = 0) \\",
        model.on_function(frame.name)
    ));
    if frame.own_stamp().is_some() {
        let ticks = model.symbol("ticks");
        out.line(&format!(
            "        for (uint64_t ppt_at_##f = {ticks}(); ppt_on_##f; ppt_on_##f = 0) \\"
        ));
    }
    out.line(&format!("        for ({ty} f = PPT1_ZERO({ty}); ppt_on_##f; \\"));
    out.line(&format!("             {last}, ppt_on_##f = 0)"));
    out.blank();
}
