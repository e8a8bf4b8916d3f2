//! `STEM_python.c`: tables that describe the frames, a function or two for each, and the module.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::IntervalEnd;

use super::methods::methods;
use super::spelling::{function_name, string};
use crate::c::comment::{banner, literal};
use crate::c::commit::{FrameOrHalf, call_close, storing};
use crate::c::metrics::argument;
use crate::c::types::{half_type, int_type};
use crate::model::{BufferModel, FormMark, FrameModel, MarkValue, Stamp, WriteForm};
use crate::text::GeneratedText;

const FIXED: &str = include_str!("../../runtime/python/module.c");
const HASH: &str = include_str!("../../runtime/python/hash.c");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let name = model.buffer();
    let mut out = GeneratedText::new();
    out.line(&banner(model, "Python's module"));
    out.lines(["#define PY_SSIZE_T_CLEAN", "#include <Python.h>", "#include <stddef.h>"]);
    out.line(&format!("#include \"{}.h\"", model.stem));
    out.blank();
    let tables = model
        .frames
        .iter()
        .flat_map(|frame| frame.halves().iter().map(move |half| frame.given_in(*half).count()));
    let names: usize = tables.sum();
    out.line(&format!("#define PPT_PY_MODULE \"{name}\""));
    // C arrays need an element, even without frames.
    out.line(&format!("#define PPT_PY_NAMES {}", names.max(1)));
    out.line(&format!("#define PPT_PY_STRIDE {}", model.schema.stride));
    out.block(FIXED);
    out.blank();
    let mut first = 0;
    for frame in &model.frames {
        for &half in frame.halves() {
            table(model, FrameOrHalf { frame, half }, first, &mut out);
            first += frame.given_in(half).count();
        }
        for form in &frame.forms {
            write(model, frame, form, &mut out);
        }
        scope(model, frame, &mut out);
    }
    for metric in &model.metrics {
        add(model, metric, &mut out);
    }
    if model.hashes {
        out.block(HASH);
        out.blank();
    }
    gate_functions(model, &mut out);
    enums(model, &mut out);
    methods(model, &mut out);
    module(model, &mut out);
    out.finish()
}

/// The function of the fixed part that stores an element.
fn setter(stored: Stored<'_>) -> &'static str {
    match stored {
        Stored::Int(int) => int.word(),
        Stored::Enum(declared) => declared.repr.word(),
        Stored::F32 => "f32",
        Stored::F64 => "f64",
        Stored::Bool => "bool",
        Stored::Timeval => "timeval",
        Stored::Timespec => "timespec",
        Stored::Text { .. } => "text",
        Stored::Bytes { .. } => "bytes",
    }
}

/// The name of the tables of a frame, or of the half of a span with fields of its own.
fn table_name(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> String {
    // No name of a frame has two underscores.
    half.map_or_else(|| frame.name.into(), |half| format!("{}__{}", frame.name, half.word()))
}

/// The tables of a frame. `first` is the index of its first field among those of all frames.
fn table(
    model: &BufferModel<'_>,
    stored: FrameOrHalf<'_, '_>,
    first: usize,
    out: &mut GeneratedText,
) {
    let FrameOrHalf { frame, half } = stored;
    let (name, ty) = (frame.name, half_type(frame, half));
    let table = table_name(frame, half);
    out.open(&format!("static const pptpy_field pptpy_fields_{table}[] = {{"));
    for field in frame.given_in(half) {
        let array = field.array.map_or(String::new(), |count| format!("[{count}]"));
        let place = format!("{name}.{} ({}{array})", field.name, field.type_word());
        out.line(&format!(
            "{{\"{0}\", {1}, pptpy_{2}, offsetof({ty}, {0}), {3}, {4}}},",
            field.name,
            string(&place),
            setter(field.stored),
            field.stored.size(),
            field.array.unwrap_or(0),
        ));
    }
    out.close("};");
    out.blank();
    let edges = frame.interval();
    for (edge, field) in edges
        .iter()
        .flat_map(|edge| [(IntervalEnd::Start, edge.start), (IntervalEnd::End, edge.end)])
    {
        let stamp = model.stamp_of(field);
        out.open(&format!("static void pptpy_{}_{name}(void *frame) {{", word(edge)));
        out.line(&format!(
            "(({ty} *)frame)->{} = ppt_{}_{}();",
            field.name,
            model.buffer(),
            stamp.name
        ));
        out.close("}");
        out.blank();
    }
    out.open(&format!("static void pptpy_commit_{table}(const void *frame) {{"));
    out.line(&format!("{}((const {ty} *)frame);", storing(model, "commit", stored)));
    out.close("}");
    out.blank();
    let stamper = |edge| edges.map_or("0".into(), |_| format!("pptpy_{}_{name}", word(edge)));
    let count = frame.given_in(half).count();
    out.open(&format!("static const pptpy_frame pptpy_frame_{table} = {{"));
    out.line(&format!("\"{name}\", pptpy_fields_{table}, {count}, {first},"));
    out.line(&format!(
        "{}, {}, pptpy_commit_{table},",
        stamper(IntervalEnd::Start),
        stamper(IntervalEnd::End)
    ));
    out.close("};");
    out.blank();
}

fn word(edge: IntervalEnd) -> &'static str {
    match edge {
        IntervalEnd::Start => "start",
        IntervalEnd::End => "end",
    }
}

const ARGUMENTS: &str = "(PyObject *module, PyObject *const *args, Py_ssize_t count,";

/// The function that a call of the module runs. It checks the gate before the arguments.
fn write(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
    out: &mut GeneratedText,
) {
    let name = frame.name;
    out.line(&format!("static PyObject *pptpy_{}_{name}{ARGUMENTS}", form.verb));
    out.open("    PyObject *keywords) {");
    out.line(&format!("if (!{}())", model.on_function(name)));
    out.line("    Py_RETURN_NONE;");
    let stored = FrameOrHalf { frame, half: form.half };
    let last = match &form.mark {
        None if frame.is_completed() => call_close(model, stored, "&f", None, "at"),
        None => format!("pptpy_commit_{name}(&f)"),
        Some(FormMark { value: MarkValue::Named(_, enumerator), .. }) => {
            call_close(model, stored, "&f", Some(enumerator), "at")
        }
        Some(FormMark { field, enum_type, value: MarkValue::Argument(_), .. }) => {
            let function = function_name(frame, form);
            let first = enum_type.values.first().map_or("", |value| value.0.as_str());
            let needs =
                format!("{function}() needs a {field} first, such as {}.{first}", enum_type.name);
            out.open("if (count < 1) {");
            out.line(&format!("PyErr_SetString(PyExc_TypeError, {});", string(&needs)));
            out.line("return 0;");
            out.close("}");
            let (int, place) = (enum_type.repr, format!("{name}.{field} ({})", enum_type.name));
            out.line(&format!("{} mark = 0;", int_type(int)));
            let set =
                format!("pptpy_{}(args[0], &mark, sizeof mark, {})", int.word(), string(&place));
            out.line(&format!("if ({set} != 0)"));
            out.line("    return 0;");
            out.lines(["args++;", "count--;"]);
            call_close(model, stored, "&f", Some("mark"), "at")
        }
    };
    if frame.own_stamp().is_some() {
        out.line(&format!("uint64_t at = {}();", model.symbol("ticks")));
    }
    out.line(&format!("{} f = {{0}};", half_type(frame, form.half)));
    out.line("const pptpy_state *state = (const pptpy_state *)PyModule_GetState(module);");
    out.line(&format!(
        "if (pptpy_fill(state, &pptpy_frame_{}, &f, args, count, keywords) != 0)",
        table_name(frame, form.half)
    ));
    out.line("    return 0;");
    out.line(&format!("{last};"));
    out.line("Py_RETURN_NONE;");
    out.close("}");
    out.blank();
}

fn scope(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let name = frame.name;
    if frame.interval().is_some() {
        out.line(&format!("static PyObject *pptpy_scope_of_{name}{ARGUMENTS}"));
        out.open("    PyObject *keywords) {");
        out.line("const pptpy_state *state = (const pptpy_state *)PyModule_GetState(module);");
        out.line(&format!("if (!{}())", model.on_function(name)));
        out.line("    return pptpy_scope_off(state);");
        out.line(&format!(
            "return pptpy_scope_new(state, &pptpy_frame_{name}, args, count, keywords);"
        ));
        out.close("}");
        out.blank();
    }
}

/// The function that adds to a counter or a histogram.
fn add(model: &BufferModel<'_>, metric: &Metric, out: &mut GeneratedText) {
    let (shape, name) = (metric.shape, &metric.name);
    let (ty, value) = argument(metric);
    out.line(&format!("static PyObject *pptpy_{}_{name}(PyObject *module,", shape.verb()));
    out.open("    PyObject *given) {");
    out.line("(void)module;");
    out.line(&format!("if (!{}())", model.on_function(name)));
    out.line("    Py_RETURN_NONE;");
    out.line(&format!("{ty} {value} = 0;"));
    let setter = match shape {
        MetricShape::Counter => "u64",
        MetricShape::UpDownCounter | MetricShape::Exponential => "i64",
        MetricShape::Linear { .. } => "u32",
    };
    let place = string(&format!("{name} ({})", shape.ty()));
    out.line(&format!("if (pptpy_{setter}(given, &{value}, sizeof {value}, {place}) != 0)"));
    out.line("    return 0;");
    out.line(&format!("ppt_{}_{name}({value});", shape.verb()));
    out.line("Py_RETURN_NONE;");
    out.close("}");
    out.blank();
}

/// The functions `on`, `prepare` and `now`.
fn gate_functions(model: &BufferModel<'_>, out: &mut GeneratedText) {
    let name = model.buffer();
    let mut function = |what: &str, body: &[&str]| {
        out.open(&format!("static PyObject *pptpy_{what}(PyObject *module, PyObject *none) {{"));
        out.lines(["(void)module;", "(void)none;"]);
        out.lines(body.iter().copied());
        out.close("}");
        out.blank();
    };
    function("on", &[&format!("return PyBool_FromLong(ppt_{name}_on());")]);
    // The GIL is not released, because mapping a segment is quick.
    function("prepare", &[&format!("ppt_{name}_prepare();"), "Py_RETURN_NONE;"]);
    for stamp in &model.stamps {
        let now = format!("ppt_{name}_{}()", stamp.name);
        let seconds = "(int64_t)t.tv_sec * 1000000000";
        match stamp.stored {
            Stored::Timeval => function(
                &stamp.name,
                &[
                    &format!("struct timeval t = {now};"),
                    &format!("return PyLong_FromLongLong({seconds} + t.tv_usec * 1000);"),
                ],
            ),
            Stored::Timespec => function(
                &stamp.name,
                &[
                    &format!("struct timespec t = {now};"),
                    &format!("return PyLong_FromLongLong({seconds} + t.tv_nsec);"),
                ],
            ),
            _ if stamp.clock.is_none() => {
                function(&stamp.name, &[&format!("return PyLong_FromUnsignedLongLong({now});")]);
            }
            _ => function(&stamp.name, &[&format!("return PyLong_FromLongLong({now});")]),
        }
    }
    for length in model.stamps.iter().filter_map(Stamp::length) {
        out.open(&format!("static PyObject *pptpy_{length}(PyObject *module, PyObject *given) {{"));
        out.line("(void)module;");
        out.line("unsigned long long start, end;");
        out.line(&format!("if (!PyArg_ParseTuple(given, \"KK:{length}\", &start, &end))"));
        out.line("    return 0;");
        out.line(&format!("return PyLong_FromLongLong(ppt_{name}_{length}(start, end));"));
        out.close("}");
        out.blank();
    }
}

fn enums(model: &BufferModel<'_>, out: &mut GeneratedText) {
    for declared in &model.schema.enums {
        out.open(&format!("static const pptpy_value pptpy_values_{}[] = {{", declared.name));
        for (name, value) in &declared.values {
            out.line(&format!("{{\"{name}\", (int64_t){}}},", literal(*value)));
        }
        out.close("};");
        out.line(&format!(
            "static const pptpy_enum pptpy_enum_{0} = {{\"{0}\", pptpy_values_{0}, {1}, {2}}};",
            declared.name,
            declared.values.len(),
            u8::from(declared.repr.word().starts_with('i'))
        ));
        out.blank();
    }
}

/// The functions that make the module.
fn module(model: &BufferModel<'_>, out: &mut GeneratedText) {
    let name = model.buffer();
    out.open("static int pptpy_exec(PyObject *module) {");
    let tables = model.frames.iter().flat_map(|frame| {
        let name = |half: &Option<SpanHalf>| format!("&pptpy_frame_{}", table_name(frame, *half));
        frame.halves().iter().map(name)
    });
    let frames: Vec<_> = tables.collect();
    let list = if frames.is_empty() { "0".into() } else { frames.join(", ") };
    out.line(&format!("static const pptpy_frame *const frames[] = {{{list}}};"));
    out.line(&format!("if (pptpy_start(module, frames, {}) != 0)", frames.len()));
    out.line("    return -1;");
    for declared in &model.schema.enums {
        out.line(&format!("if (pptpy_add_enum(module, &pptpy_enum_{}) != 0)", declared.name));
        out.line("    return -1;");
    }
    out.line("return 0;");
    out.close("}");
    out.blank();
    out.block(DEFINITION);
    out.blank();
    out.line(&format!("PyMODINIT_FUNC PyInit_{name}(void);"));
    out.line(&format!(
        "PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModuleDef_Init(&pptpy_module); }}"
    ));
}

const DEFINITION: &str = r#"static PyModuleDef_Slot pptpy_slots[] = {
    {Py_mod_exec, __extension__(void *) pptpy_exec},
/* All that interpreters and threads share is the buffer, whose rings belong to a thread each. */
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, 0},
};

static PyModuleDef pptpy_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = PPT_PY_MODULE,
    .m_doc = "Writes the frames of a buffer that `ppt attach` reads.",
    .m_size = sizeof(pptpy_state),
    .m_methods = pptpy_methods,
    .m_slots = pptpy_slots,
    .m_traverse = pptpy_traverse,
    .m_clear = pptpy_clear,
    .m_free = pptpy_free,
};"#;
