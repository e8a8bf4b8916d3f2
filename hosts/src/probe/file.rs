//! The file that a measurement writes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ppt_clock::sync::{HEADER, Record};
use ppt_output::{Guarded, Output, OutputError, Rules};

use super::client::RecordSink;

/// A `.sync` file. It gets its name when it is first flushed. If the process is killed later, the
/// file is readable and lacks only the last second.
#[derive(Debug)]
pub struct SyncFile {
    lines: BufWriter<Guarded<File>>,
    output: Arc<Mutex<Output>>,
}

impl SyncFile {
    /// A file to be named `path`; `-` is standard output.
    ///
    /// # Errors
    /// The path is refused by `rules`, or cannot be written.
    pub fn create(path: &Path, rules: &Rules) -> Result<Self, OutputError> {
        let mut output = Output::open(path, rules)?;
        output.claim()?;
        let output = Arc::new(Mutex::new(output));
        let system = |cause| OutputError::System(path.to_owned(), cause);
        let guarded = Guarded::new(&output, |file| file).map_err(system)?;
        let mut lines = BufWriter::new(guarded);
        writeln!(lines, "{HEADER}").map_err(system)?;
        Ok(Self { lines, output })
    }
}

impl RecordSink for SyncFile {
    fn put(&mut self, record: &Record) -> io::Result<()> {
        record.write_to(&mut self.lines)
    }

    fn keep(&mut self) -> io::Result<()> {
        self.lines.flush()?;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.publish().map_err(io::Error::other)
    }
}
