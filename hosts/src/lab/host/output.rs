//! Captures a program's output into a file, up to a limit. Beyond the limit the program continues,
//! and its output is only counted.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// Bytes kept. A program that prints more is faulty and would fill the disk.
const MAX_MIB: u64 = 64;
/// Capacity of the pipe in bytes, so that the program need not wait while the machine is busy.
const WAITING: usize = 1 << 20;

/// A file that receives a program's output.
pub(super) struct ProgramOutput {
    path: PathBuf,
    /// A byte asks the thread to drain the pipe; end of file asks it to end.
    asks: Option<OwnedFd>,
    /// Receives a message for each such byte.
    answers: Receiver<()>,
    thread: Option<JoinHandle<u64>>,
}

impl ProgramOutput {
    /// Creates the file at `path`, which must not exist. Also returns the program's end of the
    /// pipe.
    pub(super) fn create(path: PathBuf) -> io::Result<(Self, OwnedFd)> {
        let file = File::create_new(&path)?;
        let (from, program) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&from, OFlags::NONBLOCK)?;
        // A user limit may forbid this size; then the pipe is smaller.
        let _ = fcntl_setpipe_size(&program, WAITING);
        let (asked, asks) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&asked, OFlags::NONBLOCK)?;
        let (answer, answers) = channel();
        let copy = Copy { from, asked, answer, file, copied: 0, left_out: 0 };
        let thread = thread::Builder::new().name("output".to_owned());
        let thread = thread.spawn(move || copy.run())?;
        Ok((Self { path, asks: Some(asks), answers, thread: Some(thread) }, program))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the file contains everything the program has printed so far.
    pub(super) fn flush(&mut self) {
        let asked = self.asks.as_ref().is_some_and(|asks| rustix::io::write(asks, b"f") == Ok(1));
        if asked {
            // A thread that saw the end of the pipe does not answer, because it has copied
            // everything.
            let _ = self.answers.recv();
        }
    }

    /// Copies the content of the pipe and ends; notes in the file if output was left out. Returns the
    /// number of bytes left out; 0 if it was finished before.
    pub(super) fn finish(&mut self) -> u64 {
        self.asks = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(0)
    }
}

impl Drop for ProgramOutput {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The copying thread.
struct Copy {
    from: OwnedFd,
    asked: OwnedFd,
    answer: Sender<()>,
    file: File,
    copied: u64,
    left_out: u64,
}

impl Copy {
    fn run(mut self) -> u64 {
        loop {
            let mut fds =
                [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.asked, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            let is_open = self.take();
            let mut asks = [0; 16];
            match rustix::io::read(&self.asked, &mut asks) {
                Ok(0) => break,
                Ok(count) => {
                    self.take();
                    for _ in 0..count {
                        let _ = self.answer.send(());
                    }
                }
                Err(_) if is_open => {}
                Err(_) => break,
            }
        }
        self.take();
        if self.left_out > 0 {
            let _ = writeln!(
                self.file,
                "\nppt lab: the program printed more than {MAX_MIB} MiB: {} bytes are left out",
                self.left_out
            );
        }
        self.left_out
    }

    /// Copies the content of the pipe, at most its capacity. Returns whether more may come.
    fn take(&mut self) -> bool {
        let mut buffer = vec![0; 64 << 10];
        for _ in 0..=2 * WAITING / buffer.len() {
            match rustix::io::read(&self.from, &mut buffer) {
                Ok(0) => return false,
                Ok(read) => self.keep(&buffer[..read]),
                Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
        true
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (MAX_MIB << 20) - self.copied;
        let copied = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        // Output that a full disk rejects is counted as left out.
        let written = self.file.write_all(&bytes[..copied]).is_ok();
        self.copied += copied as u64;
        self.left_out += if written { bytes.len() - copied } else { bytes.len() } as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_that_prints_without_end_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (mut output, program) = ProgramOutput::create(path.clone()).unwrap();
        let mut program = File::from(program);
        program.write_all(b"begin\n").unwrap();
        output.flush();
        assert_eq!(fs::read(&path).unwrap(), b"begin\n");
        let line = [b'x'; 1 << 20];
        for _ in 0..=MAX_MIB {
            program.write_all(&line).unwrap();
        }
        output.flush();
        assert_eq!(fs::metadata(&path).unwrap().len(), MAX_MIB << 20);
        // A process that left the group holds the pipe open; that must not delay anyone.
        let left_out = output.finish();
        assert_eq!(left_out, (1 << 20) + 6);
        let text = fs::read(&path).unwrap();
        let end = b"\nppt lab: the program printed more than 64 MiB: 1048582 bytes are left out\n";
        assert!(text.ends_with(end), "{:?}", String::from_utf8_lossy(&text[text.len() - 90..]));
        assert_eq!(output.finish(), 0);
    }

    #[test]
    fn a_program_that_ends_leaves_all_it_printed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut output, program) = ProgramOutput::create(folder.path().join("out")).unwrap();
        File::from(program).write_all(b"all").unwrap();
        output.flush();
        assert_eq!(fs::read(output.path()).unwrap(), b"all");
        assert_eq!(output.finish(), 0);
        assert_eq!(fs::read(output.path()).unwrap(), b"all");
    }
}
