//! Frame files declare names that the generated code uses itself, wherever a name can be. The output compiles, or a
//! diagnostic refuses the name.

use std::process::Command;

use crate::support::compiler::{Compiler, Dialect};
use crate::support::go::Go;
use crate::support::java::Jdk;
use crate::support::node::Node;
use ppt_codegen::{GenerateError, Language};

/// Words of the fixed texts and of the code that is generated from schemas.
const OURS: &str = "add allow allow_attach array at begin bytes claim clear clock close commit \
    control descriptor enabled end enums exec exit f fields fill find frame frames free from \
    gate geometry give_back i join map mapped mapping methods module names nested nonce now \
    now_monotonic now_realtime now_tsc observe of off on open own prepare process put py py_on python refuse \
    rest s scope scope_of self set slots stamp start state t text thread ticks unload value values words \
    write write_x";
/// Words in the middle of generated names, where the name of a buffer may be.
const BUFFERS: &str =
    "allow commit end enums f fields frame now on py prepare scope_of start write_x";

/// Such words that differ so little from others that one file cannot have both.
const MORE: &str = "Fill Step Values f_ on_";

const CLOCKS: &str = "option time ns realtime;";

/// Names that the classes of Java use: those of its library, and those inside the class of a frame.
const JAVAS: &str = "abandon accept class ends equals frame_ hash_code java java_lang_String number object \
    of ordinal PptRuntime scope_ string value_of wait";

/// Names that a module of Node uses: its exports, and names of JavaScript and of its objects.
const NODES: &str = "Array ArrayBufferView BigInt Buffer Error Number Object Set Symbol allowAttach await \
    constructor exports let module prototype require toString";

/// Names that a package of Go uses: its exports, its imports, and words of Go.
const GOS: &str = "At Hash Int append atomic byte c cgo chan claim_ copy defer error func go \
    import init int64 len main map nil ppt2 prepare_ range scope_ string struct time type unsafe \
    utf8 value var";

/// A buffer of one name, with frames, fields, an enum and values of all the others.
fn frames(buffer: &str, types: &[&str], members: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\nbuffer {buffer};\n");
    text += &format!("enum E : i32 {{ {} }}\n", members.join(", "));
    for name in types {
        text += &format!("frame {name} {{ E e; interval time x; time y @clock(monotonic); }}\n");
    }
    let fields: Vec<String> = members.iter().map(|member| format!("i32 {member};")).collect();
    text + &format!("frame all {{ {} }}\n", fields.join(" "))
}

/// A buffer of spans with these names.
fn spans(types: &[&str], members: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\nbuffer x;\n");
    for name in types {
        text += &format!("frame {name} @span {{ u64 of @key; time x; }}\n");
    }
    let fields: Vec<String> = members.iter().map(|member| format!("i32 {member} @key;")).collect();
    text + &format!("frame all @span {{ {} }}\n", fields.join(" "))
}

/// A buffer of chains with these names, whose steps are `steps`.
fn chains(types: &[&str], members: &[&str], steps: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\nbuffer x;\n");
    for name in types {
        text += &format!("frame {name} @chain(of, off) {{ u64 of @key; time x; }}\n");
    }
    let fields: Vec<String> = members.iter().map(|member| format!("i32 {member} @key;")).collect();
    text + &format!("frame all @chain({}) {{ {} }}\n", steps.join(", "), fields.join(" "))
}

/// A buffer of points with these names.
fn points(types: &[&str], members: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\nbuffer x;\n");
    for name in types {
        text += &format!("frame {name} @point {{ hash of @in(of); time x; }}\n");
    }
    let ins = ["@in(of)"].into_iter().chain(std::iter::repeat(""));
    let fields = members.iter().zip(ins).map(|(text, side)| format!("hash {text} @raw {side};"));
    text + &format!("frame all @point {{ {} }}\n", fields.collect::<String>())
}

/// Frames of every kind, with a field of every enum.
fn enums(names: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\nbuffer x;\n");
    for name in names {
        text += &format!("enum {name} : i32 {{ A }}\n");
    }
    let fields: Vec<String> =
        names.iter().enumerate().map(|(i, text)| format!("{text} a{i};")).collect();
    for (name, kind, key) in
        [("p1", "", ""), ("s1", "@span", "@key"), ("c1", "@chain(one, two)", "@key")]
    {
        text += &format!("frame {name} {kind} {{ u64 of {key}; time t; {} }}\n", fields.join(" "));
    }
    text
}

/// Whether a file of one declaration is refused, and by a diagnostic.
fn refused(source: &str, language: Language) -> bool {
    let said = match ppt_codegen::parse(source.as_bytes(), "a.frame") {
        Err(failure) => failure.to_string(),
        Ok(frames) => match ppt_codegen::generate(&frames, "a.frame", &[language]) {
            Ok(_) => return false,
            Err(GenerateError::Names(failure)) => failure.to_string(),
            Err(other) => panic!("{source}: {other}"),
        },
    };
    assert!(said.contains('^') && said.contains("help: "), "{said}");
    true
}

/// Compiles a file of a language. Skips Python if its headers are not installed.
fn compile(language: Language, folder: &std::path::Path) {
    let gcc = Compiler::gcc();
    let syntax = "-fsyntax-only";
    match language {
        Language::C => {
            gcc.run(Dialect::C11, folder, &[syntax, "a.c"]);
            gcc.run(Dialect::Cpp17, folder, &[syntax, "a.c"]);
        }
        Language::Cpp => gcc.run(Dialect::Cpp17, folder, &[syntax, "a.cpp"]),
        Language::Python => {
            let Ok(config) = Command::new("python3-config").arg("--includes").output() else {
                println!("Python is skipped: `python3-config` does not run here");
                return;
            };
            let includes = String::from_utf8(config.stdout).unwrap();
            let mut command = Command::new("gcc");
            command.current_dir(folder).args([syntax, "-Wall", "-Wextra", "-Werror"]);
            let output = command.args(includes.split_whitespace()).arg("a_python.c").output();
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Language::Java => {
            let Some(jdk) = Jdk::find() else { return };
            jdk.library(gcc, folder, "a");
            jdk.classes(folder);
        }
        Language::Node => {
            let Some(node) = Node::find() else { return };
            node.addon(gcc, folder, "a");
            node.modules(folder);
        }
        Language::Go => {
            let Some(go) = Go::find() else { return };
            go.header(gcc, folder);
            go.vet(folder);
        }
        Language::Rust => unreachable!("golden_rust compiles that"),
    }
}

fn names_of(language: Language) {
    check_names(language, OURS);
    check_names(language, MORE);
}

fn check_names(language: Language, words: &str) {
    let all: Vec<&str> = words.split_whitespace().collect();
    let allowed = |form: &dyn Fn(&str) -> String| -> Vec<&str> {
        all.iter().copied().filter(|name| !refused(&form(name), language)).collect()
    };
    let mut buffers = allowed(&|name| format!("buffer {name}; frame x {{ int y; }}"));
    let types =
        allowed(&|name| format!("{CLOCKS} frame {name} {{ time x; time y @clock(monotonic); }}"));
    let members = allowed(&|name| format!("enum E {{ {name} }} frame x {{ int {name}; E e; }}"));
    let span_types =
        allowed(&|name| format!("{CLOCKS} frame {name} @span {{ u64 of @key; time x; }}"));
    let span_members = allowed(&|name| format!("frame x @span {{ int {name} @key; }}"));
    assert!(buffers.len() * 2 > all.len(), "{buffers:?}");
    assert!(types.len() * 2 > all.len(), "{types:?}");
    assert!(members.len() * 2 > all.len(), "{members:?}");
    assert!(span_types.len() * 2 > all.len(), "{span_types:?}");
    assert!(span_members.len() * 2 > all.len(), "{span_members:?}");
    generates(language, &spans(&span_types, &span_members));
    let chain_types = allowed(&|name| {
        format!("{CLOCKS} frame {name} @chain(of, off) {{ u64 of @key; time x; }}")
    });
    let chain_members = allowed(&|name| format!("frame x @chain(of, off) {{ int {name} @key; }}"));
    let steps = allowed(&|name| format!("frame x @chain({name}, other) {{ int of @key; }}"));
    assert!(chain_types.len() * 2 > all.len(), "{chain_types:?}");
    assert!(chain_members.len() * 2 > all.len(), "{chain_members:?}");
    generates(language, &chains(&chain_types, &chain_members, &steps));
    let point_types =
        allowed(&|name| format!("{CLOCKS} frame {name} @point {{ hash of @in(of); time x; }}"));
    let point_members = allowed(&|name| format!("frame x @point {{ hash {name} @raw @in(of); }}"));
    assert!(point_types.len() * 2 > all.len(), "{point_types:?}");
    assert!(point_members.len() * 2 > all.len(), "{point_members:?}");
    generates(language, &points(&point_types, &point_members));
    let enum_names = allowed(&|name| {
        format!("{CLOCKS} enum {name} {{ A }} frame x @span {{ u64 of @key; {name} y; time t; }}")
    });
    assert!(enum_names.len() * 2 > all.len(), "{enum_names:?}");
    generates(language, &enums(&enum_names));
    buffers.retain(|name| BUFFERS.split_whitespace().any(|word| word == *name));
    if matches!(language, Language::Java | Language::Node | Language::Go) {
        // Their names do not have the buffer's in the middle, and what checks them takes seconds.
        buffers.truncate(1);
    }
    buffers.push("x");
    for buffer in buffers {
        generates(language, &frames(buffer, &types, &members));
    }
}

/// Checks that the output of a frame file compiles.
fn generates(language: Language, source: &str) {
    let frames = ppt_codegen::parse(source.as_bytes(), "a.frame").unwrap();
    let outputs = ppt_codegen::generate(&frames, "a.frame", &[language]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    ppt_codegen::write_outputs(folder.path(), &outputs).unwrap();
    compile(language, folder.path());
}

#[test]
fn c() {
    names_of(Language::C);
}

#[test]
fn cpp() {
    names_of(Language::Cpp);
}

#[test]
fn python() {
    names_of(Language::Python);
}

#[test]
fn java() {
    names_of(Language::Java);
    check_names(Language::Java, JAVAS);
}

#[test]
fn node() {
    names_of(Language::Node);
    check_names(Language::Node, NODES);
}

#[test]
fn go() {
    names_of(Language::Go);
    check_names(Language::Go, GOS);
}
