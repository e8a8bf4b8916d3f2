//! `STEM.h`: enums, structs, and both ways to write a frame.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::layout::Layout;
use ppt_frame_dsl::schema::{Field, FieldType, Frame};

use super::words::stores;
use super::{Buffer, array_length, element_type, frame_type};
use crate::stamps::{Stamp, clock_number, stamps};
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
    claims(buffer, &mut out);
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
    switch(buffer, &mut out);
    for frame in &schema.frames {
        commit(buffer, frame, &mut out);
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
fn claims(buffer: &Buffer, out: &mut Text) {
    let me = format!("{}.h (schema {:016x})", buffer.stem, buffer.hash);
    let names = buffer.schema.frames.iter().map(|frame| ("frame", &frame.name));
    for (what, name) in names.chain([("buffer", &buffer.schema.buffer)]) {
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

fn literal(value: i128) -> String {
    if value == i128::from(i64::MIN) {
        "(-INT64_C(9223372036854775807) - 1)".into()
    } else if value == i128::from(i32::MIN) {
        "(-2147483647 - 1)".into()
    } else if i32::try_from(value).is_ok() {
        format!("{value}")
    } else if value > i128::from(i64::MAX) {
        format!("UINT64_C({value})")
    } else {
        format!("INT64_C({value})")
    }
}

/// Text for a C comment: it cannot end it, seem to begin another, or be a trigraph.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/")
}

/// A doc comment of the frame file.
fn doc(text: &str, out: &mut Text) {
    let text = comment(text);
    let mut lines = text.lines().map(str::trim_end).peekable();
    while let Some(line) = lines.next() {
        let end = if lines.peek().is_none() { " */" } else { "" };
        out.line(&format!("/* {}{end}", line.trim_start()));
        while let Some(line) = lines.next() {
            let end = if lines.peek().is_none() { " */" } else { "" };
            out.line(&format!(" * {}{end}", line.trim_start()));
        }
    }
}

/// The struct, in the order of the layout, and the proof that the compiler agrees.
fn structure(schema: &Schema, frame: &Frame, out: &mut Text) {
    let layout = Layout::of(schema, frame);
    let name = frame_type(frame);
    doc(&frame.doc, out);
    out.open(&format!("typedef struct {name} {{"));
    let mut members =
        vec![(0, "uint64_t ppt_seqno".to_string(), "from 1; set when written".into())];
    if schema.multi() {
        members.push((
            8,
            "uint16_t ppt_frame".into(),
            "which frame it is; set when written".into(),
        ));
    }
    for placed in &layout.placed {
        let field = &frame.fields[placed.index];
        let ty = element_type(schema, &field.ty);
        let array = array_length(field).map_or(String::new(), |n| format!("[{n}]"));
        members.push((placed.offset, format!("{ty} {}{array}", field.name), remark(field)));
    }
    for (index, padding) in layout.padding.iter().enumerate() {
        let member = format!("unsigned char ppt_pad{index}[{}]", padding.bytes);
        members.push((padding.offset, member, String::new()));
    }
    members.sort_by_key(|it| it.0);
    for (_, member, remark) in &members {
        let remark = if remark.is_empty() { String::new() } else { format!(" /* {remark} */") };
        out.line(&format!("{member};{remark}"));
    }
    out.close(&format!("}} {name};"));
    out.line(&format!("PPT1_ASSERT(sizeof({name}) == {}, \"layout of {name}\");", layout.size));
    for placed in &layout.placed {
        let field = &frame.fields[placed.index].name;
        out.line(&format!(
            "PPT1_ASSERT(__builtin_offsetof({name}, {field}) == {}, \"layout of {name}\");",
            placed.offset
        ));
    }
    out.blank();
}

/// What a struct member's comment says.
fn remark(field: &Field) -> String {
    let mut parts = Vec::new();
    if let FieldType::Enum { name } = &field.ty {
        parts.push(format!("enum {name}"));
    }
    if let FieldType::Ns { clock } | FieldType::Timespec { clock } = &field.ty {
        parts.push(format!("{} clock", clock.word()));
    }
    if !field.unit.is_empty() {
        parts.push(format!("in {}", field.unit));
    }
    if let Some(line) = field.doc.lines().next() {
        parts.push(line.trim().into());
    }
    comment(&parts.join("; "))
}

/// What the linker is asked for. Names carry ABI version and schema.
fn symbols(buffer: &Buffer, out: &mut Text) {
    out.line(&format!("extern ppt1_control {};", buffer.symbol("control")));
    out.line(&format!("ppt1_thread *{}(unsigned frame);", buffer.symbol("begin")));
    out.line(&format!("void {}(ppt1_thread *thread);", buffer.symbol("end")));
    out.line(&format!("void {}(void);", buffer.symbol("prepare")));
    out.line(&format!("struct timespec {}(int clock);", buffer.symbol("clock")));
    for frame in &buffer.schema.frames {
        let symbol = buffer.symbol(&format!("frame_{}", frame.name));
        out.line(&format!("extern PPT1_THREAD {} {symbol};", frame_type(frame)));
    }
    out.blank();
}

/// `on`, `now` and `prepare`.
fn switch(buffer: &Buffer, out: &mut Text) {
    let name = &buffer.schema.buffer;
    let control = buffer.symbol("control");
    out.line("/* Whether somebody is attached: one load. */");
    out.open(&format!("static inline int ppt_{name}_on(void) {{"));
    out.line(&format!(
        "return __builtin_expect(__atomic_load_n(&{control}.gate, __ATOMIC_RELAXED) != 0, 0) != 0;"
    ));
    out.close("}");
    out.blank();
    out.line("/* Lets an idle thread pay for what the first frame costs. */");
    out.open(&format!("static inline void ppt_{name}_prepare(void) {{"));
    out.line(&format!("if (ppt_{name}_on())"));
    out.line(&format!("    {}();", buffer.symbol("prepare")));
    out.close("}");
    out.blank();
    for stamp in stamps(buffer.schema) {
        now(buffer, &stamp, out);
    }
}

fn now(buffer: &Buffer, stamp: &Stamp, out: &mut Text) {
    let schema = buffer.schema;
    let ty = element_type(schema, &stamp.ty);
    let clock = stamp.ty.clock().expect("ticks are refused before anything is written");
    out.line(&format!("/* The {} clock; 0 when nobody is attached. */", clock.word()));
    out.open(&format!("static inline {ty} ppt_{}_{}(void) {{", schema.buffer, stamp.name));
    out.line("struct timespec t = {0, 0};");
    out.line(&format!("if (ppt_{}_on())", schema.buffer));
    out.line(&format!("    t = {}({});", buffer.symbol("clock"), clock_number(clock)));
    match stamp.ty {
        FieldType::Timeval => {
            out.line("struct timeval now = {t.tv_sec, t.tv_nsec / 1000};");
            out.line("return now;");
        }
        FieldType::Timespec { .. } => out.line("return t;"),
        _ => out.line("return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;"),
    }
    out.close("}");
    out.blank();
}

/// The function that copies a frame into the ring.
fn commit(buffer: &Buffer, frame: &Frame, out: &mut Text) {
    let schema = buffer.schema;
    let id = schema.frames.iter().position(|it| std::ptr::eq(it, frame)).expect("of this schema");
    let inline = if frame.size / 8 <= INLINE_WORDS {
        "static inline __attribute__((always_inline))"
    } else {
        "static inline"
    };
    out.open(&format!(
        "{inline} void {}(const {} *f) {{",
        buffer.symbol(&format!("commit_{}", frame.name)),
        frame_type(frame)
    ));
    out.line(&format!("ppt1_thread *t = {}({id});", buffer.symbol("begin")));
    out.open("if (t != 0) {");
    out.line("uint64_t *s = t->slot;");
    for statement in stores(schema, frame, schema.multi().then_some(id)) {
        out.line(&statement);
    }
    out.line(&format!("{}(t);", buffer.symbol("end")));
    out.close("}");
    out.close("}");
    out.blank();
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

fn stamped(field: &Field) -> bool {
    field.ty.is_time() && field.array.is_none()
}

/// The macro form: `WRITE_<FRAME>_<FIELD>(v)`, and `…_TIMESTAMP()` for times.
fn field_macros(buffer: &Buffer, frame: &Frame, out: &mut Text) {
    let symbol = buffer.symbol(&format!("frame_{}", frame.name));
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
    out.line(" * somebody is attached and writes the frame at its end; `break` abandons it. */");
    out.line(&format!("#define PPT_WRITE_{name}(f) \\"));
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
