//! Rust targets, built by cargo like a user's project: the contract's program, every type, forks,
//! libraries, and the compiled code.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::process::Command;

use crate::fixtures::rust::{cargo, plugin, programs, project, target_folder};
use crate::fixtures::support::{Account, Bench, Kind, Target, of_both_kinds, text};
use crate::fixtures::values;

fn start(bench: &Bench, program: &str, args: &[&str]) -> Target {
    let mut command = bench.command(programs().join(program));
    command.args(args);
    Target::start(command)
}

of_both_kinds! {
    the_contracts_program
    a_forked_child_is_off
}

fn the_contracts_program(kind: Kind) {
    let bench = Bench::new().of(kind);
    let mut target = start(&bench, "contract", &["1000"]);
    let attach = bench.attach(&target, &["-v"]);
    let written = target.run();
    let stderr = attach.stop();
    target.finish();
    assert!(stderr.contains("scan"), "statics are private: {stderr}");
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!((account.captured, written), (3006, 3006));

    let jobs = bench.table("out.bin", &["-b", "job", "--frame", "job"]);
    let (who, kind) = (jobs.numbers("who"), jobs.cells("kind"));
    let (name, bytes) = (jobs.cells("name"), jobs.numbers("bytes"));
    let (start, end) = (jobs.numbers_or_0("handle_start"), jobs.numbers_or_0("handle_end"));
    for user in 0..1000 {
        // The order in a ring is that of the writes: the scope's frame comes last.
        let row = user * 3;
        assert_eq!(who[row..row + 3], [user as i64; 3]);
        assert_eq!(kind[row..row + 3], ["LOGIN", "UPDATE", "TIMEOUT"]);
        assert_eq!(name[row..row + 3], ["rust", "größer als sec", ""]);
        assert_eq!(bytes[row..row + 3], [0, 3, 0]);
        assert_eq!((start[row], end[row], start[row + 1]), (0, 0, 0), "not taken");
        assert!(0 < start[row + 2] && start[row + 2] <= end[row + 2]);
        assert!(user == 0 || end[row - 1] <= start[row + 2]);
    }
    assert_eq!(jobs.cells("pos_2")[..3], ["-1.0", "0.0", "0.0"]);
    // Left early, left at the end, left by a panic.
    assert_eq!(who[3000..], [1, 2, -7]);
    assert_eq!(bytes[3000..], [8, 7, 0]);
    assert!((3000..3003).all(|row| 0 < start[row] && start[row] <= end[row]));

    let logins = bench.table("out.bin", &["--frame", "login"]);
    assert_eq!(logins.numbers("who"), [5, 6, 7]);
    assert_eq!(logins.numbers("in_"), [1, 1, 0], "kept by the macro form alone");
    let when = logins.numbers_or_0("when");
    assert!(when[0] > 0 && when[1] == when[0] && when[2] == 0, "{when:?}");
}

#[test]
fn every_type_from_one_thread() {
    let bench = Bench::new();
    let target = start(&bench, "values", &["1", "15000"]);
    values::check(&bench, target, 1, 15_000);
}

#[test]
fn every_type_from_eight_threads() {
    let bench = Bench::new();
    let target = start(&bench, "values", &["8", &values::MANY.to_string()]);
    values::check(&bench, target, 8, values::MANY);
}

fn a_forked_child_is_off(kind: Kind) {
    let bench = Bench::new().of(kind);
    let mut target = start(&bench, "fork", &[]);
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured, 2);
    assert_eq!(bench.table("out.bin", &["--frame", "login"]).numbers("who"), [1, 2]);
}

#[test]
fn two_crates_of_one_frame_file_are_two_buffers() {
    let bench = Bench::new();
    let mut target = start(&bench, "twins", &[]);
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let names =
        info["buffers"].as_array().unwrap().iter().map(|value| value["name"].as_str().unwrap());
    assert_eq!(names.filter(|it| it.starts_with("job")).count(), 2, "{info}");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, 303);
    // A hundred consecutive threads gave their rings back.
    for buffer in info["buffers"].as_array().unwrap() {
        let rings: BTreeSet<_> = buffer["rings"].as_array().unwrap().iter().collect_rings();
        assert!(rings.iter().all(|&ring| ring == 0), "{buffer}");
    }
}

trait CollectRings {
    fn collect_rings(self) -> BTreeSet<u64>;
}

impl<'a, I: Iterator<Item = &'a serde_json::Value>> CollectRings for I {
    /// The rings that hold frames.
    fn collect_rings(self) -> BTreeSet<u64> {
        self.filter(|value| value["frames"] != 0)
            .map(|value| value["ring"].as_u64().unwrap())
            .collect()
    }
}

#[test]
fn a_library_is_unloaded_while_its_thread_goes_on() {
    let bench = Bench::new();
    let mut target = start(&bench, "host", &[plugin().to_str().unwrap()]);
    let attach = bench.attach(&target, &["-b", "clocks"]);
    target.run();
    let stderr = attach.ended(0);
    assert!(stderr.contains("its library was unloaded"), "{stderr}");
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    // The library's memory was unmapped before the last drain; the drained frames are intact.
    assert!(account.captured + account.lost <= 1000, "{account:?}");
}

#[test]
fn generated_code_is_free_of_clippys_complaints() {
    programs();
    let output = cargo(&project(), &["clippy", "--workspace", "--release", "--", "-D", "warnings"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The errors of a build script are reported as such.
#[test]
fn mistakes_of_a_build_script() {
    let bench = Bench::new();
    programs();
    let project = project();
    let folder = project.join("app");
    let compile = |files: &[&str]| {
        // The build script itself, run as cargo would, with other files.
        let script = format!(
            "fn main() {{ for file in {files:?} {{ ppt_codegen::compile(file).unwrap(); }} }}"
        );
        let broken = bench.path("broken");
        fs::create_dir_all(broken.join("src")).unwrap();
        fs::create_dir_all(broken.join("other")).unwrap();
        fs::write(broken.join("build.rs"), script).unwrap();
        fs::write(broken.join("src/lib.rs"), "").unwrap();
        fs::write(broken.join("good.frame"), "frame good { int who; }").unwrap();
        fs::write(broken.join("other/good.frame"), "buffer b; frame good { int who; }").unwrap();
        fs::write(broken.join("bad.frame"), "frame bad { itn who; }").unwrap();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        fs::write(broken.join("Cargo.toml"), manifest + "[workspace]\n").unwrap();
        fs::copy(project.join("Cargo.lock"), broken.join("Cargo.lock")).unwrap();
        let output = Command::new(env!("CARGO"))
            .args(["build", "--release", "--offline"])
            .current_dir(&broken)
            .env("CARGO_TARGET_DIR", target_folder())
            .output()
            .unwrap();
        (output.status.success(), text(&output.stderr))
    };
    let (built, _) = compile(&["good.frame", "./good.frame"]);
    assert!(built);
    let (built, said) = compile(&["missing.frame"]);
    assert!(!built && said.contains("cannot read missing.frame: No such file"), "{said}");
    let (built, said) = compile(&["good.frame", "other/good.frame"]);
    assert!(!built && said.contains("would both become `good.rs`"), "{said}");
    let (built, said) = compile(&["bad.frame"]);
    assert!(!built && said.contains("error[unknown-type]: unknown type `itn`"), "{said}");
    assert!(said.contains("1 | frame bad { itn who; }") && said.contains("^^^"), "{said}");
}

/// Tasks move between threads, together with their scopes: each frame is complete, and in the ring
/// of the last thread of its task.
#[test]
fn scopes_that_are_held_over_awaits() {
    const THREADS: i64 = 4;
    const TASKS: i64 = 400;
    const STEPS: i64 = 11;
    let bench = Bench::new();
    let numbers = [THREADS, TASKS, STEPS].map(|number| number.to_string());
    let mut target = start(&bench, "tasks", &numbers.each_ref().map(String::as_str));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    // Every second task is dropped half-way.
    let steps = |task: i64| if task % 2 == 1 { STEPS / 2 } else { STEPS };
    assert_eq!(account.captured as i64, TASKS + (0..TASKS).map(steps).sum::<i64>());

    let logins = bench.table("out.bin", &["--frame", "login"]);
    let (who, when) = (logins.numbers("who"), logins.numbers("when"));
    let mut ran: HashMap<i64, Vec<(i64, &str)>> = HashMap::new();
    for ((who, when), tid) in who.into_iter().zip(when).zip(logins.cells("tid")) {
        ran.entry(who).or_default().push((when, tid));
    }
    let jobs = bench.table("out.bin", &["--frame", "job"]);
    let (names, kinds) = (jobs.cells("name"), jobs.cells("kind"));
    let (who, bytes, tids) = (jobs.numbers("who"), jobs.numbers("bytes"), jobs.cells("tid"));
    let (start, end) = (jobs.numbers("handle_start"), jobs.numbers("handle_end"));
    let (mut tasks, mut workers) = (BTreeSet::new(), HashMap::new());
    for row in 0..jobs.rows.len() {
        let task = who[row];
        assert!(tasks.insert(task), "task {task} twice");
        assert_eq!(bytes[row], (1..=steps(task)).sum::<i64>(), "task {task}");
        assert_eq!(kinds[row], if task % 2 == 1 { "TIMEOUT" } else { "LOGIN" });
        let ran = ran.get_mut(&task).unwrap();
        ran.sort_unstable();
        assert_eq!(ran.len() as i64, steps(task));
        assert!(ran.windows(2).all(|it| it[0].1 != it[1].1), "each step elsewhere: {ran:?}");
        let (first, last) = (ran[0].0, ran[ran.len() - 1]);
        assert!(start[row] <= first && last.0 <= end[row], "task {task}");
        assert_eq!(last.1, tids[row], "task {task} is written where it ended");
        assert_eq!(workers.entry(tids[row]).or_insert(names[row]), &names[row], "task {task}");
    }
    assert_eq!((tasks.len() as i64, workers.len() as i64), (TASKS, THREADS));
}

/// A function's instructions, without addresses.
#[cfg(target_arch = "x86_64")]
fn instructions(listing: &str, is_it: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = listing.lines().skip_while(|line| {
        let name = line.split_once('<').and_then(|entry| entry.1.strip_suffix(">:"));
        !name.is_some_and(&is_it)
    });
    let body = lines.skip(1).take_while(|line| !line.is_empty());
    body.filter_map(|line| Some(line.split_once(":\t")?.1.trim().to_owned())).collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_a_compiler_makes_of_it() {
    let program = programs().join("hot");
    let output =
        Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(&program).output().unwrap();
    let listing = text(&output.stdout);
    for function in ["block_form", "block_form_text", "block_form_busy"] {
        let code = instructions(&listing, |name| name == function);
        // Room on the stack is allocated early because of a possible panic in the closure.
        let stack = |text: &String| {
            function == "block_form_busy"
                && (text.starts_with("push") || text.starts_with("pop") || text.ends_with(",%rsp"))
        };
        // When off, that is up to the first return: one load, one test, one branch not taken.
        let off =
            code.iter().take_while(|text| !text.starts_with("ret")).filter(|text| !stack(text));
        let off: Vec<_> = off.collect();
        let [load, test, branch] = off[..] else { panic!("{function}: {code:#?}") };
        assert!(load.starts_with("mov ") && load.contains("(%rip)"), "{function}: {code:#?}");
        assert!(test.starts_with("test "), "{function}: {code:#?}");
        assert!(branch.starts_with("jne "), "{function}: {code:#?}");
    }
    let ours = |name: &str| name.contains("ppt_begin");
    let mut looked_at = 0;
    for (what, code) in [
        ("block_form", instructions(&listing, |name| name == "block_form")),
        ("block_form_text", instructions(&listing, |name| name == "block_form_text")),
        ("block_form_between", instructions(&listing, |name| name == "block_form_between")),
        ("macro_form", instructions(&listing, |name| name == "macro_form")),
        ("begin", instructions(&listing, |name| name.contains("ppt_begin"))),
    ] {
        assert!(!code.is_empty(), "{what} is not there");
        // `begin` has its slow path after the return, called through the GOT.
        let mut returns = 0;
        for word in &code {
            let serialises = ["lock ", "xchg", "mfence", "syscall"];
            let plain = !serialises.iter().any(|bad| word.starts_with(bad));
            assert!(plain || word.starts_with("xchg   %ax,%ax"), "{what}: {word}\n{code:#?}");
            returns += usize::from(word.starts_with("ret"));
            if word.starts_with("call") && !(what == "begin" && returns >= 1) {
                let cold =
                    ["slow", "closure", "_Unwind_Resume", "ppt_busy", "memcpy", "memset", "Text"];
                let fine = ours(word) || cold.iter().any(|name| word.contains(name));
                assert!(fine, "{what}: {word}\n{code:#?}");
                looked_at += 1;
            }
        }
    }
    assert!(looked_at >= 4, "calls are not recognised");
}
