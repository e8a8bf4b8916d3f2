//! The functions that store a frame.

use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Enum;

use super::stores::{Enums, stores};
use crate::model::{BufferModel, FormMark, FrameModel};
use crate::text::GeneratedText;

/// Forces the stores of a frame inline. Otherwise, compilers emit calls of some functions even while ppt is not
/// attached.
pub(super) fn inline(frame: &FrameModel<'_>) -> &'static str {
    if frame.inline { "static inline __attribute__((always_inline))" } else { "static inline" }
}

/// A frame, or the half of a span with fields of its own.
#[derive(Clone, Copy)]
pub(crate) struct FrameOrHalf<'f, 'a> {
    pub frame: &'f FrameModel<'a>,
    pub half: Option<SpanHalf>,
}

/// The symbol of the function that stores a frame. `verb` is `commit` or `close`.
pub(crate) fn storing(model: &BufferModel<'_>, verb: &str, stored: FrameOrHalf<'_, '_>) -> String {
    let FrameOrHalf { frame, half } = stored;
    model.symbol(&format!("{}{verb}_{}", half.map_or("", SpanHalf::word), frame.name))
}

/// The function that copies a frame, of the type `ty`, into the ring.
pub(crate) fn commit(
    model: &BufferModel<'_>,
    stored: FrameOrHalf<'_, '_>,
    ty: &str,
    enums: Enums,
    out: &mut GeneratedText,
) {
    let FrameOrHalf { frame, half } = stored;
    let inline = inline(frame);
    out.line("/* Stores a frame, word by word, into the next slot of the thread's ring. */");
    out.open(&format!("{inline} void {}(const {ty} *f) {{", storing(model, "commit", stored)));
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
    stored: FrameOrHalf<'_, '_>,
    ty: &str,
    mark_type: impl Fn(&Enum) -> String,
    out: &mut GeneratedText,
) {
    let frame = stored.frame;
    if !frame.is_completed() {
        return;
    }
    let mark = frame
        .mark()
        .map_or(String::new(), |mark| format!(", {} ppt_mark", mark_type(mark.enum_type)));
    out.line("/* Sets what ppt sets of a frame, over what is there, and stores the frame. */");
    out.open(&format!(
        "static inline __attribute__((always_inline)) void {}({ty} *f{mark}{}) {{",
        storing(model, "close", stored),
        if frame.own_stamp().is_some() { ", uint64_t ppt_at" } else { "" }
    ));
    if let Some(FormMark { member, .. }) = frame.mark() {
        out.line(&format!("f->{member} = ppt_mark;"));
    }
    if let Some(stamp) = frame.own_stamp() {
        out.line(&format!("f->{} = ppt_at;", stamp.name));
    }
    out.line(&format!("{}(f);", storing(model, "commit", stored)));
    out.close("}");
    out.blank();
}

/// The statement that writes a frame that the program has set: a call of the function of [`close`], or of
/// [`commit`]. `pointer` points to the frame; `at` is the stamp, if ppt takes one.
pub(crate) fn call_close(
    model: &BufferModel<'_>,
    stored: FrameOrHalf<'_, '_>,
    pointer: &str,
    mark: Option<&str>,
    at: &str,
) -> String {
    let frame = stored.frame;
    let function = storing(model, if frame.is_completed() { "close" } else { "commit" }, stored);
    let mark = mark.map_or(String::new(), |mark| format!(", {mark}"));
    let at = frame.own_stamp().map_or(String::new(), |_| format!(", {at}"));
    format!("{function}({pointer}{mark}{at})")
}
