//! The functions of a buffer: whether ppt is attached, and its clocks.

use ppt_frame_dsl::Stored;

use super::types::element_type;
use crate::model::{ABOUT_LENGTH, BufferModel, Stamp, clock_number};
use crate::text::GeneratedText;

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
pub(super) fn gate_functions(model: &BufferModel<'_>, out: &mut GeneratedText) {
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
    for (item, bit) in model.bits() {
        out.line(&format!("/* The same, if `{item}` is wanted. */"));
        out.open(&format!("static inline int {}(void) {{", model.on_function(item)));
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
