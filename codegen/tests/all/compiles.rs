//! The generated C compiles without warnings, as C11 and as C++17, and so does the generated C++, by gcc and clang:
//! every golden optimised and disabled, and the fullest in all ways. `PPT_LONG=1` builds every golden in all ways.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ppt_codegen::Language;

use crate::support::compiler::{Compiler, Dialect, output_of};
use crate::support::{Generated, fullest, goldens, is_long, user};

/// Builds frame files with a user's program that uses everything, and passes on the folder.
fn each(files: &[PathBuf], dialect: Dialect, flags: &[&str], then: impl Fn(&Path)) {
    for path in files {
        let generated = Generated::of_file(path, Language::C);
        let folder = generated.on_disk(&[("user.c", &user::program(&generated))]);
        let source = format!("{}.c", generated.stem);
        for compiler in Compiler::that_take(flags) {
            let arguments = [flags, &[&source, "user.c", "-o", "built"]].concat();
            compiler.run(dialect, folder.path(), &arguments);
            then(folder.path());
        }
    }
}

/// Without ppt, the program ends with status 0 and prints nothing.
fn runs(folder: &Path) {
    assert_eq!(output_of(folder, "built", &[]), "");
}

#[test]
fn c11_unoptimised() {
    each(&fullest(), Dialect::C11, &["-O0"], runs);
}

#[test]
fn c11_optimised() {
    each(&goldens(), Dialect::C11, &["-O2"], runs);
}

#[test]
fn cpp17_unoptimised() {
    each(&fullest(), Dialect::Cpp17, &["-O0"], runs);
}

#[test]
fn cpp17_optimised() {
    each(&goldens(), Dialect::Cpp17, &["-O2"], runs);
}

#[test]
fn static_without_pie() {
    each(&fullest(), Dialect::C11, &["-O2", "-static", "-fno-pie"], runs);
}

/// gcc warns that its thread sanitizer does not support fences.
#[test]
fn with_a_sanitizer_of_threads() {
    for dialect in [Dialect::C11, Dialect::Cpp17] {
        each(&fullest(), dialect, &["-O2", "-fsanitize=thread"], |_| {});
    }
    each_cpp(fullest_users(), &["-O2", "-fsanitize=thread"], |_| {});
}

/// A program of one file includes the source after headers that were read without _GNU_SOURCE.
/// Strict C has not declared the needed functions by then, and a message states that.
#[test]
fn included_after_headers() {
    const BEFORE: [&str; 7] =
        ["fcntl.h", "pthread.h", "stdio.h", "stdlib.h", "sys/socket.h", "time.h", "unistd.h"];
    for path in fullest() {
        let generated = Generated::of_file(&path, Language::C);
        let mut text = BEFORE.map(|text| format!("#include <{text}>\n")).concat();
        text += &format!("#include \"{}.c\"\n", generated.stem);
        text += &user::program(&generated);
        let folder = generated.on_disk(&[("user.c", &text)]);
        for compiler in Compiler::all() {
            let arguments = ["-std=gnu11", "-O2", "user.c", "-o", "built"];
            compiler.run(Dialect::C11, folder.path(), &arguments);
            runs(folder.path());
            compiler.run(Dialect::Cpp17, folder.path(), &["-O2", "user.c", "-o", "built"]);
            runs(folder.path());
            let strict = compiler.try_run(Dialect::C11, folder.path(), &["user.c", "-o", "built"]);
            let said = String::from_utf8_lossy(&strict.stderr);
            assert!(said.contains("_GNU_SOURCE comes too late"), "{said}");
        }
    }
}

/// A shared library needs no library but libc.
#[test]
fn shared_library() {
    each(&fullest(), Dialect::C11, &["-O2", "-fPIC", "-shared", "-Wl,-z,defs"], |_| {});
}

#[test]
fn shared_library_of_cpp() {
    each(&fullest(), Dialect::Cpp17, &["-O2", "-fPIC", "-shared", "-Wl,-z,defs"], |_| {});
}

/// `PPT_TLS_MODEL` applies to every thread-local variable: none is looked up by a call.
#[test]
fn tls_model() {
    let flags = ["-O2", "-fPIC", "-shared", "-Wl,-z,defs", "-DPPT_TLS_MODEL=\"initial-exec\""];
    each(&fullest(), Dialect::C11, &flags, |folder| {
        let names = symbols(&folder.join("built"), &["-D"]);
        assert!(!names.contains("__tls_get_addr"), "{names}");
    });
}

/// If ppt is disabled at build time, no symbol and no call remain.
#[test]
fn disabled() {
    each(&goldens(), Dialect::C11, &["-O2", "-DPPT_DISABLE"], runs_without_a_trace);
    each(&fullest(), Dialect::Cpp17, &["-O2", "-DPPT_DISABLE"], runs_without_a_trace);
}

/// The same holds on a platform that ppt does not support.
#[test]
fn unsupported_platform() {
    each(&fullest(), Dialect::C11, &["-O2", "-U__LP64__"], runs_without_a_trace);
}

/// Builds the C++ of frame files with programs that use it, in both forms.
fn each_cpp(users: &[(&str, &str)], flags: &[&str], then: impl Fn(&Path)) {
    for (stem, user) in users {
        let generated = Generated::cpp(&format!("{stem}.frame"));
        let folder = generated.on_disk(&[("user.cpp", user)]);
        let source = format!("{stem}.cpp");
        for compiler in Compiler::that_take(flags) {
            let arguments = [flags, &[&source, "user.cpp", "-o", "built"]].concat();
            compiler.run(Dialect::Cpp17, folder.path(), &arguments);
            then(folder.path());
        }
    }
}

/// Goldens, and programs that use their C++; the fullest is the first.
const CPP_USERS: [(&str, &str); 4] = [
    ("everything", include_str!("support/everything.cpp")),
    ("example", include_str!("support/example.cpp")),
    ("job", include_str!("support/job.cpp")),
    ("ticks", include_str!("support/ticks.cpp")),
];

/// Those of [`CPP_USERS`] on which every way to build is tried.
fn fullest_users() -> &'static [(&'static str, &'static str)] {
    if is_long() { &CPP_USERS } else { &CPP_USERS[..1] }
}

#[test]
fn cpp_output() {
    each_cpp(fullest_users(), &["-O0"], runs);
    each_cpp(&CPP_USERS, &["-O2"], runs);
}

#[test]
fn cpp_output_with_exceptions() {
    each_cpp(fullest_users(), &["-O2", "-fexceptions", "-frtti"], runs);
}

#[test]
fn cpp_output_disabled() {
    each_cpp(fullest_users(), &["-O2", "-DPPT_DISABLE"], |folder| {
        assert_eq!(output_of(folder, "built", &[]), "");
        // The program's own functions are in namespaces of ppt's.
        let names = symbols(&folder.join("built"), &[]);
        assert!(!names.contains("ppt1"), "{names}");
    });
}

#[test]
fn cpp_output_in_a_shared_library() {
    each_cpp(fullest_users(), &["-O2", "-fPIC", "-shared", "-Wl,-z,defs"], |_| {});
}

fn runs_without_a_trace(folder: &Path) {
    assert_eq!(output_of(folder, "built", &[]), "");
    let names = symbols(&folder.join("built"), &[]);
    assert!(!names.contains("ppt"), "{names}");
}

/// The output of nm(1), which comes with every compiler's linker.
fn symbols(file: &Path, options: &[&str]) -> String {
    let output = Command::new("nm").args(options).arg(file).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// A field that only the end of a span sets does not exist in its begin, and vice versa. The compiler's message
/// names the half.
#[test]
fn a_field_of_the_other_half_does_not_compile() {
    const RIGHT: [(&str, &str); 4] =
        [("begin", "verb"), ("begin", "pages"), ("end", "rows"), ("end", "pages")];
    const WRONG: [(&str, &str); 3] = [("begin", "rows"), ("begin", "plan_end"), ("end", "verb")];
    let c = |(verb, field): &(&str, &str)| {
        format!("    PPT_{}_STMT(f) {{ f.{field} = 0; }}\n", verb.to_uppercase())
    };
    let cpp = |(verb, field): &(&str, &str)| {
        format!("    ppt::everything::stmt::{verb}([](auto &f) {{ f.{field} = {{}}; }});\n")
    };
    let program = |include: &str, uses: Vec<String>| {
        format!("#include \"{include}\"\nint main(void) {{\n{}    return 0;\n}}\n", uses.concat())
    };
    for (dialect, generated, right, wrong) in [
        (
            Dialect::C11,
            Generated::golden("everything.frame"),
            program("everything.h", RIGHT.iter().map(c).collect()),
            program("everything.h", WRONG.iter().map(c).collect()),
        ),
        (
            Dialect::Cpp17,
            Generated::cpp("everything.frame"),
            program("everything.hpp", RIGHT.iter().map(cpp).collect()),
            program("everything.hpp", WRONG.iter().map(cpp).collect()),
        ),
    ] {
        let folder = generated.on_disk(&[("right.c", &right), ("wrong.c", &wrong)]);
        for compiler in Compiler::all() {
            compiler.run(dialect, folder.path(), &["-fsyntax-only", "right.c"]);
            let output = compiler.try_run(dialect, folder.path(), &["-fsyntax-only", "wrong.c"]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success());
            for (line, (half, field)) in (3..).zip(WRONG) {
                let place = format!("wrong.c:{line}:");
                let named = |text: &str| {
                    text.starts_with(&place) && text.contains("error: ") && text.contains(field)
                };
                assert!(said.lines().any(named), "{dialect:?} {half} {field}: {said}");
            }
        }
    }
}

/// `PPT_TEXT` cuts and pads, reads no byte after a text, causes no warning, and accepts only arrays.
#[test]
fn text_is_set_in_the_block_form() {
    let source = "buffer texts; frame x { char name[8]; int y; }";
    let body = r#"
#include <stdio.h>

static void show(const char *text, unsigned size) {
    for (unsigned i = 0; i < size; i++)
        putchar(text[i] ? text[i] : '.');
    putchar('\n');
}

static void set(const char *string) {
    pptframe_x_t f;
    memset(&f, 'x', sizeof f);
    PPT_TEXT(f.name, string);
    show(f.name, sizeof f.name);
    PPT_WRITE_X(g) { PPT_TEXT(g.name, string); }
}

int main(void) {
    const char whole[8] = {'e', 'i', 'g', 'h', 't', ' ', 'o', 'f'};
    set("");
    set("short");
    set("eight of");
    set("more than eight");
    set(whole);
    set(PPT1_NULL);
    PPT_WRITE_X(f) { PPT_TEXT(f.name, "a literal that is too long"); }
    return 0;
}
"#;
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror"];
    let pointer = "int main(void) { char *to = 0; PPT_TEXT(to, \"x\"); return 0; }";
    let both = [
        (Dialect::C11, Generated::from_source(source, "texts.frame"), "texts.c"),
        (Dialect::Cpp17, Generated::from_source(source, "texts.frame"), "texts.c"),
    ];
    for (dialect, generated, runtime) in both {
        let include = "#include \"texts.h\"\n";
        let user = include.to_owned() + body;
        let wrong = include.to_owned() + pointer;
        let folder = generated.on_disk(&[("user.c", &user), ("wrong.c", &wrong)]);
        for compiler in Compiler::all() {
            let truncation: &[&str] =
                if compiler.c == "gcc" { &["-Wstringop-truncation"] } else { &[] };
            let sources = [runtime, "user.c", "-o", "built"];
            let arguments = [&flags[..], truncation, &sources].concat();
            compiler.run(dialect, folder.path(), &arguments);
            let printed = output_of(folder.path(), "built", &[]);
            let expected = "........\nshort...\neight of\nmore tha\neight of\n........\n";
            assert_eq!(printed, expected);
            if dialect == Dialect::C11 {
                let output =
                    compiler.try_run(dialect, folder.path(), &["-fsyntax-only", "wrong.c"]);
                assert!(!output.status.success());
            }
        }
    }
}

/// Arguments are evaluated once if ppt is compiled in, and not at all otherwise.
#[test]
fn arguments_are_evaluated_once_or_never() {
    let job = Generated::golden("job.frame");
    let user = r#"
        #include "job.h"
        #include <stdio.h>
        int main(void) {
            int calls = 0;
            WRITE_JOB_WHO(++calls);
            printf("%d\n", calls);
        }
"#;
    let folder = job.on_disk(&[("user.c", user)]);
    for compiler in Compiler::all() {
        for (define, expected) in [("-UPPT_DISABLE", "1\n"), ("-DPPT_DISABLE", "0\n")] {
            let arguments = [define, "job.c", "user.c", "-o", "built"];
            compiler.run(Dialect::C11, folder.path(), &arguments);
            assert_eq!(output_of(folder.path(), "built", &[]), expected);
        }
    }
}

/// Ways to leave a block that is inside a loop. This program has its own writer of frames.
const WAYS_OUT: &str = r#"
#include "job.h"
#include <stdio.h>

static uint64_t slots[64];
static ppt1_thread thread = {slots};
static int written;
ppt1_control CONTROL;
ppt1_thread *BEGIN(unsigned frame) { (void)frame; return &thread; }
void END(ppt1_thread *t) { (void)t; written++; }

static int returns(void) {
    PPT_WRITE_JOB(f) {
        f.who = 1;
        return 1;
    }
    return 0;
}

static int jumps(void) {
    PPT_WRITE_JOB(f) {
        f.who = 1;
        goto out;
    }
    return 0;
out:
    return 1;
}

/* Frames written, and rounds that went on behind the block. */
static void loop(int way) {
    int behind = 0;
    written = 0;
    for (int i = 0; i < 3; i++) {
        if (way == 0)
            PPT_WRITE_JOB(f) f.who = i;
        else
            PPT_WRITE_JOB(f) {
                f.who = i;
                for (int own = 0; own < 2; own++)
                    if (own == 0)
                        continue; /* of the block's own */
                if (way == 1)
                    break;
                if (way == 2)
                    continue; /* not the loop around it */
                f.who = 7;
            }
        behind++;
    }
    printf("%d %d\n", written, behind);
}

int main(void) {
    CONTROL.gate = 1;
    for (int way = 0; way < 4; way++)
        loop(way);
    written = 0;
    printf("%d ", returns() + jumps());
    printf("%d\n", written);
}
"#;

#[test]
fn ways_out_of_a_block() {
    let job = Generated::golden("job.frame");
    let names = [("CONTROL", "control"), ("BEGIN", "begin"), ("END", "end")];
    let user = names
        .into_iter()
        .fold(WAYS_OUT.to_owned(), |text, (word, name)| text.replace(word, &job.symbol(name)));
    let folder = job.on_disk(&[("user.c", &user)]);
    for compiler in Compiler::all() {
        for dialect in [Dialect::C11, Dialect::Cpp17] {
            let lenient = ["-Wno-missing-field-initializers", "-O2", "user.c", "-o", "built"];
            compiler.run(dialect, folder.path(), &lenient);
            assert_eq!(output_of(folder.path(), "built", &[]), "3 3\n0 3\n3 3\n3 3\n2 0\n");

            let check = ["-Wno-error", "-Wno-shadow", "-DPPT_CHECK_BLOCKS", "-fsyntax-only"];
            let check = [&check[..], &["-Wno-missing-field-initializers", "user.c"]].concat();
            let output = compiler.try_run(dialect, folder.path(), &check);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            let warned = said.matches("is deprecated: `continue` ends the block").count();
            assert_eq!(warned, 2, "{said}");
        }
    }
}

/// Pointers to functions and to data become addresses, and integers are ones.
#[test]
fn pointers_are_addresses() {
    const PROGRAM: &str = "
static int work(void) { return 7; }
int main(void) {
    static int data;
    int (*pointer)(void) = work;
    uint64_t bits = 0;
    memcpy(&bits, &pointer, sizeof pointer);
    CALLS(work)
    CALLS(pointer)
    CALLS(&data)
    CALLS(__builtin_return_address(0))
    CALLS(4096)
    return bits == PPT_ADDR(work) && PPT_ADDR(4096) == 4096 ? pointer() - 7 : 1;
}
";
    const MACROS: &str = "#define CALLS(v) WRITE_CALL_FUNCTION(v); PPT_WRITE_CALL(f) { f.function = PPT_ADDR(v); }\n";
    const CALLS: &str =
        "#define CALLS(v) ppt::calls::call::write([&](auto &f) { f.function = PPT_ADDR(v); });\n";
    let frames = "buffer calls; frame call { addr function; }";
    for (generated, dialects, header, calls) in [
        (
            Generated::from_source(frames, "calls.frame"),
            &[Dialect::C11, Dialect::Cpp17][..],
            "h",
            MACROS,
        ),
        (Generated::cpp_of(frames, "calls.frame"), &[Dialect::Cpp17], "hpp", CALLS),
    ] {
        let user = format!("#include \"calls.{header}\"\n{calls}{PROGRAM}");
        let folder = generated.on_disk(&[("user.c", &user)]);
        for compiler in Compiler::all() {
            for dialect in dialects {
                for flags in [&["-O2"][..], &["-O0", "-DPPT_DISABLE"]] {
                    let source = if header == "h" { "calls.c" } else { "calls.cpp" };
                    let arguments = [flags, &["user.c", source, "-o", "built"]].concat();
                    compiler.run(*dialect, folder.path(), &arguments);
                    assert_eq!(output_of(folder.path(), "built", &[]), "", "{dialect:?}");
                }
            }
        }
    }
}

/// A block cannot change the fields that ppt sets; the stamp is from before the block. The program prints each
/// frame, and its clock counts its readings.
#[test]
fn what_ppt_sets_cannot_be_overwritten() {
    const PROGRAM: &str = include_str!("support/overwrites.c");
    const WRITTEN: &str = "car 1 edge 0 at 1\ncar 1 edge 1 at 2\ncar 4 edge 1 at 3\n\
                           toll 2 edge 1 when 70\nleg 3 step 2 at 15\ngate 5 at 16\n26 readings\n";
    let frames = "buffer road; option time ns realtime; frame car @span { u64 id @key; } \
                  frame toll @span { u64 id @key; time when @at; } \
                  frame leg @chain(start, pass, done) { u64 id @key; } \
                  frame gate @point { hash id @raw @in(car); }";
    for (generated, dialects, header) in [
        (Generated::from_source(frames, "road.frame"), &[Dialect::C11, Dialect::Cpp17][..], "h"),
        (Generated::cpp_of(frames, "road.frame"), &[Dialect::Cpp17], "hpp"),
    ] {
        let names = ["control", "prepare", "clock", "stamp", "begin", "end"];
        let names = names
            .map(|name| format!("#define {} {}\n", name.to_uppercase(), generated.symbol(name)));
        let user = format!("#include \"road.{header}\"\n{}{PROGRAM}", names.concat());
        let folder = generated.on_disk(&[("user.c", &user)]);
        let lenient = ["-Wno-missing-field-initializers", "-Wno-old-style-cast"];
        for (compiler, dialect) in Compiler::all()
            .into_iter()
            .flat_map(|compiler| dialects.iter().map(move |d| (compiler, *d)))
        {
            let lenient = if dialect == Dialect::C11 { &lenient[..1] } else { &lenient[..2] };
            for level in ["-O0", "-O2"] {
                let arguments = [lenient, &[level, "user.c", "-o", "built"]].concat();
                compiler.run(dialect, folder.path(), &arguments);
                assert_eq!(output_of(folder.path(), "built", &[]), WRITTEN, "{dialect:?}");
            }
        }
    }
}

/// Two headers in one file that declare the same frame cause an `#error` that names both.
#[test]
fn two_headers_with_one_frame() {
    let one = Generated::from_source("frame job { int a; }", "one.frame");
    let two = Generated::from_source("frame other { int a; } frame job { int b; }", "two.frame");
    let user = "#include \"one.h\"\n#include \"two.h\"\nint main(void) { return 0; }\n";
    let folder = one.on_disk(&[("two.h", two.header()), ("user.c", user)]);
    for compiler in Compiler::all() {
        for dialect in [Dialect::C11, Dialect::Cpp17] {
            let output = compiler.try_run(dialect, folder.path(), &["-c", "user.c"]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success());
            assert!(said.contains("#error"), "{said}");
            // Compilers print the quotes differently.
            let words = ["ppt: frame", "job", "one.h (schema", "two.h (schema"];
            let both = said.lines().any(|line| words.iter().all(|word| line.contains(word)));
            assert!(both, "no line names both headers:\n{said}");
        }
    }
}

/// The parameter of a macro has the name of no field: `v` would also replace the member's name.
#[test]
fn a_field_is_not_what_its_macro_takes() {
    let one = Generated::from_source("frame pos { int n; int v; int value; }", "one.frame");
    let symbol = one.symbol("frame_pos");
    let user = format!(
        "#include \"one.h\"\n#include <stdio.h>\n\
         int main(void) {{ int n = 5; WRITE_POS_N(1); WRITE_POS_V(n); WRITE_POS_VALUE(7);\n\
         printf(\"%d %d %d\", {symbol}.n, {symbol}.v, {symbol}.value); return 0; }}\n"
    );
    let folder = one.on_disk(&[("user.c", &user)]);
    for compiler in Compiler::all() {
        for dialect in [Dialect::C11, Dialect::Cpp17] {
            compiler.run(dialect, folder.path(), &["-O2", "user.c", "one.c", "-o", "built"]);
            assert_eq!(output_of(folder.path(), "built", &[]), "1 5 7");
        }
    }
}

/// A header may be included twice; several headers share their fixed part.
#[test]
fn several_headers_in_one_file() {
    let one = Generated::from_source("frame a { int x; time t; }", "one.frame");
    let two = Generated::from_source("frame b { int x; time t; }", "two.frame");
    let user = "#include \"two.h\"\n#include \"one.h\"\n#include \"two.h\"\n\
                int main(void) { PPT_WRITE_A(f) { PPT_WRITE_B(g) { g.x = f.x; } } return 0; }\n";
    let folder = one.on_disk(&[("two.h", two.header()), ("two.c", two.source()), ("user.c", user)]);
    for compiler in Compiler::all() {
        for dialect in [Dialect::C11, Dialect::Cpp17] {
            let arguments = ["-O2", "user.c", "one.c", "two.c", "-o", "built"];
            compiler.run(dialect, folder.path(), &arguments);
            assert_eq!(output_of(folder.path(), "built", &[]), "");
        }
    }
}

/// The programs of the contract compile as C11 and as C++17, with the flags of users.
#[test]
fn contract() {
    const FIGURE: &str = include_str!("../../../tests/targets/figure3.c");
    const BLOCK: &str = include_str!("../../../tests/targets/block.c");
    for (frames, name, user, written) in [
        ("example.frame", "figure3.c", FIGURE, "ready\nwritten 10\n"),
        ("job.frame", "block.c", BLOCK, "ready\nwritten 9500\n"),
    ] {
        let generated = Generated::golden(frames);
        let folder = generated.on_disk(&[(name, user)]);
        let source = format!("{}.c", generated.stem);
        for compiler in Compiler::all() {
            for dialect in [Dialect::C11, Dialect::Cpp17] {
                // The programs are older than these flags.
                let lenient = match dialect {
                    Dialect::C11 => &["-Wno-sign-conversion", "-Wno-unused-macros"][..],
                    Dialect::Cpp17 => &[
                        "-Wno-sign-conversion",
                        "-Wno-unused-macros",
                        "-Wno-old-style-cast",
                        "-Wno-zero-as-null-pointer-constant",
                    ],
                };
                let arguments = [lenient, &["-O2", &source, name, "-o", "built"]].concat();
                compiler.run(dialect, folder.path(), &arguments);
                assert_eq!(with_a_line(&folder.path().join("built")), written);
            }
        }
    }
}

/// Runs a program of the contract, which waits for a line, to its end.
fn with_a_line(program: &Path) -> String {
    let mut child = Command::new(program)
        .arg("10")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}
