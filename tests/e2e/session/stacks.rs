//! `--stacks`: compares where threads run and wait with the program's own measurements.

use crate::fixtures::explained::explained;
use crate::fixtures::refused::with;
use crate::fixtures::steady::{is_root, may_capture, open_to_nobody, start_as_nobody};
use crate::fixtures::support::{Account, Attach, Bench, Table, Target, available, stopped};

/// Frame pointers are needed: with optimisation, gcc omits those of small functions.
const POINTERS: &[&str] = &["-O0", "-fno-omit-frame-pointer"];
const NO_POINTERS: &[&str] = &["-O1", "-fomit-frame-pointer"];

/// The target as `stacked`, without its own frames.
fn plain(args: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["stacked_main.c"]);
    let all = ["-DPLAIN", "stacked_main.c", "-o", "stacked", "-pthread"];
    bench.cc(&[args, &all].concat());
    bench
}

fn is_permitted() -> bool {
    may_capture("stacks")
}

/// The report of a thread.
#[derive(Debug)]
struct Done {
    thread: i64,
    heavy_ns: f64,
    light_ns: f64,
    waits: usize,
}

fn done(target: &mut Target, what: &str) -> Done {
    target.say(what);
    let line = target.stdout.wait_for("done ");
    let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    let [thread, heavy, light, waits] = numbers[..] else { panic!("{line}") };
    Done { thread, heavy_ns: heavy as f64, light_ns: light as f64, waits: waits as usize }
}

/// A stack of the capture: its thread, what the thread did, and the functions, the innermost first.
struct Stack {
    thread: i64,
    why: String,
    functions: Vec<String>,
}

fn stacks(bench: &Bench) -> Vec<Stack> {
    let table = bench.table("out.bin", &["-b", "stacks", "--frame", "stack"]);
    let [thread, why, depth] = ["thread", "why", "depth"].map(|name| table.column(name));
    let first = first_address(&table);
    let of_row = |row: &Vec<String>| {
        let depth: usize = row[depth].parse().unwrap();
        let names = row[first..first + depth].iter();
        let function = |name: &String| name.split(['+', ' ']).next().unwrap().to_owned();
        Stack {
            thread: row[thread].parse().unwrap(),
            why: row[why].clone(),
            functions: names.map(function).collect(),
        }
    };
    table.rows.iter().map(of_row).collect()
}

fn first_address(table: &Table) -> usize {
    ["frames[0]", "frames_0", "frames.0"]
        .iter()
        .find_map(|name| table.columns.iter().position(|column| column == name))
        .unwrap_or_else(|| panic!("{:?}", table.columns))
}

/// Checks that the shares of the two functions are those that the thread measured.
#[track_caller]
fn check_shares(stacks: &[Stack], done: &Done, hertz: f64) {
    let of_thread = stacks.iter().filter(|stack| stack.thread == done.thread);
    let ran: Vec<_> = of_thread.filter(|stack| stack.why != "WAITING").collect();
    let inside = |name: &str| {
        let such = |stack: &&&Stack| stack.functions.iter().any(|function| function == name);
        ran.iter().filter(such).count() as f64
    };
    let (heavy, light) = (inside("heavy_work"), inside("light_work"));
    let truth = done.heavy_ns / (done.heavy_ns + done.light_ns);
    let share = heavy / (heavy + light);
    assert!((0.5..0.9).contains(&truth), "{done:?}");
    // Five standard deviations for this number of samples, and the difference of the loops.
    let tolerance = 5.0 * (truth * (1.0 - truth) / (heavy + light)).sqrt() + 0.01;
    assert!((share - truth).abs() < tolerance, "{share} is not {truth} ± {tolerance}: {done:?}");
    // This many per second of CPU time.
    let expected = hertz * (done.heavy_ns + done.light_ns) / 1e9;
    let found = heavy + light;
    assert!((found - expected).abs() < 0.05 * expected + 3.0, "{found} are not {expected}");
}

#[test]
fn shares_are_those_that_the_program_measured() {
    if !is_permitted() {
        return;
    }
    let bench = plain(POINTERS);
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=500"]);
    let main = done(&mut target, "work 1000");
    // It is created after ppt attached.
    let young = done(&mut target, "young 1000");
    let stderr = attach.stop();
    assert!(!stderr.contains("frame pointers"), "{stderr}");
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.lost, account.dropped), (0, 0), "{stderr}");
    let stacks = stacks(&bench);
    for thread in [&main, &young] {
        check_shares(&stacks, thread, 500.0);
    }
    // From the innermost function to the outermost one.
    let chain = |thread: i64, outer: &[&str]| {
        let of_thread = stacks.iter().filter(|stack| stack.thread == thread);
        let inner = of_thread.filter(|stack| stack.functions[0] == "heavy_work");
        let all: Vec<_> = inner.collect();
        let such = all.iter().filter(|stack| {
            stack.functions.len() > outer.len() && stack.functions[1..=outer.len()] == *outer
        });
        assert!(such.count() * 100 > all.len() * 95, "{:?}", all[0].functions);
    };
    chain(main.thread, &["work", "main"]);
    chain(young.thread, &["work", "begin"]);
    // The capture states how they were taken.
    let table = bench.table("out.bin", &["-b", "stacks", "--frame", "sampling"]);
    assert_eq!((table.numbers("hertz"), table.cells("waits")), (vec![500], vec!["0"]));
}

#[test]
fn where_threads_wait_is_known() {
    const WAITS: usize = 300;
    if !is_permitted() || !is_root() {
        return;
    }
    let bench = plain(POINTERS);
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=waits"]);
    let young = done(&mut target, &format!("wait {WAITS}"));
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.lost, account.dropped), (0, 0));
    let stacks = stacks(&bench);
    let waits =
        stacks.iter().filter(|stack| stack.thread == young.thread && stack.why == "WAITING");
    let there =
        waits.filter(|wait| wait.functions.starts_with(&["wait_here".into(), "begin".into()]));
    let found = there.count();
    // A timer may expire before its thread has fallen asleep.
    assert!(young.waits <= WAITS + 10 && young.waits > WAITS / 2, "{young:?}");
    assert!(found <= young.waits && found + 10 >= young.waits, "{found} of {young:?}");
}

/// While ppt does not read its rings, the kernel loses stacks. Both the kernel and the capture
/// count them.
#[test]
fn what_the_kernel_lost_is_counted() {
    if !is_permitted() {
        return;
    }
    let bench = plain(POINTERS);
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=1000", "--memory", "256K"]);
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    let main = done(&mut target, "work 3000");
    attach.signal(libc::SIGCONT);
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert!(account.lost > 100 && account.dropped == 0, "{account:?}");
    let found = (stacks(&bench).len() as u64 + account.lost) as f64;
    let expected = (main.heavy_ns + main.light_ns) / 1e6;
    assert!((found - expected).abs() < 0.05 * expected, "{found} are not {expected}: {account:?}");
}

#[test]
fn a_program_without_frame_pointers_is_reported() {
    if !is_permitted() {
        return;
    }
    let bench = plain(NO_POINTERS);
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=500"]);
    let young = done(&mut target, "young 500");
    let stderr = explained(&attach.stop());
    target.finish();
    let pid = target_pid(&stderr);
    let expected = format!("of the stacks of process {pid} end after two functions");
    assert!(stderr.contains(&expected) && stderr.contains("add unwind to --stacks"), "{stderr}");
    // The locations are right nevertheless.
    check_shares(&stacks(&bench), &young, 500.0);
}

/// Unwind tables show the callers of a function in a program without frame pointers.
#[test]
fn callers_are_found_without_frame_pointers() {
    if !is_permitted() {
        return;
    }
    let bench = plain(NO_POINTERS);
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=500,unwind"]);
    let main = done(&mut target, "work 500");
    let young = done(&mut target, "young 500");
    let stderr = attach.stop();
    target.finish();
    assert!(!stderr.contains("frame pointers"), "{stderr}");
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.lost, account.dropped), (0, 0), "{stderr}");
    let stacks = stacks(&bench);
    for (done, outer) in [(main, ["work", "main"]), (young, ["work", "begin"])] {
        check_shares(&stacks, &done, 500.0);
        let inner = |stack: &&Stack| {
            stack.thread == done.thread
                && ["heavy_work", "light_work"].contains(&stack.functions[0].as_str())
        };
        let all: Vec<_> = stacks.iter().filter(inner).collect();
        let whole = |stack: &&&Stack| stack.functions.get(1..3).is_some_and(|found| found == outer);
        let found = all.iter().filter(whole).count();
        assert!(found * 100 > all.len() * 99, "{found} of {}: {:?}", all.len(), all[0].functions);
    }
    let table = bench.table("out.bin", &["-b", "stacks", "--frame", "sampling"]);
    assert_eq!(table.cells("unwound"), ["1"]);
}

/// They also show the callers of threads that wait, below functions of libraries.
#[test]
fn where_threads_wait_is_known_without_frame_pointers() {
    if !is_permitted() || !is_root() {
        return;
    }
    let bench = plain(NO_POINTERS);
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=waits,unwind"]);
    let young = done(&mut target, "wait 300");
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.lost, account.dropped), (0, 0));
    let stacks = stacks(&bench);
    let such = stacks.iter().filter(|stack| stack.thread == young.thread && stack.why == "WAITING");
    let waits: Vec<_> = such.collect();
    let whole = |stack: &&&Stack| {
        let at = stack.functions.iter().position(|name| name == "wait_here");
        at.is_some_and(|at| stack.functions.get(at + 1).is_some_and(|name| name == "begin"))
    };
    let found = waits.iter().filter(whole).count();
    assert!(found <= young.waits && found + 10 >= young.waits, "{found} of {young:?}");
}

/// A program and libraries of Debian's, which were built without frame pointers, before and after it
/// loads another library.
#[test]
fn stacks_of_programs_of_others_reach_main() {
    if !is_permitted() || !available("python3") {
        return;
    }
    let bench = Bench::new();
    let program = "import sys, time\n\
                   def spin(work):\n \
                       end = time.process_time() + 0.7\n \
                       while time.process_time() < end: work()\n\
                   print('ready', flush=True)\n\
                   sys.stdin.readline()\n\
                   spin(lambda: sorted(range(2000), key=lambda number: -number))\n\
                   import zlib\n\
                   print('loaded', flush=True)\n\
                   sys.stdin.readline()\n\
                   spin(lambda: zlib.compress(b'some text' * 3000))\n\
                   print('done', flush=True)\n\
                   sys.stdin.readline()\n";
    let mut command = bench.command("python3");
    command.args(["-S", "-c", program]);
    let mut target = Target::spawn(command);
    target.stdout.wait_for("ready");
    let attach = bench.attach(&target, &["--stacks=500,unwind"]);
    target.say("go");
    target.stdout.wait_for("loaded");
    // ppt looks once a second for what a process has mapped.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    target.say("go");
    target.stdout.wait_for("done");
    let said = attach.stop();
    target.finish();
    assert!(!said.contains("end after two functions"), "{said}");
    let all = stacks(&bench);
    let ran: Vec<_> = all.iter().filter(|stack| stack.why == "RUNNING").collect();
    assert!(ran.len() > 200, "{}", ran.len());
    let whole = ran.iter().filter(|stack| stack.functions.len() > 5).count();
    assert!(whole * 100 > ran.len() * 95, "{whole} of {}", ran.len());
    let deflating = |stack: &&&Stack| stack.functions.iter().any(|name| name.contains("compress"));
    assert!(ran.iter().filter(deflating).count() > 20, "{:?}", ran[ran.len() - 1].functions);
}

#[test]
fn a_program_without_unwind_tables_is_reported() {
    if !is_permitted() {
        return;
    }
    let tables = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let bench = plain(&[NO_POINTERS, &tables].concat());
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=500,unwind"]);
    let young = done(&mut target, "young 500");
    let stderr = explained(&attach.stop());
    target.finish();
    assert!(stderr.contains("the code where they end has no unwind tables"), "{stderr}");
    check_shares(&stacks(&bench), &young, 500.0);
}

fn target_pid(said: &str) -> String {
    let rest = said.split("stacks of process ").nth(1).unwrap_or_else(|| panic!("{said}"));
    rest.split(' ').next().unwrap().to_owned()
}

/// Stacks of the user's own programs need no privileges; kernel stacks and waits do.
#[test]
fn without_rights_the_rest_is_captured() {
    if !is_permitted() || !is_root() || !available("setpriv") {
        return;
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or("0".into());
    if paranoid.trim() != "2" || scope.trim() != "0" {
        eprintln!("skipped: perf_event_paranoid is {paranoid}, ptrace_scope {scope}");
        return;
    }
    let bench = crate::fixtures::steady::build(&[]);
    open_to_nobody(&bench);
    std::fs::create_dir(bench.path("ours")).unwrap();
    std::os::unix::fs::chown(bench.path("ours"), Some(65534), Some(65534)).unwrap();
    let mut target = start_as_nobody(&bench);
    let mut command = with(&bench, "-all");
    command.args(["attach", &target.pid().to_string(), "-o", "ours/out.bin"]);
    command.args(["--stacks=1000,waits"]);
    let attach = Attach::start(command);
    target.say("burst 3000000");
    target.written();
    let said = explained(&attach.stop());
    let denied = |what| {
        format!(
            "the kernel does not let ppt capture {what}: kernel.perf_event_paranoid is 2, and ppt has \
             no CAP_PERFMON"
        )
    };
    assert!(said.contains(&denied("stacks of waits")), "{said}");
    assert!(said.contains(&denied("stacks while the kernel works for the program")), "{said}");
    target.finish();
    let table = bench.table("ours/out.bin", &["-b", "stacks", "--frame", "stack"]);
    let whys = table.cells("why");
    assert!(!whys.is_empty() && whys.iter().all(|why| *why == "RUNNING"), "{whys:?}");
}

#[test]
fn an_invalid_option_is_reported() {
    let bench = Bench::new();
    for word in ["0", "1001", "fast", "99,naps", "waits,99", ""] {
        let ran = bench.ppt(&["attach", "1", &format!("--stacks={word}")]);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("--stacks") && ran.stderr.contains("1000"), "{ran:?}");
    }
}

/// A job of the target, with the stacks of its thread during the job: thread, duration, and
/// functions of each stack.
struct SampledJob {
    dur: i64,
    stacks: Vec<Vec<String>>,
}

/// All jobs, the longest first, from `ppt dump`.
fn jobs(bench: &Bench, thread: i64) -> Vec<SampledJob> {
    let stacks = bench.table("out.bin", &["-b", "stacks", "--frame", "stack"]);
    let [at, of_thread, depth] = ["at", "thread", "depth"].map(|name| stacks.column(name));
    let first = first_address(&stacks);
    let table = bench.table("out.bin", &["-b", "stacked"]);
    let (starts, ends) = (table.numbers("work_start"), table.numbers("work_end"));
    let job = |(start, end): (&i64, &i64)| {
        let is_in = |row: &&Vec<String>| {
            let time: i64 = row[at].parse().unwrap();
            row[of_thread] == thread.to_string() && (*start..=*end).contains(&time)
        };
        let functions = |row: &Vec<String>| {
            let depth: usize = row[depth].parse().unwrap();
            let names = row[first..first + depth].iter();
            names.map(|name| name.split(['+', ' ']).next().unwrap().to_owned()).collect()
        };
        let stacks = stacks.rows.iter().filter(is_in).map(functions).collect();
        SampledJob { dur: end - start, stacks }
    };
    let mut all: Vec<_> = starts.iter().zip(&ends).map(job).collect();
    all.sort_by_key(|job| -job.dur);
    all
}

/// Number of stacks of a flame graph in a function, according to its titles.
fn in_flame(svg: &str, function: &str) -> u64 {
    let titles = svg.split("<title>").skip(1).map(|rest| rest.split("</title>").next().unwrap());
    let begin = format!("{function} (stacked): ");
    let counts = titles.filter_map(|title| title.strip_prefix(&begin)?.split(", ").next());
    counts.map(|count| count.replace(',', "").parse::<u64>().unwrap()).sum()
}

#[test]
fn slow_requests_have_functions() {
    if !is_permitted() {
        return;
    }
    let bench = Bench::new();
    bench.copy_all(&["stacked.frame", "stacked_main.c"]);
    bench.pptc(&["stacked.frame"]);
    let all = ["stacked_main.c", "stacked.c", "-o", "stacked", "-pthread"];
    bench.cc(&[POINTERS, &all].concat());
    let mut target = bench.start("stacked", &[]);
    let attach = bench.attach(&target, &["--stacks=1000", "--kernel", "sched"]);
    let main = done(&mut target, "work 700");
    attach.stop();
    target.finish();
    let jobs = jobs(&bench, main.thread);
    assert!(jobs.len() > 20, "{}", jobs.len());
    let count = |jobs: &[SampledJob], function: &str| {
        let stacks = jobs.iter().flat_map(|job| &job.stacks);
        stacks.filter(|stack| stack.iter().any(|name| name == function)).count() as u64
    };

    let args = ["why", "out.bin", "--frame", "job", "--slowest", "1000", "--format", "json"];
    let ran = bench.ppt(&args);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let told: Vec<serde_json::Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told.len(), jobs.len());
    for (slow, job) in told.iter().zip(&jobs) {
        assert_eq!(slow["dur"], job.dur);
        let parts = slow["parts"].as_array().unwrap();
        let running = parts.iter().find(|part| part["part"] == "running").unwrap();
        let stacks = &running["stacks"];
        assert_eq!(stacks["count"], job.stacks.len(), "{slow}");
        let inner = |name: &str| {
            job.stacks
                .iter()
                .filter(|stack| stack.first().is_some_and(|stack| stack == name))
                .count()
        };
        for function in stacks["functions"].as_array().unwrap() {
            let name = function["function"].as_str().unwrap().split(' ').next().unwrap();
            assert_eq!(function["stacks"], inner(name), "{name}: {slow}");
        }
        // On a busy machine, it waited for a CPU most of the time, and only that is reported.
        let sentence = slow["sentence"].as_str().unwrap();
        let is_told = !sentence.contains("ran for ") || sentence.contains("% in heavy_work");
        assert!(is_told || job.stacks.len() < 5 || inner("heavy_work") == 0, "{slow}");
    }
    assert!(count(&jobs, "heavy_work") > 100);
    let ran = bench.ppt(&["why", "out.bin", "--frame", "job", "--summary", "--format", "text"]);
    let is_told = ran.stdout.contains("While they ran, of ") && ran.stdout.contains("heavy_work");
    // The slowest one waited for a CPU instead, on a busy machine.
    assert!(is_told || jobs[0].stacks.len() < 5, "{}", ran.stdout);

    let flame = |args: &[&str]| {
        let base = ["plot", "out.bin", "--flame", "-o", "flame.svg", "--force"];
        let ran = bench.ppt(&[&base, args].concat());
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        std::fs::read_to_string(bench.path("flame.svg")).unwrap()
    };
    let all: u64 = stacks(&bench)
        .iter()
        .filter(|stack| stack.functions.iter().any(|name| name == "heavy_work"))
        .count() as u64;
    assert_eq!(in_flame(&flame(&[]), "heavy_work"), all);
    let svg = flame(&["--frame", "job", "--slowest", "5"]);
    assert_eq!(in_flame(&svg, "heavy_work"), all, "inside and others are all");
    let (inside, others) = svg.split_once(" other stacks").unwrap();
    assert!(inside.contains(" in the 5 slowest job"), "{inside}");
    assert_eq!(in_flame(inside, "heavy_work"), count(&jobs[..5], "heavy_work"));
    assert!(in_flame(others, "heavy_work") > 0);

    // No selected thread waited.
    let ran = bench.ppt(&["plot", "out.bin", "--flame", "--waits", "-o", "waits.svg"]);
    assert_eq!(ran.code(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("the captures have no stacks"), "{}", ran.stderr);
}
