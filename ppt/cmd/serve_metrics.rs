//! `ppt serve-metrics ADDRESS`: the process that ppt starts for `--metrics`.
//!
//! It may do nothing that its user may not do, and gets only text: a client that reaches the port is far from
//! the process that may write into others. Its standard input is the socket on which it asks for that text.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{SockType, getsockopt, sockopt};
use ppt_metrics::MetricsServer;

use crate::args;
use crate::code::Code;
use crate::exit::ExitStatus;
use crate::{privileges, report};

pub(crate) fn run(args: &args::ServeMetrics) -> ExitStatus {
    // For ps(1): it was started by another name than its own.
    let _ = nix::sys::prctl::set_name(c"ppt-metrics");
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = input.ok().filter(|fd| getsockopt(fd, sockopt::SockType) == Ok(SockType::Stream));
    let Some(mut socket) = socket.map(UnixStream::from) else {
        let what = "only `ppt attach --metrics` and `ppt run --metrics` start this command";
        report::error(Code::System, what);
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
    let said = match &bound {
        Ok(server) => server.address().map_or_else(
            |error| format!("system {error}"),
            |address| format!("{SERVING} {address}"),
        ),
        Err(error) => format!("{} {error}", error.code()),
    };
    // It does not block by now, and has room for a line.
    let is_told = writeln!(socket, "{said}").is_ok();
    match bound {
        Ok(server) if is_told => {
            server.run();
            ExitStatus::DONE
        }
        _ => ExitStatus::FAILED,
    }
}

/// Precedes the address in the first line that it says; any other word there is the name of a message.
pub(crate) const SERVING: &str = "serving";
