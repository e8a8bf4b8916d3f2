//! C++ targets: namespace, `write`, `scope`.

use crate::fixtures::support::{Account, Bench, available};

fn block_cpp(compiler: &str) {
    if !available(compiler) {
        return;
    }
    let bench = Bench::new();
    bench.copy_all(&["block.cpp", "job.frame"]);
    bench.pptc(&["--emit", "cpp", "job.frame"]);
    let args = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-Wshadow"];
    bench.compile(
        compiler,
        &[&args[..], &["block.cpp", "job.cpp", "-o", "block", "-lpthread"]].concat(),
    );
    for kind in ["sysv", "memfd"] {
        block_cpp_by(&bench, kind);
    }
}

fn block_cpp_by(bench: &Bench, kind: &str) {
    let mut target = bench.start("block", &[]);
    let attach = bench.attach(&target, &["--slots", "65536", "--force", "--segment", kind]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured, 6000);

    let table = bench.table("out.bin", &["--frame", "job"]);
    let mut expected = Vec::new();
    for i in 0..5000i64 {
        expected.push(("LOGIN", i, 100 * i, false));
        if i % 5 == 0 {
            expected.push(("UPDATE", -i, 0, true));
        }
    }
    let (who, bytes) = (table.numbers("who"), table.numbers("bytes"));
    let (start, end) = (table.cells("handle_start"), table.cells("handle_end"));
    for (row, kind) in table.cells("kind").into_iter().enumerate() {
        let stamped = !start[row].is_empty();
        assert_eq!((kind, who[row], bytes[row], stamped), expected[row], "row {row}");
        if stamped {
            assert!(start[row].parse::<i64>().unwrap() <= end[row].parse::<i64>().unwrap());
        }
    }
}

#[test]
fn gcc() {
    block_cpp("g++");
}

#[test]
fn clang() {
    block_cpp("clang++");
}

const FRAMES: &str = "emit C++;\nframe call { int depth; interval time at; }\n";

const SCOPES: &str = r#"
#include "calls.hpp"
#include <cstdio>
using ppt::calls::call;

static int early(int depth) {
    call::scope s([&](call &f) { f.depth = depth; });
    if (depth > 1)
        return depth; /* the frame is written all the same */
    s->depth = -1;
    return 0;
}

static void thrown() {
    call::scope s;
    s->depth = 42;
    throw 1;
}

int main() {
    std::puts("ready");
    std::fflush(stdout);
    if (std::getchar() == EOF)
        return 1;
    early(5);
    early(0);
    try {
        thrown();
    } catch (int) {
    }
    { call::scope s; s.abandon(); }
    call::write([](call &f) { f.depth = 7; return false; });
    call::write([](call &f) { f.depth = 8; return true; });
    std::puts("written 4");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
}
"#;

#[test]
fn a_scope_writes_on_every_way_out() {
    if !available("g++") {
        return;
    }
    let bench = Bench::new();
    bench.write("calls.frame", FRAMES);
    bench.write("main.cpp", SCOPES);
    bench.pptc(&["calls.frame"]);
    bench.compile("g++", &["-std=c++17", "main.cpp", "calls.cpp", "-o", "calls", "-lpthread"]);
    let mut target = bench.start("calls", &[]);
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    assert_eq!(bench.table("out.bin", &[]).numbers("depth"), [5, -1, 42, 8]);
}

#[test]
fn names_that_the_output_needs_are_refused() {
    let bench = Bench::new();
    bench.write("a.frame", "frame f { int scope; }");
    let pptc = || bench.command(env!("CARGO_BIN_EXE_pptc"));
    let output = pptc().args(["--emit", "cpp", "a.frame"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        crate::fixtures::support::text(&output.stderr),
        "error[taken-name]: the field `scope` has a name that C++ output needs for itself\n \
         --> a.frame:1:15\n  |\n1 | frame f { int scope; }\n  |               ^^^^^ used by the \
         generated code\n  |\n  = help: choose another name, such as `scope_`\npptc: 1 error\n"
    );
    let output = pptc().args(["--emit", "c", "a.frame"]).output().unwrap();
    assert!(output.status.success(), "C has no such need");
}

/// A field that ppt adds has a fixed name, so the frame must be renamed.
#[test]
fn a_span_called_as_what_ppt_adds_is_refused() {
    let bench = Bench::new();
    bench.write("a.frame", "frame at @span { int id @key; }");
    let pptc = || bench.command(env!("CARGO_BIN_EXE_pptc"));
    let output = pptc().args(["--emit", "cpp", "a.frame"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        crate::fixtures::support::text(&output.stderr),
        "error[taken-name]: the frame `at` has a name that C++ output needs for itself\n \
         --> a.frame:1:7\n  |\n1 | frame at @span { int id @key; }\n  |       ^^ used by the \
         generated code\n  |\n  = help: choose another name, such as `at_`\npptc: 1 error\n"
    );
    bench.write("a.frame", "frame at @span { int id @key; time when @at; }");
    let output = pptc().args(["--emit", "cpp", "a.frame"]).output().unwrap();
    assert!(output.status.success(), "no field `at` is added");
}

/// Fields may have the names of the generated functions, and of what the generated code uses.
#[test]
fn fields_called_as_functions() {
    let bench = Bench::new();
    let fields =
        "int on, now, prepare, std, seq, id, f, fill, begin, commit; interval time handle;";
    bench.write("job.frame", &format!("enum Kind {{ A }} frame job {{ Kind Kind; {fields} }}"));
    bench.pptc(&["--emit", "cpp", "job.frame"]);
    let program = "#include \"job.hpp\"\n\
        int main() {\n\
            ppt::job::job::write([](auto &f) { f.on = f.now = f.std = f.fill = 1; f.Kind = ppt::job::Kind::A; });\n\
            ppt::job::job::scope s([](auto &f) { f.prepare = 1; });\n\
            s->begin = 2;\n\
        }\n";
    bench.write("main.cpp", program);
    for compiler in ["g++", "clang++"] {
        if available(compiler) {
            bench.compile(compiler, &["-std=c++17", "main.cpp", "job.cpp", "-o", "job"]);
        }
    }
}
