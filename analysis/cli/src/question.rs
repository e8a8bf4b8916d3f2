//! The process of a question: its side of the agreement with the supervisor.
//!
//! The supervisor starts this program again, under the name
//! [`NAME`](crate::question_settings::NAME), with the same arguments. The process ends if its
//! supervisor ends, and if it reaches its limit of memory. A panic becomes an error.

use std::thread;

use ppt_text::exit::ExitStatus;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::error::AnswerError;
use crate::question_settings::QuestionSettings;
use crate::{heap, panicked, run, scratch};

/// Answers a question with these settings.
pub(crate) fn answer(
    settings: QuestionSettings,
    work: impl FnOnce() -> Result<ExitStatus, AnswerError> + Send,
) -> Result<ExitStatus, AnswerError> {
    let system = |what| move |error| AnswerError::System(what, error);
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| AnswerError::System("follow the supervisor", error.into()))?;
    let is_orphan = move || getppid().map(Pid::as_raw_pid) != Some(settings.supervisor);
    let tidy = move || {
        if is_orphan() {
            scratch::remove_own();
        }
    };
    if is_orphan() {
        tidy();
        return Ok(ExitStatus::FAILED);
    }
    let _ = rustix::thread::set_name(c"ppt-question");
    ppt_signals::take_in_question(tidy).map_err(system("set up signals"))?;
    if let Some(bytes) = settings.memory.of_process() {
        heap::limit(bytes);
    }
    panicked::keep();
    let done = thread::scope(|scope| {
        // Planning walks expressions recursively.
        let thread = thread::Builder::new().stack_size(run::STACK).spawn_scoped(scope, work);
        thread.map(|thread| thread.join())
    });
    let done = done.map_err(system("start threads"))?;
    let done = done.unwrap_or_else(|_| Err(AnswerError::of_panic()));
    tidy();
    done
}
