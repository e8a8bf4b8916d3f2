//! Transfers the text from the capturing process to the serving one.
//!
//! The server asks with one byte. The answer is its length, four bytes, least significant first,
//! and the text.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Most bytes of a text.
pub(crate) const MAX_TEXT_BYTES: usize = 16 << 20;
/// Asks for the current text.
const ASK: u8 = b'?';

/// Answers each question with a text, until the server closes the socket.
///
/// # Errors
/// The socket fails.
pub fn answer(mut socket: &UnixStream, mut text: impl FnMut() -> String) -> io::Result<()> {
    loop {
        let mut question = [0];
        match socket.read(&mut question) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let text = text();
        socket.write_all(&(text.len() as u32).to_le_bytes())?;
        socket.write_all(text.as_bytes())?;
    }
}

/// The server's end.
#[derive(Debug)]
pub(crate) struct MetricsSource {
    socket: UnixStream,
    /// The received part of an answer.
    bytes: Vec<u8>,
}

impl MetricsSource {
    pub fn new(socket: UnixStream) -> io::Result<MetricsSource> {
        socket.set_nonblocking(true)?;
        Ok(MetricsSource { socket, bytes: Vec::new() })
    }

    pub fn ask(&mut self) -> io::Result<()> {
        self.socket.write_all(&[ASK])
    }

    /// The text, once it is complete.
    ///
    /// # Errors
    /// The other end is closed.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = [0; 64 << 10];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let Some((length, text)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if text.len() < length {
            return Ok(None);
        }
        let text = text[..length].to_vec();
        self.bytes.clear();
        Ok(Some(text))
    }
}

impl AsFd for MetricsSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
