//! The thread that writes windows, so that the recorder never waits for a disk.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use ppt_capture::{Codec, FileHeader, Process};

use super::shared::{News, Shared};
use super::window::{Content, FinishedWindow};

/// Interval between attempts to write a window.
const AGAIN: Duration = Duration::from_secs(1);

/// The files of windows. Each file becomes visible once it is complete.
pub trait WindowFiles: Send {
    /// Opens the next file, and returns its header. `first` is the first process of the window, if
    /// any.
    ///
    /// # Errors
    /// The file cannot be created.
    fn open(&mut self, first: Option<&Process>) -> io::Result<(Box<dyn Write + '_>, FileHeader)>;

    /// Publishes the file that was opened last, which is complete. Returns its name.
    ///
    /// # Errors
    /// The file cannot get its name.
    fn publish(&mut self) -> io::Result<String>;

    /// Discards the file that was opened last.
    fn discard(&mut self);
}

/// Writes windows until there are no more. A window that cannot be written stays in memory, and
/// writing is retried.
pub(super) fn run(
    windows: &Receiver<FinishedWindow>,
    files: &mut dyn WindowFiles,
    codec: Option<Codec>,
    shared: &Arc<Shared>,
) {
    for window in windows {
        let mut reported = false;
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
                shared.send(News::GivenUp(error));
                shared.lose_window();
                break;
            }
            if !std::mem::replace(&mut reported, true) {
                shared.send(News::Waits(error));
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
