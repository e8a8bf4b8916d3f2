//! `STEM.c`: schema, descriptor, control page and everything off the hot path.

use super::comment::banner;
use super::types::frame_type;
use crate::model::BufferModel;
use crate::text::GeneratedText;

const FIXED: &str = include_str!("../../runtime/c/target.c");
const SLOWDOWN: &str = include_str!("../../runtime/c/slowdown.c");
const MADE: &str = include_str!("../../runtime/c/made.c");
const CELLS: &str = include_str!("../../runtime/c/cells.c");
const FORK: &str = include_str!("../../runtime/c/fork.c");
const HELLO: &str = include_str!("../../runtime/c/hello.c");

/// The headers that the fixed parts need.
const HEADERS: [&str; 16] = [
    "errno.h",
    "fcntl.h",
    "poll.h",
    "pthread.h",
    "stdlib.h",
    "sys/auxv.h",
    "sys/mman.h",
    "sys/prctl.h",
    "sys/resource.h",
    "sys/shm.h",
    "sys/socket.h",
    "sys/stat.h",
    "sys/syscall.h",
    "sys/un.h",
    "time.h",
    "unistd.h",
];

/// The source file of `header`. With `macro_form`, it defines the frames of the macro form.
pub(crate) fn emit(model: &BufferModel<'_>, header: &str, macro_form: bool) -> String {
    let schema = model.schema;
    let mut out = GeneratedText::new();
    out.line(&banner(model, "The slow path"));
    out.lines(["#ifndef _GNU_SOURCE", "#define _GNU_SOURCE", "#endif"]);
    out.line(&format!("#include \"{header}\""));
    out.blank();
    out.line("#if PPT1_ENABLED");
    out.blank();
    for header in HEADERS {
        out.line(&format!("#include <{header}>"));
    }
    out.blank();
    let needs =
        "#error \"ppt: _GNU_SOURCE comes too late: compile this file by itself, or before others\"";
    out.lines(["#if !defined(MADV_DONTFORK) || !defined(CLOCK_MONOTONIC)", needs, "#endif"]);
    out.blank();
    out.line(&format!("#define PPT1_(name) {}##name", model.symbol("")));
    out.line(&format!("#define PPT1_SCHEMA_HASH UINT64_C(0x{:016x})", model.hash));
    out.line(&format!("#define PPT1_STRIDE {}", schema.stride));
    out.line(&format!("#define PPT1_LOG2_SLOTS {}", schema.slots.ilog2()));
    out.line(&format!("#define PPT1_FRAMES {}", schema.frames.len()));
    out.line(&format!("#define PPT1_CELLS {}", schema.cells()));
    out.blank();
    out.line("/* The schema, which describes the frames to readers. */");
    out.lines([
        "#pragma GCC diagnostic push",
        "#pragma GCC diagnostic ignored \"-Woverlength-strings\"",
    ]);
    out.line("static const char ppt1_schema[] =");
    json_literal(&schema.to_json(), &mut out);
    out.line("#pragma GCC diagnostic pop");
    out.blank();
    out.line("#if defined(__SANITIZE_THREAD__) && !defined(__clang__) && __GNUC__ > 10");
    out.line(
        "#pragma GCC diagnostic push /* it follows no fences; ours are for other processes */",
    );
    out.line("#pragma GCC diagnostic ignored \"-Wtsan\"");
    out.line("#endif");
    out.blank();
    out.block(FIXED);
    out.blank();
    out.block(SLOWDOWN);
    out.blank();
    out.block(MADE);
    out.blank();
    if !model.metrics.is_empty() {
        out.block(CELLS);
        out.blank();
    }
    out.block(FORK);
    out.blank();
    out.block(HELLO);
    out.blank();
    if macro_form {
        thread_frames(model, &mut out);
    }
    out.line("#if defined(__SANITIZE_THREAD__) && !defined(__clang__) && __GNUC__ > 10");
    out.lines(["#pragma GCC diagnostic pop", "#endif"]);
    out.line("#endif /* PPT1_ENABLED */");
    out.finish()
}

/// The frames of the macro form.
fn thread_frames(model: &BufferModel<'_>, out: &mut GeneratedText) {
    out.line("#ifdef __cplusplus");
    out.line("extern \"C\" {");
    out.line("#endif");
    out.line("/* The macro form's frames, one a thread: fields keep their last value. */");
    for frame in &model.frames {
        let symbol = model.symbol(&format!("frame_{}", frame.name));
        out.line(&format!("PPT1_WEAK PPT1_THREAD {} {symbol};", frame_type(frame)));
    }
    out.line("#ifdef __cplusplus");
    out.line("}");
    out.line("#endif");
    out.blank();
}

/// The schema's JSON as string literals of a readable length.
fn json_literal(json: &str, out: &mut GeneratedText) {
    const WIDTH: usize = 88;
    let mut line = String::new();
    for byte in json.bytes() {
        match byte {
            b'"' | b'\\' => line.extend(['\\', byte as char]),
            // The file has no trigraphs, and ASCII only.
            b'?' => line.push_str("\\?"),
            0x20..=0x7e => line.push(byte as char),
            _ => line.push_str(&format!("\\{byte:03o}")),
        }
        if line.len() >= WIDTH {
            out.line(&format!("    \"{line}\""));
            line.clear();
        }
    }
    out.line(&format!("    \"{line}\";"));
}
