//! `ppt serve-metrics ADDRESS`: the process that ppt starts for `--metrics`.
//!
//! It has no privileges and gets only text, so a client that reaches the port cannot reach the process that
//! may write into others. Its standard input is the socket on which it asks for that text.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{SockType, getsockopt, sockopt};
use ppt_metrics::MetricsServer;
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::code::Code;
use crate::{privileges, report};

pub(crate) fn run(args: &args::ServeMetrics) -> ExitStatus {
    // ps(1) would otherwise show the name `exe`.
    let _ = nix::sys::prctl::set_name(c"ppt-metrics");
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = input.ok().filter(|fd| getsockopt(fd, sockopt::SockType) == Ok(SockType::Stream));
    let Some(mut socket) = socket.map(UnixStream::from) else {
        let message = "only `ppt attach --metrics` and `ppt run --metrics` start this command";
        report::error(Code::System, message);
        return ExitStatus::USAGE;
    };
    if let Err(error) = privileges::give_up_all() {
        let _ = writeln!(socket, "system cannot give up privileges: {error}");
        return ExitStatus::FAILED;
    }
    let source = match socket.try_clone() {
        Ok(source) => source,
        Err(error) => {
            let _ = writeln!(socket, "system {error}");
            return ExitStatus::FAILED;
        }
    };
    let bound = MetricsServer::bind(args.address, source);
    let reply = match &bound {
        Ok(server) => server.address().map_or_else(
            |error| format!("system {error}"),
            |address| format!("{SERVING} {address}"),
        ),
        Err(error) => format!("{} {error}", error.code()),
    };
    // The socket does not block by now, and has room for a line.
    let is_sent = writeln!(socket, "{reply}").is_ok();
    match bound {
        Ok(server) if is_sent => {
            server.run();
            ExitStatus::DONE
        }
        _ => ExitStatus::FAILED,
    }
}

/// The first word of the server's first line, before the address. Any other word there is the code of a
/// message.
pub(crate) const SERVING: &str = "serving";
