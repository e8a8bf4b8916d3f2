//! A set of captures: the input of a query.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::StringArray;
use ppt_capture::columns::FrameThreads;
use ppt_capture::frame_dsl::edge::Edge;
use ppt_capture::{
    Absence, Alignment, Capture, CaptureError, CaptureItem, CellTotals, Cells, Chunk, Damage,
    MAGIC, SequenceCoverage, SourceInfo,
};
use ppt_symbols::{CaptureHost, SearchPaths, Symbols};

use crate::builder::Dictionary;
use crate::catalog::{Catalog, ChunkOwner, GapAt};
use crate::error::{SetError, TableError};
use crate::hosts::{CaptureClock, Clocks, TimeBounds};
use crate::paths::expand;
use crate::readings::CellChunk;
use crate::watch::ScanProgress;

/// The kind of sources with the kernel's frames.
pub(crate) const KERNEL: &str = "kernel";
/// The kind of sources with stacks of threads.
pub(crate) const STACKS: &str = "stacks";
/// The kind of sources with rounds of `ppt whatif --live`, and the name of their buffer.
pub(crate) const ROUNDS: &str = "rounds";

/// Captures, each once.
///
/// Captures that grow are read up to the length that they had when the set was opened.
#[derive(Debug)]
pub struct CaptureSet {
    captures: Vec<Opened>,
    /// Sequence numbers between captures that no capture has.
    absent: Vec<Absence>,
    /// The columns that identify rows.
    names: RowNames,
    clocks: Arc<Clocks>,
    watch: ScanProgress,
    /// Edge lines that replace those of the schemas.
    edges: Option<Vec<Edge>>,
}

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
    by_heads: Arc<Catalog>,
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

/// The dictionaries of the columns that identify a row.
#[derive(Debug)]
pub(crate) struct RowNames {
    pub captures: Arc<StringArray>,
    pub buffers: Arc<StringArray>,
    pub segments: Arc<StringArray>,
    pub hosts: Arc<StringArray>,
    buffer_keys: Dictionary,
    segment_keys: HashMap<u64, i32>,
    host_keys: Dictionary,
    processes: HashMap<HostProcess, i32>,
}

/// A process of any host and boot. Pids are reused, and hosts that share a boot are namespaces with pids of
/// their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HostProcess {
    host: String,
    boot: String,
    pid: u32,
    start: u64,
}

/// The keys of an owner in the columns that identify a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnerKeys {
    pub source: u16,
    pub nonce: u64,
    pub capture: i32,
    pub buffer: i32,
    pub segment: i32,
    pub host: i32,
    pub ring: Option<i32>,
    pub tid: Option<i32>,
    /// Frames of the source may be about a thread other than their writer.
    pub names_threads: bool,
    pub pid: Option<i32>,
    /// Index of the source in the catalog.
    pub info: usize,
    /// Number of the process in the set.
    pub process: i32,
}

impl CaptureSet {
    /// Opens captures: files, patterns, common names of numbered parts, `-` for standard input. A capture
    /// that is named twice counts once; of two copies, the longer one counts.
    ///
    /// # Errors
    /// See [`SetError`]. Damage is not an error: see [`Self::troubles`].
    pub fn open(names: &[PathBuf]) -> Result<CaptureSet, SetError> {
        let mut captures: Vec<Opened> = Vec::new();
        // From last to first: while a series grows, a file is complete once a later one exists.
        for path in expand(names)?.into_iter().rev() {
            let opened = Opened::open(&path).map_err(|error| SetError::Capture { path, error })?;
            let copy = captures.iter().position(|copy| copy.id == opened.id);
            let copy = copy.map(|index| captures.remove(index));
            captures.push(copy.filter(|copy| copy.bytes > opened.bytes).unwrap_or(opened));
        }
        captures.reverse();
        Ok(CaptureSet::from_captures(captures))
    }

    /// A set of these captures, in this order.
    pub(crate) fn from_captures(mut captures: Vec<Opened>) -> CaptureSet {
        let absent = absent(&captures);
        for absence in &absent {
            let since =
                captures[absence.before].catalog().since(absence.gap.nonce, absence.gap.ring);
            captures[absence.behind].add_absence(GapAt {
                gap: absence.gap,
                noticed: 0,
                since: Some(since),
            });
        }
        let names = RowNames::new(&captures);
        let clocks = Arc::new(own_clocks(&captures));
        CaptureSet { captures, absent, names, clocks, watch: ScanProgress::default(), edges: None }
    }

    /// Converts the times of captures by these alignments, which lead to these clocks.
    pub(crate) fn with_clocks(
        mut self,
        clocks: Clocks,
        alignments: Vec<Option<Arc<Alignment>>>,
    ) -> CaptureSet {
        for (capture, alignment) in self.captures.iter_mut().zip(alignments) {
            if let Some(alignment) = alignment {
                capture.align(alignment);
            }
        }
        CaptureSet { clocks: Arc::new(clocks), ..self }
    }

    /// Replaces the edge lines of the captures.
    #[must_use]
    pub fn with_edges(self, edges: Vec<Edge>) -> CaptureSet {
        CaptureSet { edges: Some(edges), ..self }
    }

    /// The edge lines that replace those of the captures, if there are any.
    pub(crate) fn edges(&self) -> Option<&[Edge]> {
        self.edges.as_deref()
    }

    /// Reads all bytes of every capture, once. From then on, catalogs agree with `ppt info`.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub fn verify(&self) -> Result<(), SetError> {
        for capture in &self.captures {
            let error = |error| SetError::Capture { path: capture.path.clone(), error };
            capture.verify().map_err(error)?;
        }
        Ok(())
    }

    /// The damage found so far, of each damaged capture.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.captures.iter().filter_map(Opened::trouble).collect()
    }

    /// Progress of readers.
    pub fn watch(&self) -> &ScanProgress {
        &self.watch
    }

    /// The clock of each capture.
    pub fn clocks(&self) -> &Arc<Clocks> {
        &self.clocks
    }

    /// The names of the buffers.
    pub fn buffers(&self) -> impl Iterator<Item = &str> {
        self.names.buffers.iter().flatten()
    }

    /// Whether a capture has frames of the kernel.
    pub fn has_kernel(&self) -> bool {
        let mut all = self.captures.iter().flat_map(|capture| &capture.catalog().sources);
        all.any(|info| info.source.kind == KERNEL)
    }

    /// Whether ppt slowed intervals down in rounds (`ppt whatif --live`).
    pub fn has_rounds(&self) -> bool {
        let mut all = self.captures.iter().flat_map(|capture| &capture.catalog().sources);
        all.any(|info| info.source.kind == ROUNDS)
    }

    /// The buffer with the stacks of threads, if there is one.
    pub fn stacks_buffer(&self) -> Option<&str> {
        let mut all = self.captures.iter().flat_map(|opened| &opened.catalog().sources);
        let found = all.find(|info| info.source.kind == STACKS)?;
        Some(&found.source.buffer)
    }

    /// Whether only ppt itself wrote into this buffer: kernel events, stacks or rounds, which have tables and
    /// pictures of their own.
    pub fn is_kernel(&self, buffer: &str) -> bool {
        let all = self.captures.iter().flat_map(|capture| &capture.catalog().sources);
        let mut own = all.filter(|info| info.source.buffer == buffer).peekable();
        own.peek().is_some()
            && own.all(|info| [KERNEL, STACKS, ROUNDS].contains(&info.source.kind.as_str()))
    }

    pub(crate) fn absent(&self) -> &[Absence] {
        &self.absent
    }

    pub(crate) fn captures(&self) -> &[Opened] {
        &self.captures
    }

    /// The number of the process of a source of a capture.
    pub(crate) fn process(&self, capture: usize, info: &SourceInfo) -> i32 {
        let process = process(&self.captures[capture], info);
        self.names.processes.get(&process).copied().unwrap_or(-1)
    }

    /// A text that identifies a process across sets; `number` is its number in this set.
    pub(crate) fn process_name(&self, number: i32) -> String {
        let found = self.names.processes.iter().find(|entry| *entry.1 == number);
        found.map(|(process, _)| format!("{process:?}")).unwrap_or_default()
    }

    /// The boot id of a capture. A capture without one counts as a boot of its own.
    pub(crate) fn boot(&self, capture: usize) -> &str {
        self.captures[capture].boot()
    }

    /// The host of a capture and its boot, for messages.
    pub(crate) fn host(&self, capture: usize) -> String {
        let opened = &self.captures[capture];
        format!("`{}` (boot {})", opened.catalog().host(), opened.boot())
    }

    pub(crate) fn names(&self) -> &RowNames {
        &self.names
    }

    /// The keys of the owners of a capture's chunks.
    pub(crate) fn owners(&self, capture: usize, catalog: &Catalog) -> Vec<OwnerKeys> {
        let by_id: HashMap<u16, usize> =
            catalog.sources.iter().enumerate().map(|(index, info)| (info.id, index)).collect();
        let owner = |owner: &ChunkOwner| {
            let info = by_id.get(&owner.source).copied()?;
            Some(self.owner(capture, catalog, info, owner))
        };
        // The reader has checked that the source exists.
        catalog.owners.iter().filter_map(owner).collect()
    }

    /// The keys of an owner; `info` is the index of its source.
    pub(crate) fn owner(
        &self,
        capture: usize,
        catalog: &Catalog,
        info: usize,
        owner: &ChunkOwner,
    ) -> OwnerKeys {
        let source = &catalog.sources[info];
        let int = |number: u32| i32::try_from(number).ok();
        OwnerKeys {
            source: owner.source,
            nonce: owner.nonce,
            capture: capture as i32,
            buffer: self.names.buffer(&source.source.buffer),
            segment: self.names.segment(owner.nonce),
            host: self.names.host(catalog.host()),
            ring: int(owner.ring),
            tid: int(owner.tid).filter(|&tid| tid != 0),
            names_threads: FrameThreads::from_schema(&source.schema).is_some(),
            pid: int(source.source.process.pid),
            info,
            process: self.process(capture, source),
        }
    }
}

/// The sequence numbers between captures that no capture has.
fn absent(captures: &[Opened]) -> Vec<Absence> {
    let mut coverage = SequenceCoverage::default();
    for (number, capture) in captures.iter().enumerate() {
        let catalog = capture.catalog();
        let sources = catalog.sources.iter().filter(|_| catalog.end.is_some());
        coverage.add(number, (&catalog.account, catalog.place()), sources);
    }
    coverage.absent()
}

/// The clocks of captures whose hosts are not related to each other.
///
/// Times within one capture are exact relative to each other. With several captures, each has an error.
fn own_clocks(captures: &[Opened]) -> Clocks {
    let (mut boots, mut hosts) = (Dictionary::default(), HashMap::new());
    let is_single = captures.len() < 2;
    let clock = |(number, capture): (u32, &Opened)| {
        let scale = boots.key(capture.boot()) as u32;
        let next = hosts.len() as u32;
        let host = *hosts.entry(capture.host_and_boot()).or_insert(next);
        let error = if is_single { 0 } else { capture.time_error() };
        CaptureClock { number, host, scale, bounds: TimeBounds::Error(error) }
    };
    let clocks = (0..).zip(captures).map(clock).collect();
    Clocks::new(clocks, captures.iter().map(|capture| capture.id.clone()))
}

impl RowNames {
    fn new(captures: &[Opened]) -> RowNames {
        let (mut buffer_keys, mut host_keys) = (Dictionary::default(), Dictionary::default());
        let (mut segments, mut segment_keys) = (Dictionary::default(), HashMap::new());
        let mut processes = HashMap::new();
        for capture in captures {
            let catalog = &capture.by_heads;
            host_keys.key(catalog.host());
            for info in &catalog.sources {
                buffer_keys.key(&info.source.buffer);
                for segment in &info.source.segments {
                    let key = segments.key(&format!("{:016x}", segment.nonce));
                    segment_keys.insert(segment.nonce, key);
                }
                let next = processes.len() as i32;
                processes.entry(process(capture, info)).or_insert(next);
            }
        }
        let ids = captures.iter().map(|capture| &capture.id);
        RowNames {
            captures: Arc::new(StringArray::from_iter_values(ids)),
            buffers: buffer_keys.array(),
            segments: segments.array(),
            hosts: host_keys.array(),
            buffer_keys,
            segment_keys,
            host_keys,
            processes,
        }
    }

    pub fn buffer(&self, name: &str) -> i32 {
        self.buffer_keys.get(name).unwrap_or(0)
    }

    pub fn host(&self, name: &str) -> i32 {
        self.host_keys.get(name).unwrap_or(0)
    }

    pub fn segment(&self, nonce: u64) -> i32 {
        self.segment_keys.get(&nonce).copied().unwrap_or(0)
    }
}

fn process(capture: &Opened, info: &SourceInfo) -> HostProcess {
    let (host, boot) = capture.host_and_boot();
    let process = &info.source.process;
    HostProcess { host, boot, pid: process.pid, start: process.start_time }
}

impl Opened {
    fn open(path: &Path) -> Result<Opened, CaptureError> {
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
    fn boot(&self) -> &str {
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
    fn add_absence(&mut self, gap: GapAt) {
        self.absent.push(gap);
        for catalog in [Some(&mut self.by_heads), self.by_all.get_mut()].into_iter().flatten() {
            // No other reference exists yet.
            if let Some(catalog) = Arc::get_mut(catalog) {
                catalog.gaps.push(gap);
            }
        }
    }

    /// Converts its times to another host's clock from now on.
    fn align(&mut self, alignment: Arc<Alignment>) {
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

    fn trouble(&self) -> Option<Trouble> {
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
