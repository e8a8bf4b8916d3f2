//! The text on its way from the process that captures to the one that serves.
//!
//! The server asks by one byte. The answer is its length, four bytes with the least first, and the text.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Most bytes of a text.
pub(crate) const MOST_TEXT: usize = 16 << 20;
/// Asks for the text of this moment.
const ASK: u8 = b'?';

/// Answers each question with a text, until nobody asks any more.
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

/// The end of the server.
#[derive(Debug)]
pub(crate) struct Source {
    socket: UnixStream,
    /// What has come of an answer.
    bytes: Vec<u8>,
}

impl Source {
    pub fn new(socket: UnixStream) -> io::Result<Source> {
        socket.set_nonblocking(true)?;
        Ok(Source { socket, bytes: Vec::new() })
    }

    pub fn ask(&mut self) -> io::Result<()> {
        self.socket.write_all(&[ASK])
    }

    /// The text, once it is whole.
    ///
    /// # Errors
    /// Nobody answers any more.
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

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
