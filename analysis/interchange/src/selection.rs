//! The selection of a trace: everything, or one name.

use ppt_query::{Engine, FrameTable, KERNEL_BUFFER, QueryError, RowUnit};

use crate::event::TraceFormat;

/// The kernel's frames for begins and ends of system calls.
const CALLS: [&str; 2] = ["syscall_enter", "syscall_exit"];
const FAULT: &str = "page_fault";

/// Content of a trace. If a format has no events for a table, the frames behind the table are exported.
#[derive(Debug, Clone, Default)]
pub struct TraceSelection {
    /// Kinds of frames, with their spans.
    pub(crate) frames: Vec<FrameTable>,
    /// Kinds of frames of which only the spans are exported.
    pub(crate) with_spans_alone: Vec<FrameTable>,
    pub(crate) counters: bool,
    pub(crate) histograms: bool,
    /// Whether states of threads are exported.
    pub(crate) states: bool,
    /// Whether frames are exported whose kind is missing in their schema.
    pub(crate) unknown: bool,
}

impl TraceSelection {
    /// Everything that a trace of that form contains.
    ///
    /// # Errors
    /// The tables of the captures cannot be listed.
    pub fn everything(engine: &Engine, form: TraceFormat) -> Result<TraceSelection, QueryError> {
        let frames = engine.frames(None)?;
        let states = has_states(form) && engine.set().has_kernel();
        let (counters, histograms, unknown) = (true, true, true);
        Ok(TraceSelection { frames, counters, histograms, states, unknown, ..Self::default() })
    }

    /// The same without the states of threads.
    #[must_use]
    pub fn without_states(self) -> TraceSelection {
        TraceSelection { states: false, ..self }
    }

    /// The kind of frames, or the table made of frames (`request_spans`, `counters`), with this name.
    ///
    /// # Errors
    /// Neither has this name.
    pub fn named(
        engine: &Engine,
        form: TraceFormat,
        name: &str,
    ) -> Result<TraceSelection, QueryError> {
        let mut selection = TraceSelection::default();
        for table in engine.exportable(Some(name))? {
            if table.buffer.is_empty() {
                selection.add_fixed(engine, form, name)?;
                continue;
            }
            match engine.frames_of(&table) {
                None => selection.frames.push(table),
                Some((frames, RowUnit::Span)) if form != TraceFormat::Ctf => {
                    selection.with_spans_alone.push(frames);
                }
                Some((frames, _)) => selection.frames.push(frames),
            }
        }
        Ok(selection)
    }

    /// Adds a table that belongs to no buffer.
    fn add_fixed(
        &mut self,
        engine: &Engine,
        form: TraceFormat,
        name: &str,
    ) -> Result<(), QueryError> {
        match name {
            "counters" => self.counters = true,
            "histograms" => self.histograms = true,
            "thread_states" if has_states(form) => self.states = true,
            _ => {
                let mut frames = engine.frames(None)?;
                frames.retain(|table| {
                    table.buffer == KERNEL_BUFFER && is_made_of(name, &table.frame)
                });
                self.frames.extend(frames);
            }
        }
        Ok(())
    }

    /// The buffers of all exported kinds.
    pub(crate) fn buffers(&self) -> Vec<&str> {
        let frames = self.frames.iter().chain(&self.with_spans_alone);
        let mut buffers: Vec<&str> = frames.map(|table| table.buffer.as_str()).collect();
        buffers.extend(self.states.then_some(KERNEL_BUFFER));
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }
}

fn has_states(form: TraceFormat) -> bool {
    // CTF has the kernel's frames.
    form != TraceFormat::Ctf
}

/// Whether the kernel's table `name` is made of such frames.
fn is_made_of(name: &str, frame: &str) -> bool {
    match name {
        "syscalls" => CALLS.contains(&frame),
        "faults" => frame == FAULT,
        _ => !CALLS.contains(&frame) && frame != FAULT,
    }
}
