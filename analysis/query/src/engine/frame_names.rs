//! Kinds of frames, and the tables that are made of them, by the names that people type.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::TableReference;
use ppt_tables::{Bounds, CaptureTable, Directory, SpansOrChains, TableRequest};

use super::{Engine, FrameTable, RowUnit};
use ppt_text::nearest;

use crate::error::QueryError;

/// Tables of what programs count. They belong to no frame.
const METRICS: [&str; 2] = ["counters", "histograms"];
/// The buffer of the kernel's frames.
pub const KERNEL_BUFFER: &str = "kernel";
/// Tables of what the kernel did.
const KERNEL: [&str; 3] = ["thread_states", "syscalls", "faults"];

impl Engine {
    /// Each kind of frames of the buffers that are seen, or only those called `frame`, in the order
    /// of their names.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn frames(&self, frame: Option<&str>) -> Result<Vec<FrameTable>, QueryError> {
        let found = self.frames_called(|name| frame.is_none_or(|frame| name == frame));
        match frame {
            Some(frame) if found.is_empty() => Err(no_frame(frame, names(self.all_frames()))),
            _ => Ok(found),
        }
    }

    /// The spans of a kind of frames, if it has some, and if they are known: those of several hosts are not.
    pub fn spans(&self, frames: &FrameTable) -> Option<FrameTable> {
        let is_its = |whole: &&SpansOrChains| {
            !whole.is_chain && whole.buffer == frames.buffer && whole.frame == frames.frame
        };
        let spans = self.directory.wholes().iter().find(is_its)?;
        let frame = frames.frame.clone();
        can_be_told(spans).then(|| FrameTable { frame, ..table_of_whole(spans) })
    }

    /// The spans and chains of the buffers that are seen, each with the name of its table, or only those called
    /// `name`: those that are known.
    pub fn wholes(&self, name: Option<&str>) -> Vec<(FrameTable, RowUnit)> {
        let seen = |whole: &&SpansOrChains| self.window.has_buffer(&whole.buffer);
        let is_named = |whole: &&SpansOrChains| name.is_none_or(|name| whole.name == name);
        let all = self.directory.wholes().iter().filter(seen).filter(is_named);
        let told = all.filter(|whole| can_be_told(whole));
        told.map(|whole| (table_of_whole(whole), unit(whole))).collect()
    }

    /// The spans and chains of the buffers that are seen, for readers that follow captures while they grow.
    pub fn growing_wholes(&self) -> impl Iterator<Item = &SpansOrChains> {
        self.directory.wholes().iter().filter(|whole| self.window.has_buffer(&whole.buffer))
    }

    /// What is called `name`: kinds of frames or, if there are none, spans or chains (`request_spans`).
    ///
    /// # Errors
    /// There is neither.
    pub fn frames_or_wholes(&self, name: &str) -> Result<Vec<(FrameTable, RowUnit)>, QueryError> {
        let frames = self.frames_called(|frame| frame == name);
        if !frames.is_empty() {
            return Ok(frames.into_iter().map(|table| (table, RowUnit::Frame)).collect());
        }
        let wholes = self.wholes(Some(name));
        if !wholes.is_empty() {
            return Ok(wholes);
        }
        let wholes = self.wholes(None).into_iter().map(|(table, _)| table);
        Err(no_frame(name, names(self.all_frames().into_iter().chain(wholes))))
    }

    /// The kind of frames that a table of spans or chains is made of, and which of the two it has.
    pub fn frames_of(&self, table: &FrameTable) -> Option<(FrameTable, RowUnit)> {
        let is_it =
            |whole: &&SpansOrChains| whole.buffer == table.buffer && whole.name == table.frame;
        let whole = self.directory.wholes().iter().find(is_it)?;
        let mut frames = self.frames_called(|name| name == whole.frame);
        frames.retain(|frame| frame.buffer == whole.buffer);
        Some((frames.pop()?, unit(whole)))
    }

    /// What can be taken out of captures as tables: frames, spans and chains, counters and histograms,
    /// and what the kernel did, as far as there is some. Or only what is called `name`.
    ///
    /// # Errors
    /// There is nothing of that name.
    pub fn exportable(&self, name: Option<&str>) -> Result<Vec<FrameTable>, QueryError> {
        let mut others: Vec<FrameTable> =
            self.wholes(None).into_iter().map(|whole| whole.0).collect();
        if !self.totals()?.is_empty() {
            others.extend(METRICS.into_iter().filter_map(|name| self.fixed(name)));
        }
        if self.set.has_kernel() {
            others.extend(KERNEL.into_iter().filter_map(|name| self.fixed(name)));
        }
        let Some(name) = name else {
            return Ok(self.all_frames().into_iter().chain(others).collect());
        };
        let mut found = self.frames_called(|frame| frame == name);
        if found.is_empty() {
            found = others.iter().filter(|table| table.frame == name).cloned().collect();
        }
        if found.is_empty() {
            return Err(no_frame(name, names(self.all_frames().into_iter().chain(others))));
        }
        Ok(found)
    }

    fn all_frames(&self) -> Vec<FrameTable> {
        self.frames_called(|_| true)
    }

    fn frames_called(&self, is_named: impl Fn(&str) -> bool) -> Vec<FrameTable> {
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

/// Answers name intervals `frame.interval`, and SQL names tables `buffer.frame`: one of the two parts is
/// meant.
fn no_frame(name: &str, there: Vec<String>) -> QueryError {
    let is_there = |part: &&str| there.iter().any(|known| known == part);
    let part = name.split('.').find(is_there).map(str::to_owned);
    let nearest = part.or_else(|| nearest(name, &there).cloned());
    QueryError::NoFrame { name: name.to_owned(), nearest, there }
}

fn unit(whole: &SpansOrChains) -> RowUnit {
    if whole.is_chain { RowUnit::Chain } else { RowUnit::Span }
}

/// Whether the hosts of frames allow to join them.
fn can_be_told(whole: &SpansOrChains) -> bool {
    let nothing = Bounds::default();
    let request =
        TableRequest { columns: &[], bounds: &nothing, limit: Some(0), parts: 1, memory: None };
    whole.table.plan(&request).is_ok()
}

fn table_of_whole(whole: &SpansOrChains) -> FrameTable {
    FrameTable {
        buffer: whole.buffer.clone(),
        frame: whole.name.clone(),
        name: TableReference::partial(Directory::schema_of(&whole.buffer), whole.name.as_str()),
        table: whole.table.clone(),
    }
}
