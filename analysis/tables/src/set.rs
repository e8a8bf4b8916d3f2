//! A set of captures: the input of a query.

mod opened;
mod row_names;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use ppt_capture::columns::FrameThreads;
use ppt_capture::frame_dsl::edge::Edge;
use ppt_capture::{Absence, Alignment, SequenceCoverage, SourceInfo};

pub(crate) use self::opened::Opened;
pub use self::opened::Trouble;
pub(crate) use self::row_names::RowNames;
use self::row_names::process;
use crate::builder::Dictionary;
use crate::capture_names::expand;
use crate::catalog::{Catalog, ChunkOwner, GapAt};
use crate::error::SetError;
use crate::hosts::{CaptureClock, Clocks, TimeBounds};
use crate::watch::ScanProgress;

/// The kind of sources with the kernel's frames.
pub(crate) const KERNEL: &str = "kernel";
/// The kind of sources with stacks of threads.
pub(crate) const STACKS: &str = "stacks";
/// The kind of sources with rounds of `ppt whatif --live`, and the name of their buffer.
pub(crate) const ROUNDS: &str = "rounds";
/// The kind of the buffer of pauses in these rounds.
const VIRTUAL_CLOCK: &str = "virtual_clock";

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
    /// No capture is named, a pattern matches nothing, or a capture or a file of clock readings cannot be read.
    /// Damage is not an error: see [`Self::troubles`].
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
        self.has_kind(KERNEL)
    }

    /// Whether ppt slowed intervals down in rounds (`ppt whatif --live`).
    pub fn has_rounds(&self) -> bool {
        self.has_kind(ROUNDS)
    }

    /// Whether ppt paused CPUs in rounds (`ppt whatif --live --pause-host`).
    pub fn has_virtual_clock(&self) -> bool {
        self.has_kind(VIRTUAL_CLOCK)
    }

    fn has_kind(&self, kind: &str) -> bool {
        let mut sources = self.captures.iter().flat_map(|capture| &capture.catalog().sources);
        sources.any(|info| info.source.kind == kind)
    }

    /// The buffer with the stacks of threads, if there is one.
    pub fn stacks_buffer(&self) -> Option<&str> {
        let mut all = self.captures.iter().flat_map(|opened| &opened.catalog().sources);
        let found = all.find(|info| info.source.kind == STACKS)?;
        Some(&found.source.buffer)
    }

    /// Whether only ppt itself wrote into this buffer: kernel events, stacks, rounds or pauses, which have tables and
    /// pictures of their own.
    pub fn is_kernel(&self, buffer: &str) -> bool {
        let all = self.captures.iter().flat_map(|capture| &capture.catalog().sources);
        let mut own = all.filter(|info| info.source.buffer == buffer).peekable();
        let kinds = [KERNEL, STACKS, ROUNDS, VIRTUAL_CLOCK];
        own.peek().is_some() && own.all(|info| kinds.contains(&info.source.kind.as_str()))
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
