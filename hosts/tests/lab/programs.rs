//! The other programs that this program plays.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use ppt_hosts::lab::{self, SelfStart};

use crate::{hostile, rig};

pub(crate) fn play(words: &[OsString]) -> ExitCode {
    let text: Vec<&str> = words.iter().map(|name| name.to_str().unwrap()).collect();
    match text[..] {
        ["lab", "host", ..] => {
            let own = SelfStart { program: rig::own(), words: vec!["lab".into(), "host".into()] };
            lab::host(&own, &words[2..]).map(ExitCode::from).unwrap_or_else(|error| {
                eprintln!("{error}");
                ExitCode::FAILURE
            })
        }
        ["controller", file, folder] => {
            let options = rig::options(Some(PathBuf::from(folder)));
            match lab::run(Path::new(file), &options, &mut rig::RigMessages::default()) {
                Ok(summary) => ExitCode::from(u8::from(summary.failed > 0)),
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::from(2)
                }
            }
        }
        ["hostile", kind, ..] => hostile::play(kind),
        ["sql", "--format", "jsonl", "--", ref captures @ .., query]
            if query.starts_with("SELECT user ") =>
        {
            reads_only(captures, query.trim_start_matches("SELECT user "))
        }
        ["sql", .., query] => sql(query),
        ["report", ..] => report(&text),
        ["program", ..] => program(&text[1..]),
        _ => ExitCode::from(2),
    }
}

fn program(words: &[&str]) -> ExitCode {
    match words {
        // A server for one connection.
        ["serve", addr] => {
            let listener = TcpListener::bind(addr).unwrap();
            println!("listening");
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            println!("{text}");
        }
        ["send", addr, text] => {
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
        }
        ["udp", addr] => {
            let _socket = UdpSocket::bind(addr).unwrap();
            forever();
        }
        ["exit", code] => {
            eprintln!("first line\nit goes wrong");
            return ExitCode::from(code.parse::<u8>().unwrap());
        }
        ["forever"] => forever(),
        // Only SIGKILL ends it, and its child is in its own session.
        ["stubborn"] => {
            let own = rig::own();
            let mut orphan = Command::new("setsid");
            orphan.arg("--fork").arg(own).args(["program", "forever"]).status().unwrap();
            let mut command = Command::new("env");
            command.arg("--ignore-signal=TERM").arg(rig::own()).args(["program", "forever"]);
            let error = command.exec();
            panic!("{error}");
        }
        ["say", text] => println!("{text}"),
        ["write", name, text] => std::fs::write(name, text).unwrap(),
        ["pid"] => println!("{}", std::process::id()),
        ["environment"] => {
            for (name, value) in std::env::vars() {
                println!("{name}={value}");
            }
        }
        // A server that dies at the first write to it.
        ["die", fifo] => {
            std::fs::read(fifo).unwrap();
            return ExitCode::from(9);
        }
        ["provoke", fifo] => {
            std::fs::write(fifo, "x").unwrap();
            forever();
        }
        // Fails in its first attempt.
        ["second-time", file] => {
            if std::fs::File::create_new(file).is_ok() {
                return ExitCode::from(3);
            }
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn forever() {
    println!("running");
    loop {
        std::thread::park();
    }
}

/// Writes what `ppt sql --format jsonl` would.
fn sql(query: &str) -> ExitCode {
    match query {
        "SELECT true" => println!("{{\"x\":true}}"),
        "SELECT false" => println!("{{\"x\":false}}"),
        "SELECT two rows" => println!("{{\"x\":true}}\n{{\"x\":true}}"),
        "SELECT two columns" => println!("{{\"x\":true,\"y\":true}}"),
        _ => {
            eprintln!("ppt: there is no table `nothing`");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Writes the requested files.
fn report(words: &[&str]) -> ExitCode {
    print!("{}", words.join("\n"));
    ExitCode::SUCCESS
}

/// Whether this process has no capability but to open files, and runs as the given user. It can
/// still read the user's captures.
fn reads_only(captures: &[&str], user: &str) -> ExitCode {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    // CAP_DAC_READ_SEARCH is number 2.
    let rights = ["CapEff:", "CapPrm:"].map(|name| u64::from_str_radix(&field(name), 16).unwrap());
    let is_less = rights == [1 << 2; 2] && field("NoNewPrivs:") == "1" && field("Uid:") == user;
    let captures = captures.iter().all(|path| std::fs::read(path).is_ok());
    println!("{{\"x\":{}}}", is_less && captures);
    ExitCode::SUCCESS
}
