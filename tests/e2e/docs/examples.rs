//! Builds the examples of build systems as their READMEs describe, with the pptc of this build,
//! attaches to them, and compares the captures with their own counts. Also tests the further
//! promises of `ppt_generate`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::fixtures::rust::target_folder;
use crate::fixtures::support::{Account, Bench, Target, available, ppt, root, text};

const PPTC: &str = env!("CARGO_BIN_EXE_pptc");

/// Runs a command that must succeed. Returns all of its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}");
    said
}

/// Copies a folder of examples into the test's folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The installed CMake generators.
fn generators() -> Vec<&'static str> {
    if !available("cmake") {
        return Vec::new();
    }
    [("make", "Unix Makefiles"), ("ninja", "Ninja")]
        .into_iter()
        .filter_map(|(program, name)| available(program).then_some(name))
        .collect()
}

fn configure(bench: &Bench, source: &str, build: &str, generator: &str) -> Command {
    let mut command = bench.command("cmake");
    command.args(["-S", source, "-B", build, "-G", generator]);
    command.arg(format!("-Dppt_DIR={}", root().join("packaging/cmake").display()));
    command.arg(format!("-DPPT_SOURCE={}", root().display()));
    command.arg(format!("-DPPTC={PPTC}"));
    command.arg("-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror");
    command
}

fn build(bench: &Bench, folder: &str) -> String {
    run(bench.command("cmake").args(["--build", folder, "-j", "2"]))
}

/// Attaches to a program that answers lines, sends it three, and compares buffers with its count.
fn lines(bench: &Bench, program: PathBuf, words_too: bool) {
    let mut target = Target::start(Command::new(program));
    let attach = bench.attach(&target, &["--force"]);
    for line in ["one two three", "", "four five"] {
        target.say(line);
    }
    target.close();
    assert_eq!(target.stdout.wait_for("lines "), "3");
    assert_eq!(target.stdout.wait_for("words "), "5");
    attach.ended(0);
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(if words_too { 3 + 5 } else { 3 });
    let table = bench.table("out.bin", &["-b", "lines"]);
    assert_eq!(table.numbers("number"), [1, 2, 3]);
    assert_eq!(table.numbers("words"), [3, 0, 2]);
    let spans = table.numbers_or_0("handle_start.tv_sec");
    assert!(spans.iter().all(|&second| second > 0), "{spans:?}");
    if words_too {
        let table = bench.table("out.bin", &["-b", "word"]);
        assert_eq!(table.cells("text"), ["one", "two", "three", "four", "five"]);
    }
}

#[test]
fn cmake_finds_the_package() {
    for generator in generators() {
        let bench = Bench::new();
        copy(&root().join("examples/cmake"), &bench.path("cmake"));
        for shared in ["OFF", "ON"] {
            let folder = format!("build-{shared}");
            let shared = format!("-DBUILD_SHARED_LIBS={shared}");
            run(configure(&bench, "cmake", &folder, generator).arg(shared));
            build(&bench, &folder);
            lines(&bench, bench.path(&folder).join("lines"), true);
        }
    }
}

#[test]
fn cmake_takes_the_sources_in() {
    for generator in generators() {
        let bench = Bench::new();
        copy(&root().join("examples/cmake"), &bench.path("cmake"));
        run(&mut configure(&bench, "cmake/vendored", "build", generator));
        build(&bench, "build");
        lines(&bench, bench.path("build/lines"), true);
    }
}

/// Modification time of a file.
fn time(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

/// Rewrites an older file with the result of `change`, so that its time is new regardless of the
/// clock's resolution.
fn edit(path: &Path, change: impl Fn(&str) -> String) {
    let old = fs::read_to_string(path).unwrap();
    fs::write(path, change(&old)).unwrap();
    let later = SystemTime::now() + std::time::Duration::from_secs(2);
    fs::File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
}

#[test]
fn cmake_compiles_again_what_changed_and_nothing_else() {
    for generator in generators() {
        let bench = Bench::new();
        copy(&root().join("examples/cmake"), &bench.path("cmake"));
        run(&mut configure(&bench, "cmake", "build", generator));
        build(&bench, "build");
        let header = bench.path("build/ppt/lines/lines.h");
        let objects = ["CMakeFiles/lines.dir/lines.c.o", "CMakeFiles/words.dir/words.c.o"];
        let times = || objects.map(|object| time(&bench.path("build").join(object)));
        let (first, before) = (times(), time(&header));

        let said = build(&bench, "build");
        assert!(!said.contains("Compiling"), "{generator}: nothing changed, and yet: {said}");

        let frame = bench.path("cmake/lines.frame");
        edit(&frame, |text| format!("// a comment\n{text}"));
        let said = build(&bench, "build");
        assert!(said.contains("Compiling lines.frame"), "{generator}: {said}");
        assert_eq!(
            (times(), time(&header)),
            (first, before),
            "{generator}: a comment is no change"
        );

        edit(&frame, |text| text.replace("int words;", "int words, more;"));
        build(&bench, "build");
        let second = times();
        assert!(second[0] > first[0], "{generator}: lines.c includes the header that changed");
        assert_eq!(second[1], first[1], "{generator}: words.c does not");
        assert!(fs::read_to_string(&header).unwrap().contains("WRITE_LINE_MORE"));
    }
}

/// A project of two programs and a library that share a frame file, in C++.
const SHARING: &str = r#"
cmake_minimum_required(VERSION 3.20)
project(sharing LANGUAGES CXX)
find_package(ppt REQUIRED)
add_library(part STATIC part.cpp)
ppt_generate(TARGET part FRAMES frames/shared.frame)
foreach(name first second)
    add_executable(${name} main.cpp)
    target_link_libraries(${name} PRIVATE part)
    ppt_generate(TARGET ${name} FRAMES frames/shared.frame LANGUAGE CXX)
endforeach()
"#;

#[test]
fn cmake_targets_share_a_frame_file() {
    for generator in generators() {
        let bench = Bench::new();
        fs::create_dir_all(bench.path("app/frames")).unwrap();
        bench.write("app/CMakeLists.txt", SHARING);
        bench.write("app/frames/shared.frame", "frame mark { int value; }\n");
        bench.write(
            "app/part.cpp",
            "#include \"shared.hpp\"\n\
             void part(int i) { ppt::shared::mark::write([&](auto &f) { f.value = i; }); }\n",
        );
        bench.write(
            "app/main.cpp",
            "#include \"shared.hpp\"\n#include <cstdio>\nvoid part(int);\n\
             int main() {\n  std::puts(\"ready\"); std::fflush(stdout); std::getchar();\n\
             for (int i = 0; i < 100; i += 2) {\n\
             ppt::shared::mark::write([&](auto &f) { f.value = i; }); part(i + 1); }\n\
             std::puts(\"written 100\"); std::fflush(stdout);\n\
             while (std::getchar() != EOF) {}\n}\n",
        );
        run(&mut configure(&bench, "app", "build", generator));
        build(&bench, "build");
        for program in ["first", "second"] {
            let mut target = Target::start(Command::new(bench.path("build").join(program)));
            let attach = bench.attach(&target, &["--force"]);
            let written = target.run();
            let stderr = attach.stop();
            target.finish();
            Account::of(&bench.info("out.bin")).check(written);
            // One buffer and one ring for the frames of the library and of the program.
            let values = bench.table("out.bin", &[]).numbers("value");
            assert_eq!(values, (0..100).collect::<Vec<_>>(), "{generator}: {stderr}");
        }
    }
}

#[test]
fn cmake_says_what_is_wrong() {
    let Some(generator) = generators().first().copied() else { return };
    let refuses = |lines: &str, args: &[&str], expected: &str| {
        let bench = Bench::new();
        fs::create_dir(bench.path("app")).unwrap();
        bench.write("app/a.frame", "frame a { int value; }\n");
        bench.write("app/main.c", "int main(void) { return 0; }\n");
        let head = "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES C)\n\
                    find_package(ppt REQUIRED)\nadd_executable(app main.c)\n";
        bench.write("app/CMakeLists.txt", &format!("{head}{lines}\n"));
        let output = configure(&bench, "app", "build", generator).args(args).output().unwrap();
        let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!output.status.success() && said.contains(expected), "{lines}: {said}");
    };
    refuses("", &["-DPPTC=/nowhere/pptc"], "PPTC is /nowhere/pptc, and there is no such program");
    refuses("ppt_generate(TARGET app)", &[], "TARGET and FRAMES are needed");
    refuses("ppt_generate(TARGET ap FRAMES a.frame)", &[], "there is no target `ap`");
    refuses("ppt_generate(TARGET app FRAMES b.frame)", &[], "there is no frame file");
    refuses("ppt_generate(TARGET app a.frame)", &[], "what is `a.frame`?");
    refuses("ppt_generate(TARGET app FRAMES a.frame LANGUAGE Rust)", &[], "not `Rust`");
    refuses("ppt_generate(TARGET app FRAMES a.frame LANGUAGE CXX)", &[], "has not enabled");
    refuses("ppt_generate(TARGET app FRAMES a.frame ./a.frame)", &[], "two frame files called a;");
}

#[test]
fn make() {
    if !available("make") {
        return;
    }
    let bench = Bench::new();
    copy(&root().join("examples/make"), &bench.path("make"));
    let build = || {
        let mut command = bench.command("make");
        run(command.arg("-C").arg("make").arg(format!("PPTC={PPTC}")).env_remove("MAKEFLAGS"))
    };
    assert!(build().contains("g++"));
    assert!(build().contains("up to date"));

    let mut target = Target::start(Command::new(bench.path("make/sums")));
    let attach = bench.attach(&target, &[]);
    for number in 1..=100 {
        target.say(&number.to_string());
    }
    target.close();
    assert_eq!(target.stdout.wait_for("numbers "), "100");
    assert_eq!(target.stdout.wait_for("sum "), "5050");
    attach.ended(0);
    target.finish();
    Account::of(&bench.info("out.bin")).check(100);
    assert_eq!(bench.table("out.bin", &[]).numbers("sum").last(), Some(&5050));

    let frame = bench.path("make/numbers.frame");
    edit(&frame, |text| format!("// a comment\n{text}"));
    let said = build();
    assert!(said.contains("--depfile") && !said.contains("g++"), "{said}");
    edit(&frame, |text| text.replace("i64 sum;", "i64 sum, more;"));
    assert!(build().contains("g++"));
}

/// Three programs in three languages, one chain.
#[test]
fn a_chain_goes_through_three_programs() {
    if !available("make") || !crate::fixtures::python::has_headers() {
        return;
    }
    let bench = Bench::new();
    // Kept between runs, as cargo keeps what it built.
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("example-pipeline");
    copy(&root().join("examples/pipeline"), &project);
    let manifest = project.join("screen/Cargo.toml");
    let rooted = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, rooted.replace("../../..", root().to_str().unwrap())).unwrap();
    // The versions of the workspace, so that nothing is downloaded.
    fs::copy(root().join("Cargo.lock"), project.join("screen/Cargo.lock")).unwrap();
    let _ = std::os::unix::fs::symlink(target_folder(), project.join("screen/target"));
    let mut make = bench.command("make");
    make.args([format!("PPTC={PPTC}"), format!("CARGO={}", env!("CARGO"))]).current_dir(&project);
    make.env("CARGO_NET_OFFLINE", "true");
    for name in ["MAKEFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR"] {
        make.env_remove(name);
    }
    run(&mut make);
    let said = run(bench.command(ppt()).arg("run").arg(project.join("video")).arg("200"));
    assert!(said.contains("shown 198"), "{said}");
    let info = bench.info("out.bin");
    Account::of(&info).check(200 + 198 + 198 + 200 + 200);
    let table = bench.table("out.bin", &["--frame", "picture"]);
    let (step, n) = (table.column("step"), table.column("n"));
    for (name, damaged) in [("taken", false), ("encoded", true), ("shown", true)] {
        let rows = table.rows.iter().filter(|row| row[step] == name);
        let found: Vec<u32> = rows.map(|row| row[n].parse().unwrap()).collect();
        let expected: Vec<u32> = (0..200).filter(|number| !damaged || number % 100 != 99).collect();
        assert_eq!(found, expected, "{name}");
    }
    // What one program has sent, another begins.
    let [sent, begun] = ["sent", "begun"].map(|frame| {
        let table = bench.table("out.bin", &["--frame", frame]);
        table.cells("picture").into_iter().map(str::to_owned).collect::<Vec<_>>()
    });
    let distinct = sent.iter().collect::<std::collections::HashSet<_>>();
    assert_eq!((sent.len(), distinct.len(), &sent), (200, 200, &begun));
    let programs = info["buffers"].as_array().unwrap().iter().map(|value| &value["pid"]);
    assert_eq!(programs.collect::<std::collections::HashSet<_>>().len(), 3, "{info}");
}

/// The frames from which `docs/models.md` makes a model.
#[test]
fn the_game_server_tells_what_a_step_takes() {
    if !available("make") {
        return;
    }
    let bench = Bench::new();
    copy(&root().join("examples/dve"), &bench.path("dve"));
    let mut make = bench.command("make");
    run(make.args(["-C", "dve", "costs", &format!("PPTC={PPTC}")]).env_remove("MAKEFLAGS"));
    let target = Target::spawn(Command::new(bench.path("dve/server-costs")));
    let port = target.stdout.wait_for("listening on 127.0.0.1:");
    let attach = bench.attach(&target, &["-b", "costs"]);
    let mut users = bench.command(bench.path("dve/users"));
    run(users.args(["--port", port.trim(), "--users", "20", "--ramp", "0", "--seconds", "3"]));
    attach.stop();
    drop(target);
    let table = bench.table("out.bin", &[]);
    let column = |name: &str| table.numbers_or_0(name);
    assert_eq!(column("users").into_iter().max(), Some(20));
    assert!(column("memory").into_iter().any(|it| it > 4096), "{:?}", column("memory"));
    for name in ["pairs", "packets_in", "packets_out", "bytes_in", "bytes_out"] {
        assert!(column(name).into_iter().any(|it| it > 0), "{name}");
    }
    for part in ["input", "simulation", "output", "period"] {
        let ends = ["start", "end"].map(|end| column(&format!("{part}_{end}")));
        let taken = ends[0].iter().zip(&ends[1]).filter(|entry| *entry.0 > 0 && *entry.1 > 0);
        assert!(taken.clone().count() > 10 && taken.clone().all(|it| it.0 <= it.1), "{part}");
    }
}

#[test]
fn python() {
    if !available("make") || !crate::fixtures::python::has_headers() {
        return;
    }
    let bench = Bench::new();
    copy(&root().join("examples/python"), &bench.path("python"));
    run(bench
        .command("make")
        .args(["-C", "python", &format!("PPTC={PPTC}")])
        .env_remove("MAKEFLAGS"));
    let mut command = bench.command("python3");
    command.args(["python/server.py", "0"]);
    let target = Target::spawn(command);
    let port: u16 = target.stdout.wait_for("port ").parse().unwrap();
    let get = |path: &str| {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(socket, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get("/before").contains("404"));
    let attach = bench.attach(&target, &[]);
    assert!(get("/").ends_with("hello\n"));
    assert!(get("/a/page/that/is/not/there/at/all").contains("404"));
    drop(target);
    attach.ended(0);
    Account::of(&bench.info("out.bin")).check(2);
    let table = bench.table("out.bin", &[]);
    assert_eq!(table.cells("method"), ["GET", "GET"]);
    assert_eq!(table.numbers("status"), [200, 404]);
    assert_eq!(table.numbers("bytes"), [6, 13]);
    assert_eq!(table.cells("path"), ["/", "/a/page/that/is/not/there/at/all"]);
}

/// Workers of Python's multiprocessing are killed while they serve, and are replaced.
#[test]
fn python_workers() {
    if !available("make") || !crate::fixtures::python::has_headers() {
        return;
    }
    let bench = Bench::new();
    copy(&root().join("examples/python"), &bench.path("python"));
    run(bench
        .command("make")
        .args(["-C", "python", &format!("PPTC={PPTC}")])
        .env_remove("MAKEFLAGS"));
    let mut command = bench.command(ppt());
    command.args(["run", "-q", "--", "python3", "python/workers.py", "0", "3"]);
    let (mut target, stderr) = Target::spawn_loud(command);
    let port: u16 = target.stdout.wait_for("port ").parse().unwrap();
    let mut answers = 0;
    let mut get = || {
        // A killed worker sends no answer.
        let mut answer = String::new();
        let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) else { return };
        let asked = socket.write_all(b"GET / HTTP/1.0\r\n\r\n");
        let _ = asked.and_then(|()| socket.read_to_string(&mut answer).map(|_| ()));
        answers += u64::from(answer.ends_with("hello\n"));
    };
    let master = crate::fixtures::support::child_of(target.pid());
    for _ in 0..5 {
        (0..100).for_each(|_| get());
        let workers = std::fs::read_to_string(format!("/proc/{master}/task/{master}/children"));
        let workers = workers.unwrap();
        let last = workers.split_whitespace().next_back();
        if let Some(pid) = last.and_then(|last| last.parse().ok()) {
            // SAFETY: no pointers; a worker is not waited for before it has ended.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
    (0..100).for_each(|_| get());
    // SAFETY: no pointers; the process lives until it is told to end.
    unsafe { libc::kill(master.cast_signed(), libc::SIGTERM) };
    let said = target.stdout.wait_for("workers ");
    assert!(target.wait().success(), "{}", stderr.rest());
    let numbers: Vec<u64> = said.split(' ').filter_map(|piece| piece.parse().ok()).collect();
    let [workers, begun, done] = numbers.try_into().unwrap();
    let account = Account::of(&bench.info("out.bin"));
    assert!((done..=begun).contains(&account.captured), "{done} of {begun}: {account:?}");
    assert_eq!((account.lost, account.dropped), (0, 0));
    assert!(workers > 3 && answers >= 500 && begun >= answers - workers, "{said}: {answers}");
}

#[test]
fn cargo() {
    let bench = Bench::new();
    // Kept between runs, as cargo keeps what it built.
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("example-cargo");
    let example = root().join("examples/cargo");
    copy(&example, &project);
    let manifest = fs::read_to_string(example.join("Cargo.toml")).unwrap();
    let rooted = manifest.replace("../..", root().to_str().unwrap());
    assert_ne!(manifest, rooted);
    fs::write(project.join("Cargo.toml"), rooted).unwrap();
    // The versions of the workspace, so that nothing is downloaded.
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--release", "--offline"]).current_dir(&project);
    command.env_remove("RUSTFLAGS").env("CARGO_TARGET_DIR", target_folder());
    run(&mut command);
    lines(&bench, target_folder().join("release/lines"), false);
}
