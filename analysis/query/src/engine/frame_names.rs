//! Finds kinds of frames, and tables made from them, by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::TableReference;
use ppt_tables::{Bounds, CaptureTable, Directory, SpansOrChains, TableRequest};

use super::{Engine, FrameTable, RowUnit};
use ppt_text::nearest;

use crate::error::QueryError;

/// Tables of metrics, which belong to no frame.
const METRICS: [&str; 2] = ["counters", "histograms"];
/// The buffer of the kernel's frames.
pub const KERNEL_BUFFER: &str = "kernel";
/// Tables of kernel events.
const KERNEL: [&str; 3] = ["thread_states", "syscalls", "faults"];

impl Engine {
    /// The kinds of frames of the visible buffers, or those with the name `frame`, sorted by name.
    ///
    /// # Errors
    /// No kind has this name.
    pub fn frames(&self, frame: Option<&str>) -> Result<Vec<FrameTable>, QueryError> {
        let found = self.frames_named(|name| frame.is_none_or(|frame| name == frame));
        match frame {
            Some(frame) if found.is_empty() => Err(no_frame(frame, names(self.all_frames()))),
            _ => Ok(found),
        }
    }

    /// The spans of a kind of frames, if it has some, and if its hosts have comparable clocks.
    pub fn spans(&self, frames: &FrameTable) -> Option<FrameTable> {
        let is_of_frames = |paired: &&SpansOrChains| {
            !paired.is_chain && paired.buffer == frames.buffer && paired.frame == frames.frame
        };
        let spans = self.directory.spans_and_chains().iter().find(is_of_frames)?;
        let frame = frames.frame.clone();
        is_comparable(spans).then(|| FrameTable { frame, ..frame_table(spans) })
    }

    /// The spans and chains of the visible buffers, or those whose table has the name `name`, if their
    /// hosts have comparable clocks.
    pub fn spans_and_chains(&self, name: Option<&str>) -> Vec<(FrameTable, RowUnit)> {
        let is_visible = |paired: &&SpansOrChains| self.window.has_buffer(&paired.buffer);
        let is_named = |paired: &&SpansOrChains| name.is_none_or(|name| paired.name == name);
        let all = self.directory.spans_and_chains().iter().filter(is_visible).filter(is_named);
        let comparable = all.filter(|paired| is_comparable(paired));
        comparable.map(|paired| (frame_table(paired), unit(paired))).collect()
    }

    /// The spans and chains of the visible buffers, for readers of growing captures.
    pub fn growing_spans_and_chains(&self) -> impl Iterator<Item = &SpansOrChains> {
        self.directory
            .spans_and_chains()
            .iter()
            .filter(|paired| self.window.has_buffer(&paired.buffer))
    }

    /// The kinds of frames with this name or, if there are none, spans or chains (`request_spans`).
    ///
    /// # Errors
    /// Nothing has this name.
    pub fn frames_spans_or_chains(
        &self,
        name: &str,
    ) -> Result<Vec<(FrameTable, RowUnit)>, QueryError> {
        let frames = self.frames_named(|frame| frame == name);
        if !frames.is_empty() {
            return Ok(frames.into_iter().map(|table| (table, RowUnit::Frame)).collect());
        }
        let found = self.spans_and_chains(Some(name));
        if !found.is_empty() {
            return Ok(found);
        }
        let others = self.spans_and_chains(None).into_iter().map(|(table, _)| table);
        Err(no_frame(name, names(self.all_frames().into_iter().chain(others))))
    }

    /// The kind of frames that a table of spans or chains is made from, and the unit of its rows.
    pub fn frames_of(&self, table: &FrameTable) -> Option<(FrameTable, RowUnit)> {
        let is_it =
            |paired: &&SpansOrChains| paired.buffer == table.buffer && paired.name == table.frame;
        let paired = self.directory.spans_and_chains().iter().find(is_it)?;
        let mut frames = self.frames_named(|name| name == paired.frame);
        frames.retain(|frame| frame.buffer == paired.buffer);
        Some((frames.pop()?, unit(paired)))
    }

    /// The tables that can be exported, or those with the name `name`: frames, spans and chains, metrics and
    /// kernel events, if there are any.
    ///
    /// # Errors
    /// No table has this name.
    pub fn exportable(&self, name: Option<&str>) -> Result<Vec<FrameTable>, QueryError> {
        let mut others: Vec<FrameTable> =
            self.spans_and_chains(None).into_iter().map(|(table, _)| table).collect();
        if !self.totals()?.is_empty() {
            others.extend(METRICS.into_iter().filter_map(|name| self.fixed(name)));
        }
        if self.set.has_kernel() {
            others.extend(KERNEL.into_iter().filter_map(|name| self.fixed(name)));
        }
        let Some(name) = name else {
            return Ok(self.all_frames().into_iter().chain(others).collect());
        };
        let mut found = self.frames_named(|frame| frame == name);
        if found.is_empty() {
            found = others.iter().filter(|table| table.frame == name).cloned().collect();
        }
        if found.is_empty() {
            return Err(no_frame(name, names(self.all_frames().into_iter().chain(others))));
        }
        Ok(found)
    }

    fn all_frames(&self) -> Vec<FrameTable> {
        self.frames_named(|_| true)
    }

    fn frames_named(&self, is_named: impl Fn(&str) -> bool) -> Vec<FrameTable> {
        let all = self.directory.frames().iter();
        let found =
            all.filter(|(buffer, frame, _)| self.window.has_buffer(buffer) && is_named(frame));
        let table = |(buffer, frame, table): &(String, String, Arc<dyn CaptureTable>)| FrameTable {
            buffer: buffer.clone(),
            frame: frame.clone(),
            name: TableReference::partial(Directory::schema_of(buffer), frame.as_str()),
            table: table.clone(),
        };
        found.map(table).collect()
    }

    /// A table that belongs to no buffer.
    fn fixed(&self, name: &str) -> Option<FrameTable> {
        let table = self.directory.plain().get(name)?.clone();
        let (buffer, frame) = (String::new(), name.to_owned());
        Some(FrameTable { buffer, frame, name: TableReference::bare(name), table })
    }
}

fn names(tables: impl IntoIterator<Item = FrameTable>) -> Vec<String> {
    let names: BTreeSet<String> = tables.into_iter().map(|table| table.frame).collect();
    names.into_iter().collect()
}

/// The error for an unknown frame. The name may be `frame.interval`, as in answers, or `buffer.frame`, as in
/// SQL, so each part is tried.
fn no_frame(name: &str, available: Vec<String>) -> QueryError {
    let is_available = |part: &&str| available.iter().any(|other| other == part);
    let part = name.split('.').find(is_available).map(str::to_owned);
    let nearest = part.or_else(|| nearest(name, &available).cloned());
    QueryError::NoFrame { name: name.to_owned(), nearest, available }
}

fn unit(paired: &SpansOrChains) -> RowUnit {
    if paired.is_chain { RowUnit::Chain } else { RowUnit::Span }
}

/// Whether the hosts of the frames have comparable clocks.
fn is_comparable(paired: &SpansOrChains) -> bool {
    let bounds = Bounds::default();
    let request =
        TableRequest { columns: &[], bounds: &bounds, limit: Some(0), parts: 1, memory: None };
    paired.table.plan(&request).is_ok()
}

fn frame_table(paired: &SpansOrChains) -> FrameTable {
    FrameTable {
        buffer: paired.buffer.clone(),
        frame: paired.name.clone(),
        name: TableReference::partial(Directory::schema_of(&paired.buffer), paired.name.as_str()),
        table: paired.table.clone(),
    }
}
