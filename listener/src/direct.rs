//! A file that large chunks go to past the page cache.
//!
//! The kernel's copy into pages that are new each time costs more than all that a listener does
//! besides (`docs/performance.md` has the figures). Whole blocks of a large chunk are written from
//! memory of ours instead (O_DIRECT), its edges and small chunks as ever: no block is written both
//! ways, the file is never longer than what was written, and each `write` falls short where the way
//! changes, so that who calls again goes on there.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};

/// What places in the file and in memory are multiples of: no file system asks for more.
const BLOCK: usize = 4096;
/// Least bytes that are worth a wait for the disk.
const LARGE: usize = 256 << 10;
/// Most bytes of one write.
const MOST: usize = 2 << 20;

/// A file, written from its start, by nobody else; it may be open for appending.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    at: u64,
    /// The flags that the file has otherwise; None where it takes no direct writes.
    flags: Option<OFlag>,
    /// More waits than should.
    behind: Arc<AtomicBool>,
    /// Bytes a second of the last large writes.
    direct: f64,
    cached: f64,
    /// Room for one write at a multiple of [`BLOCK`].
    memory: Vec<u8>,
}

impl DirectFile {
    /// Writes into `file`, which is past the page cache if that is an empty regular file that takes
    /// it. While `behind` is set, whichever way was faster is taken.
    pub fn new(file: File, behind: Arc<AtomicBool>) -> Self {
        let regular = fstat(&file).is_ok_and(|it| {
            let kind = SFlag::from_bits_truncate(it.st_mode) & SFlag::S_IFMT;
            kind == SFlag::S_IFREG && it.st_size == 0
        });
        let flags = fcntl(&file, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
        let flags = flags.ok().filter(|_| regular);
        // Of a way that was not gone, nothing bad is known.
        let (direct, cached) = (f64::INFINITY, f64::INFINITY);
        Self { file, at: 0, flags, behind, direct, cached, memory: Vec::new() }
    }

    /// Writes into `file` as any program does: others may have it, too.
    pub fn plain(file: File) -> Self {
        Self { flags: None, ..Self::new(file, Arc::default()) }
    }

    /// Writes `len` bytes of `parts`, whole blocks.
    fn write_direct(
        &mut self,
        parts: &[IoSlice<'_>],
        len: usize,
        flags: OFlag,
    ) -> io::Result<usize> {
        if self.memory.is_empty() {
            self.memory = vec![0; MOST + BLOCK];
        }
        let start = self.memory.as_ptr().align_offset(BLOCK);
        let mut room = &mut self.memory[start..start + len];
        for part in parts {
            room.write_all(&part[..part.len().min(room.len())])?;
        }
        let memory = &self.memory[start..start + len];
        fcntl(&self.file, FcntlArg::F_SETFL(flags | OFlag::O_DIRECT))?;
        let written = self.file.write(memory);
        // It was so before, and so it can be so again.
        let _ = fcntl(&self.file, FcntlArg::F_SETFL(flags));
        written
    }
}

impl Write for DirectFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let begun = (len >= LARGE).then(Instant::now);
        let wanted = !self.behind.load(Relaxed) || self.direct >= self.cached;
        if let Some(flags) = self.flags.filter(|_| wanted && len >= LARGE) {
            let edge = (self.at.next_multiple_of(BLOCK as u64) - self.at) as usize;
            let result = match edge {
                0 => self.write_direct(parts, len.min(MOST) / BLOCK * BLOCK, flags),
                edge => self.file.write(first(parts, edge)),
            };
            match result {
                Ok(written) => {
                    self.at += written as u64;
                    if let Some(begun) = begun.filter(|_| edge == 0) {
                        self.direct = written as f64 / begun.elapsed().as_secs_f64();
                    }
                    return Ok(written);
                }
                // Whatever it is: if it is more than a dislike of direct writes, it comes again.
                Err(_) => self.flags = None,
            }
        }
        let written = self.file.write_vectored(parts)?;
        self.at += written as u64;
        if let Some(begun) = begun {
            self.cached = written as f64 / begun.elapsed().as_secs_f64();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The first `len` bytes, or fewer: those of the first part that has any.
fn first<'a>(parts: &'a [IoSlice<'_>], len: usize) -> &'a [u8] {
    let part = parts.iter().find(|part| !part.is_empty());
    part.map_or(&[], |part| &part[..part.len().min(len)])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes all of it as a chunk's three parts; returns in how many writes.
    fn write_all(out: &mut DirectFile, bytes: &[u8]) -> usize {
        let (head, rest) = bytes.split_at(bytes.len().min(192));
        let (body, tail) = rest.split_at(rest.len() - rest.len().min(40));
        let mut parts = &mut [head, body, tail].map(IoSlice::new)[..];
        let mut writes = 0;
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let written = out.write_vectored(parts).unwrap();
            IoSlice::advance_slices(&mut parts, written);
            writes += 1;
        }
        writes
    }

    #[test]
    fn what_is_written_is_in_the_file_at_once_and_nothing_else() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("out");
        let behind = Arc::new(AtomicBool::new(false));
        let file = File::options().append(true).create_new(true).open(&path).unwrap();
        let mut out = DirectFile::new(file, behind.clone());
        let mut expected = Vec::new();
        let sizes = [256, 100, LARGE, 4096, MOST * 2 + 700, 64, LARGE - 1, LARGE + 64, 2 * LARGE];
        for (round, size) in sizes.iter().cycle().take(3 * sizes.len()).enumerate() {
            behind.store(round / sizes.len() == 1, Relaxed);
            let bytes: Vec<u8> = (0..*size).map(|at| (at * 7 + round) as u8).collect();
            let writes = write_all(&mut out, &bytes);
            assert!(writes <= 4 + size.div_ceil(MOST), "{writes} for {size}");
            expected.extend(bytes);
            assert!(fs::read(&path).unwrap() == expected, "after {size} in round {round}");
        }
    }

    #[test]
    fn what_takes_no_direct_writes_is_written_as_ever() {
        let (mut from, to) = io::pipe().unwrap();
        let to = std::os::fd::OwnedFd::from(to);
        let mut out = DirectFile::new(to.into(), Arc::default());
        let bytes = vec![7; 3 * LARGE];
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            io::Read::read_to_end(&mut from, &mut all).unwrap();
            all
        });
        write_all(&mut out, &bytes);
        drop(out);
        assert!(reader.join().unwrap() == bytes);
    }
}
