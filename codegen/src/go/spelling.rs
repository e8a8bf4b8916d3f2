//! Names and types that the files of a package share.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::{Enum, FieldType, Int};

use crate::model::{BufferModel, FieldModel, FormMark, FrameModel, MarkValue, Stamp, WriteForm};

/// The names that a package exports in any case, and those for its clocks and hashes.
pub(super) fn exported(model: &BufferModel<'_>) -> impl Iterator<Item = String> {
    let fixed = ["NOW", "On", "Prepare", "AllowAttach"].into_iter().map(String::from);
    let stamps = model.stamps.iter().flat_map(|stamp| {
        let names = [Some(stamp.name.clone()), stamp.length()];
        names.into_iter().flatten().map(|name| upper_camel(&name))
    });
    let hashes = ["Hash", "HashU64", "Hash128"].into_iter().filter(|_| model.hashes);
    fixed.chain(stamps).chain(hashes.map(String::from))
}

/// The constant of an enum's value: `KindLogin`.
pub(super) fn enum_value(declared: &Enum, value: &str) -> String {
    upper_camel(&declared.name) + &upper_camel(value)
}

/// Go's type of an integer.
pub(super) fn int(int: Int) -> &'static str {
    match int {
        Int::I8 => "int8",
        Int::I16 => "int16",
        Int::I32 => "int32",
        Int::I64 => "int64",
        Int::U8 => "uint8",
        Int::U16 => "uint16",
        Int::U32 => "uint32",
        Int::U64 => "uint64",
    }
}

fn array_type(count: Option<u32>, element: &str) -> String {
    count.map_or_else(|| element.into(), |count| format!("[{count}]{element}"))
}

/// Whether a field holds a point in time, which is an int64 in every clock.
fn is_time(field: &FieldModel<'_>) -> bool {
    field.clock().is_some() || field.is_ticks()
}

/// The type by which the program gives a field.
pub(super) fn given_type(field: &FieldModel<'_>) -> String {
    let element = match (field.ty, field.stored) {
        (FieldType::Duration, _) => "time.Duration".into(),
        (FieldType::Addr, _) => "uintptr".into(),
        _ if is_time(field) => "int64".into(),
        (_, Stored::Enum(declared)) => upper_camel(&declared.name),
        (_, Stored::Text { .. }) => "string".into(),
        _ => stored_element(field.stored),
    };
    array_type(field.array, &element)
}

fn stored_element(stored: Stored<'_>) -> String {
    match stored {
        Stored::Int(ty) => int(ty).into(),
        Stored::Enum(declared) => int(declared.repr).into(),
        Stored::F32 => "float32".into(),
        Stored::F64 => "float64".into(),
        Stored::Bool => "bool".into(),
        Stored::Timeval | Stored::Timespec => "[2]int64".into(),
        Stored::Text { len } | Stored::Bytes { len } => format!("[{len}]byte"),
    }
}

/// The type of a field in the struct with C's layout.
pub(super) fn stored_type(field: &FieldModel<'_>) -> String {
    array_type(field.array, &stored_element(field.stored))
}

/// The expression that converts an element `value` for C; None if it is stored unchanged.
pub(super) fn stored_value(field: &FieldModel<'_>, value: &str) -> Option<String> {
    match (field.ty, field.stored) {
        (_, Stored::Timeval) => Some(format!("ppt_time({value}, 1000)")),
        (_, Stored::Timespec) => Some(format!("ppt_time({value}, 1)")),
        (_, Stored::Enum(declared)) => Some(format!("{}({value})", int(declared.repr))),
        (FieldType::Duration, _) => Some(format!("int64({value})")),
        (FieldType::Addr | FieldType::Tsc, _) => Some(format!("uint64({value})")),
        _ => None,
    }
}

/// The struct by which the program gives a frame, or the half of a span that has fields of its own.
pub(super) fn given(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> String {
    upper_camel(frame.name) + &half.map_or_else(String::new, |half| upper_camel(half.word()))
}

/// The name of a frame or a half in names of functions that are not exported.
pub(super) fn half_name(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> String {
    // No name of a frame has two of them.
    half.map_or_else(|| frame.name.into(), |half| format!("{}__{}", frame.name, half.word()))
}

/// The function by which the program writes a frame in one form.
pub(super) fn writer(frame: &FrameModel<'_>, form: &WriteForm<'_>) -> String {
    upper_camel(form.verb) + &upper_camel(frame.name)
}

/// The end of the names of internal functions for a form.
pub(super) fn of_form(frame: &FrameModel<'_>, form: &WriteForm<'_>) -> String {
    format!("{}_{}", form.verb, frame.name)
}

/// The mark of a form, if the program chooses it.
pub(super) fn chosen<'m, 'a>(form: &'m WriteForm<'a>) -> Option<&'m FormMark<'a>> {
    form.mark.as_ref().filter(|mark| matches!(mark.value, MarkValue::Argument(_)))
}

/// The arguments of a function that writes a frame; `by` is before the type of the frame.
pub(super) fn arguments(frame: &FrameModel<'_>, form: &WriteForm<'_>, by: &str) -> String {
    let given = given(frame, form.half);
    match chosen(form) {
        Some(mark) => {
            format!("{} {}, f {by}{given}", mark.field, upper_camel(&mark.enum_type.name))
        }
        None => format!("f {by}{given}"),
    }
}

/// The arguments that pass on those of [`arguments`]; `frame` is the one for the frame.
pub(super) fn passed(form: &WriteForm<'_>, frame: &str) -> String {
    chosen(form).map_or_else(|| frame.into(), |mark| format!("{}, {frame}", mark.field))
}

/// The type and the name of the argument that is added to a counter or a histogram.
pub(super) fn added(metric: &Metric) -> (&'static str, &'static str) {
    match metric.shape {
        MetricShape::Counter => ("n", "uint64"),
        MetricShape::UpDownCounter => ("n", "int64"),
        MetricShape::Exponential => ("length", "time.Duration"),
        MetricShape::Linear { .. } => ("value", "uint32"),
    }
}

/// Whether the package has functions for lengths of time.
pub(super) fn has_lengths(model: &BufferModel<'_>) -> bool {
    let mut fields = model.frames.iter().flat_map(FrameModel::given);
    model.stamps.iter().any(|stamp| stamp.length().is_some())
        || fields.any(|field| *field.ty == FieldType::Duration)
        || model.metrics.iter().any(|metric| metric.shape == MetricShape::Exponential)
}

/// The internal function that reads a clock: `ppt_now`.
pub(super) fn now(stamp: &Stamp<'_>) -> String {
    format!("ppt_{}", stamp.name)
}
