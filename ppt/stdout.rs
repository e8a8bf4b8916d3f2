//! Standard output, of both binaries. Whoever reads a pipe may stop reading: that is no error.

use std::io::{self, Write};

/// Writes text that may have styles, which only a terminal gets.
pub(crate) fn styled(text: &str) -> io::Result<()> {
    unless_closed(anstream::stdout().lock().write_all(text.as_bytes()))
}

/// Writes text as it is.
pub(crate) fn plain(text: &str) -> io::Result<()> {
    by(|out| out.write_all(text.as_bytes()))
}

/// Writes what `write` does, as it is.
pub(crate) fn by(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_closed(write(&mut out).and_then(|()| out.flush()))
}

/// What went wrong, unless it is that nobody reads any more.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if is_closed(&error) { Ok(()) } else { Err(error) })
}

/// Whether nobody reads any more.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
