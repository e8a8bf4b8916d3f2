//! The native functions that Java calls and C defines.

use ppt_frame_dsl::metric::Metric;
use ppt_frame_dsl::role::SpanHalf;

use super::passing::{Passing, packed, passing};
use super::spelling::{lower_camel, number_type};
use crate::model::{BufferModel, FieldModel, FrameModel, MarkValue, Stamp, WriteForm};

/// A native function.
pub(super) struct Native {
    pub name: String,
    pub result: &'static str,
    /// The types and names of the parameters.
    pub arguments: Vec<(&'static str, String)>,
}

impl Native {
    fn new(name: impl Into<String>, result: &'static str) -> Native {
        Native { name: name.into(), result, arguments: Vec::new() }
    }

    fn with(mut self, ty: &'static str, name: &str) -> Native {
        self.arguments.push((ty, name.into()));
        self
    }

    /// The declaration in Java.
    pub fn declaration(&self) -> String {
        let arguments: Vec<_> =
            self.arguments.iter().map(|(ty, name)| format!("{ty} {name}")).collect();
        format!("static native {} {}({});", self.result, self.name, arguments.join(", "))
    }
}

pub(super) const PREPARE: &str = "ppt_prepare";
pub(super) const ALLOW: &str = "ppt_allow_attach";
pub(super) const TICKS: &str = "ppt_ticks";
pub(super) const HASH: &str = "ppt_hash";
pub(super) const HASH_U64: &str = "ppt_hash_u64";
pub(super) const HASH128: &str = "ppt_hash128";

/// The function that reads a clock.
pub(super) fn of_stamp(stamp: &Stamp<'_>) -> String {
    format!("ppt_{}", stamp.name)
}

/// The function that writes a frame by one form.
pub(super) fn of_form(frame: &FrameModel<'_>, form: &WriteForm<'_>) -> String {
    format!("{}_{}", form.verb, frame.name)
}

/// The function that adds to a counter or a histogram.
pub(super) fn of_metric(metric: &Metric) -> String {
    format!("{}_{}", metric.shape.verb(), metric.name)
}

/// The parameters of a frame's function before the fields: those that ppt sets.
pub(super) fn set_by_ppt(
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
) -> Vec<(&'static str, String)> {
    let mut set = Vec::new();
    if form.mark.as_ref().is_some_and(|mark| matches!(mark.value, MarkValue::Argument(_))) {
        set.push(("long", "ppt_mark".into()));
    }
    if frame.own_stamp().is_some() {
        set.push(("long", "ppt_at".into()));
    }
    if frame.interval().is_some() {
        set.push(("boolean", "ppt_ends".into()));
    }
    set
}

/// The argument that holds a word of a field.
pub(super) fn word_name(field: &FieldModel<'_>, word: u32) -> String {
    format!("ppt_{}_{word}", field.name)
}

/// The arguments of the fields of a frame, or of a half.
fn of_fields(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> Vec<(&'static str, String)> {
    match passing(frame, half) {
        Passing::Words => vec![("long[]", "ppt_words".into())],
        Passing::Arguments => {
            let mut arguments = Vec::new();
            for field in frame.given_in(half) {
                match packed(field) {
                    None => arguments.push((number_type(field.stored), field.name.to_owned())),
                    Some(words) => {
                        arguments.extend((0..words).map(|word| ("long", word_name(field, word))));
                    }
                }
            }
            arguments
        }
    }
}

/// The functions of a buffer. The first one gives Java a part of the control page; its name has a hash of all
/// functions, so that classes do not call a library of another version.
pub(super) fn natives(model: &BufferModel<'_>) -> Vec<Native> {
    let mut natives = vec![Native::new(PREPARE, "void"), Native::new(ALLOW, "void")];
    for stamp in &model.stamps {
        natives.push(Native::new(of_stamp(stamp), "long"));
        if let Some(length) = stamp.length() {
            let length = Native::new(format!("ppt_{length}"), "long");
            natives.push(length.with("long", "start").with("long", "end"));
        }
    }
    if model.frames.iter().any(|frame| frame.own_stamp().is_some()) {
        natives.push(Native::new(TICKS, "long"));
    }
    if model.hashes {
        natives.push(Native::new(HASH, "long").with("byte[]", "data"));
        natives.push(Native::new(HASH_U64, "long").with("long", "number"));
        natives.push(Native::new(HASH128, "byte[]").with("byte[]", "data"));
    }
    for frame in &model.frames {
        for form in &frame.forms {
            let mut native = Native::new(of_form(frame, form), "void");
            native.arguments = set_by_ppt(frame, form);
            native.arguments.extend(of_fields(frame, form.half));
            natives.push(native);
        }
    }
    for metric in &model.metrics {
        natives.push(Native::new(of_metric(metric), "void").with("long", "value"));
    }
    let declarations: Vec<_> = natives.iter().map(Native::declaration).collect();
    let hash = fnv(&format!("{}{}", model.symbol(""), declarations.join("")));
    let page = Native::new(format!("page_{hash:016x}"), "java.nio.ByteBuffer");
    natives.insert(0, page.with("int", "part"));
    natives
}

/// FNV-1a, which is not for security.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The name of [`Stamp::length`] as a method.
pub(super) fn method(name: &str) -> String {
    lower_camel(name)
}
