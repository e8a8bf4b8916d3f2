//! Unmodified third-party servers: there are as many frames as requests that they report.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::fixtures::preloaded::{Requests, preload, python};
use crate::fixtures::support::{Bench, Target, available, ppt, rounds, text, wait_until};

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a server under `ppt run --with net`, and waits until it accepts connections at the port.
pub fn start(bench: &Bench, server: &[&str], port: u16) -> Target {
    let mut command = bench.command(ppt());
    // Long rings: on a busy machine, ppt may have to wait for a CPU for a second.
    command.args(["run", "--with", "net", "-q", "--slots", "262144", "--"]);
    command.args(server).stderr(Stdio::null());
    let target = Target::spawn(command);
    wait_until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    target
}

/// The output of a program that must succeed.
pub fn output(bench: &Bench, program: &str, args: &[&str]) -> String {
    let output = bench.command(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    text(&output.stdout)
}

/// Both sides of 200 requests are in one process, which reports how many it answered.
#[track_caller]
fn both_sides(bench: &Bench, command: &[&str]) -> Requests {
    let ran = bench.ppt(&[&["run", "--with", "net", "-q", "--"], command].concat());
    assert_eq!((ran.code(), ran.stdout.trim()), (0, "answered 200"), "{ran:?}");
    let requests = Requests::of(bench, "out.bin");
    assert_eq!((requests.served.len(), requests.called.len()), (200, 200));
    for counter in ["open", "unanswered", "unasked", "contended"] {
        assert_eq!(requests.counters[counter], 0, "{counter}");
    }
    requests
}

#[test]
fn pythons_web_server_and_client() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.copy("with/server.py");
    let requests = both_sides(&bench, &[python, "server.py", "200"]);
    assert!(requests.served.iter().all(|it| it.bytes_in > 100 && it.bytes_out > 200));
}

#[test]
fn nodes_web_server_and_client() {
    if !available("node") {
        return;
    }
    let bench = Bench::new();
    bench.copy("with/server.js");
    both_sides(&bench, &["node", "server.js", "200"]);
}

/// A load for Redis, what the server counted, and the requests in the capture.
struct Loaded {
    requests: Requests,
    commands: u64,
    bytes_in: u64,
}

fn redis(load: &[&str]) -> Option<Loaded> {
    if !available("redis-server") || !available("redis-benchmark") {
        return None;
    }
    let bench = Bench::new();
    let port = free_port();
    let number = port.to_string();
    let server = ["redis-server", "--port", &number, "--save", ""];
    let mut target = start(&bench, &server, port);
    output(&bench, "redis-benchmark", &[&["-p", &number, "-c", "20", "-q"], load].concat());
    // INFO counts itself.
    let stats = output(&bench, "redis-cli", &["-p", &number, "info", "stats"]);
    let count = |name: &str| -> u64 {
        let line = stats.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    // It exits without an answer, which its client sees as the end.
    output(&bench, "redis-cli", &["-p", &number, "shutdown", "nosave"]);
    assert!(target.wait().success());
    let requests = Requests::of(&bench, "out.bin");
    for (counter, expected) in [("open", 0), ("unanswered", 1), ("unasked", 0), ("contended", 0)] {
        assert_eq!(requests.counters[counter], expected, "{counter}");
    }
    assert!(requests.served.iter().all(|it| it.port == u64::from(port)));
    let (commands, bytes_in) =
        (count("total_commands_processed:"), count("total_net_input_bytes:"));
    eprintln!("{commands} commands, {} served", requests.served.len());
    Some(Loaded { requests, commands, bytes_in })
}

#[test]
fn redis_and_its_benchmark() {
    let number = rounds(10_000, 100_000);
    let load = ["-n", &number.to_string(), "-t", "set,get"];
    let Some(Loaded { requests, commands, bytes_in }) = redis(&load) else { return };
    assert_eq!(requests.served.len() as u64, commands);
    assert!(commands >= 2 * number as u64, "{commands}");
    assert_eq!(requests.served.iter().map(|it| it.bytes_in).sum::<u64>(), bytes_in);
}

/// Requests that are read before the first of them is answered are one frame. Their bytes are all there.
#[test]
fn redis_and_pipelines_of_sixteen() {
    let number = rounds(16_000, 160_000);
    let load = ["-n", &number.to_string(), "-t", "get", "-P", "16"];
    let Some(Loaded { requests, commands, bytes_in }) = redis(&load) else { return };
    let served = requests.served.len() as u64;
    assert!(commands >= number as u64, "{commands}");
    // A pipeline that arrives in two parts has a frame for each, or one with two reads.
    assert!(served >= commands / 16 && served <= commands / 8, "{served} of {commands}");
    assert_eq!(requests.served.iter().map(|it| it.bytes_in).sum::<u64>(), bytes_in);
}

/// Sends requests over one connection. Returns the number of answers.
pub fn ask(port: u16, number: usize) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut answer = [0; 4096];
    let mut answers = 0;
    for _ in 0..number {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"hello") {
            let more = stream.read(&mut answer).unwrap();
            assert!(more > 0, "{}", text(&got));
            got.extend_from_slice(&answer[..more]);
        }
        answers += 1;
    }
    answers
}

/// Two workers, and a proxy in front of them: a configuration for nginx.
pub fn proxy(front: u16, back: u16) -> String {
    format!(
        "daemon off; worker_processes 2; pid nginx.pid; error_log errors; events {{ }}\n\
         http {{ access_log off; client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; \
         uwsgi_temp_path d; scgi_temp_path e; keepalive_requests 1000000;\n\
         server {{ listen 127.0.0.1:{back}; location / {{ return 200 hello; }} }}\n\
         server {{ listen 127.0.0.1:{front}; location / {{ proxy_pass http://127.0.0.1:{back}; }} }}\n\
         }}\n"
    )
}

/// The proxy's calls are the requests of those behind it.
#[test]
fn nginx_and_a_proxy() {
    if !available("nginx") {
        return;
    }
    let bench = Bench::new();
    let (front, back) = (free_port(), free_port());
    bench.write("nginx.conf", &proxy(front, back));
    let folder = bench.path("").display().to_string();
    let mut target =
        start(&bench, &["nginx", "-p", &folder, "-c", "nginx.conf", "-e", "errors"], back);
    let answers = (ask(back, 300), ask(front, 100));
    assert_eq!(answers, (300, 100));
    output(&bench, "nginx", &["-p", &folder, "-c", "nginx.conf", "-e", "errors", "-s", "quit"]);
    assert!(target.wait().success());
    let requests = Requests::of(&bench, "out.bin");
    let served_at = |port: u16| {
        let ports = requests.served.iter().map(|request| request.port);
        ports.filter(|&at| at == u64::from(port)).count()
    };
    assert_eq!((served_at(back), served_at(front)), (400, 100));
    assert_eq!(requests.called.len(), 100);
    assert!(requests.called.iter().all(|it| it.port == u64::from(back)));
    assert_eq!(requests.counters["open"], 0);
}

/// Its log has a line for each request.
#[test]
fn nginx_and_wrk() {
    if !available("nginx") || !available("wrk") {
        return;
    }
    let bench = Bench::new();
    let port = free_port();
    let configuration = proxy(free_port(), port).replace("access_log off", "access_log log");
    bench.write("nginx.conf", &configuration);
    let folder = bench.path("").display().to_string();
    let nginx = ["nginx", "-p", &folder, "-c", "nginx.conf", "-e", "errors"];
    let mut target = start(&bench, &nginx, port);
    let lines = || fs::read_to_string(bench.path("log")).unwrap().lines().count();
    let least = rounds(1_000, 100_000);
    let url = format!("http://127.0.0.1:{port}/");
    let mut said = String::new();
    while lines() < least {
        said = output(&bench, "wrk", &["-t", "2", "-c", "20", "-d", "1s", &url]);
        assert!(!said.contains("Socket errors") && !said.contains("Non-2xx"), "{said}");
    }
    output(&bench, nginx[0], &[&nginx[1..], &["-s", "quit"]].concat());
    assert!(target.wait().success());
    let requests = Requests::of(&bench, "out.bin");
    for counter in ["open", "unasked", "contended"] {
        assert_eq!(requests.counters[counter], 0, "{counter}");
    }
    // wrk leaves when its time is over, and does not wait for the last answers.
    let (served, unanswered) = (requests.served.len(), requests.counters["unanswered"] as usize);
    assert_eq!(served + unanswered, lines(), "{unanswered}: {said}");
    assert!(unanswered <= 20, "{unanswered}");
    eprintln!("{} lines in the log, {served} served, {unanswered} unanswered", lines());
}

/// All three buffers are switched on and off while clients send requests: each gets its answer.
#[test]
fn no_request_fails_while_ppt_comes_and_goes() {
    if !available("redis-server") {
        return;
    }
    let bench = Bench::new();
    let port = free_port();
    let mut command = bench.command("redis-server");
    command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "yes"]);
    command.args(["--appendfsync", "always", "--io-threads", "2"]);
    command.env("LD_PRELOAD", preload(&bench)).stdout(Stdio::null());
    let mut target = Target::spawn(command);
    wait_until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let ends = AtomicBool::new(false);
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut number, mut answer) = (0_u64, [0; 64]);
        while !ends.load(Ordering::Relaxed) {
            stream.write_all(b"INCR sum\r\n").unwrap();
            let size = stream.read(&mut answer).unwrap();
            assert!(answer[..size].starts_with(b":"), "{}", text(&answer[..size]));
            number += 1;
        }
        number
    };
    let asked: u64 = thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        for _ in 0..rounds(20, 200) {
            let pid = target.pid().to_string();
            let ran = bench.ppt(&["attach", &pid, "-q", "--force", "-d", "20ms"]);
            assert_eq!(ran.code(), 0, "{ran:?}");
        }
        ends.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    let info = bench.info("out.bin");
    let names =
        info["buffers"].as_array().unwrap().iter().map(|value| value["name"].as_str().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert_eq!(names, ["files", "hops", "locks", "net"]);
    let sum = output(&bench, "redis-cli", &["-p", &port.to_string(), "get", "sum"]);
    assert_eq!(sum.trim(), asked.to_string());
    output(&bench, "redis-cli", &["-p", &port.to_string(), "shutdown", "nosave"]);
    assert!(target.wait().success());
}
