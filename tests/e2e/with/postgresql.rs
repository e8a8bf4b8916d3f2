//! PostgreSQL and pgbench, unmodified: each statement that the server logs is a request.

use std::fs::{self, File};
use std::process::Command;

use super::servers::free_port;
use crate::fixtures::postgresql::PostgreSql;
use crate::fixtures::preloaded::{Requests, preload};
use crate::fixtures::steady::is_root;
use crate::fixtures::support::{Attach, Bench, Target, available, ppt, rounds, text, wait_until};

const CLIENTS: usize = 4;

/// Starts the server, and waits until it accepts connections. Its log is `log`.
fn started(bench: &Bench, mut command: Command) -> Target {
    command.stderr(File::create(bench.path("log")).unwrap());
    let server = Target::spawn(command);
    wait_until("the server listens", || log(bench).contains("ready to accept connections"));
    server
}

fn log(bench: &Bench) -> String {
    text(&fs::read(bench.path("log")).unwrap())
}

/// Runs pgbench, which must report no failure.
fn pgbench(database: &PostgreSql, port: u16, args: &[&str]) -> String {
    let mut command = database.program("pgbench");
    // Without a request for encryption, one request of the protocol is one of the server.
    command.env("PGSSLMODE", "disable").env("PGGSSENCMODE", "disable");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "ppt"]).args(args);
    let output = command.arg("postgres").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

fn run_load(database: &PostgreSql, port: u16, transactions: usize) {
    let (clients, each) = (CLIENTS.to_string(), transactions.to_string());
    let said = pgbench(database, port, &["-n", "-c", &clients, "-j", "2", "-t", &each]);
    let all = CLIENTS * transactions;
    assert!(said.contains(&format!("actually processed: {all}/{all}\n")), "{said}");
    assert!(said.contains("failed transactions: 0 "), "{said}");
}

/// A client that sends the lines that it is told, and prints their results without decoration.
fn client(database: &PostgreSql, port: u16) -> Target {
    let mut command = database.program("psql");
    command.env("PGSSLMODE", "disable").env("PGGSSENCMODE", "disable");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "ppt", "-At", "postgres"]);
    Target::spawn(command)
}

/// Every statement is a `served`, and so is the greeting of each connection.
#[test]
fn each_statement_of_pgbench_is_a_request() {
    if !available("setpriv") || !available("pgbench") {
        return;
    }
    let bench = Bench::new();
    let Some(database) = PostgreSql::new(&bench) else { return };
    let port = free_port();
    let mut command = bench.command(ppt());
    command.args(["run", "--with", "net,locks,files", "--slots", "131072", "--"]);
    command.args(database.server(port));
    let mut server = started(&bench, command);
    pgbench(&database, port, &["-i", "-q"]);
    let before = log(&bench).matches("LOG:  statement: END").count();
    let transactions = rounds(50, 5_000);
    run_load(&database, port, transactions);
    server.signal(libc::SIGTERM);
    assert!(server.wait().success());

    let log = log(&bench);
    assert!(!log.contains("ERROR:") && !log.contains("FATAL:"), "{log}");
    assert!(!log.contains("not captured"), "{log}");
    let ends = log.matches("LOG:  statement: END").count() - before;
    assert_eq!(ends, CLIENTS * transactions);
    let count = |what: &str| log.matches(what).count() as u64;
    let (statements, connections) = (count("LOG:  statement: "), count("connection authorized"));
    let requests = Requests::of(&bench, "out.bin");
    // COPY is asked once more: for its end, after its lines.
    let copies = count("LOG:  statement: copy ");
    assert_eq!(requests.served.len() as u64, statements + connections + copies);
    // A client announces its end, and waits for no answer.
    assert_eq!(requests.counters["unanswered"], connections);
    for counter in ["open", "contended", "beyond", "filtered", "skipped", "waiting"] {
        assert_eq!(requests.counters[counter], 0, "{counter}");
    }
    eprintln!(
        "{statements} statements, {connections} connections: {} served",
        requests.served.len()
    );
}

/// Root follows the server of another user. Of a connection, the beginning may be missing.
#[test]
fn root_follows_the_backends_of_a_server() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let bench = Bench::new();
    let Some(database) = PostgreSql::new(&bench) else { return };
    let port = free_port();
    let words = database.server(port);
    let mut command = bench.command(&words[0]);
    command.args(&words[1..]).env("LD_PRELOAD", preload(&bench));
    let mut server = started(&bench, command);
    let mut command = bench.command(ppt());
    command.args(["attach", &server.pid().to_string(), "--follow", "-b", "net", "-o", "out.bin"]);
    let attach = Attach::start(command);
    // Each client has a backend, which is asked when it is found.
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| client(&database, port)).collect();
    let mut backends = Vec::new();
    for client in &mut clients {
        client.say("SELECT 'pid ' || pg_backend_pid();");
        backends.push(client.stdout.wait_for("pid "));
    }
    let is_found = |pid: &String| attach.stderr.has(&format!("attached: pid {pid},"));
    wait_until("all backends are found", || backends.iter().all(is_found));
    let statements = rounds(100, 1_000);
    for client in &mut clients {
        (1..statements).for_each(|_| client.say("SELECT 1;"));
        client.say("SELECT 'done';");
    }
    for client in clients {
        client.stdout.wait_for("done");
        client.finish();
    }
    server.signal(libc::SIGTERM);
    assert!(server.wait().success());
    let stderr = attach.ended(0);
    assert!(!stderr.contains("not captured"), "{stderr}");
    let table = bench.table("out.bin", &["-b", "net", "--frame", "served"]);
    let pids = table.cells("pid");
    for backend in &backends {
        let count = pids.iter().filter(|pid| *pid == backend).count();
        assert!((statements..=statements + 2).contains(&count), "{backend}: {count}: {stderr}");
    }
}
