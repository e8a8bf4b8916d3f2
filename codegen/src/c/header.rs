//! `STEM.h`: enums, structs, and both ways to write a frame.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::{Field, FieldType, Frame};

use super::comment::{doc, literal};
use super::structure::{assertions, members};
use super::words::{Enums, stores};
use super::{Buffer, array_length, element_type, frame_type};
use crate::stamps::{Stamp, clock_number, stamped, stamps};
use crate::text::Text;

const FIXED: &str = include_str!("../../runtime/c/target.h");

/// Words up to which the stores are inlined wherever a frame is written.
const INLINE_WORDS: u32 = 32;

pub(super) fn emit(buffer: &Buffer) -> String {
    let schema = buffer.schema;
    let mut out = Text::new();
    out.line(&buffer.banner("Frames"));
    let guard = format!("{}_H", buffer.symbol("").to_uppercase().trim_end_matches('_'));
    out.lines([&*format!("#ifndef {guard}"), &*format!("#define {guard}")]);
    out.blank();
    for header in ["stdbool.h", "stdint.h", "string.h", "sys/time.h", "time.h"] {
        out.line(&format!("#include <{header}>"));
    }
    out.block(FIXED);
    out.blank();
    let frames = schema.frames.iter().map(|frame| ("frame", frame.name.as_str()));
    claim(
        buffer,
        &format!("{}.h", buffer.stem),
        frames.chain([("buffer", &*schema.buffer)]),
        &mut out,
    );
    out.line("#ifdef __cplusplus");
    out.line("extern \"C\" {");
    out.line("#endif");
    out.blank();
    enums(schema, &mut out);
    for frame in &schema.frames {
        structure(schema, frame, &mut out);
    }
    out.line("#if PPT1_ENABLED");
    out.blank();
    symbols(buffer, &mut out);
    for frame in &schema.frames {
        let symbol = buffer.symbol(&format!("frame_{}", frame.name));
        out.line(&format!("extern PPT1_THREAD {} {symbol};", frame_type(frame)));
    }
    out.blank();
    switch(buffer, &mut out);
    for frame in &schema.frames {
        commit(buffer, frame, &frame_type(frame), Enums::Integers, &mut out);
        write_frame(buffer, frame, &mut out);
        setters(buffer, frame, &mut out);
    }
    for frame in &schema.frames {
        field_macros(buffer, frame, &mut out);
    }
    out.line("#else /* nothing is compiled in; arguments are not evaluated */");
    out.blank();
    disabled(buffer, &mut out);
    out.line("#endif /* PPT1_ENABLED */");
    out.blank();
    for frame in &schema.frames {
        block_form(buffer, frame, &mut out);
    }
    out.line("#ifdef __cplusplus");
    out.line("}");
    out.line("#endif");
    out.blank();
    out.line(&format!("#endif /* {guard} */"));
    out.finish()
}

/// Two headers that declare one name in one file stop here, and say who they are.
pub(crate) fn claim<'n>(
    buffer: &Buffer,
    header: &str,
    names: impl IntoIterator<Item = (&'static str, &'n str)>,
    out: &mut Text,
) {
    let me = format!("{header} (schema {:016x})", buffer.hash);
    for (what, name) in names {
        let claim = format!("PPT_{}_{}_IS_OF", what.to_uppercase(), name.to_uppercase());
        out.line(&format!("#ifdef {claim}"));
        out.line(&format!(
            "PPT1_ASSERT(0, \"ppt: {what} '{name}' is declared by \" {claim} \" and by {me}\");"
        ));
        out.line(&format!(
            "#error \"ppt: {what} '{name}' is declared by {me} and by another header: \
             see the assertion\""
        ));
        out.line("#endif");
        out.line(&format!("#define {claim} \"{me}\""));
    }
    out.blank();
}

fn enums(schema: &Schema, out: &mut Text) {
    for it in &schema.enums {
        let prefix = format!("{}_{}", schema.buffer, it.name).to_uppercase();
        doc(&it.doc, out);
        let fits = |value: i128| i32::try_from(value).is_ok();
        if it.values.iter().all(|(_, value)| fits(*value)) {
            out.open("enum {");
            for (name, value) in &it.values {
                out.line(&format!("{prefix}_{} = {},", name.to_uppercase(), literal(*value)));
            }
            out.close("};");
        } else {
            // An enumerator of C11 is an int.
            for (name, value) in &it.values {
                let (name, value) = (name.to_uppercase(), literal(*value));
                out.line(&format!("#define {prefix}_{name} {value}"));
            }
        }
        out.blank();
    }
}

fn structure(schema: &Schema, frame: &Frame, out: &mut Text) {
    let name = frame_type(frame);
    doc(&frame.doc, out);
    out.open(&format!("typedef struct {name} {{"));
    members(schema, frame, |ty| element_type(schema, ty).into(), out);
    out.close(&format!("}} {name};"));
    assertions(schema, frame, &name, out);
}

/// What the linker is asked for. Names carry ABI version and schema.
pub(crate) fn symbols(buffer: &Buffer, out: &mut Text) {
    out.line(&format!("extern ppt1_control {};", buffer.symbol("control")));
    out.line(&format!("ppt1_thread *{}(unsigned frame);", buffer.symbol("begin")));
    out.line(&format!("void {}(ppt1_thread *thread);", buffer.symbol("end")));
    out.line(&format!("void {}(void);", buffer.symbol("prepare")));
    out.line(&format!("struct timespec {}(int clock);", buffer.symbol("clock")));
    out.line(&format!("uint64_t {}(void);", buffer.symbol("stamp")));
}

/// The expression that is true while somebody is attached: one load.
pub(crate) fn is_on(buffer: &Buffer) -> String {
    let control = buffer.symbol("control");
    format!("__builtin_expect(__atomic_load_n(&{control}.gate, __ATOMIC_RELAXED) != 0, 0) != 0")
}

/// `on`, `now` and `prepare`.
fn switch(buffer: &Buffer, out: &mut Text) {
    let name = &buffer.schema.buffer;
    out.line("/* Whether somebody is attached: one load. */");
    out.open(&format!("static inline int ppt_{name}_on(void) {{"));
    out.line(&format!("return {};", is_on(buffer)));
    out.close("}");
    out.blank();
    out.line("/* Lets an idle thread pay for what the first frame costs. */");
    out.open(&format!("static inline void ppt_{name}_prepare(void) {{"));
    out.line(&format!("if (ppt_{name}_on())"));
    out.line(&format!("    {}();", buffer.symbol("prepare")));
    out.close("}");
    out.blank();
    for stamp in stamps(buffer.schema) {
        now(buffer, &stamp, &format!("ppt_{name}_"), out);
    }
}

/// A function that takes a time stamp; the names of functions start with `prefix`.
pub(crate) fn now(buffer: &Buffer, stamp: &Stamp, prefix: &str, out: &mut Text) {
    let ty = element_type(buffer.schema, &stamp.ty);
    let Some(clock) = stamp.ty.clock() else {
        return now_ticks(buffer, stamp, prefix, out);
    };
    out.line(&format!("/* The {} clock; 0 when nobody is attached. */", clock.word()));
    out.open(&format!("static inline {ty} {prefix}{}(void) {{", stamp.name));
    out.line("struct timespec t = {0, 0};");
    out.line(&format!("if ({prefix}on())"));
    out.line(&format!("    t = {}({});", buffer.symbol("clock"), clock_number(clock)));
    match stamp.ty {
        FieldType::Timeval => {
            out.line("struct timeval now = {t.tv_sec, t.tv_nsec / 1000};");
            out.line("return now;");
        }
        FieldType::Timespec { .. } => out.line("return t;"),
        _ => out.line("return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;"),
    }
    out.close("}");
    out.blank();
}

/// The same for the CPU's counter, or what stands in for it.
fn now_ticks(buffer: &Buffer, stamp: &Stamp, prefix: &str, out: &mut Text) {
    let control = buffer.symbol("control");
    out.line("/* Ticks of the CPU, which ppt makes nanoseconds of; 0 when nobody is attached. */");
    out.open(&format!("static inline uint64_t {prefix}{}(void) {{", stamp.name));
    out.line(&format!("if (!{prefix}on())"));
    out.line("    return 0;");
    out.line(&format!("uint32_t kind = __atomic_load_n(&{control}.clock_kind, __ATOMIC_RELAXED);"));
    out.line("if (__builtin_expect(kind != PPT1_CLOCK_TICKS, 0))");
    out.line(&format!("    return {}();", buffer.symbol("stamp")));
    out.line("return ppt1_ticks();");
    out.close("}");
    out.blank();
}

/// The function that copies a frame, of the type `ty`, into the ring.
pub(crate) fn commit(buffer: &Buffer, frame: &Frame, ty: &str, enums: Enums, out: &mut Text) {
    let schema = buffer.schema;
    let id = schema.frames.iter().position(|it| std::ptr::eq(it, frame)).expect("of this schema");
    let inline = if frame.size / 8 <= INLINE_WORDS {
        "static inline __attribute__((always_inline))"
    } else {
        "static inline"
    };
    out.line("/* Stores a frame, word by word, into the next slot of the thread's ring. */");
    out.open(&format!(
        "{inline} void {}(const {ty} *f) {{",
        buffer.symbol(&format!("commit_{}", frame.name))
    ));
    out.line(&format!("ppt1_thread *t = {}({id});", buffer.symbol("begin")));
    out.open("if (t) {");
    out.line("uint64_t *s = t->slot;");
    for statement in stores(schema, frame, enums, schema.multi().then_some(id)) {
        out.line(&statement);
    }
    out.line(&format!("{}(t);", buffer.symbol("end")));
    out.close("}");
    out.close("}");
    out.blank();
}

/// The macro form's write.
fn write_frame(buffer: &Buffer, frame: &Frame, out: &mut Text) {
    let schema = buffer.schema;
    out.line("/* The macro form: writes the frame that belongs to the thread. */");
    out.open(&format!("static inline void ppt_write_{}_frame(void) {{", frame.name));
    out.line(&format!("if (ppt_{}_on())", schema.buffer));
    out.line(&format!(
        "    {}(&{});",
        buffer.symbol(&format!("commit_{}", frame.name)),
        buffer.symbol(&format!("frame_{}", frame.name))
    ));
    out.close("}");
    out.blank();
}

/// Typed copies for array fields of the macro form.
fn setters(buffer: &Buffer, frame: &Frame, out: &mut Text) {
    let symbol = buffer.symbol(&format!("frame_{}", frame.name));
    for field in frame.fields.iter().filter(|it| array_length(it).is_some()) {
        let name = &field.name;
        let function = buffer.symbol(&format!("set_{}_{name}", frame.name));
        let ty = element_type(buffer.schema, &field.ty);
        out.open(&format!("static inline void {function}(const {ty} *from) {{"));
        match field.ty {
            FieldType::Char { len } => {
                out.line(&format!("ppt1_text({symbol}.{name}, from, {len});"));
            }
            _ => out.line(&format!("memcpy({symbol}.{name}, from, sizeof {symbol}.{name});")),
        }
        out.close("}");
        out.blank();
    }
}

fn macro_name(frame: &Frame, field: &Field) -> String {
    format!("WRITE_{}_{}", frame.name, field.name).to_uppercase()
}

/// The macro form: `WRITE_<FRAME>_<FIELD>(v)`, and `…_TIMESTAMP()` for times.
fn field_macros(buffer: &Buffer, frame: &Frame, out: &mut Text) {
    let symbol = buffer.symbol(&format!("frame_{}", frame.name));
    out.line("/* The macro form: stores into the thread's frame, on or off; only clocks look. */");
    for field in &frame.fields {
        let (name, of) = (&field.name, macro_name(frame, field));
        if array_length(field).is_some() {
            let setter = buffer.symbol(&format!("set_{}_{name}", frame.name));
            out.line(&format!("#define {of}(v) {setter}(v)"));
        } else {
            out.line(&format!("#define {of}(v) ((void)({symbol}.{name} = (v)))"));
        }
        if stamped(field) {
            let stamps = stamps(buffer.schema);
            let stamp = stamps.iter().find(|it| it.ty == field.ty).expect("listed");
            out.line(&format!(
                "#define {of}_TIMESTAMP() ((void)({symbol}.{name} = ppt_{}_{}()))",
                buffer.schema.buffer, stamp.name
            ));
        }
    }
    out.blank();
}

/// The same names where nothing is compiled in.
fn disabled(buffer: &Buffer, out: &mut Text) {
    let name = &buffer.schema.buffer;
    out.line(&format!("static inline int ppt_{name}_on(void) {{ return 0; }}"));
    out.line(&format!("static inline void ppt_{name}_prepare(void) {{}}"));
    for stamp in stamps(buffer.schema) {
        let ty = element_type(buffer.schema, &stamp.ty);
        out.open(&format!("static inline {ty} ppt_{name}_{}(void) {{", stamp.name));
        match stamp.ty {
            FieldType::Timeval | FieldType::Timespec { .. } => {
                out.lines([&*format!("{ty} never = {{0, 0}};"), "return never;"]);
            }
            _ => out.line("return 0;"),
        }
        out.close("}");
    }
    for frame in &buffer.schema.frames {
        let commit = buffer.symbol(&format!("commit_{}", frame.name));
        out.line(&format!(
            "static inline void {commit}(const {} *f) {{ (void)f; }}",
            frame_type(frame)
        ));
        out.line(&format!("static inline void ppt_write_{}_frame(void) {{}}", frame.name));
        for field in &frame.fields {
            let of = macro_name(frame, field);
            out.line(&format!("#define {of}(v) ((void)sizeof(v))"));
            if stamped(field) {
                out.line(&format!("#define {of}_TIMESTAMP() ((void)0)"));
            }
        }
    }
    out.blank();
}

/// The block form: a loop that runs once when on, over a frame of its own.
fn block_form(buffer: &Buffer, frame: &Frame, out: &mut Text) {
    let ty = frame_type(frame);
    let name = frame.name.to_uppercase();
    out.line(&format!("/* PPT_WRITE_{name}(f) {{ f.field = value; }} runs its block only while"));
    out.line(
        " * somebody is attached and writes the frame at its end; `break`, `return` and `goto`",
    );
    out.line(
        " * out of it abandon the frame. `continue` does not: it ends the block, and writes it. */",
    );
    out.line(&format!("#define PPT_WRITE_{name}(f) PPT1_BLOCK \\"));
    out.line(&format!(
        "    for (int ppt_on_##f = ppt_{}_on(); ppt_on_##f; ppt_on_##f = 0) \\",
        buffer.schema.buffer
    ));
    out.line(&format!("        for ({ty} f = PPT1_ZERO({ty}); ppt_on_##f; \\"));
    out.line(&format!(
        "             {}(&f), ppt_on_##f = 0)",
        buffer.symbol(&format!("commit_{}", frame.name))
    ));
    out.blank();
}
