//! `STEM.h`: enums, structs, and both forms of writing a frame.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::{block_macro, claim_macro, field_macro, stamp_macro};
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::{Enum, FieldType};

use super::comment::{banner, doc, literal};
use super::metrics;
use super::stores::{Enums, stores};
use super::structure::{assertions, members};
use super::types::{element_type, frame_type, half_type, int_type};
use super::unwritten;
use crate::model::{
    ABOUT_LENGTH, BufferModel, FieldModel, FormMark, FrameModel, MarkValue, Stamp, WriteForm,
    clock_number,
};
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
    switch(model, &mut out);
    for frame in &model.frames {
        for &half in frame.halves() {
            let ty = half_type(frame, half);
            commit(model, (frame, half), &ty, Enums::Integers, &mut out);
            close(model, (frame, half), &ty, |of| int_type(of.repr).into(), &mut out);
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

/// The functions that compute hashes, where fields are of that type.
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
    for (index, it) in model.schema.enums.iter().enumerate() {
        let enumerator = |value: &str| model.enumerator(index, value);
        doc(&it.doc, out);
        let fits = |value: i128| i32::try_from(value).is_ok();
        if it.values.iter().all(|(_, value)| fits(*value)) {
            out.open("enum {");
            for (name, value) in &it.values {
                out.line(&format!("{} = {},", enumerator(name), literal(*value)));
            }
            out.close("};");
        } else {
            // An enumerator of C11 is an int.
            for (name, value) in &it.values {
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

/// The expression that is true while ppt is attached and wants the frame, counter or histogram with this bit.
/// The gate is checked first: while ppt is not attached, it costs one load.
pub(crate) fn is_wanted(model: &BufferModel<'_>, bit: u32) -> String {
    format!("ppt1_on(&{}, {bit})", model.symbol("control"))
}

/// The expression that is true while ppt is attached: one load.
pub(crate) fn is_on(model: &BufferModel<'_>) -> String {
    let control = model.symbol("control");
    format!("__builtin_expect(__atomic_load_n(&{control}.gate, __ATOMIC_RELAXED) != 0, 0) != 0")
}

/// The functions `on`, `now` and `prepare`.
fn switch(model: &BufferModel<'_>, out: &mut GeneratedText) {
    let name = model.buffer();
    out.line("/* Whether somebody is attached; costs one load. */");
    out.open(&format!("static inline int ppt_{name}_on(void) {{"));
    out.line(&format!("return {};", is_on(model)));
    out.close("}");
    out.blank();
    out.line("/* Does the slow work of a thread's first frame in advance. */");
    out.open(&format!("static inline void ppt_{name}_prepare(void) {{"));
    out.line(&format!("if (ppt_{name}_on())"));
    out.line(&format!("    {}();", model.symbol("prepare")));
    out.close("}");
    out.blank();
    for (of, bit) in model.bits() {
        out.line(&format!("/* The same, if `{of}` is wanted. */"));
        out.open(&format!("static inline int {}(void) {{", model.on_function(of)));
        out.line(&format!("return {};", is_wanted(model, bit)));
        out.close("}");
        out.blank();
    }
    ticks(model, out);
    for stamp in &model.stamps {
        now(model, stamp, &format!("ppt_{name}_"), out);
    }
}

/// The function that reads the CPU's counter, or its replacement, if frames are stamped by it. It is called
/// only while ppt is attached.
pub(crate) fn ticks(model: &BufferModel<'_>, out: &mut GeneratedText) {
    if model.stamps.iter().all(|stamp| stamp.clock.is_some()) {
        return;
    }
    let control = model.symbol("control");
    out.open(&format!("static inline uint64_t {}(void) {{", model.symbol("ticks")));
    out.line(&format!("uint32_t kind = __atomic_load_n(&{control}.clock_kind, __ATOMIC_RELAXED);"));
    out.line("if (__builtin_expect(kind != PPT1_CLOCK_TICKS, 0))");
    out.line(&format!("    return {}();", model.symbol("stamp")));
    out.line("return ppt1_ticks();");
    out.close("}");
    out.blank();
}

/// A function that takes a time stamp; the names of functions start with `prefix`.
pub(crate) fn now(
    model: &BufferModel<'_>,
    stamp: &Stamp<'_>,
    prefix: &str,
    out: &mut GeneratedText,
) {
    let ty = element_type(stamp.stored);
    let Some(clock) = stamp.clock else {
        return now_ticks(model, stamp, prefix, out);
    };
    out.line(&format!("/* {}; 0 when nobody is attached. */", stamp.about()));
    out.open(&format!("static inline {ty} {prefix}{}(void) {{", stamp.name));
    out.line("struct timespec t = {0, 0};");
    out.line(&format!("if ({prefix}on())"));
    out.line(&format!("    t = {}({});", model.symbol("clock"), clock_number(clock)));
    match stamp.stored {
        Stored::Timeval => {
            out.line("struct timeval now = {t.tv_sec, t.tv_nsec / 1000};");
            out.line("return now;");
        }
        Stored::Timespec => out.line("return t;"),
        _ => out.line("return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;"),
    }
    out.close("}");
    out.blank();
}

/// A function that takes a time stamp of the CPU's counter, or of its replacement.
fn now_ticks(model: &BufferModel<'_>, stamp: &Stamp<'_>, prefix: &str, out: &mut GeneratedText) {
    out.line(&format!("/* {}; 0 when nobody is attached. */", stamp.about()));
    out.open(&format!("static inline uint64_t {prefix}{}(void) {{", stamp.name));
    out.line(&format!("return {prefix}on() ? {}() : 0;", model.symbol("ticks")));
    out.close("}");
    out.blank();
    let Some(length) = stamp.length() else { return };
    let control = model.symbol("control");
    out.line(&format!("/* {ABOUT_LENGTH} */"));
    out.open(&format!("static inline int64_t {prefix}{length}(uint64_t start, uint64_t end) {{"));
    let scale = format!("__atomic_load_n(&{control}.tick_scale, __ATOMIC_RELAXED)");
    out.line(&format!("return ppt1_ns_between({scale}, start, end);"));
    out.close("}");
    out.blank();
}

/// Forces the stores of a frame inline. Otherwise, compilers emit calls of some functions even while ppt is not
/// attached.
fn inline(frame: &FrameModel<'_>) -> &'static str {
    if frame.inline { "static inline __attribute__((always_inline))" } else { "static inline" }
}

/// A frame, or the half of a span with fields of its own.
pub(crate) type OfHalf<'f, 'a> = (&'f FrameModel<'a>, Option<SpanHalf>);

/// The symbol of the function that stores it.
pub(crate) fn storing(
    model: &BufferModel<'_>,
    what: &str,
    (frame, half): OfHalf<'_, '_>,
) -> String {
    model.symbol(&format!("{}{what}_{}", half.map_or("", SpanHalf::word), frame.name))
}

/// The function that copies a frame, of the type `ty`, into the ring.
pub(crate) fn commit(
    model: &BufferModel<'_>,
    of: OfHalf<'_, '_>,
    ty: &str,
    enums: Enums,
    out: &mut GeneratedText,
) {
    let (frame, half) = of;
    let inline = inline(frame);
    out.line("/* Stores a frame, word by word, into the next slot of the thread's ring. */");
    out.open(&format!("{inline} void {}(const {ty} *f) {{", storing(model, "commit", of)));
    out.line(&format!("ppt1_thread *t = {}({});", model.symbol("begin"), frame.id));
    out.open("if (t) {");
    out.line("uint64_t *s = t->slot;");
    for statement in stores(frame, half, enums) {
        out.line(&statement);
    }
    out.line(&format!("{}(t);", model.symbol("end")));
    out.close("}");
    out.close("}");
    out.blank();
}

/// The function that sets ppt's own fields of a frame, of the type `ty`, and commits it. It runs last, as the
/// program may have overwritten the whole frame.
pub(crate) fn close(
    model: &BufferModel<'_>,
    of: OfHalf<'_, '_>,
    ty: &str,
    mark_type: impl Fn(&Enum) -> String,
    out: &mut GeneratedText,
) {
    let frame = of.0;
    if !frame.is_completed() {
        return;
    }
    let mark =
        frame.mark().map_or(String::new(), |mark| format!(", {} ppt_mark", mark_type(mark.of)));
    out.line("/* Sets what ppt sets of a frame, over what is there, and stores the frame. */");
    out.open(&format!(
        "static inline __attribute__((always_inline)) void {}({ty} *f{mark}{}) {{",
        storing(model, "close", of),
        if frame.own_stamp().is_some() { ", uint64_t ppt_at" } else { "" }
    ));
    if let Some(FormMark { member, .. }) = frame.mark() {
        out.line(&format!("f->{member} = ppt_mark;"));
    }
    if let Some(stamp) = frame.own_stamp() {
        out.line(&format!("f->{} = ppt_at;", stamp.name));
    }
    out.line(&format!("{}(f);", storing(model, "commit", of)));
    out.close("}");
    out.blank();
}

/// The statement that writes `frame`, a pointer to a frame that the program has set: a call of that function,
/// or of the one that only commits. `at` is the stamp, if ppt takes one.
pub(crate) fn call_close(
    model: &BufferModel<'_>,
    of: OfHalf<'_, '_>,
    frame: &str,
    mark: Option<&str>,
    at: &str,
) -> String {
    let function = storing(model, if of.0.is_completed() { "close" } else { "commit" }, of);
    let mark = mark.map_or(String::new(), |mark| format!(", {mark}"));
    let at = of.0.own_stamp().map_or(String::new(), |_| format!(", {at}"));
    format!("{function}({frame}{mark}{at})")
}

/// The write of the macro form.
fn write_frame(
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
    let of = (frame, form.half);
    match form.half {
        None => {
            let close = call_close(model, of, &format!("&{symbol}"), value, &now);
            out.lines([&*on, &*format!("    {close};")]);
        }
        Some(_) => {
            out.open(&format!("{on} {{"));
            out.line(&format!("{} f;", half_type(frame, form.half)));
            out.line(&format!("memcpy(&f, &{symbol}, sizeof f);"));
            out.line(&format!("{};", call_close(model, of, "&f", value, &now)));
            out.close("}");
        }
    }
    out.close("}");
    out.blank();
}

/// The name and the parameters of that function.
fn write_frame_head(
    frame: &FrameModel<'_>,
    WriteForm { verb, mark, .. }: &WriteForm<'_>,
) -> String {
    let argument = match mark {
        Some(FormMark { field, of, value: MarkValue::Argument(_), .. }) => {
            format!("{} {field}", int_type(of.repr))
        }
        _ => "void".into(),
    };
    format!("ppt_{verb}_{}_frame({argument})", frame.name)
}

/// Typed copies for array fields of the macro form.
fn setters(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
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
fn addressed(field: &FieldModel<'_>) -> &'static str {
    if *field.ty == FieldType::Addr { "PPT_ADDR" } else { "" }
}

/// The macro form: `WRITE_<FRAME>_<FIELD>(v)`, and `…_TIMESTAMP()` for times.
fn field_macros(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let symbol = model.symbol(&format!("frame_{}", frame.name));
    out.line("/* The macro form: sets fields of the thread's frame, on or off; only stamps check the gate. */");
    for field in frame.given() {
        let (name, of) = (field.name, field_macro(frame.name, field.name));
        if field.length().is_some() {
            let setter = model.symbol(&format!("set_{}_{name}", frame.name));
            out.line(&format!("#define {of}(ppt_v) {setter}(ppt_v)"));
        } else {
            let to = addressed(field);
            // No field has the name of the parameter.
            out.line(&format!("#define {of}(ppt_v) ((void)({symbol}.{name} = {to}(ppt_v)))"));
        }
        if field.stamp.is_some() {
            let stamp = model.stamp_of(field);
            let now = match stamp.clock {
                Some(_) => format!("ppt_{}_{}", model.buffer(), stamp.name),
                None => model.symbol("ticks"),
            };
            let (of, on) = (stamp_macro(frame.name, name), model.on_function(frame.name));
            let field = format!("{symbol}.{name}");
            out.line(&format!("#define {of}() \\"));
            out.line(&format!(
                "    ({on}() ? (void)({field} = {now}()) : (void)memset(&{field}, 0, sizeof {field}))"
            ));
        }
    }
    out.blank();
}

/// The same names without effect, for programs that are compiled without ppt.
fn disabled(model: &BufferModel<'_>, out: &mut GeneratedText) {
    let name = model.buffer();
    out.line(&format!("static inline int ppt_{name}_on(void) {{ return 0; }}"));
    out.line(&format!("static inline void ppt_{name}_prepare(void) {{}}"));
    for (of, _) in model.bits() {
        out.line(&format!("static inline int {}(void) {{ return 0; }}", model.on_function(of)));
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
            let (ty, of) = (half_type(frame, half), (frame, half));
            let commit = storing(model, "commit", of);
            out.line(&format!("static inline void {commit}(const {ty} *f) {{ (void)f; }}"));
            close(model, of, &ty, |of| int_type(of.repr).into(), out);
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
            let of = field_macro(frame.name, field.name);
            let value = match addressed(field) {
                "" => "ppt_v".to_owned(),
                to => format!("{to}(ppt_v)"),
            };
            out.line(&format!("#define {of}(ppt_v) ((void)sizeof({value}))"));
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
    let of = (frame, form.half);
    let close = |mark: Option<&str>| call_close(model, of, "&f", mark, "ppt_at_##f");
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
