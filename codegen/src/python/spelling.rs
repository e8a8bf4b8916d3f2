//! Names and texts of the extension module and its stub.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::Metric;

use crate::model::{FieldModel, FrameModel, WriteForm};

/// The suffix of [`scope_name`].
pub(super) const SCOPE: &str = "_scope";

/// The name of the function that returns the context manager of a frame with an interval.
pub(super) fn scope_name(frame: &FrameModel<'_>) -> String {
    format!("{}{SCOPE}", frame.name)
}

/// The name of the function that writes a frame: that of the frame, if it has one form.
pub(super) fn function_name(frame: &FrameModel<'_>, form: &WriteForm<'_>) -> String {
    match form.mark {
        None => frame.name.into(),
        Some(_) => format!("{}_{}", frame.name, form.verb),
    }
}

/// The name of the function that adds to a counter or a histogram.
pub(super) fn metric_name(metric: &Metric) -> String {
    format!("{}_{}", metric.name, metric.shape.verb())
}

/// The default value of a field, in Python.
pub(super) fn zero(field: &FieldModel<'_>) -> &'static str {
    match field.stored {
        _ if field.array.is_some() => "()",
        Stored::Text { .. } => "\"\"",
        Stored::Bytes { .. } => "b\"\"",
        Stored::F32 | Stored::F64 => "0.0",
        Stored::Bool => "False",
        Stored::Int(_) | Stored::Enum(_) | Stored::Timeval | Stored::Timespec => "0",
    }
}

/// A C string.
pub(super) fn string(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => literal.extend(['\\', byte as char]),
            0x20..=0x7e => literal.push(byte as char),
            _ => literal.push_str(&format!("\\{byte:03o}")),
        }
    }
    literal + "\""
}
