//! Sorts rows by time, in bounded memory.
//!
//! Rows are sorted in memory, run by run. A full run goes to an unnamed file, and all runs are
//! merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::PathBuf;

use crate::error::DumpError;
use crate::options::SortLimits;
use crate::spill::unnamed;

/// Most runs that are merged at once: each needs a file and a buffer.
const MAX_RUNS: usize = 64;
/// Bytes of the buffer of a run.
const BUFFER: usize = 64 << 10;

/// The sort key of rows. The rows of a thread with equal times keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    /// In ns since the epoch; the largest number if unknown.
    pub time: i128,
    pub source: u16,
    pub nonce: u64,
    pub ring: u32,
    pub seq: u64,
}

/// A row: its key and the length of its text in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedRow {
    pub key: RowKey,
    pub len: usize,
}

/// Sorts rows.
pub(crate) struct Sorter {
    memory: usize,
    folder: PathBuf,
    /// The rows in memory, with their offsets in `text`.
    rows: Vec<(KeyedRow, usize)>,
    text: Vec<u8>,
    /// Sorted runs.
    runs: Vec<File>,
}

impl Sorter {
    pub fn new(limits: &SortLimits) -> Self {
        let SortLimits { memory, folder } = limits.clone();
        Self { memory, folder, rows: Vec::new(), text: Vec::new(), runs: Vec::new() }
    }

    /// Takes rows. `text` is their concatenated text.
    pub fn push(&mut self, rows: &[KeyedRow], text: &[u8]) -> Result<(), DumpError> {
        let mut start = self.text.len();
        self.text.extend_from_slice(text);
        for &row in rows {
            self.rows.push((row, start));
            start += row.len;
        }
        let bytes = self.text.len() + self.rows.len() * size_of::<(KeyedRow, usize)>();
        if bytes < self.memory {
            return Ok(());
        }
        self.spill().map_err(|error| self.failed(error))
    }

    /// Writes all rows.
    pub fn finish(mut self, out: &mut impl Write) -> Result<(), DumpError> {
        if self.runs.is_empty() {
            return self.each_sorted(|_, text| out.write_all(text)).map_err(DumpError::Output);
        }
        self.spill().map_err(|error| self.failed(error))?;
        let runs = std::mem::take(&mut self.runs);
        let mut merge = Merge::new(runs).map_err(|error| self.failed(error))?;
        while let Some((_, text)) = merge.next().map_err(|error| self.failed(error))? {
            out.write_all(text).map_err(DumpError::Output)?;
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> DumpError {
        DumpError::Sort { folder: self.folder.clone(), error }
    }

    /// Passes on the rows in memory in order, and removes them.
    fn each_sorted(
        &mut self,
        mut each: impl FnMut(&RowKey, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.rows.sort_unstable_by_key(|(row, _)| row.key);
        for (row, start) in self.rows.drain(..) {
            each(&row.key, &self.text[start..start + row.len])?;
        }
        self.text.clear();
        Ok(())
    }

    /// Moves the rows in memory to a new run.
    fn spill(&mut self) -> io::Result<()> {
        let mut run = BufWriter::with_capacity(BUFFER, unnamed(&self.folder)?);
        self.each_sorted(|key, text| write_row(&mut run, key, text))?;
        self.runs.push(run.into_inner()?);
        if self.runs.len() < MAX_RUNS {
            return Ok(());
        }
        let mut file = BufWriter::with_capacity(BUFFER, unnamed(&self.folder)?);
        let mut merge = Merge::new(std::mem::take(&mut self.runs))?;
        while let Some((key, text)) = merge.next()? {
            write_row(&mut file, &key, text)?;
        }
        self.runs.push(file.into_inner()?);
        Ok(())
    }
}

/// Bytes of a key in a run, and of the length of the text after it.
const HEAD: usize = 16 + 2 + 8 + 4 + 8 + 8;

fn write_row(out: &mut impl Write, key: &RowKey, text: &[u8]) -> io::Result<()> {
    out.write_all(&key.time.to_le_bytes())?;
    out.write_all(&key.source.to_le_bytes())?;
    out.write_all(&key.nonce.to_le_bytes())?;
    out.write_all(&key.ring.to_le_bytes())?;
    out.write_all(&key.seq.to_le_bytes())?;
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(text)
}

/// A run that is read back: one row at a time.
struct SortedRun {
    file: BufReader<File>,
    text: Vec<u8>,
}

impl SortedRun {
    /// Reads the next row into `text`; its key, or None after the last row.
    fn advance(&mut self) -> io::Result<Option<RowKey>> {
        let mut head = [0; HEAD];
        match self.file.read_exact(&mut head[..1]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        self.file.read_exact(&mut head[1..])?;
        let mut rest = &head[..];
        let key = RowKey {
            time: i128::from_le_bytes(take_bytes(&mut rest)),
            source: u16::from_le_bytes(take_bytes(&mut rest)),
            nonce: u64::from_le_bytes(take_bytes(&mut rest)),
            ring: u32::from_le_bytes(take_bytes(&mut rest)),
            seq: u64::from_le_bytes(take_bytes(&mut rest)),
        };
        self.text.resize(u64::from_le_bytes(take_bytes(&mut rest)) as usize, 0);
        self.file.read_exact(&mut self.text)?;
        Ok(Some(key))
    }
}

fn take_bytes<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (first, rest) = bytes.split_first_chunk().expect("a head has all fields");
    *bytes = rest;
    *first
}

/// Merges runs.
struct Merge {
    runs: Vec<SortedRun>,
    /// The key of the current row of each run, and the number of the run.
    heads: BinaryHeap<Reverse<(RowKey, usize)>>,
    /// The run of the last row.
    last: Option<usize>,
}

impl Merge {
    fn new(files: Vec<File>) -> io::Result<Self> {
        let mut merge = Merge { runs: Vec::new(), heads: BinaryHeap::new(), last: None };
        for (number, mut file) in files.into_iter().enumerate() {
            file.rewind()?;
            let file = BufReader::with_capacity(BUFFER, file);
            merge.runs.push(SortedRun { file, text: Vec::new() });
            merge.advance(number)?;
        }
        Ok(merge)
    }

    fn advance(&mut self, number: usize) -> io::Result<()> {
        let key = self.runs[number].advance()?;
        self.heads.extend(key.map(|key| Reverse((key, number))));
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<(RowKey, &[u8])>> {
        if let Some(last) = self.last.take() {
            self.advance(last)?;
        }
        let Some(Reverse((key, number))) = self.heads.pop() else { return Ok(None) };
        self.last = Some(number);
        Ok(Some((key, &self.runs[number].text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(memory: usize, times: &[i128]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let limits = SortLimits { memory, folder: folder.path().to_owned() };
        let mut sorter = Sorter::new(&limits);
        for (seq, &time) in (0..).zip(times) {
            let key = RowKey { time, source: 0, nonce: 0, ring: 0, seq };
            let text = format!("{time}.{seq}\n");
            sorter.push(&[KeyedRow { key, len: text.len() }], text.as_bytes()).unwrap();
        }
        let mut out = Vec::new();
        sorter.finish(&mut out).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files have no names");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_come_in_order_however_little_memory_there_is() {
        let times: Vec<i128> = (0..3000u64).map(|n| i128::from(n * 7919 % 1009)).collect();
        let mut expected: Vec<(i128, usize)> =
            times.iter().enumerate().map(|(seq, &time)| (time, seq)).collect();
        expected.sort_unstable();
        let expected: String =
            expected.iter().map(|(time, seq)| format!("{time}.{seq}\n")).collect();
        // All in memory; some runs; more runs than are merged at once.
        for memory in [1 << 20, 20_000, 500] {
            assert_eq!(sorted(memory, &times), expected, "{memory} bytes");
        }
    }
}
