//! The thread that writes windows, so that the recorder never waits for a disk.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use ppt_capture::{Codec, FileHeader, Process};

use super::shared::{News, Shared};
use super::window::{Content, FinishedWindow};

/// From one attempt to write a window to the next.
const AGAIN: Duration = Duration::from_secs(1);

/// Where windows are written: each into a file of its own, which appears once it is whole.
pub trait WindowFiles: Send {
    /// Opens the next file, and says how it begins. `of` is the first process of the window, if it has any.
    ///
    /// # Errors
    /// The file cannot be created.
    fn open(&mut self, of: Option<&Process>) -> io::Result<(Box<dyn Write + '_>, FileHeader)>;

    /// The file that was opened last is whole; returns its name.
    ///
    /// # Errors
    /// The file cannot get its name.
    fn publish(&mut self) -> io::Result<String>;

    /// The file that was opened last is never published.
    fn discard(&mut self);
}

/// Writes windows until there are no more. What cannot be written stays in memory, and is tried again.
pub(super) fn run(
    windows: &Receiver<FinishedWindow>,
    files: &mut dyn WindowFiles,
    codec: Option<Codec>,
    shared: &Arc<Shared>,
) {
    for window in windows {
        let mut told = false;
        loop {
            let error = match write(&window, files, codec) {
                Ok((name, content)) => {
                    shared.written(News::Written {
                        name,
                        content,
                        is_whole: !window.crowded,
                        held: window.held,
                        wanted: window.asked.wanted,
                        triggers: window.asked.count(),
                    });
                    break;
                }
                Err(error) => error,
            };
            files.discard();
            if shared.gives_up() {
                shared.tell(News::GivenUp(error));
                shared.lose_window();
                break;
            }
            if !std::mem::replace(&mut told, true) {
                shared.tell(News::Waits(error));
            }
            shared.pause(AGAIN);
        }
        shared.settled();
    }
}

fn write(
    window: &FinishedWindow,
    files: &mut dyn WindowFiles,
    codec: Option<Codec>,
) -> io::Result<(String, Content)> {
    let process = window.feeds.values().next().map(|source| &source.process);
    let (out, header) = files.open(process)?;
    let content = window.write(out, &header, codec)?;
    Ok((files.publish()?, content))
}
