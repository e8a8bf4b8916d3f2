//! An open capture, with its catalog.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ppt_capture::{
    Alignment, Capture, CaptureError, CaptureItem, CellTotals, Cells, Chunk, Damage, MAGIC,
};
use ppt_symbols::{CaptureHost, SearchPaths, Symbols};

use crate::catalog::{Catalog, GapAt};
use crate::error::TableError;
use crate::readings::CellChunk;

/// Damage of a capture. Its undamaged rows are read nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The capture.
    pub path: PathBuf,
    /// The damage found so far; only the first places of a heavily damaged capture.
    pub damaged: Vec<Damage>,
    /// Number of damaged places found so far.
    pub damages: u64,
    /// Offset at which the file was cut off, or is being written.
    pub cut: Option<u64>,
}

/// An open capture.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The path that the user gave.
    pub path: PathBuf,
    pub file: Arc<File>,
    /// The first 16 hex digits of its id.
    pub id: String,
    /// Number of bytes that are read.
    pub bytes: u64,
    /// From the heads of chunks.
    pub(super) by_heads: Arc<Catalog>,
    /// Sequence numbers before it that no capture of the set has. They are among the gaps of its catalogs.
    absent: Vec<GapAt>,
    /// From all bytes, once they were read.
    by_all: OnceLock<Arc<Catalog>>,
    /// Damage that was found while rows were read, by offset.
    found: Mutex<BTreeMap<u64, Damage>>,
    /// Chunks of frames before this offset are not read.
    from: u64,
    /// Converts its times to another host's clock.
    alignment: Option<Arc<Alignment>>,
    /// Created on first use.
    symbols: OnceLock<Arc<Symbols>>,
}

impl Opened {
    pub(super) fn open(path: &Path) -> Result<Opened, CaptureError> {
        let file = if path.as_os_str() == "-" {
            spool(io::stdin().lock())?
        } else {
            let file = File::open(path)?;
            let kind = file.metadata()?;
            match kind.is_file() {
                true => file,
                false if kind.is_dir() => return Err(CaptureError::Directory),
                false => spool(file)?,
            }
        };
        let by_heads = Catalog::by_heads(&reopened_path(&file))?;
        Opened::new(path, Arc::new(file), by_heads, 0)
    }

    /// A capture with this file and catalog, without the frames before the offset `from`.
    pub fn new(
        path: &Path,
        file: Arc<File>,
        mut by_heads: Catalog,
        from: u64,
    ) -> Result<Opened, CaptureError> {
        by_heads.leave_out_before(from);
        let bytes = by_heads.cut.unwrap_or(by_heads.len);
        let id = by_heads.short_id.unwrap_or_default();
        let id = hex::encode(id);
        let damaged = by_heads.damages > 0;
        let opened = Opened {
            path: path.to_owned(),
            file,
            id,
            bytes,
            by_heads: Arc::new(by_heads),
            absent: Vec::new(),
            by_all: OnceLock::new(),
            found: Mutex::default(),
            from,
            alignment: None,
            symbols: OnceLock::new(),
        };
        if damaged {
            opened.verify()?;
        }
        Ok(opened)
    }

    /// The boot id, or the id of the capture if its header is damaged.
    pub(super) fn boot(&self) -> &str {
        self.by_heads.header.as_ref().map_or(&self.id, |header| &header.boot_id)
    }

    /// The name of its host, and the boot id.
    pub fn host_and_boot(&self) -> (String, String) {
        (self.by_heads.host().to_owned(), self.boot().to_owned())
    }

    /// The names of its code addresses.
    pub fn symbols(&self) -> &Arc<Symbols> {
        self.symbols.get_or_init(|| {
            let catalog = &self.by_heads;
            let host = catalog.header.as_ref().map(CaptureHost::of_header).unwrap_or_default();
            Arc::new(Symbols::of_table(SearchPaths::default(), host, catalog.modules.clone()))
        })
    }

    /// The largest error of a time, in ns.
    pub fn time_error(&self) -> i64 {
        let clocks = &self.catalog().clocks;
        let (ticks, epoch) = (clocks.tick_error_ns(), clocks.epoch_error_ns());
        let error = ticks.unwrap_or(0).saturating_add(epoch.unwrap_or(0));
        i64::try_from(error).unwrap_or(i64::MAX)
    }

    /// Adds sequence numbers before it that no capture of the set has.
    pub(super) fn add_absence(&mut self, gap: GapAt) {
        self.absent.push(gap);
        for catalog in [Some(&mut self.by_heads), self.by_all.get_mut()].into_iter().flatten() {
            // No other reference exists yet.
            if let Some(catalog) = Arc::get_mut(catalog) {
                catalog.gaps.push(gap);
            }
        }
    }

    /// Converts its times to another host's clock from now on.
    pub(super) fn align(&mut self, alignment: Arc<Alignment>) {
        for catalog in [Some(&mut self.by_heads), self.by_all.get_mut()].into_iter().flatten() {
            // No other reference exists yet.
            if let Some(catalog) = Arc::get_mut(catalog) {
                catalog.clocks.align(alignment.clone());
            }
        }
        self.alignment = Some(alignment);
    }

    /// The most complete catalog so far.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.by_all.get().unwrap_or(&self.by_heads)
    }

    /// The catalog from all bytes, which are read once.
    pub fn verify(&self) -> Result<&Arc<Catalog>, CaptureError> {
        if let Some(known) = self.by_all.get() {
            return Ok(known);
        }
        let mut catalog = Catalog::by_all(&self.file, self.by_heads.len)?;
        catalog.leave_out_before(self.from);
        catalog.gaps.extend(&self.absent);
        if let Some(alignment) = &self.alignment {
            catalog.clocks.align(alignment.clone());
        }
        Ok(self.by_all.get_or_init(|| Arc::new(catalog)))
    }

    /// As [`Self::verify`], with the error type of tables.
    pub fn verified(&self) -> Result<&Arc<Catalog>, TableError> {
        self.verify().map_err(|error| TableError::Read { path: self.path.clone(), error })
    }

    /// The readings of counters and histograms. Readings before the part that is read are base values.
    pub fn readings(&self) -> Result<Vec<CellChunk>, TableError> {
        let mut readings = Vec::new();
        self.each_reading(CellChunk::new, |reading, offset| {
            readings.push(if offset < self.from { reading.into_base() } else { reading });
        })?;
        Ok(readings)
    }

    /// The totals of its counters and histograms.
    pub fn cells(&self) -> Result<CellTotals, TableError> {
        let mut totals = CellTotals::default();
        self.each_reading(|cells| totals.add(cells), |(), _| {})?;
        Ok(totals)
    }

    /// Calls `each` with the result of `make` for each reading of counters and histograms, and with its
    /// offset. Readings that were written after the set was opened are ignored.
    fn each_reading<T>(
        &self,
        mut make: impl FnMut(&Cells<'_>) -> T,
        mut each: impl FnMut(T, u64),
    ) -> Result<(), TableError> {
        let mut remaining = self.by_heads.readings;
        if remaining == 0 {
            return Ok(());
        }
        let failed = |error| TableError::Read { path: self.path.clone(), error };
        let mut capture = Capture::open(&reopened_path(&self.file)).map_err(failed)?;
        while remaining > 0 {
            match capture.read_heads().map_err(|error| failed(error.into()))? {
                Some(CaptureItem::Chunk(Chunk::Cells(cells))) => {
                    remaining -= 1;
                    let made = make(&cells);
                    each(made, capture.position());
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }

    /// Records damage that was found in a chunk.
    pub fn damage(&self, damage: Damage) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry(damage.offset).or_insert(damage);
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        let catalog = self.catalog();
        let mut damaged = catalog.damaged.clone();
        let mut damages = catalog.damages;
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // A verified catalog already has all damage.
        for damage in found.values().filter(|_| !catalog.verified) {
            if !damaged.contains(damage) {
                damaged.push(damage.clone());
                damages += 1;
            }
        }
        let has_trouble = damages > 0 || catalog.cut.is_some();
        has_trouble.then(|| Trouble { path: self.path.clone(), damaged, damages, cut: catalog.cut })
    }
}

/// A path that opens the same file again, with a position of its own. Another file may have its name by now.
fn reopened_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Copies a stream into an unnamed file. If the stream does not begin like a capture, only its first
/// bytes are copied: it may be endless.
fn spool(mut from: impl io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let mut head = Vec::new();
    from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut head)?;
    file.write_all(&head)?;
    if head == MAGIC {
        io::copy(&mut from, &mut file)?;
    }
    Ok(file)
}
