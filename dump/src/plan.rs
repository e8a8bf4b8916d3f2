//! The rows and columns of a table.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ppt_capture::columns::{FrameThreads, Reader, Time};
use ppt_capture::frame_dsl::columns::whole_table;
use ppt_capture::frame_dsl::schema::{Frame, Schema};
use ppt_capture::frame_dsl::{ColumnType, Style, columns};
use ppt_capture::{Process, ProcessKey, SourceInfo, TimeNamespace};
use ppt_predicate::CheckedExpression;
use ppt_text::escaped;

use crate::error::DumpError;
use crate::matching::FrameMatcher;
use crate::options::{DumpRequest, TimeFormat};
use crate::select::{labels, process, select, several_processes};
use crate::time_cells::{ClocksOfColumns, comparable};

/// The columns of a table, and how each kind of frame fills them.
#[derive(Debug, Default)]
pub(crate) struct TablePlan {
    /// Names of all columns.
    pub columns: Vec<String>,
    /// Whether there is a column of the names of threads.
    pub by_name: bool,
    /// Whether there is a `pid` column.
    pub by_process: bool,
    /// Whether there is a `buffer` column.
    pub by_buffer: bool,
    /// Whether there is a `frame` column.
    pub by_frame: bool,
    /// Whether there is a `segment` column, because a ring that grew restarts its numbers in
    /// another segment.
    pub by_segment: bool,
    /// The format of times. `None`: as they are.
    pub time: Option<TimeFormat>,
    /// The wanted sources, by number.
    pub sources: BTreeMap<u16, SourcePlan>,
}

/// The plan to turn the frames of one source into rows.
#[derive(Debug)]
pub(crate) struct SourcePlan {
    /// Pid of the process.
    pub pid: u32,
    /// The identity of the process.
    pub process: ProcessKey,
    /// The facts about the process.
    pub facts: Process,
    /// Whether some of its columns hold addresses that are shown as names.
    pub is_named: bool,
    /// Name of the buffer.
    pub label: String,
    /// The offsets of the target's clocks.
    pub namespace: TimeNamespace,
    /// The threads that frames are about, if these may be others than the one that wrote them.
    pub other_threads: Option<FrameThreads>,
    /// By frame id.
    pub frames: Vec<FramePlan>,
}

/// The plan to turn one kind of frame into rows.
#[derive(Debug)]
pub(crate) struct FramePlan {
    /// Name of the frame.
    pub name: String,
    /// Whether it is shown at all.
    pub wanted: bool,
    /// Bytes of the frame; the rest of its slot is meaningless.
    pub size: usize,
    /// The field with its time.
    pub at: Option<Time>,
    /// The condition on it.
    pub matching: Option<CheckedExpression>,
    /// For each column after the standard ones, the source of the cell.
    pub cells: Vec<Option<CellPlan>>,
}

/// The source of a cell.
#[derive(Debug)]
pub(crate) struct CellPlan {
    pub reader: Reader,
    /// The point in time that it holds, if that is shown by another clock than its own.
    pub time: Option<Time>,
    /// Whether it holds code addresses that are shown as names.
    pub is_named: bool,
}

impl TablePlan {
    /// The plan for those of these sources that `options` selects.
    pub fn new(sources: &[&SourceInfo], options: &DumpRequest) -> Result<TablePlan, DumpError> {
        let labels = labels(sources);
        let chosen = select(sources, &labels, &options.buffers)?;
        let named = |name: &str| options.frame.as_ref().is_none_or(|frame| frame == name);
        if let Some(frame) = &options.frame {
            check_frame(frame, chosen.iter().map(|&index| sources[index]))?;
        }

        let mut matching = FrameMatcher::new(options.matching.as_ref(), sources, &chosen, named)?;

        let mut union = Union::default();
        let mut plan = TablePlan::default();
        let mut clocks = ClocksOfColumns::default();
        let mut kinds = BTreeSet::new();
        let mut shown_sources = Vec::new();
        for &index in &chosen {
            let schema = &sources[index].schema;
            let wanted = schema.frames.iter().enumerate().map(|(id, frame)| {
                !frame.is_hidden() && named(&frame.name) && matching.may_have(index, id)
            });
            let wanted: Vec<bool> = wanted.collect();
            let shown = schema.frames.iter().zip(&wanted).filter(|entry| *entry.1);
            let shown: Vec<&str> = shown.map(|entry| entry.0.name.as_str()).collect();
            if shown.is_empty() {
                continue;
            }
            // The same kind in another process does not count as another kind.
            kinds.extend(shown.iter().map(|&name| (labels[index].as_str(), name)));
            let frames = schema.frames.iter().zip(wanted).enumerate();
            let frames = frames.map(|(id, (frame, wanted))| {
                let cells = if wanted {
                    let readers = readers(schema, frame, &mut union);
                    readers.iter().for_each(|(_, reader)| clocks.add(reader));
                    cells(readers, options.addresses.is_some())
                } else {
                    Vec::new()
                };
                let (name, at) = (frame.name.clone(), frame.at().and_then(Time::from_field));
                let matching = matching.take(index, id);
                FramePlan { name, wanted, size: frame.size as usize, at, matching, cells }
            });
            let frames: Vec<FramePlan> = frames.collect();
            let mut cells = frames.iter().flat_map(|frame| frame.cells.iter().flatten());
            let is_named = cells.any(|cell| cell.is_named);
            let label = labels[index].clone();
            let facts = &sources[index].source.process;
            let (pid, namespace) = (facts.pid, facts.time_namespace());
            let process = process(sources[index]);
            let facts = facts.clone();
            let other_threads = FrameThreads::from_schema(&sources[index].schema);
            let source = SourcePlan {
                pid,
                process,
                facts,
                is_named,
                label,
                namespace,
                other_threads,
                frames,
            };
            plan.sources.insert(sources[index].id, source);
            shown_sources.push(sources[index]);
        }

        plan.by_segment =
            shown_sources.iter().any(|shown_source| shown_source.source.segments.len() > 1);
        plan.by_process = several_processes(shown_sources);
        plan.by_buffer =
            plan.sources.values().map(|source| &source.label).collect::<BTreeSet<_>>().len() > 1;
        plan.by_frame = options.frame.is_none() && kinds.len() > 1;
        plan.by_name = options.names;
        plan.columns = plan.standard_columns(&union);
        plan.columns.extend(union.names.iter().cloned());
        let time = options.time.or_else(|| clocks.default_format());
        plan.time = time.filter(|&format| format != TimeFormat::Own);
        for frame in plan.sources.values_mut().flat_map(|source| &mut source.frames) {
            frame.cells.resize_with(union.names.len(), || None);
            for cell in frame.cells.iter_mut().flatten().filter(|_| plan.time.is_some()) {
                cell.time = comparable(&cell.reader);
            }
        }
        Ok(plan)
    }

    /// The names of the columns before those of the fields.
    fn standard_columns(&self, fields: &Union) -> Vec<String> {
        // The column of thread names gets another name if a field has its name.
        let mut thread = "thread".to_owned();
        while fields.places.contains_key(&thread) {
            thread.insert(0, '_');
        }
        let columns = ["seqno", "ring", "tid"].into_iter();
        let columns = columns.chain(self.by_name.then_some(thread.as_str()));
        let columns = columns.chain(self.by_segment.then_some("segment"));
        let columns = columns.chain(self.by_process.then_some("pid"));
        let columns = columns.chain(self.by_buffer.then_some("buffer"));
        let columns = columns.chain(self.by_frame.then_some("frame"));
        columns.map(str::to_owned).collect()
    }
}

/// The readers of a frame's columns, with their positions among the columns of the table.
fn readers(schema: &Schema, frame: &Frame, union: &mut Union) -> Vec<(usize, Reader)> {
    let columns = columns(schema, frame, Style::Text);
    columns.iter().map(|cell| (union.place(&cell.name), Reader::new(schema, cell))).collect()
}

/// The cells of a frame, at the positions of their readers. `names` states whether addresses get
/// names.
fn cells(readers: Vec<(usize, Reader)>, names: bool) -> Vec<Option<CellPlan>> {
    let mut cells = Vec::new();
    for (position, reader) in readers {
        cells.resize_with(cells.len().max(position + 1), || None);
        let is_named = names && reader.ty() == ColumnType::Addr;
        cells[position] = Some(CellPlan { reader, time: None, is_named });
    }
    cells
}

/// Fails if none of `sources` has a frame `name`.
fn check_frame<'a>(
    name: &str,
    sources: impl Iterator<Item = &'a SourceInfo>,
) -> Result<(), DumpError> {
    let kinds = sources.flat_map(|source| &source.schema.frames);
    let kinds: Vec<&Frame> = kinds.filter(|kind| !kind.is_hidden()).collect();
    if kinds.iter().any(|kind| kind.name == name) {
        return Ok(());
    }
    if let Some(kind) = kinds.iter().find(|kind| whole_table(kind).as_deref() == Some(name)) {
        let (table, frame) = (name.to_owned(), kind.name.clone());
        return Err(DumpError::MadeOfFrames { table, frame });
    }
    let mut available: Vec<String> = kinds.iter().map(|kind| kind.name.clone()).collect();
    available.sort();
    available.dedup();
    Err(DumpError::NoSuchFrame { name: escaped(name), available })
}

/// Names in order of first occurrence.
#[derive(Default)]
struct Union {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Union {
    fn place(&mut self, name: &str) -> usize {
        *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }
}
