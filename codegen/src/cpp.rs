//! C++17: a namespace for each buffer, `write` and `scope` for each frame. The slow path and the
//! symbols are those of C, so C and C++ parts of one program share a buffer.

use ppt_frame_dsl::metric::Metric;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Enum;
use ppt_frame_dsl::{Declared, Stored};

use crate::c::comment::{banner, doc, literal};
use crate::c::commit::{FrameOrHalf, call_close, close, commit};
use crate::c::gate::{is_on, is_wanted, now, ticks};
use crate::c::header::{claim, hashes, symbols};
use crate::c::metrics::{about, argument as argument_of, call};
use crate::c::source;
use crate::c::stores::Enums;
use crate::c::structure::{assertions, members};
use crate::c::types::{element_type, int_type};
use crate::c::unwritten;
use crate::emitter::Emitter;
use crate::model::{
    BufferModel, FieldModel, FormMark, FrameModel, MarkValue, ScopeInterval, WriteForm,
};
use crate::output::GeneratedFile;
use crate::text::GeneratedText;

const FIXED: &str = include_str!("../runtime/c/target.h");

/// Names that the generated code uses next to frames and enums.
const OF_NAMESPACE: [&str; 3] = ["on", "now", "prepare"];
/// Names that the generated code uses next to fields and the forms of a frame.
const OF_FRAME: [&str; 2] = ["write", "scope"];

/// The name of the enum of a frame's own field inside its class, if the program chooses the value.
const STEP: &str = "Step";

/// Writes `STEM.hpp` and `STEM.cpp`.
pub(crate) struct Cpp;

impl Emitter for Cpp {
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile> {
        let name = format!("{}.hpp", model.stem);
        let header = GeneratedFile { text: header(model, &name), name };
        let source = source::emit(model, &header.name, false);
        vec![header, GeneratedFile { name: format!("{}.cpp", model.stem), text: source }]
    }

    /// A member cannot have the name of its class or of a function of its class. A type cannot have the name of
    /// a function of its namespace.
    fn takes(&self, model: &BufferModel<'_>, declared: Declared, name: &str) -> bool {
        match declared {
            Declared::Enum(_) | Declared::Frame(_) | Declared::Metric(_) => {
                let of_itself = match declared {
                    Declared::Frame(frame) => has_own(&model.frames[frame], name),
                    _ => false,
                };
                OF_NAMESPACE.contains(&name)
                    || model
                        .stamps
                        .iter()
                        .any(|stamp| stamp.name == name || stamp.length().as_deref() == Some(name))
                    || of_itself
            }
            Declared::Field(frame, field) => {
                let frame = &model.frames[frame];
                let FieldModel { name, own, .. } = frame.fields[field];
                let is_form = frame.forms.iter().any(|form| form.verb == name);
                // The names of fields that ppt adds are fixed.
                frame.name == name && !own
                    || OF_FRAME.contains(&name)
                    || is_form
                    || name == STEP && argument(frame).is_some()
            }
            Declared::Buffer | Declared::Value(..) => false,
        }
    }
}

fn header(model: &BufferModel<'_>, name: &str) -> String {
    let mut out = GeneratedText::new();
    out.line(&banner(model, "Frames"));
    let guard = format!("{}_HPP", model.symbol("").to_uppercase().trim_end_matches('_'));
    out.lines([&*format!("#ifndef {guard}"), &*format!("#define {guard}")]);
    out.blank();
    for header in ["stdint.h", "string.h", "sys/time.h", "time.h", "type_traits", "utility"] {
        out.line(&format!("#include <{header}>"));
    }
    out.block(FIXED);
    out.blank();
    hashes(model, &mut out);
    claim(model, name, [("namespace", model.buffer())], &mut out);
    out.line("#if PPT1_ENABLED");
    out.line("extern \"C\" {");
    symbols(model, &mut out);
    out.line("}");
    out.line("#endif");
    out.blank();
    out.line("namespace ppt {");
    out.line(&format!("namespace {} {{", model.buffer()));
    out.blank();
    enums(model, &mut out);
    gate_functions(model, &mut out);
    for frame in &model.frames {
        structure(model, frame, &mut out);
    }
    out.line("#if PPT1_ENABLED");
    for frame in &model.frames {
        for &half in frame.halves() {
            let (ty, stored) = (type_of(frame, half), FrameOrHalf { frame, half });
            commit(model, stored, &ty, Enums::Classes, &mut out);
            let mark_type = |declared: &Enum| format!("{}::{}", namespace(model), declared.name);
            close(model, stored, &ty, mark_type, &mut out);
        }
    }
    out.line("#endif");
    out.blank();
    for frame in &model.frames {
        write(model, frame, &mut out);
    }
    for declared in &model.metrics {
        metric(model, declared, &mut out);
    }
    out.line(&format!("}} // namespace {}", model.buffer()));
    out.line("} // namespace ppt");
    out.blank();
    out.line(&format!("#endif // {guard}"));
    out.finish()
}

/// The class of a counter or a histogram, with one function, which adds.
fn metric(model: &BufferModel<'_>, metric: &Metric, out: &mut GeneratedText) {
    let (ty, value) = argument_of(metric);
    doc(&metric.doc, out);
    out.open(&format!("struct {} {{", metric.name));
    out.line(&format!("/* {}, if somebody is attached. */", about(metric)));
    out.open(&format!("static void {}({ty} {value}) {{", metric.shape.verb()));
    out.line("#if PPT1_ENABLED");
    out.line(&format!("if ({})", is_wanted(model, model.bit_of(metric))));
    out.line(&format!("    {};", call(model, metric)));
    out.line("#else");
    out.line(&format!("(void){value};"));
    out.line("#endif");
    out.close("}");
    out.close("};");
    out.blank();
}

fn enums(model: &BufferModel<'_>, out: &mut GeneratedText) {
    for declared in &model.schema.enums {
        doc(&declared.doc, out);
        out.open(&format!("enum class {} : {} {{", declared.name, int_type(declared.repr)));
        for (name, value) in &declared.values {
            out.line(&format!("{name} = {},", literal(*value)));
        }
        out.close("};");
        out.blank();
    }
}

/// The functions `on`, `now` and `prepare`.
fn gate_functions(model: &BufferModel<'_>, out: &mut GeneratedText) {
    out.line("#if PPT1_ENABLED");
    out.blank();
    out.line("/* Whether somebody is attached; costs one load. */");
    out.line(&format!("static inline bool on() {{ return {}; }}", is_on(model)));
    out.blank();
    out.line("/* Does the slow work of a thread's first frame in advance. */");
    out.open("static inline void prepare() {");
    out.line("if (on())");
    out.line(&format!("    {}();", model.symbol("prepare")));
    out.close("}");
    out.blank();
    let scoped = model.frames.iter().filter(|frame| frame.interval().is_some());
    for frame in scoped.clone() {
        let (on, name) = (model.on_function(frame.name), frame.name);
        let wanted = is_wanted(model, frame.id as u32);
        out.line(&format!("/* The same, if `{name}` is wanted. */"));
        out.line(&format!("static inline bool {on}() {{ return {wanted} != 0; }}"));
        out.blank();
    }
    ticks(model, out);
    for stamp in &model.stamps {
        now(model, stamp, "", out);
    }
    out.line("#else");
    out.line("static inline bool on() { return false; }");
    out.line("static inline void prepare() {}");
    for frame in scoped {
        out.line(&format!(
            "static inline bool {}() {{ return false; }}",
            model.on_function(frame.name)
        ));
    }
    for stamp in &model.stamps {
        let ty = element_type(stamp.stored);
        // `struct timeval()` is not an expression.
        out.line(&format!("static inline {ty} {}() {{ return {{}}; }}", stamp.name));
        if let Some(length) = stamp.length() {
            out.line(&format!(
                "static inline int64_t {length}(uint64_t, uint64_t) {{ return -1; }}"
            ));
        }
    }
    out.line("#endif");
    out.blank();
}

/// Whether ppt uses a name inside a frame's class.
fn has_own(frame: &FrameModel<'_>, name: &str) -> bool {
    frame.fields.iter().any(|field| field.own && field.name == name)
        || name == STEP && argument(frame).is_some()
}

/// The mark whose value the program gives when it writes a frame.
fn argument<'f, 'a>(frame: &'f FrameModel<'a>) -> Option<&'f FormMark<'a>> {
    let marks = frame.forms.iter().filter_map(|form| form.mark.as_ref());
    marks.into_iter().find(|mark| matches!(mark.value, MarkValue::Argument(_)))
}

/// The parameters of a form before the function that fills the frame.
fn parameter(model: &BufferModel<'_>, mark: Option<&FormMark<'_>>) -> String {
    match mark {
        Some(FormMark { enum_type, value: MarkValue::Argument(_), .. }) => {
            format!("{}::{} ppt_mark, ", namespace(model), enum_type.name)
        }
        _ => String::new(),
    }
}

fn structure(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let name = frame.name;
    doc(frame.doc, out);
    out.open(&format!("struct {name} {{"));
    let element = |field: &FieldModel<'_>| match field.stored {
        // A member may have the name of its type.
        Stored::Enum(declared) => format!("{}::{}", namespace(model), declared.name),
        other => element_type(other).into(),
    };
    members(frame, None, element, out);
    out.blank();
    for &half in frame.halves().iter().filter(|half| half.is_some()) {
        let word = half.map_or("", SpanHalf::word);
        out.line(&format!("/* The same, with the fields of its {word}. */"));
        out.open(&format!("struct ppt_{word} {{"));
        members(frame, half, element, out);
        out.close("};");
    }
    if let Some(FormMark { enum_type, .. }) = argument(frame) {
        out.line(&format!("using {STEP} = {}::{};", namespace(model), enum_type.name));
    }
    for WriteForm { verb, mark, .. } in &frame.forms {
        let effect = match mark.as_ref().map(|mark| &mark.value) {
            None => "writes the frame".into(),
            Some(MarkValue::Named(value, _)) => format!("writes the frame as `{value}`"),
            Some(MarkValue::Argument(_)) => "writes the frame as that step".into(),
        };
        let first = parameter(model, mark.as_ref());
        out.line(&format!(
            "/* Runs fill(frame) only while somebody is attached, and {effect}; a fill that"
        ));
        out.line(" * returns false abandons it. */");
        out.line(&format!(
            "template <class ppt_Fill> static void {verb}({first}ppt_Fill &&ppt_fill);"
        ));
    }
    if let Some(why) = unwritten::reason(frame, str::to_owned) {
        out.line("template <class ppt_Fill> static void write(ppt_Fill &&) {");
        out.line(&format!("    static_assert(sizeof(ppt_Fill) == 0, \"{why}\");"));
        out.line("}");
    }
    if let Some(ScopeInterval { start, end }) = frame.interval() {
        out.blank();
        out.line(&format!("/* Stamps {} now and {} at the end of its", start.name, end.name));
        out.line(" * scope, and writes the frame. */");
        out.line("class scope;");
    }
    out.close("};");
    assertions(frame, None, name, out);
    for &half in frame.halves().iter().filter(|half| half.is_some()) {
        assertions(frame, half, &type_of(frame, half), out);
    }
    let trivial = |ty: &str| {
        format!("static_assert(std::is_trivial<{ty}>::value, \"a frame is plain memory\");")
    };
    out.line(&trivial(name));
    for &half in frame.halves().iter().filter(|half| half.is_some()) {
        out.line(&trivial(&type_of(frame, half)));
    }
    out.blank();
}

/// The type of a frame, or of the half of a span with fields of its own.
fn type_of(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> String {
    half.map_or_else(|| frame.name.into(), |half| format!("{}::ppt_{}", frame.name, half.word()))
}

/// The full name of the buffer's namespace. Inside a frame's class, fields hide functions of the namespace: a
/// field may have the name `on`.
fn namespace(model: &BufferModel<'_>) -> String {
    format!("::ppt::{}", model.buffer())
}

fn write(model: &BufferModel<'_>, frame: &FrameModel<'_>, out: &mut GeneratedText) {
    for form in &frame.forms {
        write_as(model, frame, form, out);
    }
    if let Some(interval) = frame.interval() {
        scope(model, frame, interval, out);
    }
}

fn write_as(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
    out: &mut GeneratedText,
) {
    let (name, verb) = (frame.name, form.verb);
    // Without this, clang emits a call, and makes the closure before it checks the gate.
    out.line("template <class ppt_Fill>");
    out.line(&format!(
        "__attribute__((always_inline)) inline void {name}::{verb}({}ppt_Fill &&ppt_fill) {{",
        parameter(model, form.mark.as_ref())
    ));
    out.line("#if PPT1_ENABLED");
    out.line(&format!("    if ({}) {{", is_wanted(model, frame.id as u32)));
    if frame.own_stamp().is_some() {
        let ticks = format!("{}::{}", namespace(model), model.symbol("ticks"));
        out.line(&format!("        const uint64_t ppt_at = {ticks}();"));
    }
    let ty = type_of(frame, form.half);
    out.line(&format!("        {ty} ppt_f = {ty}();"));
    out.line("        if constexpr (std::is_same<decltype(ppt_fill(ppt_f)), bool>::value) {");
    out.line("            if (!ppt_fill(ppt_f))");
    out.line("                return;");
    out.line("        } else {");
    out.line("            ppt_fill(ppt_f);");
    out.line("        }");
    let mark = form.mark.as_ref().map(|mark| match &mark.value {
        MarkValue::Named(value, _) => {
            format!("{}::{}::{value}", namespace(model), mark.enum_type.name)
        }
        MarkValue::Argument(_) => "ppt_mark".to_owned(),
    });
    let stored = FrameOrHalf { frame, half: form.half };
    let last = call_close(model, stored, "&ppt_f", mark.as_deref(), "ppt_at");
    out.line(&format!("        {last};"));
    out.line("    }");
    out.line("#else");
    if argument(frame).is_some() {
        out.line("    (void)ppt_mark;");
    }
    out.line("    (void)ppt_fill;");
    out.line("#endif");
    out.line("}");
    out.blank();
}

fn scope<'a>(
    model: &BufferModel<'a>,
    frame: &FrameModel<'a>,
    ScopeInterval { start, end }: ScopeInterval<&FieldModel<'a>>,
    out: &mut GeneratedText,
) {
    let name = frame.name;
    let function = model.symbol(&format!("commit_{name}"));
    let (started, ended) = (&model.stamp_of(start).name, &model.stamp_of(end).name);
    out.line(&format!("class {name}::scope {{"));
    out.line("  public:");
    let ours = namespace(model);
    out.line(&format!("    scope() : ppt_on_({ours}::{}()) {{", model.on_function(name)));
    out.line("        if (ppt_on_) {");
    out.line(&format!("            ppt_f_ = {name}();"));
    out.line(&format!("            ppt_f_.{} = {ours}::{started}();", start.name));
    out.line("        }");
    out.line("    }");
    out.line("    template <class ppt_Fill> explicit scope(ppt_Fill &&ppt_fill) : scope() {");
    out.line("        if (ppt_on_)");
    out.line("            ppt_fill(ppt_f_);");
    out.line("    }");
    out.line("    ~scope() {");
    out.line("#if PPT1_ENABLED");
    out.line("        if (ppt_on_) {");
    out.line(&format!("            ppt_f_.{} = {ours}::{ended}();", end.name));
    out.line(&format!("            {function}(&ppt_f_);"));
    out.line("        }");
    out.line("#endif");
    out.line("    }");
    out.line("    scope(const scope &) = delete;");
    out.line("    scope &operator=(const scope &) = delete;");
    out.line(
        "    /* The frame. Values that are stored while nobody is attached have no effect. */",
    );
    out.line(&format!("    {name} *operator->() {{ return &ppt_f_; }}"));
    out.line("    /* Cancels the frame. */");
    out.line("    void abandon() { ppt_on_ = false; }");
    out.blank();
    out.line("  private:");
    out.line(&format!("    {name} ppt_f_;"));
    out.line("    bool ppt_on_;");
    out.line("};");
    out.blank();
}
