//! Names that would write a whole span or chain do not exist. A program that uses one gets an error with the names of
//! the existing forms.

use crate::support::Generated;
use crate::support::compiler::{Compiler, Dialect};
use ppt_codegen::Language;

const PAGE: &str = include_str!("../../../docs/troubleshooting.md");

const FRAMES: &str = "frame request @span { u64 id @key; }
frame encode @chain(start, stop) { u64 id @key; }
frame plain { u64 id; }";

/// A use of a name, and the compiler's message.
const USES: [(&str, &str); 4] = [
    (
        "PPT_WRITE_REQUEST(f) { f.id = 1; }",
        "ppt: request is a span: use PPT_BEGIN_REQUEST and PPT_END_REQUEST",
    ),
    ("PPT_WRITE_ENCODE(f) { f.id = 1; }", "ppt: encode is a chain: use PPT_STEP_ENCODE"),
    (
        "ppt_write_request_frame();",
        "ppt: request is a span: use ppt_begin_request_frame and ppt_end_request_frame",
    ),
    ("ppt_write_encode_frame();", "ppt: encode is a chain: use ppt_step_encode_frame"),
];

const CPP_USES: [(&str, &str); 2] = [
    (
        "ppt::a::request::write([&](auto &f) { f.id = 1; });",
        "ppt: request is a span: use begin and end",
    ),
    ("ppt::a::encode::write([&](auto &f) { f.id = 1; });", "ppt: encode is a chain: use step"),
];

/// The only error that the compiler shows for a use.
fn compiler_message(
    compiler: Compiler,
    dialect: Dialect,
    generated: &Generated,
    program: &str,
) -> String {
    let folder = generated.on_disk(&[("use.c", program)]);
    let output = compiler.try_run(dialect, folder.path(), &["-fsyntax-only", "use.c"]);
    assert!(!output.status.success(), "{program}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches("error: ").count(), 1, "{text}");
    text
}

#[test]
fn c_says_which_macros_to_use() {
    let generated = Generated::from_source(FRAMES, "a.frame");
    for compiler in Compiler::all() {
        for dialect in [Dialect::C11, Dialect::Cpp17] {
            for (define, (usage, expected)) in ["", "#define PPT_DISABLE\n"]
                .iter()
                .flat_map(|text| USES.map(|usage| (text, usage)))
            {
                let program = format!(
                    "{define}#include \"a.h\"\nint main(void) {{\n    {usage}\n    return 0;\n}}\n"
                );
                let text = compiler_message(compiler, dialect, &generated, &program);
                assert!(text.contains(expected), "{dialect:?}: {text}");
            }
        }
    }
}

#[test]
fn cpp_says_which_functions_to_use() {
    let generated = Generated::cpp_of(FRAMES, "a.frame");
    for compiler in Compiler::all() {
        for (usage, expected) in CPP_USES {
            let program = format!("#include \"a.hpp\"\nint main() {{ {usage} }}\n");
            let text = compiler_message(compiler, Dialect::Cpp17, &generated, &program);
            assert!(text.contains(expected), "{text}");
        }
    }
}

/// A name that is a keyword elsewhere is refused when that language is generated.
#[test]
fn a_keyword_of_another_language_is_a_name() {
    let text = "frame request { u64 type; u64 class; }";
    let generated = Generated::from_source(text, "a.frame");
    let program = "#include \"a.h\"\n\
        int main(void) { PPT_WRITE_REQUEST(f) { f.type = 1; f.class = 2; } return 0; }\n";
    let folder = generated.on_disk(&[("use.c", program)]);
    Compiler::gcc().run(Dialect::C11, folder.path(), &["-fsyntax-only", "use.c", "a.c"]);

    let frames = ppt_codegen::parse(text.as_bytes(), "a.frame").unwrap();
    for (language, word) in [(Language::Cpp, "class"), (Language::Rust, "type")] {
        let error = ppt_codegen::generate(&frames, "a.frame", &[Language::C, language]);
        let text = error.unwrap_err().to_string();
        let expected = format!("`{word}` is a keyword in {}", language.word());
        assert!(text.contains(&expected) && text.contains('^'), "{text}");
    }
}

/// An object of an earlier frame file does not link; the page quotes the linker's message.
#[test]
fn a_stale_object_does_not_link() {
    let before = Generated::from_source("frame request { u64 id; }", "a.frame");
    let after = Generated::from_source("frame request { u64 id; u64 size; }", "a.frame");
    let program = "#include \"a.h\"\nint main(void) { PPT_WRITE_REQUEST(f) { f.id = 1; } }\n";
    let stale = before.on_disk(&[]);
    let folder = after.on_disk(&[("use.c", program)]);
    let compiler = Compiler::gcc();
    compiler.run(Dialect::C11, stale.path(), &["-c", "a.c", "-o", "a.o"]);
    compiler.run(Dialect::C11, folder.path(), &["-c", "use.c", "-o", "use.o"]);
    let object = stale.path().join("a.o");
    let output = std::process::Command::new("gcc")
        .current_dir(folder.path())
        .args(["use.o", object.to_str().unwrap(), "-o", "use"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    let line = said.lines().find(|line| line.contains("undefined reference to `ppt1_"));
    assert!(line.is_some_and(|line| line.contains("_control'")), "{said}");
    assert!(PAGE.contains("``undefined reference to `ppt1_…_control'``"));
    assert!(PAGE.contains(USES[0].1.trim_start_matches("ppt: ")));
}
