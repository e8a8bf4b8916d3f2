//! Messages on stderr. Only this module decides how they look.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstyle::{AnsiColor, Style};

use crate::escape::escaped_lines;

/// Success.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// Errors.
pub const RED: Style = AnsiColor::Red.on_default().bold();
/// Warnings.
pub const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Reports an error. `ppt explain` explains `code`.
pub fn error(code: impl Into<&'static str>, message: impl Display) {
    say(format_args!("{RED}ppt:{RED:#} {}{}", safe(message), more(code.into())));
}

/// Reports a warning. `ppt explain` explains `code`.
pub fn warning(code: impl Into<&'static str>, message: impl Display) {
    say(format_args!("{YELLOW}ppt:{YELLOW:#} {}{}", safe(message), more(code.into())));
}

/// Reports an event.
pub fn note(message: impl Display) {
    say(format_args!("ppt: {}", safe(message)));
}

/// A line below the message that refers to the explanation, once for each code.
fn more(code: &'static str) -> String {
    static SHOWN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let is_new = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(code);
    if is_new { format!("\n  more: ppt explain {code}") } else { String::new() }
}

/// Escapes control characters, because names in a message may come from a target.
fn safe(message: impl Display) -> String {
    escaped_lines(message.to_string().trim_end_matches('\n'))
}

/// Messages that wait while another program uses the terminal.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Holds all messages from now on, and drops the lines that scripts wait for.
pub fn hold() {
    held().get_or_insert_default();
}

/// Prints the held messages, and stops holding.
pub fn release() {
    let lines = held().take();
    lines.into_iter().flatten().for_each(print);
}

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes escape sequences, if stderr is a terminal.
pub fn raw(sequence: &str) {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr().lock(), "{sequence}");
    }
}

/// Prints a whole line. A closed stderr is not an error.
pub fn line(message: impl Display) {
    if held().is_none() {
        print(escaped_lines(&message.to_string()));
    }
}

fn say(message: impl Display) {
    match &mut *held() {
        Some(lines) => lines.push(message.to_string()),
        None => print(message),
    }
}

fn print(message: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{message}");
}

/// Prints help or a message of the command-line parser. It may contain the name of a foreign file.
/// `print` prints it in colours; a text with an unsafe character is printed without them.
pub fn usage(text: &str, print: impl FnOnce()) {
    let safe = escaped_lines(text);
    if safe == text {
        print();
    } else {
        let _ = write!(anstream::stderr().lock(), "{safe}");
    }
}

/// A line that is rewritten in place, on a terminal only. It is cleared when it is dropped.
pub struct StatusLine {
    is_wanted: bool,
    is_shown: bool,
}

impl StatusLine {
    /// A line that shows nothing yet, and never will unless it `is_wanted`.
    pub fn new(is_wanted: bool) -> StatusLine {
        StatusLine { is_wanted: is_wanted && std::io::stderr().is_terminal(), is_shown: false }
    }

    /// A line that another process may have left.
    pub fn shown() -> StatusLine {
        let is_terminal = std::io::stderr().is_terminal();
        StatusLine { is_wanted: is_terminal, is_shown: is_terminal }
    }

    /// Replaces the shown text.
    pub fn show(&mut self, text: impl Display) {
        if self.is_wanted {
            let _ = write!(std::io::stderr().lock(), "\r{}\x1b[K", safe(text));
            self.is_shown = true;
        }
    }

    /// Clears it for ordinary lines.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Default for StatusLine {
    fn default() -> StatusLine {
        StatusLine::new(true)
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
