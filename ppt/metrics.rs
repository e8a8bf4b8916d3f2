//! `--metrics`: shows the numbers of a capture while it runs.
//!
//! Another process owns the port ([`crate::cmd::serve_metrics`]). It requests the current text over
//! a socket, and a thread of this process answers. That thread reads the counts of the capture's
//! threads, and none of them waits for it.

use std::io::{BufRead, BufReader};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use ppt_listener::Tallies;
use ppt_metrics::{AddressError, MetricsAddress, Series, SessionFacts, answer};

use crate::args;
use crate::cmd::serve_metrics::SERVING;
use crate::code::Code;
use crate::failure::Failure;
use crate::report;

/// Time limit for the server's start.
const TO_BEGIN: Duration = Duration::from_secs(10);
/// Time limit for the server's end.
const TO_END: Duration = Duration::from_secs(1);
/// The names of messages about its address.
pub(crate) const ADDRESS_CODES: [&str; 3] = ["bad-address", "port-denied", "port-in-use"];

/// A server that owns its address and has nothing to show yet.
pub(crate) struct MetricsListener {
    server: ServerProcess,
}

/// The process that owns the port.
struct ServerProcess {
    child: Child,
    socket: Arc<UnixStream>,
}

impl MetricsListener {
    /// Starts the server if requested. This precedes attaching, so an unusable address has no
    /// effect.
    pub(crate) fn open(options: &args::CaptureArgs) -> Result<Option<Self>, Failure> {
        let Some(text) = &options.metrics else { return Ok(None) };
        let address: MetricsAddress = text
            .parse()
            .map_err(|error: AddressError| Failure::usage(error.code(), error.to_string()))?;
        if !address.is_loopback() && !options.allow.contains(&args::Allow::RemoteMetrics) {
            let message = format!(
                "metrics at {address} can be read by everybody who reaches this machine: what programs \
                 are called, and how much they do; to serve them there anyway: --allow remote-metrics"
            );
            return Err(Failure::usage(Code::NotLoopback, message));
        }
        let server = ServerProcess::start(address)?;
        let first = server.first_line()?;
        match first.split_once(' ') {
            Some((SERVING, address)) => {
                report::line(format_args!("metrics: http://{address}/metrics"));
                Ok(Some(Self { server }))
            }
            Some((code, message)) => {
                let known = ADDRESS_CODES.into_iter().find(|known| *known == code);
                Err(Failure::failed(known.unwrap_or(Code::System.into()), message))
            }
            None => Err(cannot(&"it has ended at once")),
        }
    }

    /// Starts to serve these numbers.
    pub(crate) fn publish(
        self,
        tallies: Arc<Tallies>,
        host: String,
        is_flight: bool,
    ) -> Result<PublishedMetrics, Failure> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let facts = SessionFacts {
            host,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            began_ns: now.as_nanos() as u64,
            is_flight,
        };
        let (mut series, ended) = (Series::new(facts), Arc::new(AtomicBool::new(false)));
        let (socket, end) = (self.server.socket.clone(), ended.clone());
        let body = move || {
            let _ = answer(&socket, || series.text(tallies.session(), tallies.feeds()));
            end.store(true, Relaxed);
        };
        let thread = std::thread::Builder::new().name("ppt-metrics".into()).spawn(body);
        thread.map_err(|error| cannot(&error))?;
        Ok(PublishedMetrics { server: self.server, ended, is_reported: false })
    }
}

/// Numbers that are shown until this is dropped.
pub(crate) struct PublishedMetrics {
    server: ServerProcess,
    ended: Arc<AtomicBool>,
    is_reported: bool,
}

impl PublishedMetrics {
    /// The pid of the server, if it runs. Who else collects children leaves it alone.
    pub(crate) fn pid(&mut self) -> Option<i32> {
        let child = &mut self.server.child;
        matches!(child.try_wait(), Ok(None)).then(|| child.id() as i32)
    }

    /// The message, given once, if the server has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        if self.is_reported || !self.ended.load(Relaxed) {
            return None;
        }
        self.is_reported = true;
        let how = match self.server.child.try_wait() {
            Ok(Some(status)) => format!("with {status}"),
            _ => "without reporting why".to_owned(),
        };
        Some(format!(
            "metrics are no longer served: their process has ended {how}; the capture goes on"
        ))
    }
}

fn cannot(why: &dyn std::fmt::Display) -> Failure {
    Failure::failed(Code::System, format!("cannot start the process that serves metrics: {why}"))
}

impl ServerProcess {
    fn start(address: MetricsAddress) -> Result<Self, Failure> {
        let (socket, theirs) = UnixStream::pair().map_err(|error| cannot(&error))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("ppt").args(["serve-metrics", &address.to_string()]).env_clear();
        // The server runs as the user who called sudo.
        let kept = ["SUDO_UID", "SUDO_GID"];
        command.envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // The terminal's signals go to ppt, which ends the server.
        command.process_group(0).current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| cannot(&error))?;
        Ok(Self { child, socket: Arc::new(socket) })
    }

    fn first_line(&self) -> Result<String, Failure> {
        let socket = &*self.socket;
        socket.set_read_timeout(Some(TO_BEGIN)).map_err(|error| cannot(&error))?;
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).map_err(|error| cannot(&error))?;
        socket.set_read_timeout(None).map_err(|error| cannot(&error))?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        let until = Instant::now() + TO_END;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
