//! Messages on stderr. This is the only place that decides how they look.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstyle::{AnsiColor, Style};

pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Reports an error. `ppt explain` explains `code`.
pub(crate) fn error(code: impl Into<&'static str>, message: impl Display) {
    say(format_args!("{RED}ppt:{RED:#} {}{}", safe(message), more(code.into())));
}

/// Reports a warning. `ppt explain` explains `code`.
pub(crate) fn warning(code: impl Into<&'static str>, message: impl Display) {
    say(format_args!("{YELLOW}ppt:{YELLOW:#} {}{}", safe(message), more(code.into())));
}

/// Names the explanation in a line below the message, once for each code.
fn more(code: &'static str) -> String {
    static SHOWN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let is_new = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(code);
    if is_new { format!("\n  more: ppt explain {code}") } else { String::new() }
}

/// Reports an event.
pub(crate) fn note(message: impl Display) {
    say(format_args!("ppt: {}", safe(message)));
}

/// Names in a message may be a target's: nothing that a terminal obeys.
fn safe(message: impl Display) -> String {
    ppt_text::escaped_lines(&message.to_string())
}

/// Messages that wait while another program has the terminal.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Holds all messages from now on, and drops the lines that scripts wait for.
pub(crate) fn hold() {
    held().get_or_insert_default();
}

/// Prints the held messages, and holds no more.
pub(crate) fn release() {
    let lines = held().take();
    lines.into_iter().flatten().for_each(print);
}

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Escape sequences, if stderr is a terminal.
pub(crate) fn raw(sequence: &str) {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr().lock(), "{sequence}");
    }
}

/// Prints a whole line. If nobody reads it, that is no error.
pub(crate) fn line(message: impl Display) {
    if held().is_none() {
        print(safe(message));
    }
}

fn say(message: impl Display) {
    match &mut *held() {
        Some(lines) => lines.push(message.to_string()),
        None => print(message),
    }
}

fn print(message: impl Display) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{message}");
}

/// A line that is rewritten in place, on a terminal only.
pub(crate) struct StatusLine {
    terminal: bool,
    shown: bool,
}

impl StatusLine {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { terminal: wanted && std::io::stderr().is_terminal(), shown: false }
    }

    pub(crate) fn show(&mut self, text: impl Display) {
        if self.terminal {
            let _ = write!(std::io::stderr().lock(), "\r{}\x1b[K", safe(text));
            self.shown = true;
        }
    }

    /// Clears it for ordinary lines.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
