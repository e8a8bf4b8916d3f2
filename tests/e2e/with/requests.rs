//! `ppt run --with net`: compares its requests with the program's own counts.

use std::collections::{HashMap, HashSet};

use crate::fixtures::preloaded::{Requests, exchange};
use crate::fixtures::support::{Bench, Table, Target, ppt, record, segments_of, wait_until};

/// Runs a case of `exchange_main`, and compares everything.
#[track_caller]
fn compare(case: &str, number: usize) {
    let bench = exchange();
    let (said, requests, agent) = run(&bench, case, number);
    requests.check(&said);
    // A signal handler may interrupt the lookup of the connection that it uses.
    assert!(requests.counters["contended"] == 0 || case == "interrupted");
    let account = requests.account;
    let name = format!("--with net: {case}");
    record("-", &name, account.captured, account, &requests.info, segments_of(&[agent]));
}

fn run(bench: &Bench, case: &str, number: usize) -> (HashMap<String, u64>, Requests, u32) {
    let number = number.to_string();
    let args = ["run", "--with", "net", "--", "./exchange", case, &number];
    let (ran, agent) = bench.ppt_and_pid(&args);
    assert_eq!(ran.code(), 0, "{case}: {ran:?}");
    let count = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    let said = ran.stdout.lines().filter_map(count).collect();
    (said, Requests::of(bench, "out.bin"), agent)
}

#[test]
fn of_two_connections() {
    compare("plain", 1000);
}

#[test]
fn by_every_function_that_sends_or_receives() {
    compare("functions", 490);
}

#[test]
fn that_are_looked_at_first() {
    compare("peek", 200);
}

#[test]
fn on_connections_that_are_closed_in_part() {
    compare("half", 100);
}

#[test]
fn that_nobody_answers() {
    compare("reset", 100);
}

#[test]
fn whose_answers_go_out_in_parts() {
    compare("partial", 20);
}

#[test]
fn of_servers_that_speak_first() {
    compare("greeting", 100);
}

#[test]
fn over_paths() {
    compare("paths", 100);
}

#[test]
fn of_descriptors_whose_numbers_are_used_again() {
    compare("numbers", 100);
}

#[test]
fn that_one_thread_reads_and_another_one_answers() {
    compare("threads", 1000);
}

/// The thread that uses a connection next writes the frame of the request before. The frame names the thread that
/// it is about; every reader shows that one.
#[test]
fn of_threads_that_share_connections() {
    let bench = exchange();
    let (said, requests, _) = run(&bench, "shared", 1000);
    requests.check(&said);
    assert_eq!(requests.counters["contended"], 0);
    for (frame, size, log) in [("served", "bytes_in", "taken"), ("called", "bytes_out", "asked")] {
        let table = bench.table("out.bin", &["-b", "net", "--frame", frame]);
        let columns = [size, "tid", "thread"].map(|name| table.column(name));
        let mut threads: HashSet<&str> = HashSet::new();
        for row in &table.rows {
            let [size, tid, thread] = columns.map(|column| row[column].as_str());
            assert_eq!(tid, said[&format!("{log}.{size}")].to_string(), "{frame} of {size} B");
            assert_eq!(tid, thread);
            threads.insert(tid);
        }
        assert_eq!(table.rows.len(), 1000, "{frame}");
        assert!(threads.len() > 1, "the threads took turns: {threads:?}");
        // Without the field, it would be that of the ring, which another thread wrote.
        let of_one = format!("tid = {}", threads.iter().next().unwrap());
        let chosen = bench.table("out.bin", &["-b", "net", "--frame", frame, "--where", &of_one]);
        let expected =
            table.rows.iter().filter(|row| of_one.ends_with(&format!(" {}", row[columns[1]])));
        assert_eq!(chosen.rows.len(), expected.count());
    }
}

#[test]
fn with_children_that_close_everything() {
    compare("children", 100);
}

#[test]
fn with_signals_and_cancelled_threads() {
    compare("interrupted", 2000);
}

/// The filter kills the program if the library asks for the other end of a connection.
#[test]
fn of_programs_that_filter_their_system_calls() {
    for number in [20, 21] {
        let (said, requests, _) = run(&exchange(), "filtered", number);
        requests.check(&said);
        assert_eq!(requests.counters["filtered"], said["filtered"]);
    }
}

/// On a connection that four threads use at once, requests are meaningless. Either bytes are
/// counted, or calls that were not examined.
#[test]
fn of_a_crowd() {
    let bench = exchange();
    let (said, requests, _) = run(&bench, "crowd", 5000);
    let seen: u64 = requests.served.iter().map(|request| request.bytes_in).sum();
    let missed = requests.counters["contended"];
    assert!(seen <= said["bytes_in"] && seen + missed >= said["bytes_in"], "{seen} + {missed}");
    assert_eq!(requests.counters["open"], 0);
}

#[test]
fn that_begin_and_end_in_this_order() {
    let bench = exchange();
    let (_, requests, _) = run(&bench, "plain", 300);
    let mut calls = requests.called.iter();
    for served in &requests.served {
        let called = calls.find(|call| call.bytes_out == served.bytes_in).expect("its other side");
        let times = [called.start, served.start, served.first, called.first, called.end];
        assert!(times.is_sorted(), "{times:?}");
        assert!(served.first <= served.end, "{served:?}");
        assert_eq!((&*served.peer, &*called.peer), ("127.0.0.1", "127.0.0.1"));
        assert_eq!(served.port, called.port);
    }
}

#[test]
fn of_paths_have_their_names() {
    let bench = exchange();
    let (_, requests, _) = run(&bench, "paths", 3);
    let all = requests.served.iter().chain(&requests.called);
    let places: Vec<_> = all.map(|request| (request.peer.as_str(), request.port)).collect();
    assert_eq!(places, [("socket", 0); 6]);
}

/// Its answer has been idle for a second: a call on another connection writes it.
#[test]
fn whose_answer_nothing_ends() {
    let bench = exchange();
    let mut command = bench.command(ppt());
    command.args(["run", "--with", "net", "-q", "--", "./exchange", "silent"]);
    let mut run = Target::spawn(command);
    run.stdout.wait_for("answered");
    let connections = || {
        let dump = bench.ppt(&["dump", "out.bin", "-b", "net", "--frame", "served"]);
        let table = (dump.code() == 0).then(|| Table::parse(&dump.stdout));
        table.map_or(0, |table| table.cells("fd").into_iter().collect::<HashSet<_>>().len())
    };
    wait_until("the silent answer is written", || connections() == 2);
    run.close();
    assert!(run.wait().success());
    let number = |name: &str| run.stdout.wait_for(name).parse::<u64>().unwrap();
    let (served, called) = (number("served "), number("called "));
    // Nothing ended the last answer of the busy connection, which is reported.
    let requests = Requests::of(&bench, "out.bin");
    let written = (requests.served.len() + requests.called.len()) as u64;
    assert_eq!((written + 2, requests.counters["open"]), (served + called, 2));
}
