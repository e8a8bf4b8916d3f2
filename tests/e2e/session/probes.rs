//! `--probe`: compares calls of functions and hits of USDT probes with the program's own counts.

use std::os::unix::fs::FileExt;

use crate::fixtures::explained::explained;
use crate::fixtures::postgresql::PostgreSql;
use crate::fixtures::refused::with;
use crate::fixtures::steady::{is_root, may_capture, open_to_nobody, start_as_nobody};
use crate::fixtures::support::{
    Account, Attach, Bench, Table, Target, available, copy_program, ppt, stopped, text, wait_until,
};

fn is_permitted() -> bool {
    may_capture("probes") && is_root()
}

fn built() -> Bench {
    let bench = Bench::new();
    bench.copy("probed_main.c");
    // The recursion in `descend` must not become a loop.
    bench.cc(&["-O1", "-fno-optimize-sibling-calls", "probed_main.c", "-o", "probed", "-pthread"]);
    bench
}

fn done(target: &mut Target, what: &str) -> i64 {
    target.say(what);
    target.stdout.wait_for("done ").parse().unwrap()
}

fn frames(bench: &Bench, name: &str) -> Table {
    bench.table("out.bin", &["-b", "probes", "--frame", name])
}

/// The number of frames that the capture accounts for, without losses.
#[track_caller]
fn whole(bench: &Bench, said: &str) -> u64 {
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.lost, account.dropped), (0, 0), "{said}");
    account.captured
}

#[test]
fn each_call_has_a_frame() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let attach = bench.attach(&target, &["--probe", "measured"]);
    // The second thread is created after ppt attached.
    let sums = [done(&mut target, "calls 300"), done(&mut target, "young 200")];
    let stderr = attach.stop();
    target.finish();
    assert_eq!(whole(&bench, &stderr), 500, "{stderr}");
    let table = frames(&bench, "measured");
    let [a, b, c, d, e, f, returned] =
        ["a", "b", "c", "d", "e", "f", "returned"].map(|name| table.cells(name));
    // The table has unsigned numbers.
    let signed = |cell: &str| cell.parse::<u64>().unwrap() as i64;
    for row in 0..500 {
        let number = if row < 300 { row } else { row - 300 } as i64;
        let found = [a[row], b[row], c[row], d[row], e[row], f[row], returned[row]].map(signed);
        assert_eq!(found, [number, -number, 3, 4, 5, -6, 6], "call {row}");
    }
    assert_eq!(sums, [300 * 6, 200 * 6]);
    let threads = table.numbers("thread");
    let (main, young) = (i64::from(target_pid(&threads)), threads[300]);
    assert!(threads[..300].iter().all(|&thread| thread == main), "{threads:?}");
    assert!(young != main && threads[300..].iter().all(|&thread| thread == young));
    assert_eq!(table.numbers("tid"), threads, "each is a frame of its thread");
    let (starts, ends) = (table.numbers("call_start"), table.numbers("call_end"));
    assert!(starts.iter().zip(&ends).all(|(start, end)| start < end));
    assert!(ends[..300].is_sorted(), "of a thread, they come in their order");
    let from = table.cells("from");
    assert!(from.iter().all(|name| name.starts_with("called+")), "{from:?}");
}

fn target_pid(threads: &[i64]) -> i32 {
    i32::try_from(threads[0]).unwrap()
}

#[test]
fn returns_are_those_of_their_calls() {
    const DEPTH: i64 = 50;
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let attach = bench.attach(&target, &["--probe", "descend", "--probe", "leap"]);
    assert_eq!(done(&mut target, &format!("deep {DEPTH}")), DEPTH * (DEPTH + 1) / 2);
    assert_eq!(done(&mut target, "jump 101"), 51);
    // A function left by longjmp is known to be left when an outer function returns.
    assert_eq!(done(&mut target, "deep 0"), 0);
    let stderr = attach.stop();
    target.finish();
    let table = frames(&bench, "descend");
    let (depths, returned) = (table.numbers("a"), table.numbers("returned"));
    // The innermost returns first.
    let expected: Vec<i64> = (0..=DEPTH).chain([0]).collect();
    assert_eq!(depths, expected);
    assert!(depths.iter().zip(&returned).all(|(depth, sum)| *sum == depth * (depth + 1) / 2));
    let (starts, ends) = (table.numbers("call_start"), table.numbers("call_end"));
    for depth in 1..=DEPTH as usize {
        assert!(starts[depth] < starts[depth - 1] && ends[depth - 1] < ends[depth], "{depth}");
    }
    let table = frames(&bench, "leap");
    let expected: Vec<i64> = (0..101).filter(|number| number % 2 == 0).collect();
    assert_eq!((table.numbers("a"), table.numbers("returned")), (expected.clone(), expected));
    assert!(stderr.contains("50 calls of probed functions never returned"), "{stderr}");
    assert_eq!(whole(&bench, &stderr), DEPTH as u64 + 2 + 51);
}

/// A ring remembers four owners, and there are fewer rings than threads.
#[test]
fn threads_that_come_and_go_have_their_frames() {
    const THREADS: usize = 600;
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let attach = bench.attach(&target, &["--probe", "measured"]);
    for _ in 0..THREADS {
        assert_eq!(done(&mut target, "young 2"), 12);
    }
    let stderr = attach.stop();
    target.finish();
    assert_eq!(whole(&bench, &stderr), 2 * THREADS as u64, "{stderr}");
    let table = frames(&bench, "measured");
    assert_eq!(table.numbers("tid"), table.numbers("thread"));
}

#[test]
fn a_call_that_goes_on_is_counted() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let attach = bench.attach(&target, &["--probe", "measured_later", "--probe", "measured"]);
    done(&mut target, "open");
    done(&mut target, "calls 1");
    // The other thread is in its function once its loop sleeps.
    let pid = target.pid();
    let sleeps = |tid: &str| {
        let wchan = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"));
        wchan.is_ok_and(|call| call.starts_with("230 "))
    };
    wait_until("the thread sleeps", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        tasks.filter_map(|task| task.file_name().into_string().ok()).any(|tid| sleeps(&tid))
    });
    let stderr = attach.stop();
    target.finish();
    assert!(stderr.contains("1 calls of probed functions had not returned at the end"), "{stderr}");
    assert_eq!(whole(&bench, &stderr), 1);
}

#[test]
fn usdt_probes_have_their_arguments() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let pid = target.pid().to_string();
    let ran = bench.ppt(&["attach", &pid, "--probe", "list"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let rows: Vec<Vec<&str>> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["PROBE", "SEMAPHORE", "FILE", "ARGUMENTS"]);
    let names: Vec<_> = rows[1..].iter().map(|row| (row[0], row[1])).collect();
    // Two locations with different registers each have a row.
    let (hit, never) = (("probed:mark__hit", "yes"), ("probed:mark__never", "yes"));
    assert!(names == [hit, hit, never] || names == [hit, never], "{}", ran.stdout);

    assert_eq!(done(&mut target, "semaphore"), 0);
    let attach = bench.attach(&target, &["--probe", "probed:*"]);
    assert!(done(&mut target, "semaphore") > 0, "the program knows that somebody listens");
    assert_eq!(done(&mut target, "marks 400"), 400);
    let said = explained(&attach.stop());
    assert_eq!(done(&mut target, "semaphore"), 0, "nobody listens any more");
    target.finish();
    assert!(said.contains("probed:mark__hit: frames leave out argument 4"), "{said}");
    assert_eq!(whole(&bench, &said), 400);
    let table = frames(&bench, "probed_mark_hit");
    let of_numbers = |make: fn(i64) -> i64| (0..400).map(make).collect::<Vec<_>>();
    assert_eq!(table.numbers("arg1"), of_numbers(|number| -number));
    assert_eq!(table.numbers("arg2"), of_numbers(|number| 3 * number));
    assert_eq!(table.numbers("arg3"), of_numbers(|_| 7));
    assert!(!table.columns.iter().any(|column| column == "arg4"), "{:?}", table.columns);
}

#[test]
fn a_hot_probe_is_stopped_and_the_account_stays_exact() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let args = ["--probe", "measured", "--probe", "descend", "--probe-limit", "5000"];
    let attach = bench.attach(&target, &args);
    let before = done(&mut target, "text");
    // Long enough that ppt looks while the probe is hit.
    let mut called = 0;
    while done(&mut target, "text") == before {
        done(&mut target, "calls 2000");
        called += 2000;
    }
    assert_eq!(done(&mut target, "deep 3"), 6, "the other probe goes on");
    let stderr = explained(&attach.stop());
    let pid = target.pid();
    target.finish();
    let expected = format!(
        "measured: hit more than 5,000 times in a second, so ppt has stopped this probe of process {pid}"
    );
    assert!(stderr.contains(&expected) && !stderr.contains("descend: hit"), "{stderr}");
    assert_eq!(frames(&bench, "descend").rows.len(), 4);
    let found = frames(&bench, "measured").rows.len() as u64;
    let account = Account::of(&bench.info("out.bin"));
    assert!(found > 0 && found + account.lost <= 2 * called, "{found} of {called}: {account:?}");
    assert_eq!((account.captured, account.dropped), (found + 4, 0));
}

/// While ppt does not read its rings, the kernel loses hits. Both the kernel and the capture count
/// them.
#[test]
fn what_the_kernel_lost_is_counted() {
    const HITS: u64 = 20_000;
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let args = ["--probe", "probed:mark__hit", "--memory", "256K", "--probe-limit", "1000000"];
    let attach = bench.attach(&target, &args);
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    assert_eq!(done(&mut target, &format!("marks {HITS}")), HITS as i64);
    attach.signal(libc::SIGCONT);
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert!(account.lost > 1000, "{account:?}");
    account.check(HITS);
}

#[test]
fn killed_it_leaves_nothing() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let before = done(&mut target, "text");
    let attach = bench.attach(&target, &["--probe", "measured", "--probe", "probed:mark__hit"]);
    assert_ne!(done(&mut target, "text"), before, "a trap is there");
    assert_eq!(done(&mut target, "calls 10"), 60);
    attach.kill();
    wait_until("the trap is gone", || done(&mut target, "text") == before);
    assert_eq!(done(&mut target, "semaphore"), 0);
    assert_eq!(done(&mut target, "calls 10"), 60);
    // Killed before a probed function has returned.
    let attach = bench.attach(&target, &["--probe", "measured_later", "-o", "second.bin"]);
    done(&mut target, "open");
    attach.kill();
    assert_eq!(done(&mut target, "young 10"), 60);
    target.finish();
}

#[test]
fn a_deleted_program_can_be_probed() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    std::fs::remove_file(bench.path("probed")).unwrap();
    // Another program has its name.
    copy_program("/bin/true", bench.path("probed"));
    let attach = bench.attach(&target, &["--probe", "measured"]);
    done(&mut target, "calls 7");
    let stderr = attach.stop();
    target.finish();
    assert_eq!(whole(&bench, &stderr), 7);
}

/// An exception that passes the kernel's return probe ends the program, so ppt omits the probe.
#[test]
fn exceptions_are_survived() {
    if !is_permitted() || !available("g++") {
        return;
    }
    let bench = Bench::new();
    bench.copy("throwing_main.cpp");
    bench.compile("g++", &["-O1", "throwing_main.cpp", "-o", "throwing"]);
    let mut target = bench.start("throwing", &[]);
    let attach = bench.attach(&target, &["--probe", "between"]);
    target.say("throw");
    assert_eq!(target.stdout.wait_for("caught "), "7");
    assert_eq!(done(&mut target, "return"), 1);
    let stderr = explained(&attach.stop());
    assert!(stderr.contains("between: frames show only its entry"), "{stderr}");
    assert_eq!(whole(&bench, &stderr), 2);
    assert_eq!(frames(&bench, "between").numbers("a"), [1, 0]);
    // The user can force return probes.
    let attach = bench.attach(
        &target,
        &["--probe", "between", "--allow", "probe-returns", "-o", "out.bin", "--force"],
    );
    assert_eq!(done(&mut target, "return"), 1);
    let stderr = attach.stop();
    assert!(!stderr.contains("only of its entry"), "{stderr}");
    target.finish();
    assert_eq!(frames(&bench, "between").numbers("returned"), [1]);
}

/// Other processes that run the code are reported, and leave no frames.
#[test]
fn another_process_leaves_no_frames() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let mut other = bench.start("probed", &[]);
    let attach = bench.attach(&target, &["--probe", "measured"]);
    assert_eq!(done(&mut other, "calls 50"), 300);
    assert_eq!(done(&mut target, "calls 20"), 120);
    let stderr = explained(&attach.stop());
    assert!(stderr.contains("another process runs the code that is probed"), "{stderr}");
    target.finish();
    other.finish();
    assert_eq!(whole(&bench, &stderr), 20);
}

#[test]
fn a_name_that_matches_nothing_is_reported() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let target = bench.start("probed", &[]);
    let pid = target.pid().to_string();
    let path = bench.path("probed").to_str().unwrap().to_owned();
    let of_file = format!("{path}:measurd");
    for (name, meant) in [
        ("mesured", "did you mean `measured`?"),
        (of_file.as_str(), "did you mean `measured`?"),
        ("probed:mark_hit", "did you mean `probed:mark__hit`?"),
        // A variable is not a function.
        ("mark_semaphore", "its USDT probes: probed:mark__hit"),
    ] {
        let ran = bench.ppt(&["attach", &pid, "--probe", name]);
        assert_eq!(ran.code(), 2, "{ran:?}");
        let stderr = explained(&ran.stderr);
        assert!(stderr.contains("nothing in the process answers to --probe"), "{stderr}");
        assert!(stderr.contains(meant), "{stderr}");
    }
    assert!(!bench.path("out.bin").exists());
    // The full path, and the file name.
    for name in [format!("{path}:measured"), "probed:measured".into()] {
        let ran = bench.ppt(&["attach", &pid, "--probe", &name, "-d", "10ms", "--force"]);
        assert_eq!(ran.code(), 0, "{name}: {ran:?}");
    }
}

#[test]
fn without_rights_it_is_refused() {
    if !is_permitted() || !available("setpriv") {
        return;
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or("0".into());
    if scope.trim() != "0" {
        eprintln!("skipped: ptrace_scope is {scope}");
        return;
    }
    let bench = crate::fixtures::steady::build(&[]);
    open_to_nobody(&bench);
    std::fs::create_dir(bench.path("ours")).unwrap();
    std::os::unix::fs::chown(bench.path("ours"), Some(65534), Some(65534)).unwrap();
    let mut target = start_as_nobody(&bench);
    let mut command = with(&bench, "-all");
    command.args(["attach", &target.pid().to_string(), "-o", "ours/out.bin", "--probe", "main"]);
    let attach = Attach::start(command);
    target.say("burst 10");
    target.written();
    let stderr = explained(&attach.stop());
    assert!(stderr.contains("the kernel does not let ppt capture probes"), "{stderr}");
    assert!(stderr.contains("whatever kernel.perf_event_paranoid is"), "{stderr}");
    target.finish();
}

/// Unmodified Redis counts its commands.
#[test]
fn redis_processes_as_many_commands_as_it_says() {
    const REQUESTS: u64 = 2000;
    if !is_permitted() || !available("redis-server") || !available("redis-benchmark") {
        return;
    }
    let bench = Bench::new();
    let socket = bench.path("redis.sock").to_str().unwrap().to_owned();
    let mut command = bench.command("redis-server");
    command.args(["--port", "0", "--unixsocket", &socket, "--save", ""]);
    let target = Target::spawn(command);
    wait_until("the server listens", || bench.path("redis.sock").exists());
    let run = |program: &str, args: &[&str]| {
        let output = bench.command(program).args(["-s", &socket]).args(args).output().unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
        text(&output.stdout)
    };
    let commands = || {
        let stats = run("redis-cli", &["info", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = commands();
    let attach = bench.attach(&target, &["--probe", "processCommand", "--probe", "call"]);
    run("redis-benchmark", &["-n", &REQUESTS.to_string(), "-c", "10", "-t", "set,get", "-q"]);
    let after = commands();
    let said = attach.stop();
    whole(&bench, &said);
    // It counts a command once it is done: the last one counts itself later.
    let (table, called) = (frames(&bench, "processCommand"), frames(&bench, "call"));
    assert_eq!(table.rows.len() as u64, after - before, "{said}");
    assert!(table.rows.len() as u64 >= 2 * REQUESTS && called.rows.len() == table.rows.len());
    // 0 is C_OK: the client continues.
    let returned = table.numbers("returned").into_iter().map(|value| value as i32);
    assert!(returned.clone().all(|value| value == 0 || value == -1));
    assert!(returned.filter(|&value| value == 0).count() as u64 >= 2 * REQUESTS);
}

/// Debian's PostgreSQL has USDT probes, and its client counts the answers.
#[test]
fn postgresql_answers_as_many_queries_as_it_is_asked() {
    const QUERIES: usize = 300;
    if !is_permitted() {
        return;
    }
    let bench = Bench::new();
    let Some(database) = PostgreSql::new(&bench) else { return };
    let program = |name: &str| database.program(name);
    let folder = &database.folder;
    let mut command = program("postgres");
    command.args(["-c", "listen_addresses=", "-c", "fsync=off", "-D"]).arg(database.data());
    command.arg("-k").arg(folder).stderr(std::process::Stdio::null());
    let server = Target::spawn(command);
    let is_ready =
        || program("pg_isready").arg("-q").arg("-h").arg(folder).status().unwrap().success();
    wait_until("the server listens", is_ready);

    let mut command = program("psql");
    command.args(["-qAt", "-U", "ppt", "-d", "postgres", "-h"]).arg(folder);
    let mut client = Target::spawn(command);
    client.say("select 'backend ' || pg_backend_pid();");
    let backend = client.stdout.wait_for("backend ");
    let mut command = bench.command(ppt());
    command.args(["attach", &backend, "-o", "out.bin", "--probe", "postgresql:query__*"]);
    command.args(["--probe", "PortalRun"]);
    let attach = Attach::start(command);
    for number in 0..QUERIES {
        client.say(&format!("select 'answer {number}';"));
        assert_eq!(client.stdout.wait_for("answer "), number.to_string());
    }
    let said = explained(&attach.stop());
    client.finish();
    server.signal(libc::SIGINT);
    server.finish();
    assert!(said.contains("other processes run the code that is probed"), "{said}");
    whole(&bench, &said);
    let rows = |name: &str| frames(&bench, name).rows.len();
    for name in ["query_start", "query_parse_start", "query_plan_done", "query_done"] {
        assert_eq!(rows(&format!("postgresql_{name}")), QUERIES, "{name}: {said}");
    }
    let calls = frames(&bench, "PortalRun");
    let (starts, ends) = (calls.numbers("call_start"), calls.numbers("call_end"));
    let planned = frames(&bench, "postgresql_query_execute_start").numbers("at");
    assert_eq!((starts.len(), planned.len()), (QUERIES, QUERIES), "{said}");
    let is_within = |(at, (start, end)): (&i64, (&i64, &i64))| start < at && at < end;
    assert!(planned.iter().zip(starts.iter().zip(&ends)).all(is_within));
}

#[test]
fn a_program_whose_text_can_be_read_has_no_trap_in_its_file() {
    if !is_permitted() {
        return;
    }
    let bench = built();
    let mut target = bench.start("probed", &[]);
    let before = std::fs::read(bench.path("probed")).unwrap();
    let attach = bench.attach(&target, &["--probe", "measured"]);
    done(&mut target, "calls 3");
    let file = std::fs::File::open(bench.path("probed")).unwrap();
    let mut during = vec![0; before.len()];
    file.read_exact_at(&mut during, 0).unwrap();
    attach.stop();
    target.finish();
    assert!(before == during, "only the memory of the process has the trap");
}
