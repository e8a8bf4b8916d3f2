//! Settings that the supervisor of a question passes to the process that answers it.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::memory::Memory;

/// Name of the process, so that `ps` distinguishes it from the supervisor.
pub(crate) const NAME: &str = "ppt-question";
/// The environment variable with the [`QuestionSettings`].
const VARIABLE: &str = "PPT_QUESTION";

/// Settings of a process that answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuestionSettings {
    /// Process id of the supervisor.
    pub(crate) supervisor: i32,
    /// Memory limit of the questions.
    pub(crate) memory: Memory,
    /// Whether questions arrive one after the other on standard input.
    pub(crate) is_prompt: bool,
}

static SETTINGS: OnceLock<QuestionSettings> = OnceLock::new();

impl QuestionSettings {
    pub(crate) fn new(memory: Memory, is_prompt: bool) -> QuestionSettings {
        let supervisor = i32::try_from(std::process::id()).unwrap_or_default();
        QuestionSettings { supervisor, memory, is_prompt }
    }

    /// Passes the settings to a process that is about to start.
    pub(crate) fn hand(self, command: &mut Command) {
        let bytes = self.memory.bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        let (given, prompt) = (u8::from(self.memory.is_given), u8::from(self.is_prompt));
        command.env(VARIABLE, format!("{} {bytes} {given} {prompt}", self.supervisor));
    }

    fn read(text: &str) -> Option<QuestionSettings> {
        let mut words = text.split(' ');
        let supervisor = words.next()?.parse().ok()?;
        let bytes = words.next()?.parse().ok();
        let mut flag = || Some(words.next()? == "1");
        let memory = Memory { bytes, is_given: flag()? };
        Some(QuestionSettings { supervisor, memory, is_prompt: flag()? })
    }
}

/// The settings of this process, if it answers a question.
pub(crate) fn settings() -> Option<QuestionSettings> {
    if let Some(settings) = SETTINGS.get() {
        return Some(*settings);
    }
    let name = env::args_os().next()?;
    if Path::new(&name).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    let settings = QuestionSettings::read(&env::var(VARIABLE).ok()?)?;
    Some(*SETTINGS.get_or_init(|| settings))
}

/// Memory limit of questions that are answered in this process.
pub(crate) fn memory(given: Option<usize>) -> Memory {
    settings().map_or_else(|| Memory::new(given), |settings| settings.memory)
}
