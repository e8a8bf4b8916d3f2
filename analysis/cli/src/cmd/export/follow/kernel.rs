//! The kernel's frames are followed. Tables that combine frames of several ranges are not.

use ppt_delivery::GrowingCapture;
use ppt_query::{Engine, EngineOptions, QueryError};

use crate::error::AnswerError;
use crate::message;

/// The tables that are not followed.
const TABLES: [&str; 3] = ["thread_states", "syscalls", "faults"];
const CODE: &str = "kernel-not-followed";

/// Refuses a table that is not followed, unless the capture has frames of that name.
pub(super) fn refuse(name: Option<&str>, capture: &GrowingCapture) -> Result<(), AnswerError> {
    let Some(name) = name.filter(|name| TABLES.contains(name)) else { return Ok(()) };
    let set = capture.part(0..u64::MAX).map_err(QueryError::from)?;
    let engine = Engine::new(set, &EngineOptions::default())?;
    if engine.frames(Some(name)).is_ok() {
        return Ok(());
    }
    let text = format!(
        "--follow cannot write `{name}`, whose rows are made of frames of several files; export the \
         captures without --follow once they have ended"
    );
    Err(AnswerError::Model { code: CODE, text, usage: true })
}

/// Reports that these tables are not in the export `name`.
pub(super) fn tell(name: &str) {
    let text = "the export has the kernel's frames, but neither `thread_states` nor `syscalls` nor `faults`, \
                which are made of frames of several files";
    message::warning(CODE, format_args!("{name}: {text}"));
}
