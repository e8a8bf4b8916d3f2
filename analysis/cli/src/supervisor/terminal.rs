//! Restores the terminal after a question: a process that is killed does not.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use ratatui_crossterm::crossterm::cursor::Show;
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::LeaveAlternateScreen;
use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// The settings of the terminal, if there is one.
pub(crate) struct Terminal {
    settings: Option<Termios>,
}

impl Terminal {
    /// The current settings.
    pub(crate) fn now() -> Terminal {
        let settings = with(|terminal| tcgetattr(terminal).ok());
        Terminal { settings }
    }

    /// Restores the settings. `is_drawn`: a screen was drawn on the terminal.
    pub(crate) fn restore(&self, is_drawn: bool) {
        if is_drawn && io::stdout().is_terminal() {
            let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        }
        let Some(settings) = &self.settings else { return };
        with(|terminal| {
            // In the background, this would stop the program.
            let is_ours = tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp());
            (is_ours && tcsetattr(terminal, OptionalActions::Now, settings).is_ok()).then_some(())
        });
        let _ = io::stdout().flush();
    }
}

/// Calls `act` with the standard streams that are terminals, until it returns a value.
fn with<T>(act: impl Fn(std::os::fd::BorrowedFd<'_>) -> Option<T>) -> Option<T> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let all = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    all.into_iter().filter(|stream| stream.is_terminal()).find_map(act)
}
