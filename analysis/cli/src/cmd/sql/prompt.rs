//! The prompt of `ppt sql`: statements end with `;`, `\d` lists tables and columns.

use std::io::Write;

use ppt_query::{plain, statements};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::session::Session;
use crate::failure::Failure;
use crate::{message, signals};

const HELP: &str =
    "\\d lists tables, \\d TABLE its columns, \\q ends; anything else is SQL and ends with ;";

pub(crate) fn run(session: &Session) -> Result<(), Failure> {
    let mut editor = DefaultEditor::new().map_err(failed)?;
    let history = history();
    if let Some(path) = &history {
        let _ = editor.load_history(path);
    }
    println!("{HELP}");
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "ppt> " } else { "...> " };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        };
        let word = line.trim();
        if text.is_empty() && word.starts_with('\\') {
            let _ = editor.add_history_entry(word);
            match word.split_whitespace().collect::<Vec<_>>()[..] {
                ["\\q"] => break,
                ["\\d"] => list(session),
                ["\\d", table] => describe(session, table),
                _ => println!("{HELP}"),
            }
            continue;
        }
        text.push_str(&line);
        text.push('\n');
        if !word.ends_with(';') {
            continue;
        }
        let _ = editor.add_history_entry(text.trim());
        signals::end_questions();
        answer(session, &std::mem::take(&mut text));
        signals::end_the_program();
    }
    if let Some(path) = &history {
        let _ = std::fs::create_dir_all(path.parent().unwrap_or(path));
        let _ = editor.save_history(path);
    }
    Ok(())
}

/// Answers; what goes wrong is said, and the prompt comes again.
fn answer(session: &Session, text: &str) {
    let all = match statements(text) {
        Ok(all) => all,
        Err(error) => return message::error(error.code(), error),
    };
    for statement in all {
        let mut out = std::io::stdout();
        let done = session.one(statement, &mut out, "standard output");
        let _ = out.flush();
        match done {
            Ok(_) => {}
            Err(Failure::Query(ppt_query::QueryError::Cancelled)) => {
                return message::note("cancelled");
            }
            Err(failure) => return message::error(failure.code(), failure),
        }
    }
}

fn list(session: &Session) {
    for (name, table) in session.engine.tables() {
        println!("{} ({} columns)", plain(&name), table.schema().fields().len());
    }
}

fn describe(session: &Session, wanted: &str) {
    let found = session.engine.tables().into_iter().find(|(name, _)| name == wanted);
    let Some((_, table)) = found else {
        return println!("there is no table {wanted}");
    };
    for field in table.schema().fields() {
        let said = |key: &str| field.metadata().get(key).map_or("", String::as_str);
        let unit =
            if said("unit").is_empty() { String::new() } else { format!(" [{}]", said("unit")) };
        let text = format!("{:<20} {}{unit}  {}", field.name(), field.data_type(), said("doc"));
        println!("  {}", plain(text.trim_end()));
    }
}

/// Where lines are kept that were typed: in the user's state folder.
fn history() -> Option<std::path::PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(std::path::PathBuf::from);
    let home = || Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("ppt/sql-history"))
}

fn failed(error: ReadlineError) -> Failure {
    Failure::System("read the terminal", std::io::Error::other(error))
}
