//! Reads a growing capture or a stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ppt_capture::{Capture, CaptureError, CaptureItem};

use crate::latest_frames::Latest;
use crate::picture::Picture;
use crate::tally::{Tally, TallyRange};

/// The interval at which a file is checked for growth.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A capture that is read while it is written.
pub struct LiveReader {
    watch: Arc<Mutex<Watch>>,
}

/// The state of the thread that reads a capture.
struct Watch {
    tally: Tally,
    phase: CapturePhase,
    /// The time at which the latest chunk was read.
    read_at: Instant,
}

/// The phase of a capture that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapturePhase {
    /// The capture has no content yet.
    Waiting,
    /// The capture continues.
    Running,
    /// The capture has ended for this reason.
    Ended(String),
    /// The capture has no end chunk and may grow. All of it has been read.
    Unended,
    /// The input ended without an end chunk.
    Cut,
    /// Reading failed with this error.
    Failed(String),
}

impl LiveReader {
    /// Starts a thread that reads `path` from its start and waits for more. `-` is standard input. The
    /// latest frames take at most `keep` bytes.
    ///
    /// # Errors
    /// The file is not a capture, or cannot be read.
    pub fn start(path: &Path, keep: usize) -> Result<LiveReader, CaptureError> {
        let is_file = path.as_os_str() != "-" && std::fs::metadata(path)?.is_file();
        if is_file {
            match Capture::open(path) {
                // It may become a capture.
                Ok(_) | Err(CaptureError::Empty) => {}
                Err(error) => return Err(error),
            }
        } else if path.is_dir() {
            return Err(CaptureError::Directory);
        }
        let watch = Arc::new(Mutex::new(Watch {
            tally: Tally::new(TallyRange::Latest, keep),
            phase: CapturePhase::Waiting,
            read_at: Instant::now(),
        }));
        let (path, shared): (PathBuf, _) = (path.to_owned(), watch.clone());
        let body = move || {
            let opened = if is_file {
                File::open(&path)
                    .map_err(CaptureError::from)
                    .and_then(|file| Capture::from_reader(WaitingReader(file)))
            } else {
                Capture::open(&path)
            };
            // A file that is not a capture yet may become one.
            let _ = lock(&shared).tally.survey(&path);
            match opened {
                Ok(capture) => read(capture, &shared),
                Err(CaptureError::Empty) => lock(&shared).phase = CapturePhase::Cut,
                Err(error) => lock(&shared).phase = CapturePhase::Failed(error.to_string()),
            }
        };
        thread::Builder::new().name("ppt-watch".to_owned()).spawn(body)?;
        Ok(LiveReader { watch })
    }

    /// The current picture and phase.
    pub fn look(&self) -> (Picture, CapturePhase) {
        let mut watch = lock(&self.watch);
        let since = match watch.phase {
            // Time advances even without new chunks.
            CapturePhase::Running => watch.read_at.elapsed().as_nanos() as u64,
            _ => 0,
        };
        let now = watch.tally.last().saturating_add(since);
        watch.tally.advance(now);
        (watch.tally.picture(now), watch.phase.clone())
    }

    /// The latest frames.
    pub fn latest(&self) -> Latest {
        lock(&self.watch).tally.latest()
    }
}

impl Tally {
    /// Reads all that the capture at `path` has now. `-` is standard input up to its end.
    ///
    /// # Errors
    /// The file is not a capture, or cannot be read.
    pub fn from_capture(path: &Path) -> Result<Tally, CaptureError> {
        let mut capture = Capture::open(path)?;
        let mut tally = Tally::new(TallyRange::Whole, 0);
        tally.survey(path)?;
        tally.begin(capture.header());
        while let Some(item) = capture.read()? {
            match item {
                CaptureItem::Chunk(chunk) => tally.add_chunk(&chunk),
                CaptureItem::Damage(_) => tally.add_damage(),
            }
        }
        tally.finish();
        Ok(tally)
    }

    /// `Ended` if the capture had ended when it was read, else `Unended`.
    pub fn phase(&self) -> CapturePhase {
        self.ended.clone().map_or(CapturePhase::Unended, CapturePhase::Ended)
    }

    /// CLOCK_MONOTONIC of the latest frames, in ns. 0 before the first ones.
    pub fn last(&self) -> u64 {
        self.drained.map_or(0, |drained| drained.last)
    }
}

/// Reads a capture to its end.
fn read(mut capture: Capture, watch: &Mutex<Watch>) {
    {
        let mut watch = lock(watch);
        watch.tally.begin(capture.header());
        watch.phase = CapturePhase::Running;
    }
    loop {
        let item = match capture.read() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(error) => {
                lock(watch).phase = CapturePhase::Failed(error.to_string());
                return;
            }
        };
        let mut watch = lock(watch);
        watch.read_at = Instant::now();
        match item {
            CaptureItem::Damage(_) => watch.tally.add_damage(),
            CaptureItem::Chunk(chunk) => {
                watch.tally.add_chunk(&chunk);
                if let Some(reason) = watch.tally.ended.clone() {
                    watch.phase = CapturePhase::Ended(reason);
                }
            }
        }
    }
    let mut watch = lock(watch);
    if watch.phase == CapturePhase::Running {
        watch.tally.finish();
        watch.phase = CapturePhase::Cut;
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reader that waits at the end of its file for more bytes.
struct WaitingReader(File);

impl Read for WaitingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Ok(0) if !buffer.is_empty() => thread::sleep(POLL_INTERVAL),
                result => return result,
            }
        }
    }
}
