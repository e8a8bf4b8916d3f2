//! C++17: a namespace for each buffer, `write` and `scope` for each frame. The slow path is that of
//! C, and so is every symbol: C and C++ parts of one program share a buffer.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::{Field, FieldType, Frame};

use crate::c::comment::{doc, literal};
use crate::c::header::{claim, commit, is_on, now, symbols};
use crate::c::structure::{assertions, members};
use crate::c::words::Enums;
use crate::c::{Buffer, element_type, int_type, source};
use crate::interval::interval;
use crate::stamps::stamps;
use crate::text::Text;
use crate::{Declared, Output};

const FIXED: &str = include_str!("../runtime/c/target.h");

/// Names that the generated code uses itself, beside frames and enums.
const OF_NAMESPACE: [&str; 3] = ["on", "now", "prepare"];
/// Names that the generated code uses itself, beside fields.
const OF_FRAME: [&str; 2] = ["write", "scope"];

/// Writes `STEM.hpp` and `STEM.cpp`.
pub(crate) fn emit(schema: &Schema, stem: &str, origin: &str) -> Vec<Output> {
    let buffer = Buffer::new(schema, stem, origin);
    let name = format!("{stem}.hpp");
    let header = Output { text: header(&buffer, &name), name };
    let source = source::emit(&buffer, &header.name, false);
    vec![header, Output { name: format!("{stem}.cpp"), text: source }]
}

/// Names that the output needs for itself. A member cannot be called as its class, nor as a function
/// beside it; a type not as a function of its namespace.
pub(crate) fn taken(schema: &Schema) -> Vec<Declared> {
    let clocks: Vec<String> = stamps(schema).into_iter().map(|stamp| stamp.name).collect();
    let of_namespace =
        |name: &str| OF_NAMESPACE.contains(&name) || clocks.iter().any(|it| it == name);
    let mut taken = Vec::new();
    for (index, it) in schema.enums.iter().enumerate() {
        if of_namespace(&it.name) {
            taken.push(Declared::Enum(index));
        }
    }
    for (index, frame) in schema.frames.iter().enumerate() {
        if of_namespace(&frame.name) {
            taken.push(Declared::Frame(index));
        }
        for (number, field) in frame.fields.iter().enumerate() {
            if field.name == frame.name || OF_FRAME.contains(&&*field.name) {
                taken.push(Declared::Field(index, number));
            }
        }
    }
    taken
}

fn header(buffer: &Buffer, name: &str) -> String {
    let schema = buffer.schema;
    let mut out = Text::new();
    out.line(&buffer.banner("Frames"));
    let guard = format!("{}_HPP", buffer.symbol("").to_uppercase().trim_end_matches('_'));
    out.lines([&*format!("#ifndef {guard}"), &*format!("#define {guard}")]);
    out.blank();
    for header in ["stdint.h", "string.h", "sys/time.h", "time.h", "type_traits", "utility"] {
        out.line(&format!("#include <{header}>"));
    }
    out.block(FIXED);
    out.blank();
    claim(buffer, name, [("namespace", &*schema.buffer)], &mut out);
    out.line("#if PPT1_ENABLED");
    out.line("extern \"C\" {");
    symbols(buffer, &mut out);
    out.line("}");
    out.line("#endif");
    out.blank();
    out.line("namespace ppt {");
    out.line(&format!("namespace {} {{", schema.buffer));
    out.blank();
    enums(schema, &mut out);
    switch(buffer, &mut out);
    for frame in &schema.frames {
        structure(schema, frame, &mut out);
    }
    out.line("#if PPT1_ENABLED");
    for frame in &schema.frames {
        commit(buffer, frame, &frame.name, Enums::Classes, &mut out);
    }
    out.line("#endif");
    out.blank();
    for frame in &schema.frames {
        write(buffer, frame, &mut out);
    }
    out.line(&format!("}} // namespace {}", schema.buffer));
    out.line("} // namespace ppt");
    out.blank();
    out.line(&format!("#endif // {guard}"));
    out.finish()
}

fn enums(schema: &Schema, out: &mut Text) {
    for it in &schema.enums {
        doc(&it.doc, out);
        out.open(&format!("enum class {} : {} {{", it.name, int_type(it.repr)));
        for (name, value) in &it.values {
            out.line(&format!("{name} = {},", literal(*value)));
        }
        out.close("};");
        out.blank();
    }
}

/// `on`, `now` and `prepare`.
fn switch(buffer: &Buffer, out: &mut Text) {
    out.line("#if PPT1_ENABLED");
    out.blank();
    out.line("/* Whether somebody is attached: one load. */");
    out.line(&format!("static inline bool on() {{ return {}; }}", is_on(buffer)));
    out.blank();
    out.line("/* Lets an idle thread pay for what the first frame costs. */");
    out.open("static inline void prepare() {");
    out.line("if (on())");
    out.line(&format!("    {}();", buffer.symbol("prepare")));
    out.close("}");
    out.blank();
    for stamp in stamps(buffer.schema) {
        now(buffer, &stamp, "", out);
    }
    out.line("#else");
    out.line("static inline bool on() { return false; }");
    out.line("static inline void prepare() {}");
    for stamp in stamps(buffer.schema) {
        let ty = element_type(buffer.schema, &stamp.ty);
        // `struct timeval()` is no expression.
        out.line(&format!("static inline {ty} {}() {{ return {{}}; }}", stamp.name));
    }
    out.line("#endif");
    out.blank();
}

fn structure(schema: &Schema, frame: &Frame, out: &mut Text) {
    let name = &frame.name;
    doc(&frame.doc, out);
    out.open(&format!("struct {name} {{"));
    let element = |ty: &FieldType| match ty {
        // A field may be called as its type.
        FieldType::Enum { name } if frame.fields.iter().any(|field| field.name == *name) => {
            format!("::ppt::{}::{name}", schema.buffer)
        }
        FieldType::Enum { name } => name.clone(),
        other => element_type(schema, other).into(),
    };
    members(schema, frame, element, out);
    out.blank();
    out.line(
        "/* Runs fill(frame) only while somebody is attached, and writes the frame; a fill that",
    );
    out.line(" * returns false abandons it. */");
    out.line("template <class ppt_Fill> static void write(ppt_Fill &&ppt_fill);");
    if let Some((start, end)) = interval(frame) {
        out.blank();
        out.line(&format!("/* Stamps {} now and {} at the end of its", start.name, end.name));
        out.line(" * scope, and writes the frame. */");
        out.line("class scope;");
    }
    out.close("};");
    assertions(schema, frame, name, out);
    out.line(&format!(
        "static_assert(std::is_trivial<{name}>::value, \"a frame is plain memory\");"
    ));
    out.blank();
}

/// Inside a frame's class its fields hide the functions of the namespace: a field may be called `on`.
fn namespace(buffer: &Buffer) -> String {
    format!("::ppt::{}", buffer.schema.buffer)
}

fn write(buffer: &Buffer, frame: &Frame, out: &mut Text) {
    let name = &frame.name;
    let function = buffer.symbol(&format!("commit_{name}"));
    // Left to itself clang makes a call of it, and a closure before it asks whether it is wanted.
    out.line("template <class ppt_Fill>");
    out.line(&format!(
        "__attribute__((always_inline)) inline void {name}::write(ppt_Fill &&ppt_fill) {{"
    ));
    out.line("#if PPT1_ENABLED");
    out.line(&format!("    if ({}::on()) {{", namespace(buffer)));
    out.line(&format!("        {name} ppt_f = {name}();"));
    out.line("        if constexpr (std::is_same<decltype(ppt_fill(ppt_f)), bool>::value) {");
    out.line("            if (!ppt_fill(ppt_f))");
    out.line("                return;");
    out.line("        } else {");
    out.line("            ppt_fill(ppt_f);");
    out.line("        }");
    out.line(&format!("        {function}(&ppt_f);"));
    out.line("    }");
    out.line("#else");
    out.line("    (void)ppt_fill;");
    out.line("#endif");
    out.line("}");
    out.blank();
    if let Some((start, end)) = interval(frame) {
        scope(buffer, frame, (start, end), out);
    }
}

/// The function that stamps a field.
fn stamp_of(schema: &Schema, field: &Field) -> String {
    let stamps = stamps(schema);
    stamps.into_iter().find(|it| it.ty == field.ty).expect("listed").name
}

fn scope(buffer: &Buffer, frame: &Frame, (start, end): (&Field, &Field), out: &mut Text) {
    let name = &frame.name;
    let function = buffer.symbol(&format!("commit_{name}"));
    let (started, ended) = (stamp_of(buffer.schema, start), stamp_of(buffer.schema, end));
    out.line(&format!("class {name}::scope {{"));
    out.line("  public:");
    let ours = namespace(buffer);
    out.line(&format!("    scope() : ppt_on_({ours}::on()) {{"));
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
    out.line("    /* The frame; what is stored while nobody is attached is of no effect. */");
    out.line(&format!("    {name} *operator->() {{ return &ppt_f_; }}"));
    out.line("    /* No frame after all. */");
    out.line("    void abandon() { ppt_on_ = false; }");
    out.blank();
    out.line("  private:");
    out.line(&format!("    {name} ppt_f_;"));
    out.line("    bool ppt_on_;");
    out.line("};");
    out.blank();
}
