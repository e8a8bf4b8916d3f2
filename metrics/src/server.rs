//! The server: one loop that waits for connections and for texts.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::address::MetricsAddress;
use crate::connection::Connection;
use crate::error::BindError;
use crate::request::{BUSY, NOT_YET};
use crate::source::MetricsSource;

/// Most open connections.
const MAX_CONNECTIONS: usize = 64;
/// The time for which a connection without a request is kept while others wait.
const GRACE: Duration = Duration::from_millis(250);
/// How long a text counts as current: this long, plus nine times the time that it took to make. So
/// a client that asks without a pause uses at most a tenth of the time for making texts.
const FRESH: Duration = Duration::from_millis(20);
const MAX_FRESH: Duration = Duration::from_secs(1);
/// Time limit for a text to arrive.
const TO_COME: Duration = Duration::from_secs(2);
/// Most texts that slow readers may keep in memory.
const MAX_TEXTS: usize = 4;
/// The time for which no connection is accepted after a failure, because no descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the texts that arrive on a socket.
#[derive(Debug)]
pub struct MetricsServer {
    listener: TcpListener,
    is_loopback: bool,
    source: MetricsSource,
}

impl MetricsServer {
    /// Binds the address; no request is answered yet.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn bind(address: MetricsAddress, source: UnixStream) -> Result<MetricsServer, BindError> {
        let failed = |error| BindError::new(address.0, error);
        let listener = TcpListener::bind(address.0).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let source = MetricsSource::new(source).map_err(failed)?;
        Ok(MetricsServer { listener, is_loopback: address.is_loopback(), source })
    }

    /// The address, with the assigned port.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the source ends.
    pub fn run(self) {
        let (connections, in_use) = Default::default();
        let (latest, asked, paused) = Default::default();
        RunningServer { server: self, connections, latest, in_use, asked, paused }.run();
    }
}

/// A running server.
struct RunningServer {
    server: MetricsServer,
    connections: Vec<Connection>,
    /// The latest text, and until when it counts as current.
    latest: Option<(Instant, Rc<[u8]>)>,
    /// All texts that are still being read.
    in_use: Vec<Weak<[u8]>>,
    /// The time at which the pending text was requested.
    asked: Option<Instant>,
    /// Until when no connection is accepted.
    paused: Option<Instant>,
}

impl RunningServer {
    fn run(mut self) {
        loop {
            let Ok(ready) = self.wait() else { return };
            if ready.source && self.take_text().is_err() {
                return;
            }
            let is_loopback = self.server.is_loopback;
            for (connection, is_gone) in self.connections.iter_mut().zip(ready.connections) {
                if let Some(is_gone) = is_gone {
                    connection.turn(is_gone, is_loopback);
                }
            }
            if ready.listener {
                self.accept();
            }
            if self.ask().is_err() {
                return;
            }
            let now = Instant::now();
            self.connections.retain(|connection| !connection.is_over() && connection.until > now);
        }
    }

    fn wait(&self) -> io::Result<ReadyNow> {
        let now = Instant::now();
        let paused = self.paused.filter(|until| *until > now);
        let asked = self.asked.map(|asked| asked + TO_COME).filter(|until| *until > now);
        let ends = self.connections.iter().map(|connection| connection.until);
        let until = ends.chain(paused).chain(asked).min();
        let timeout = until.map(|until| {
            // A little later, so that the time is really over.
            let left = until.saturating_duration_since(now) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        });
        let accepts = if paused.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let mut fds = vec![
            PollFd::new(&self.server.source, PollFlags::IN),
            PollFd::new(&self.server.listener, accepts),
        ];
        fds.extend(
            self.connections
                .iter()
                .map(|connection| PollFd::new(connection, connection.interest())),
        );
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => fds.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let gone = PollFlags::HUP | PollFlags::ERR;
        let of_connection = |fd: &PollFd<'_>| is_ready(fd).then(|| fd.revents().intersects(gone));
        Ok(ReadyNow {
            source: is_ready(&fds[0]),
            listener: is_ready(&fds[1]),
            connections: fds[2..].iter().map(of_connection).collect(),
        })
    }

    fn accept(&mut self) {
        // At most the length of a socket's queue, so that a client that connects without a pause
        // delays no one.
        for _ in 0..2 * MAX_CONNECTIONS {
            let accepted =
                self.server.listener.accept().and_then(|(stream, _)| Connection::new(stream));
            match accepted {
                Ok(mut connection) => {
                    // The request may have arrived already.
                    connection.turn(false, self.server.is_loopback);
                    self.connections.push(connection);
                    self.make_room();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.paused = Some(Instant::now() + PAUSE);
                    return;
                }
            }
        }
    }

    /// If there is one connection too many, closes one that has been idle for a while, or the
    /// newest.
    fn make_room(&mut self) {
        if self.connections.len() <= MAX_CONNECTIONS {
            return;
        }
        let now = Instant::now();
        let may_go = |connection: &Connection| {
            connection.is_over() || (connection.is_idle() && connection.since + GRACE < now)
        };
        let goes = self.connections.iter().position(may_go).unwrap_or(MAX_CONNECTIONS);
        // Dropped after the refusal was sent.
        self.connections.remove(goes).refuse(BUSY);
    }

    /// Requests a text if connections wait for one.
    fn ask(&mut self) -> io::Result<()> {
        if !self.connections.iter().any(Connection::wants_text) {
            return Ok(());
        }
        self.in_use.retain(|text| text.strong_count() > 0);
        let now = Instant::now();
        let may_be_old = self.in_use.len() >= MAX_TEXTS;
        let good = |entry: &&(Instant, Rc<[u8]>)| may_be_old || entry.0 > now;
        if let Some((_, text)) = self.latest.as_ref().filter(good) {
            let text = text.clone();
            self.answer(&text);
            return Ok(());
        }
        match self.asked {
            None => {
                self.asked = Some(now);
                self.server.source.ask()
            }
            Some(asked) if asked + TO_COME < now => {
                let waiting =
                    self.connections.iter_mut().filter(|connection| connection.wants_text());
                waiting.for_each(|connection| connection.refuse(NOT_YET));
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }

    fn take_text(&mut self) -> io::Result<()> {
        let Some(text) = self.server.source.read()? else { return Ok(()) };
        let text: Rc<[u8]> = text.into();
        let took = self.asked.take().map_or(Duration::ZERO, |asked| asked.elapsed());
        let fresh = (9 * took).clamp(FRESH, MAX_FRESH);
        self.in_use.push(Rc::downgrade(&text));
        self.latest = Some((Instant::now() + fresh, text.clone()));
        self.answer(&text);
        Ok(())
    }

    fn answer(&mut self, text: &Rc<[u8]>) {
        let waiting = self.connections.iter_mut().filter(|connection| connection.wants_text());
        waiting.for_each(|connection| connection.answer(text));
    }
}

/// The events of a poll.
struct ReadyNow {
    source: bool,
    listener: bool,
    /// For each connection: `None` for no event, or whether the client is gone.
    connections: Vec<Option<bool>>,
}
