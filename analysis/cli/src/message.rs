//! Messages on stderr, as `ppt` has them.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Something went wrong: `ppt explain` knows more of it under `code`.
pub(crate) fn error(code: &'static str, message: impl Display) {
    line(format_args!("{RED}ppt:{RED:#} {}{}", safe(message), more(code)));
}

/// Something is worth knowing, likewise.
pub(crate) fn warning(code: &'static str, message: impl Display) {
    line(format_args!("{YELLOW}ppt:{YELLOW:#} {}{}", safe(message), more(code)));
}

/// What happened.
pub(crate) fn note(message: impl Display) {
    line(format_args!("ppt: {}", safe(message)));
}

/// What clap has to say about a command line, or help. A word of it may be a stranger's file name.
pub(crate) fn usage(error: &clap::Error) {
    let text = error.to_string();
    let safe = ppt_text::escaped_lines(&text);
    if safe == text {
        let _ = error.print();
    } else {
        let _ = write!(anstream::stderr().lock(), "{safe}");
    }
}

/// The way to the explanation. Once for each code is enough.
fn more(code: &'static str) -> String {
    static SHOWN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let is_new = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(code);
    if is_new { format!("\n  more: ppt explain {code}") } else { String::new() }
}

/// Names in it may be a target's: nothing that a terminal obeys.
fn safe(message: impl Display) -> String {
    ppt_text::escaped_lines(message.to_string().trim_end_matches('\n'))
}

fn line(message: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{message}");
}

/// A line that is rewritten in place, on a terminal only.
#[derive(Default)]
pub(crate) struct StatusLine {
    shown: bool,
}

impl StatusLine {
    /// The line that another process may have left.
    pub(crate) fn shown() -> StatusLine {
        StatusLine { shown: std::io::stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, text: impl Display) {
        if std::io::stderr().is_terminal() {
            let _ = write!(std::io::stderr().lock(), "\r{}\x1b[K", safe(text));
            self.shown = true;
        }
    }

    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
