//! `BUFFER.pyi`: the declarations of the module for type checkers and editors.

use ppt_frame_dsl::Stored;
use ppt_text::masked;

use super::spelling::{function_name, metric_name, scope_name, zero};
use crate::c::commit::FrameOrHalf;
use crate::c::metrics::argument;
use crate::model::{BufferModel, FieldModel, FormMark, FrameModel, MarkValue};
use crate::text::GeneratedText;

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    for line in model.banner("Frames") {
        out.line(&format!("# {line}"));
    }
    out.line("from enum import IntEnum");
    out.line("from typing import Sequence, SupportsFloat, SupportsIndex, final");
    out.line("from typing_extensions import Buffer, Self");
    out.blank();
    for declared in &model.schema.enums {
        out.open(&format!("class {}(IntEnum):", declared.name));
        doc(&declared.doc, &mut out);
        for (name, value) in &declared.values {
            out.line(&format!("{name} = {value}"));
        }
        out.close("");
    }
    out.line("def on() -> bool: ...");
    out.line("def prepare() -> None: ...");
    for stamp in &model.stamps {
        out.line(&format!("def {}() -> int: ...", stamp.name));
        if let Some(length) = stamp.length() {
            out.line(&format!("def {length}(start: int, end: int, /) -> int: ..."));
        }
    }
    if model.hashes {
        out.line("def hash(data: Buffer, /) -> int: ...");
        out.line("def hash_u64(number: SupportsIndex, /) -> int: ...");
        out.line("def hash128(data: Buffer, /) -> bytes: ...");
    }
    for metric in &model.metrics {
        let (name, value) = (metric_name(metric), argument(metric).1);
        out.line(&format!("def {name}({value}: SupportsIndex, /) -> None: ..."));
    }
    for frame in &model.frames {
        out.blank();
        out.lines(
            masked(frame.doc, |char| char == '\n')
                .lines()
                .map(|line| format!("# {}", line.trim()))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str),
        );
        for form in &frame.forms {
            let step = match &form.mark {
                Some(FormMark { field, value: MarkValue::Argument(_), .. }) => {
                    &*format!("{field}: SupportsIndex,\n    /")
                }
                _ => "",
            };
            let written = FrameOrHalf { frame, half: form.half };
            function(step, &function_name(frame, form), written, "None", &mut out);
        }
        if frame.interval().is_some() {
            scope(frame, &mut out);
        }
    }
    out.finish()
}

/// A docstring, whose text cannot end it.
fn doc(text: &str, out: &mut GeneratedText) {
    if !text.is_empty() {
        let text =
            masked(text.trim(), |char| char == '\n').replace('\\', "\\\\").replace('"', "\\\"");
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        out.line(&format!("\"\"\"{}\"\"\"", lines.join(" ")));
    }
}

/// The declaration of a function whose parameters after `first` are the fields of a frame.
fn function(
    first: &str,
    name: &str,
    FrameOrHalf { frame, half }: FrameOrHalf<'_, '_>,
    result: &str,
    out: &mut GeneratedText,
) {
    out.open(&format!("def {name}("));
    if !first.is_empty() {
        out.line(&format!("{first},"));
    }
    for field in frame.given_in(half) {
        let zero = zero(field);
        out.line(&format!("{}: {} = {zero},", field.name, hint(field)));
    }
    out.close(&format!(") -> {result}: ..."));
}

fn hint(field: &FieldModel<'_>) -> String {
    let element = match field.stored {
        Stored::Text { .. } => "str",
        Stored::Bytes { .. } => "Buffer",
        Stored::F32 | Stored::F64 => "SupportsFloat | SupportsIndex",
        Stored::Bool => "object",
        Stored::Int(_) | Stored::Enum(_) | Stored::Timeval | Stored::Timespec => "SupportsIndex",
    };
    match (field.array, field.stored) {
        (Some(_), _) => format!("Sequence[{element}] | None"),
        (None, Stored::Text { .. } | Stored::Bytes { .. }) => format!("{element} | None"),
        (None, _) => element.into(),
    }
}

fn scope(frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let class = format!("_{}", scope_name(frame));
    out.blank();
    out.line("@final");
    out.open(&format!("class {class}:"));
    out.line("def __enter__(self) -> Self: ...");
    out.line("def __exit__(self, *args: object) -> None: ...");
    out.line("def abandon(self) -> None: ...");
    let written = FrameOrHalf { frame, half: None };
    function("self", "set", written, "None", out);
    out.close("");
    function("", &scope_name(frame), written, &class, out);
}
