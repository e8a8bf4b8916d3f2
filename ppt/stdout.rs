//! Standard output of both binaries. If the reader of a pipe stops reading, that is no error.

use std::io::{self, Write};

/// Prints text whose styles only a terminal gets.
pub(crate) fn styled(text: &str) -> io::Result<()> {
    unless_closed(anstream::stdout().lock().write_all(text.as_bytes()))
}

/// Prints text unchanged.
pub(crate) fn plain(text: &str) -> io::Result<()> {
    by(|out| out.write_all(text.as_bytes()))
}

/// Prints what `write` writes, unchanged.
pub(crate) fn by(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_closed(write(&mut out).and_then(|()| out.flush()))
}

/// The error, unless the reader has stopped reading.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if is_closed(&error) { Ok(()) } else { Err(error) })
}

/// Whether the reader has stopped reading.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
