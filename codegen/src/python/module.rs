//! `STEM_python.c`: tables that describe the frames, a function or two for each, and the module.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Edge;

use super::spelling::{function_name, metric_name, scope_name, zero};
use crate::c::comment::{banner, literal};
use crate::c::header::{OfHalf, call_close, storing};
use crate::c::metrics::{about, argument};
use crate::c::types::{half_type, int_type};
use crate::model::{
    ABOUT_LENGTH, BufferModel, FormMark, FrameModel, MarkValue, ScopeInterval, Stamp, WriteForm,
};
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
            table(model, (frame, half), first, &mut out);
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
    switch(model, &mut out);
    enums(model, &mut out);
    module(model, &mut out);
    out.finish()
}

/// A C string.
fn string(text: &str) -> String {
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

/// The function of the fixed part that stores an element.
fn setter(stored: Stored<'_>) -> &'static str {
    match stored {
        Stored::Int(int) => int.word(),
        Stored::Enum(it) => it.repr.word(),
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

fn table(model: &BufferModel<'_>, of: OfHalf<'_, '_>, first: usize, out: &mut GeneratedText) {
    let (frame, half) = of;
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
    for (edge, field) in
        edges.iter().flat_map(|edge| [(Edge::Start, edge.start), (Edge::End, edge.end)])
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
    out.line(&format!("{}((const {ty} *)frame);", storing(model, "commit", of)));
    out.close("}");
    out.blank();
    let stamper = |edge| edges.map_or("0".into(), |_| format!("pptpy_{}_{name}", word(edge)));
    let count = frame.given_in(half).count();
    out.open(&format!("static const pptpy_frame pptpy_frame_{table} = {{"));
    out.line(&format!("\"{name}\", pptpy_fields_{table}, {count}, {first},"));
    out.line(&format!("{}, {}, pptpy_commit_{table},", stamper(Edge::Start), stamper(Edge::End)));
    out.close("};");
    out.blank();
}

fn word(edge: Edge) -> &'static str {
    match edge {
        Edge::Start => "start",
        Edge::End => "end",
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
    let written = (frame, form.half);
    let last = match &form.mark {
        None if frame.is_completed() => call_close(model, written, "&f", None, "at"),
        None => format!("pptpy_commit_{name}(&f)"),
        Some(FormMark { value: MarkValue::Named(_, enumerator), .. }) => {
            call_close(model, written, "&f", Some(enumerator), "at")
        }
        Some(FormMark { field, of, value: MarkValue::Argument(_), .. }) => {
            let function = function_name(frame, form);
            let first = of.values.first().map_or("", |value| value.0.as_str());
            let needs = format!("{function}() needs a {field} first, such as {}.{first}", of.name);
            out.open("if (count < 1) {");
            out.line(&format!("PyErr_SetString(PyExc_TypeError, {});", string(&needs)));
            out.line("return 0;");
            out.close("}");
            let (int, place) = (of.repr, format!("{name}.{field} ({})", of.name));
            out.line(&format!("{} mark = 0;", int_type(int)));
            let set =
                format!("pptpy_{}(args[0], &mark, sizeof mark, {})", int.word(), string(&place));
            out.line(&format!("if ({set} != 0)"));
            out.line("    return 0;");
            out.lines(["args++;", "count--;"]);
            call_close(model, written, "&f", Some("mark"), "at")
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
fn switch(model: &BufferModel<'_>, out: &mut GeneratedText) {
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
    for it in &model.schema.enums {
        out.open(&format!("static const pptpy_value pptpy_values_{}[] = {{", it.name));
        for (name, value) in &it.values {
            out.line(&format!("{{\"{name}\", (int64_t){}}},", literal(*value)));
        }
        out.close("};");
        out.line(&format!(
            "static const pptpy_enum pptpy_enum_{0} = {{\"{0}\", pptpy_values_{0}, {1}, {2}}};",
            it.name,
            it.values.len(),
            u8::from(it.repr.word().starts_with('i'))
        ));
        out.blank();
    }
}

/// A docstring whose first line makes inspect.signature() work. `first` has the parameters before the fields.
fn docstring(function: &str, first: &str, (frame, half): OfHalf<'_, '_>, about: &str) -> String {
    let fields = frame.given_in(half).map(|field| format!(", {}={}", field.name, zero(field)));
    let doc = format!(
        "{function}($module, {first}/{})\n--\n\n{}",
        fields.collect::<String>(),
        if frame.doc.is_empty() {
            about.into()
        } else {
            format!("{about}\n\n{}", frame.doc.trim())
        }
    );
    string(&doc)
}

fn module(model: &BufferModel<'_>, out: &mut GeneratedText) {
    let name = model.buffer();
    out.lines([
        "#pragma GCC diagnostic push",
        "#pragma GCC diagnostic ignored \"-Woverlength-strings\"",
    ]);
    out.open("static PyMethodDef pptpy_methods[] = {");
    let fast = "METH_FASTCALL | METH_KEYWORDS";
    for frame in &model.frames {
        let frame_name = frame.name;
        for form in &frame.forms {
            let function = function_name(frame, form);
            let verb = form.verb;
            out.line(&format!("{{\"{function}\", PPT_PY_FAST(pptpy_{verb}_{frame_name}), {fast},"));
            let (first, what) = match form.mark.as_ref().map(|mark| (mark.field, &mark.value)) {
                None => (String::new(), "Writes a frame".into()),
                Some((_, MarkValue::Named(value, _))) => {
                    (String::new(), format!("Writes a frame as `{value}`"))
                }
                Some((field, MarkValue::Argument(_))) => {
                    (format!("{field}, "), format!("Writes a frame as that {field}"))
                }
            };
            let about =
                format!("{what}, if somebody is attached. Fields that are not given are 0.");
            out.line(&format!(" {}}},", docstring(&function, &first, (frame, form.half), &about)));
        }
        if let Some(ScopeInterval { start, end }) = frame.interval() {
            let scope = scope_name(frame);
            out.line(&format!("{{\"{scope}\", PPT_PY_FAST(pptpy_scope_of_{frame_name}), {fast},"));
            let about = format!(
                "A context manager: stamps {} at its start, {} at its end, and writes the frame.",
                start.name, end.name
            );
            out.line(&format!(" {}}},", docstring(&scope, "", (frame, None), &about)));
        }
    }
    for metric in &model.metrics {
        let (function, (_, value)) = (metric_name(metric), argument(metric));
        let about = about(metric) + ", if somebody is attached.";
        let about = match metric.doc.trim() {
            "" => about,
            doc => format!("{about}\n\n{doc}"),
        };
        let doc = string(&format!("{function}($module, {value}, /)\n--\n\n{about}"));
        let verb = metric.shape.verb();
        out.line(&format!("{{\"{function}\", pptpy_{verb}_{}, METH_O,", metric.name));
        out.line(&format!(" {doc}}},"));
    }
    let on = string("on($module, /)\n--\n\nWhether somebody is attached.");
    out.line(&format!("{{\"on\", pptpy_on, METH_NOARGS, {on}}},"));
    let prepare = "prepare($module, /)\n--\n\nLets an idle thread pay for its first frame.";
    out.line(&format!("{{\"prepare\", pptpy_prepare, METH_NOARGS, {}}},", string(prepare)));
    if model.hashes {
        for (name, data, about) in [
            ("hash", "data", "The hash of bytes, for fields of type `hash`: XXH3, 64 bits."),
            ("hash_u64", "number", "The hash of the 8 bytes of a number."),
            ("hash128", "data", "The same for fields of type `hash128`, as 16 bytes."),
        ] {
            let doc = string(&format!("{name}($module, {data}, /)\n--\n\n{about}"));
            out.line(&format!("{{\"{name}\", pptpy_{name}, METH_O, {doc}}},"));
        }
    }
    for stamp in &model.stamps {
        let unit = if stamp.clock.is_some() { " in nanoseconds" } else { "" };
        let what = stamp.about() + unit;
        let about = format!("{}($module, /)\n--\n\n{what}; 0 when nobody is attached.", stamp.name);
        out.line(&format!("{{\"{0}\", pptpy_{0}, METH_NOARGS, {1}}},", stamp.name, string(&about)));
        if let Some(length) = stamp.length() {
            let about = string(&format!("{length}($module, start, end, /)\n--\n\n{ABOUT_LENGTH}"));
            out.line(&format!("{{\"{length}\", pptpy_{length}, METH_VARARGS, {about}}},"));
        }
    }
    out.line("{0, 0, 0, 0},");
    out.close("};");
    out.line("#pragma GCC diagnostic pop");
    out.blank();
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
    for it in &model.schema.enums {
        out.line(&format!("if (pptpy_add_enum(module, &pptpy_enum_{}) != 0)", it.name));
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
