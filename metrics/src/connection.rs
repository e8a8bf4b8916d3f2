//! One connection, from its request to the end of its response.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::request::{self, MAX_HEAD_BYTES, MetricsRequest, RequestRefusal};
use crate::text::CONTENT_TYPE;

/// Time limit for a request to arrive.
pub(crate) const TO_ASK: Duration = Duration::from_secs(5);
/// Time limit for a client to read a response.
const TO_READ: Duration = Duration::from_secs(10);
/// Time limit for a client to close the connection.
const TO_LEAVE: Duration = Duration::from_secs(1);
/// Headers of every response: it is not cached, and no web page may use it.
const HEADERS: &str = "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: default-src 'none'\r\n";

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    state: ConnectionState,
    pub since: Instant,
    /// The time at which the connection is closed at the latest.
    pub until: Instant,
}

#[derive(Debug)]
enum ConnectionState {
    /// The request is arriving.
    Asks(Vec<u8>),
    /// The request has arrived; the text has not.
    Waits(MetricsRequest),
    /// The response is being sent.
    Answers {
        head: Vec<u8>,
        body: Rc<[u8]>,
        sent: usize,
    },
    /// The response was sent. The client closes first, or it might lose part of the response.
    Leaves,
    Over,
}

impl Connection {
    pub fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        let since = Instant::now();
        Ok(Connection {
            stream,
            state: ConnectionState::Asks(Vec::new()),
            since,
            until: since + TO_ASK,
        })
    }

    /// The events that it waits for.
    pub fn interest(&self) -> PollFlags {
        match self.state {
            ConnectionState::Asks(_) | ConnectionState::Leaves => PollFlags::IN,
            ConnectionState::Answers { .. } => PollFlags::OUT,
            ConnectionState::Waits(_) | ConnectionState::Over => PollFlags::empty(),
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.state, ConnectionState::Over)
    }

    /// Whether it waits only for the text.
    pub fn wants_text(&self) -> bool {
        matches!(self.state, ConnectionState::Waits(_))
    }

    /// Whether it is closed first when there are too many connections: it has sent no request, or
    /// needs nothing more.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, ConnectionState::Asks(_) | ConnectionState::Leaves)
    }

    /// Makes all progress that is possible without waiting. `is_gone`: the client has closed.
    pub fn turn(&mut self, is_gone: bool, is_loopback: bool) {
        match &self.state {
            ConnectionState::Asks(_) => self.read(is_loopback),
            ConnectionState::Waits(_) if is_gone => self.state = ConnectionState::Over,
            ConnectionState::Answers { .. } => self.write(),
            ConnectionState::Leaves => self.leave(),
            ConnectionState::Waits(_) | ConnectionState::Over => {}
        }
    }

    fn read(&mut self, is_loopback: bool) {
        let ConnectionState::Asks(bytes) = &mut self.state else { return };
        let mut buffer = [0; MAX_HEAD_BYTES];
        let room = MAX_HEAD_BYTES - bytes.len();
        match self.stream.read(&mut buffer[..room]) {
            Ok(0) => self.state = ConnectionState::Over,
            Ok(count) => {
                bytes.extend_from_slice(&buffer[..count]);
                match request::read(bytes, is_loopback) {
                    None => {}
                    Some(Ok(request)) => self.state = ConnectionState::Waits(request),
                    Some(Err(refusal)) => self.refuse(refusal),
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Responds with the text.
    pub fn answer(&mut self, text: &Rc<[u8]>) {
        let ConnectionState::Waits(MetricsRequest { head_only }) = self.state else { return };
        let head = head("200 OK", CONTENT_TYPE, text.len());
        let body = if head_only { Rc::from([]) } else { text.clone() };
        self.send(head, body);
    }

    /// Responds with a refusal.
    pub fn refuse(&mut self, refusal: RequestRefusal) {
        let RequestRefusal { status, text } = refusal;
        let head = head(status, "text/plain; charset=utf-8", text.len());
        self.send(head, Rc::from(text.as_bytes()));
    }

    fn send(&mut self, head: String, body: Rc<[u8]>) {
        self.state = ConnectionState::Answers { head: head.into_bytes(), body, sent: 0 };
        self.until = Instant::now() + TO_READ;
        self.write();
    }

    fn write(&mut self) {
        let ConnectionState::Answers { head, body, sent } = &mut self.state else { return };
        loop {
            let left = match sent.checked_sub(head.len()) {
                None => &head[*sent..],
                Some(of_body) => &body[of_body..],
            };
            if left.is_empty() {
                break;
            }
            match self.stream.write(left) {
                Ok(count) => *sent += count,
                Err(error) => return self.failed(&error),
            }
        }
        let is_shut = self.stream.shutdown(Shutdown::Write).is_ok();
        self.state = if is_shut { ConnectionState::Leaves } else { ConnectionState::Over };
        self.until = Instant::now() + TO_LEAVE;
    }

    /// Ignores further input.
    fn leave(&mut self) {
        match self.stream.read(&mut [0; 4096]) {
            Ok(0) => self.state = ConnectionState::Over,
            Ok(_) => {}
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &io::Error) {
        let goes_on = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
        if !goes_on.contains(&error.kind()) {
            self.state = ConnectionState::Over;
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn head(status: &str, content_type: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{HEADERS}\r\n"
    )
}
