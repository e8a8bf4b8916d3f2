//! The prompt of `ppt sql`: statements end with `;`, `\d` lists tables and columns.
//!
//! The prompt belongs to the supervisor: it survives a statement that has to be ended.

use ppt_text::exit::ExitStatus;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::answerer::{Answered, Answerer};
use super::tables;
use crate::error::AnswerError;
use crate::memory::Memory;
use crate::supervisor::ChildEnd;
use ppt_signals::{self, SignalPipe};

/// Reads statements from the terminal, and lets the process answer them.
pub(crate) fn run(memory: Memory, wakes: &SignalPipe) -> Result<ExitStatus, AnswerError> {
    let mut answerer = Answerer::start(memory)?;
    let end = match answerer.opened(wakes) {
        Answered::Done => read(&mut answerer, wakes)?,
        Answered::Ended(end) => end,
    };
    // Removes temporary files first, because the command may end by a signal.
    drop(answerer);
    Ok(end.report(memory))
}

fn read(answerer: &mut Answerer, wakes: &SignalPipe) -> Result<ChildEnd, AnswerError> {
    let mut editor = DefaultEditor::new().map_err(failed)?;
    let history = history();
    if let Some(path) = &history {
        let _ = editor.load_history(path);
    }
    println!("{}", tables::HELP);
    let mut text = String::new();
    let mut end = None;
    while end.is_none() {
        let prompt = if text.is_empty() { "ppt> " } else { "...> " };
        ppt_signals::end_the_program();
        let read = editor.readline(prompt);
        ppt_signals::end_work();
        let line = match read {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        };
        let word = line.trim();
        if text.is_empty() && tables::is_request(word) {
            let _ = editor.add_history_entry(word);
            if word == "\\q" {
                break;
            }
            end = ended(answerer.answer(word, wakes)?);
            continue;
        }
        text.push_str(&line);
        text.push('\n');
        if word.is_empty() && text.trim().is_empty() {
            text.clear();
        }
        if !word.ends_with(';') {
            continue;
        }
        let _ = editor.add_history_entry(text.trim());
        end = ended(answerer.answer(&std::mem::take(&mut text), wakes)?);
    }
    if let Some(path) = &history {
        let _ = std::fs::create_dir_all(path.parent().unwrap_or(path));
        let _ = editor.save_history(path);
    }
    Ok(end.unwrap_or_else(|| answerer.finish(wakes)))
}

fn ended(answered: Answered) -> Option<ChildEnd> {
    match answered {
        Answered::Done => None,
        Answered::Ended(end) => Some(end),
    }
}

/// The file of typed lines, in the user's state folder.
fn history() -> Option<std::path::PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(std::path::PathBuf::from);
    let home = || Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("ppt/sql-history"))
}

fn failed(error: ReadlineError) -> AnswerError {
    AnswerError::System("read the terminal", std::io::Error::other(error))
}
