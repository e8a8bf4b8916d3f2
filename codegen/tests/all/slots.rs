//! The bytes in a slot are those of the frame. For random frame files, a program in C and one in
//! Rust write each of their frames in both forms. The test compares the slots with bytes that it
//! placed by the layout alone.
//!
//! One compilation takes a batch of frame files; the program has its own `begin` and `end`. C++ copies its structs
//! into slots as C does, so only its offsets are compared. `PPT_BATCHES=16` tests a thousand frame files.

use std::fmt::Write;

use crate::support::compiler::{Compiler, Dialect, output_of};
use crate::support::files::frame_file;
use crate::support::{Generated, rust_words, user};
use ppt_codegen::{Language, Layout};
use ppt_frame_dsl::schema::{Field, FieldType, Frame, Schema};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Frame files in one program.
const BATCH: usize = 64;

const HARNESS: &str = include_str!("support/words.c");

#[test]
fn slots_hold_the_frames() {
    // A case is a batch. Nothing is left in the source tree; the failure shows the frame file.
    let batches = std::env::var("PPT_BATCHES").ok().and_then(|text| text.parse().ok());
    let cases = batches.unwrap_or(1);
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let checked = runner.run(&vec(frame_file(), BATCH), |files| {
        let texts = files.iter().enumerate().map(|(number, file)| file.text(number));
        let names = (0..).map(|number| format!("b{number}.frame"));
        let texts: Vec<_> = texts.zip(names).collect();
        let batch: Vec<_> = texts
            .iter()
            .map(|(text, name)| (Generated::from_source(text, name), text.clone()))
            .collect();
        check(&batch)
            .and_then(|()| rust_words::check(&texts))
            .and_then(|()| compiles_as_cpp(&texts))
            .map_err(TestCaseError::fail)
    });
    if let Err(error) = checked {
        // Not by `{error:?}`: that would show every file of the batch.
        let text = error.to_string();
        panic!("{}", text.split("minimal failing input").next().unwrap_or(&text));
    }
}

/// The goldens have cases that are rare in random files: the largest frames, the longest loops.
#[test]
fn goldens_too() {
    // Goldens share names of frames, so each has a program of its own.
    for path in crate::support::goldens() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let golden = [(text.clone(), name.into())];
        let mut checked = check(&[(Generated::of_file(&path, Language::C), text)])
            .and_then(|()| rust_words::check(&golden));
        // C++ refuses the names of some goldens.
        if path.with_extension("hpp").exists() {
            checked = checked.and_then(|()| compiles_as_cpp(&golden));
        }
        if let Err(wrong) = checked {
            panic!("{}: {wrong}", path.display());
        }
    }
}

/// The structs of C++ have the offsets of the layout. The headers also assert that.
fn compiles_as_cpp(texts: &[(String, String)]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut user = String::new();
    for (text, name) in texts {
        let generated = Generated::cpp_of(text, name);
        ppt_codegen::write_outputs(folder.path(), &generated.outputs).unwrap();
        writeln!(user, "#include \"{}.hpp\"", generated.stem).unwrap();
        let schema = &generated.schema;
        for frame in schema.frames.iter().filter(|frame| !frame.is_hidden()) {
            let layout = Layout::for_frame(schema, frame);
            let ty = format!("ppt::{}::{}", schema.buffer, frame.name);
            writeln!(user, "static_assert(sizeof({ty}) == {});", layout.size).unwrap();
            for placed in &layout.placed {
                let (name, offset) = (user::member(&frame.fields[placed.index]), placed.offset);
                writeln!(user, "static_assert(__builtin_offsetof({ty}, {name}) == {offset});")
                    .unwrap();
            }
        }
    }
    std::fs::write(folder.path().join("user.cpp"), user).unwrap();
    for compiler in Compiler::all() {
        let output =
            compiler.try_run(Dialect::Cpp17, folder.path(), &["-fsyntax-only", "user.cpp"]);
        if !output.status.success() {
            return Err(format!("{}: {}", compiler.cpp, String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(())
}

/// The frames that programs write.
fn shown(schema: &Schema) -> impl Iterator<Item = (usize, &Frame)> {
    schema.frames.iter().enumerate().filter(|(_, frame)| !frame.is_hidden())
}

/// Compiles and runs one program over all of `batch`.
fn check(batch: &[(Generated, String)]) -> Result<(), String> {
    let program = program(batch);
    let folder = tempfile::tempdir().unwrap();
    for (generated, _) in batch {
        ppt_codegen::write_outputs(folder.path(), &generated.outputs).unwrap();
    }
    std::fs::write(folder.path().join("words.c"), program).unwrap();
    for compiler in Compiler::all() {
        let output =
            compiler.try_run(Dialect::C11, folder.path(), &["-O2", "words.c", "-o", "words"]);
        if !output.status.success() {
            return Err(format!("{}: {}", compiler.c, String::from_utf8_lossy(&output.stderr)));
        }
        let printed = output_of(folder.path(), "words", &[]);
        // `wrong NUMBER …` is about file NUMBER; `checked N` ends the list.
        let wrong = printed.lines().find_map(|line| line.strip_prefix("wrong "));
        if let Some(wrong) = wrong {
            let number: usize = wrong.split(' ').next().unwrap().parse().unwrap();
            return Err(format!("{}: {wrong}, of\n{}", compiler.c, batch[number].1));
        }
        let frames =
            batch.iter().flat_map(|(generated, _)| shown(&generated.schema)).map(|entry| entry.1);
        let forms: usize = frames.map(|frame| 2 * frame.verbs().len()).sum();
        assert_eq!(printed, format!("checked {forms}\n"));
    }
    Ok(())
}

fn program(batch: &[(Generated, String)]) -> String {
    let mut text = String::new();
    for (generated, _) in batch {
        writeln!(text, "#include \"{}.h\"", generated.stem).unwrap();
    }
    text.push_str(HARNESS);
    for (number, (generated, _)) in batch.iter().enumerate() {
        own_symbols(generated, &mut text);
        for (id, frame) in shown(&generated.schema) {
            check_frame(generated, number, id, frame, &mut text);
        }
        check_metrics(generated, number, &mut text);
    }
    // Files without spans, counters or frames do not use all of it.
    text.push_str("\nint main(void) {\n    (void)place, (void)added, (void)expect, (void)fill, (void)compare;\n");
    for (number, (generated, _)) in batch.iter().enumerate() {
        writeln!(text, "    check_{number}_metrics();").unwrap();
        for (id, _) in shown(&generated.schema) {
            writeln!(text, "    check_{number}_{id}();").unwrap();
        }
    }
    text.push_str("    printf(\"checked %u\\n\", checked);\n    return 0;\n}\n");
    text
}

/// The symbols that the generated source file would define.
fn own_symbols(generated: &Generated, text: &mut String) {
    let symbol = |name: &str| generated.symbol(name);
    writeln!(text, "\nppt1_control {} = {{.gate = 1}};", symbol("control")).unwrap();
    writeln!(text, "ppt1_thread *{}(unsigned id) {{ return begin(id); }}", symbol("begin"))
        .unwrap();
    writeln!(text, "void {}(ppt1_thread *t) {{ end(t); }}", symbol("end")).unwrap();
    writeln!(text, "void {}(void) {{}}", symbol("prepare")).unwrap();
    writeln!(
        text,
        "struct timespec {}(int clock) {{ return (struct timespec){{clock, 0}}; }}",
        symbol("clock")
    )
    .unwrap();
    writeln!(text, "uint64_t {}(void) {{ return STAMP; }}", symbol("stamp")).unwrap();
    if generated.schema.cells() > 0 {
        let (add, observe) = (symbol("add"), symbol("observe"));
        writeln!(text, "void {add}(unsigned c, uint64_t v) {{ last.cell = c, last.other = UINT32_MAX, last.value = v; }}").unwrap();
        let arguments = "unsigned s, unsigned b, uint64_t v";
        writeln!(
            text,
            "void {observe}({arguments}) {{ last.cell = s, last.other = b, last.value = v; }}"
        )
        .unwrap();
    }
    for (_, frame) in shown(&generated.schema) {
        let symbol = symbol(&format!("frame_{}", frame.name));
        writeln!(text, "PPT1_THREAD pptframe_{}_t {symbol};", frame.name).unwrap();
    }
}

/// `check_NUMBER_ID`: places random bytes by the layout, sets the fields from them, writes the
/// frame, and compares. Inlined into `main`, such functions would take the compilers many seconds.
fn check_frame(generated: &Generated, number: usize, id: usize, frame: &Frame, text: &mut String) {
    let schema = &generated.schema;
    let layout = Layout::for_frame(schema, frame);
    let ty = format!("pptframe_{}_t", frame.name);
    writeln!(text, "_Static_assert(sizeof({ty}) == {}, \"size\");", layout.size).unwrap();
    for placed in &layout.placed {
        let name = user::member(&frame.fields[placed.index]);
        writeln!(text, "_Static_assert(offsetof({ty}, {name}) == {}, \"offset\");", placed.offset)
            .unwrap();
    }
    writeln!(text, "static __attribute__((noinline)) void check_{number}_{id}(void) {{").unwrap();
    for verb in frame.verbs() {
        // Fields of the other half of a span are 0.
        writeln!(text, "    expect({number}, {id}, {}, {});", layout.size, schema.multi()).unwrap();
        for field in user::given(frame, verb) {
            let kind = match field.ty {
                FieldType::Bool => "BOOL",
                FieldType::Char { .. } => "TEXT",
                _ => "ANY",
            };
            let (offset, bytes) = (field.offset, field.bytes(schema));
            writeln!(text, "    fill({kind}, {offset}, {bytes});").unwrap();
        }
        for field in frame.fields.iter().filter(|field| field.is_own()) {
            let value = own_value(generated, field, verb);
            let (offset, bytes) = (field.offset, field.bytes(schema));
            writeln!(text, "    place({offset}, {bytes}, {value});").unwrap();
        }
        check_form(generated, frame, verb, text);
    }
    text.push_str("}\n");
}

/// `check_NUMBER_metrics`: adds change the cells that the schema states.
fn check_metrics(generated: &Generated, number: usize, text: &mut String) {
    writeln!(text, "static __attribute__((noinline)) void check_{number}_metrics(void) {{")
        .unwrap();
    for (metric, value, cell, other) in user::adds(&generated.schema) {
        let (name, verb) = (&metric.name, metric.shape.verb());
        let (upper, other) = (name.to_uppercase(), other.unwrap_or(u32::MAX));
        writeln!(text, "    PPT_{}_{upper}({value});", verb.to_uppercase()).unwrap();
        writeln!(text, "    added({number}, \"{name}\", {cell}u, {other}u, {value});").unwrap();
    }
    text.push_str("}\n");
}

/// The value that ppt itself stores in a field of a frame of this form.
fn own_value(generated: &Generated, field: &Field, verb: &str) -> String {
    let FieldType::Enum { name } = &field.ty else { return "STAMP".into() };
    let values = &generated.schema.enum_named(name).unwrap().values;
    // For a chain, the last step.
    let named = values.iter().find(|value| value.0 == verb).or(values.last());
    named.unwrap().1.to_string()
}

/// Writes the frame in both forms.
fn check_form(generated: &Generated, frame: &Frame, verb: &str, text: &mut String) {
    let schema = &generated.schema;
    let upper = frame.name.to_uppercase();
    let given = || user::given(frame, verb);
    // Block form. Memory that the program does not set has random content, which must not appear.
    let block = verb.to_uppercase();
    let step = user::steps(schema, frame);
    let first = step.as_ref().map_or(String::new(), |step| format!("{step}, "));
    writeln!(text, "    PPT_{block}_{upper}({first}f) {{").unwrap();
    writeln!(text, "        memset(&f, 0xa5, sizeof f);").unwrap();
    for Field { name, offset, .. } in given() {
        writeln!(text, "        memcpy(&f.{name}, expected + {offset}, sizeof f.{name});").unwrap();
    }
    writeln!(text, "    }}\n    compare(\"block form, {verb}\");").unwrap();
    // Macro form, over what an earlier frame may have left.
    let symbol = generated.symbol(&format!("frame_{}", frame.name));
    writeln!(text, "    memset(&{symbol}, 0xa5, sizeof {symbol});").unwrap();
    for field in given() {
        let Field { name, offset, .. } = field;
        let upper = format!("WRITE_{upper}_{}", name.to_uppercase());
        let c = user::c_type(schema, &field.ty);
        if user::is_c_array(field) {
            // The setter takes a pointer of the element's type.
            let count = field.bytes(schema) / element_bytes(generated, field);
            writeln!(
                text,
                "    {{ {c} v[{count}]; memcpy(v, expected + {offset}, sizeof v); {upper}(v); }}"
            )
            .unwrap();
        } else {
            writeln!(
                text,
                "    {{ {c} v; memcpy(&v, expected + {offset}, sizeof v); {upper}(v); }}"
            )
            .unwrap();
        }
    }
    let name = &frame.name;
    let step = step.map(|step| format!("{}_{step}", user::frame_prefix(schema, frame)));
    let step = step.unwrap_or_default();
    writeln!(text, "    ppt_{verb}_{name}_frame({step});").unwrap();
    writeln!(text, "    compare(\"macro form, {verb}\");").unwrap();
}

fn element_bytes(generated: &Generated, field: &Field) -> u32 {
    match field.ty {
        FieldType::Char { .. } | FieldType::Bytes { .. } => 1,
        ref ty => ty.size(&generated.schema),
    }
}
