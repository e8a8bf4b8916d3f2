//! Names of tables.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::error::SetError;
use crate::growing::GrowingTable;
use crate::set::CaptureSet;
use crate::table::CaptureTable;
use crate::tables::{ALL, NamedTable, TableSubject};
use crate::time_bounds::bracketed;

/// Tables by name.
type Tables = BTreeMap<String, Arc<dyn CaptureTable>>;
/// The buffer of a table, and the table.
type Owned = (String, Arc<dyn CaptureTable>);

/// The table of the spans or chains of a kind of frames.
#[derive(Debug, Clone)]
pub struct SpansOrChains {
    /// The buffer.
    pub buffer: String,
    /// The kind of their frames.
    pub frame: String,
    /// True: chains; false: spans.
    pub is_chain: bool,
    /// The name of the table in its buffer.
    pub name: String,
    /// The table with the rows.
    pub table: Arc<dyn CaptureTable>,
    /// The table for captures that grow.
    pub growing: Arc<dyn GrowingTable>,
}

/// The tables of a set by name.
///
/// Each buffer is a schema (`dve.job`). A plain name is enough if only one buffer has the table. Fixed tables
/// have precedence: a frame called `gaps` is `ppt_gaps`, or `dve.gaps`. Frames have precedence over spans and
/// chains: if there is a frame `request_spans`, the spans of `request` are `ppt_request_spans`.
#[derive(Debug, Default)]
pub struct Directory {
    plain: Tables,
    buffers: BTreeMap<String, Tables>,
    /// Each kind of frames: its buffer, name and table.
    frames: Vec<(String, String, Arc<dyn CaptureTable>)>,
    spans_and_chains: Vec<SpansOrChains>,
    /// Names of tables in several buffers, with the buffers.
    ambiguous: BTreeMap<String, Vec<String>>,
}

impl Directory {
    /// The name of the schema of plain names. No buffer may have this name.
    pub const PLAIN: &'static str = "ppt";

    /// The tables of `set`.
    ///
    /// # Errors
    /// Frames of the same name do not fit into one table.
    pub fn new(set: &Arc<CaptureSet>) -> Result<Directory, SetError> {
        let mut tables = Vec::new();
        for make in ALL {
            tables.extend(make(set)?);
        }
        let mut directory = Directory::from_tables(tables);
        if set.clocks().reference().is_some() {
            directory.bracket(set);
        }
        Ok(directory)
    }

    /// Adds columns with the bounds of times to the tables with times.
    fn bracket(&mut self, set: &CaptureSet) {
        let all = self.buffers.values_mut().chain([&mut self.plain]);
        for table in all.flat_map(BTreeMap::values_mut) {
            if let Some(bracketed) = bracketed(table, set.clocks()) {
                *table = bracketed;
            }
        }
    }

    fn from_tables(tables: Vec<NamedTable>) -> Directory {
        let mut directory = Directory::default();
        let mut of_buffers = Vec::new();
        for NamedTable { subject, name, table, growing } in tables {
            match subject {
                TableSubject::Set => _ = directory.plain.insert(name, table),
                TableSubject::Frame(buffer) => {
                    directory.frames.push((buffer.clone(), name.clone(), table.clone()));
                    of_buffers.push((buffer, name, table));
                }
                TableSubject::Derived { buffer, frame, is_chain } => {
                    let is_frame = |name: &str| {
                        directory.frames.iter().any(|frame| frame.0 == buffer && frame.1 == name)
                    };
                    let mut name = name;
                    while is_frame(&name) {
                        name.insert_str(0, "ppt_");
                    }
                    of_buffers.push((buffer.clone(), name.clone(), table.clone()));
                    directory.spans_and_chains.extend(growing.map(|growing| SpansOrChains {
                        buffer,
                        frame,
                        is_chain,
                        name,
                        table,
                        growing,
                    }));
                }
            }
        }
        let fixed: Vec<String> = directory.plain.keys().cloned().collect();
        let mut owners: BTreeMap<String, Vec<Owned>> = BTreeMap::new();
        for (buffer, name, table) in of_buffers {
            let plain = if fixed.contains(&name) { format!("ppt_{name}") } else { name.clone() };
            let schema = directory.buffers.entry(schema_of(&buffer)).or_default();
            schema.insert(name, table.clone());
            // Its plain name works in the schema, too, unless a frame has that name.
            if let Entry::Vacant(free) = schema.entry(plain.clone()) {
                free.insert(table.clone());
            }
            owners.entry(plain).or_default().push((buffer, table));
        }
        for (name, mut owners) in owners {
            match owners.len() {
                1 => {
                    let (_, table) = owners.remove(0);
                    directory.plain.entry(name).or_insert(table);
                }
                _ => {
                    let buffers = owners.into_iter().map(|(buffer, _)| buffer).collect();
                    directory.ambiguous.insert(name, buffers);
                }
            }
        }
        directory
    }

    /// The tables with plain names.
    pub fn plain(&self) -> &BTreeMap<String, Arc<dyn CaptureTable>> {
        &self.plain
    }

    /// The tables of each buffer.
    pub fn buffers(&self) -> &BTreeMap<String, BTreeMap<String, Arc<dyn CaptureTable>>> {
        &self.buffers
    }

    /// Each kind of frames: its buffer, its name, and its table.
    pub fn frames(&self) -> &[(String, String, Arc<dyn CaptureTable>)] {
        &self.frames
    }

    /// The tables of spans and chains.
    pub fn spans_and_chains(&self) -> &[SpansOrChains] {
        &self.spans_and_chains
    }

    /// The schema of a buffer's tables.
    pub fn schema_of(buffer: &str) -> String {
        schema_of(buffer)
    }

    /// The buffers that have a table of this name, if there are several.
    pub fn ambiguous(&self, name: &str) -> Option<&[String]> {
        self.ambiguous.get(name).map(Vec::as_slice)
    }
}

/// The schema of a buffer. Frame files cannot use the reserved names, but other captures can.
fn schema_of(buffer: &str) -> String {
    match buffer {
        Directory::PLAIN | "information_schema" => format!("ppt_{buffer}"),
        other => other.to_owned(),
    }
}
