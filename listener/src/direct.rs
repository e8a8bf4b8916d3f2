//! A file to which large chunks are written past the page cache.
//!
//! The kernel's copy into new pages costs more than everything else that a listener does
//! (`docs/measured/performance.md` has the figures). So whole blocks of a large chunk are written
//! directly from our memory (O_DIRECT); its edges and small chunks are written normally. No block is
//! written both ways, and the file is never longer than what was written. Each `write` returns short
//! where the method changes, so that the next call continues there.
//!
//! Direct writes need aligned memory and file offsets. Frames in memory and in captures are
//! aligned, so they are written without a copy. Unaligned data is copied first.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};
use ppt_capture::{ALIGNED_PAYLOAD_FROM, BLOCK};

/// Most bytes of one write.
const MAX_WRITE_BYTES: usize = 2 << 20;

/// A file that has no other writer and is written from its start. It may be open for appending.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    at: u64,
    /// The flags for normal writes. `None` if the file takes no direct writes.
    flags: Option<OFlag>,
    /// Set while too much data waits.
    behind: Arc<AtomicBool>,
    /// Bytes a second of the last large writes, for each method.
    direct: f64,
    cached: f64,
    /// Buffer for unaligned data.
    head: Aligned,
    memory: Aligned,
}

/// Memory aligned to [`BLOCK`].
#[derive(Debug, Default)]
struct Aligned(Vec<u8>);

impl Aligned {
    /// A copy of the concatenated `parts`, at most `most` bytes.
    fn hold<'a>(&mut self, most: usize, parts: impl IntoIterator<Item = &'a [u8]>) -> &[u8] {
        if self.0.is_empty() {
            self.0 = vec![0; most + BLOCK];
        }
        let start = self.0.as_ptr().align_offset(BLOCK);
        let mut len = 0;
        for part in parts {
            let part = &part[..part.len().min(most - len)];
            self.0[start + len..][..part.len()].copy_from_slice(part);
            len += part.len();
        }
        &self.0[start..start + len]
    }
}

impl DirectFile {
    /// Writes into `file`: past the page cache if it is an empty regular file that supports that.
    /// While `behind` is set, the faster method is used.
    pub fn new(file: File, behind: Arc<AtomicBool>) -> Self {
        let regular = fstat(&file).is_ok_and(|fstat| {
            let kind = SFlag::from_bits_truncate(fstat.st_mode) & SFlag::S_IFMT;
            kind == SFlag::S_IFREG && fstat.st_size == 0
        });
        let flags = fcntl(&file, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
        let flags = flags.ok().filter(|_| regular);
        // A method that has not been tried is assumed to be fast.
        let (direct, cached) = (f64::INFINITY, f64::INFINITY);
        let (head, memory) = Default::default();
        Self { file, at: 0, flags, behind, direct, cached, head, memory }
    }

    /// Writes into `file` normally; other programs may write to it, too.
    pub fn plain(file: File) -> Self {
        Self { flags: None, ..Self::new(file, Arc::default()) }
    }

    /// Writes whole blocks from the start of `parts`: without a copy if possible, after a head of
    /// whole blocks.
    fn write_direct(&mut self, parts: &[IoSlice<'_>], flags: OFlag) -> io::Result<usize> {
        let mut parts = parts.iter().map(|part| &**part).filter(|part| !part.is_empty()).peekable();
        let is_head = |part: &&[u8]| part.len() == BLOCK && !is_movable(part);
        let head = parts.next_if(is_head).unwrap_or_default();
        if let Some(part) = parts.next_if(|part| is_movable(part)) {
            let blocks = IoSlice::new(&part[..part.len() / BLOCK * BLOCK]);
            let head = IoSlice::new(self.head.hold(BLOCK, [head]));
            return written_directly(&mut self.file, &[head, blocks], flags);
        }
        let copy = self.memory.hold(MAX_WRITE_BYTES, [head].into_iter().chain(parts));
        let blocks = IoSlice::new(&copy[..copy.len() / BLOCK * BLOCK]);
        written_directly(&mut self.file, &[blocks], flags)
    }

    /// Bytes to write normally before direct writes can begin: up to the first part that can be
    /// written without a copy, or else up to the next block.
    fn edge(&self, parts: &[IoSlice<'_>]) -> usize {
        let to_block = (self.at.next_multiple_of(BLOCK as u64) - self.at) as usize;
        let mut before = 0;
        for part in parts {
            let at = self.at + before as u64;
            if is_movable(part) && at.is_multiple_of(BLOCK as u64) && to_block > 0 {
                return before;
            }
            before += part.len();
        }
        to_block
    }
}

impl Write for DirectFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let begun = (len >= ALIGNED_PAYLOAD_FROM).then(Instant::now);
        let wanted = !self.behind.load(Relaxed) || self.direct >= self.cached;
        if let Some(flags) = self.flags.filter(|_| wanted && len >= ALIGNED_PAYLOAD_FROM) {
            let edge = self.edge(parts);
            let result = match edge {
                0 => self.write_direct(parts, flags),
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
                // Any error leads here. If direct writing was not the cause, the error recurs.
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

/// Writes whole blocks.
fn written_directly(file: &mut File, blocks: &[IoSlice<'_>], flags: OFlag) -> io::Result<usize> {
    fcntl(&*file, FcntlArg::F_SETFL(flags | OFlag::O_DIRECT))?;
    let written = file.write_vectored(blocks);
    // The flags were set before, so they can be restored.
    let _ = fcntl(&*file, FcntlArg::F_SETFL(flags));
    written
}

/// Whether much of a part can be written directly without a copy.
fn is_movable(part: &[u8]) -> bool {
    part.len() >= ALIGNED_PAYLOAD_FROM && part.as_ptr().addr().is_multiple_of(BLOCK)
}

/// At most the first `len` bytes of the first part that is not empty.
fn first<'a>(parts: &'a [IoSlice<'_>], len: usize) -> &'a [u8] {
    let part = parts.iter().find(|part| !part.is_empty());
    part.map_or(&[], |part| &part[..part.len().min(len)])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::buffer::{LARGE_CHUNK, WordBuffer};

    /// Writes `bytes` as a chunk's three parts. Returns the number of writes.
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
        let sizes = [
            256,
            100,
            ALIGNED_PAYLOAD_FROM,
            4096,
            MAX_WRITE_BYTES * 2 + 700,
            64,
            ALIGNED_PAYLOAD_FROM - 1,
            ALIGNED_PAYLOAD_FROM + 64,
            2 * ALIGNED_PAYLOAD_FROM,
        ];
        for (round, size) in sizes.iter().cycle().take(3 * sizes.len()).enumerate() {
            behind.store(round / sizes.len() == 1, Relaxed);
            let bytes: Vec<u8> = (0..*size).map(|at| (at * 7 + round) as u8).collect();
            let writes = write_all(&mut out, &bytes);
            assert!(writes <= 4 + size.div_ceil(MAX_WRITE_BYTES), "{writes} for {size}");
            expected.extend(bytes);
            assert!(fs::read(&path).unwrap() == expected, "after {size} in round {round}");
        }
    }

    #[test]
    fn frames_are_written_from_where_they_are() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("out");
        let mut out = DirectFile::new(File::create_new(&path).unwrap(), Arc::default());
        if out.flags.is_none() {
            eprintln!("skipped: no direct writes here");
            return;
        }
        let mut buffer = WordBuffer::new(LARGE_CHUNK);
        buffer.room(LARGE_CHUNK / 8).fill(*b"12345678");
        buffer.keep(LARGE_CHUNK / 8);
        let frames = buffer.words().as_flattened();
        let (padding, mut expected) = ([0; 63], Vec::new());
        // As in captures: whole blocks, then not whole ones, then starting in the middle of a
        // block.
        for (head, len) in [
            (BLOCK, 2 * ALIGNED_PAYLOAD_FROM),
            (BLOCK, ALIGNED_PAYLOAD_FROM + 640),
            (BLOCK - 640, LARGE_CHUNK),
        ] {
            let parts = [&[7; BLOCK][..head], &frames[..len], &padding[..len % 64]];
            let mut slices = &mut parts.map(IoSlice::new)[..];
            while !slices.is_empty() {
                let written = out.write_vectored(slices).unwrap();
                IoSlice::advance_slices(&mut slices, written);
            }
            expected.extend(parts.concat());
            assert!(fs::read(&path).unwrap() == expected, "{head} and {len}");
        }
        assert!(out.flags.is_some() && out.memory.0.is_empty(), "nothing was copied");
        assert!(!out.head.0.is_empty());
    }

    #[test]
    fn what_takes_no_direct_writes_is_written_as_ever() {
        let (mut from, to) = io::pipe().unwrap();
        let to = std::os::fd::OwnedFd::from(to);
        let mut out = DirectFile::new(to.into(), Arc::default());
        let bytes = vec![7; 3 * ALIGNED_PAYLOAD_FROM];
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
