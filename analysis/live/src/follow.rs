//! Reads a growing capture or a stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ppt_capture::{Capture, CaptureError, CaptureItem};

use crate::keep::Latest;
use crate::picture::Picture;
use crate::tally::{Tally, TallyRange};

/// Interval at which a file is checked for growth.
const PAUSE: Duration = Duration::from_millis(20);

/// A capture that is read while it is written.
pub struct GrowingCapture {
    seen: Arc<Mutex<SeenLength>>,
}

struct SeenLength {
    tally: Tally,
    phase: Phase,
    /// The time at which the latest chunk was read.
    at: Instant,
}

/// The state of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The capture has no content yet.
    Waiting,
    /// The capture continues.
    Running,
    /// The capture has ended, for the stated reason.
    Ended(String),
    /// Everything present has been read, but there is no end chunk: the capture may grow.
    Unended,
    /// The input ended without an end chunk.
    Cut,
    /// Reading failed.
    Failed(String),
}

impl GrowingCapture {
    /// Reads `path` from its start, and waits for more; `-` is standard input. `keep`: the number
    /// of bytes of the latest frames that are kept.
    ///
    /// # Errors
    /// It is not a capture, or cannot be read.
    pub fn start(path: &Path, keep: usize) -> Result<GrowingCapture, CaptureError> {
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
        let seen = Arc::new(Mutex::new(SeenLength {
            tally: Tally::new(TallyRange::Latest, keep),
            phase: Phase::Waiting,
            at: Instant::now(),
        }));
        let (path, ours): (PathBuf, _) = (path.to_owned(), seen.clone());
        let body = move || {
            let opened = if is_file {
                File::open(&path)
                    .map_err(CaptureError::from)
                    .and_then(|file| Capture::from_reader(Growing(file)))
            } else {
                Capture::open(&path)
            };
            // A file that is not a capture yet may become one.
            let _ = locked(&ours).tally.survey(&path);
            match opened {
                Ok(capture) => read(capture, &ours),
                Err(CaptureError::Empty) => locked(&ours).phase = Phase::Cut,
                Err(error) => locked(&ours).phase = Phase::Failed(error.to_string()),
            }
        };
        thread::Builder::new().name("ppt-watch".to_owned()).spawn(body)?;
        Ok(GrowingCapture { seen })
    }

    /// The current picture, and whether more may come.
    pub fn look(&self) -> (Picture, Phase) {
        let mut seen = locked(&self.seen);
        let since = match seen.phase {
            // Time advances even without new chunks.
            Phase::Running => seen.at.elapsed().as_nanos() as u64,
            _ => 0,
        };
        let last = seen.tally.drained.map_or(0, |drained| drained.1);
        let now = last.saturating_add(since);
        seen.tally.advance(now);
        (seen.tally.picture(now), seen.phase.clone())
    }

    /// The latest frames.
    pub fn latest(&self) -> Latest {
        locked(&self.seen).tally.latest()
    }
}

impl Tally {
    /// Reads everything in the capture at `path` now; `-` is standard input, up to its end.
    ///
    /// # Errors
    /// It is not a capture, or cannot be read.
    pub fn from_capture(path: &Path) -> Result<Tally, CaptureError> {
        let mut capture = Capture::open(path)?;
        let mut tally = Tally::new(TallyRange::Whole, 0);
        tally.survey(path)?;
        tally.begin(capture.header());
        while let Some(item) = capture.read()? {
            match item {
                CaptureItem::Chunk(chunk) => tally.add_chunk(&chunk),
                CaptureItem::Damage(_) => tally.damage(),
            }
        }
        tally.finish();
        Ok(tally)
    }

    /// Whether the capture had ended when it was read.
    pub fn phase(&self) -> Phase {
        self.ended.clone().map_or(Phase::Unended, Phase::Ended)
    }

    /// CLOCK_MONOTONIC of the latest frames, ns.
    pub fn last(&self) -> u64 {
        self.drained.map_or(0, |drained| drained.1)
    }
}

fn read(mut capture: Capture, seen: &Mutex<SeenLength>) {
    {
        let mut seen = locked(seen);
        seen.tally.begin(capture.header());
        seen.phase = Phase::Running;
    }
    loop {
        let item = match capture.read() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(error) => {
                locked(seen).phase = Phase::Failed(error.to_string());
                return;
            }
        };
        let mut seen = locked(seen);
        seen.at = Instant::now();
        match item {
            CaptureItem::Damage(_) => seen.tally.damage(),
            CaptureItem::Chunk(chunk) => {
                seen.tally.add_chunk(&chunk);
                if let Some(why) = seen.tally.ended.clone() {
                    seen.phase = Phase::Ended(why);
                }
            }
        }
    }
    let mut seen = locked(seen);
    if seen.phase == Phase::Running {
        seen.tally.finish();
        seen.phase = Phase::Cut;
    }
}

fn locked(seen: &Mutex<SeenLength>) -> MutexGuard<'_, SeenLength> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file without an end chunk.
struct Growing(File);

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Ok(0) if !buffer.is_empty() => thread::sleep(PAUSE),
                other => return other,
            }
        }
    }
}
