//! The captures that match the names of a command line while files come and go.

use std::path::PathBuf;

use ppt_tables::{SetError, capture_files};

use crate::growing_capture::GrowingCapture;

/// The most captures that are open at once, because each has a descriptor.
const MAX_OPEN: usize = 128;

/// The captures that match some names. A capture that appears later is found by the next search.
#[derive(Debug)]
pub struct GrowingCaptures {
    names: Vec<PathBuf>,
    open: Vec<GrowingCapture>,
}

impl GrowingCaptures {
    /// `names` are paths of files, patterns, or paths of rotated captures.
    pub fn new(names: Vec<PathBuf>) -> GrowingCaptures {
        GrowingCaptures { names, open: Vec::new() }
    }

    /// Opens the captures that are new, except those whose id `is_done`. Returns false if more captures
    /// exist than can be open.
    ///
    /// # Errors
    /// No file matches the names, or a file cannot be read.
    pub fn find(&mut self, is_done: impl Fn(&str) -> bool) -> Result<bool, SetError> {
        for path in capture_files(&self.names)? {
            let opened = match GrowingCapture::open(&path) {
                Ok(Some(opened)) => opened,
                Ok(None) => continue,
                // The file was removed after it was listed.
                Err(_) if !path.exists() && !self.names.contains(&path) => continue,
                Err(error) => return Err(error),
            };
            let is_open = self.open.iter().any(|capture| capture.id() == opened.id());
            if is_open || is_done(opened.id()) {
                continue;
            }
            if self.open.len() == MAX_OPEN {
                return Ok(false);
            }
            self.open.push(opened);
        }
        Ok(true)
    }

    /// The open captures, in the order in which they were found.
    pub fn open(&mut self) -> &mut [GrowingCapture] {
        &mut self.open
    }

    /// The open capture with this id.
    pub fn get(&self, id: &str) -> Option<&GrowingCapture> {
        self.open.iter().find(|capture| capture.id() == id)
    }

    /// Closes the captures whose id `is_done`.
    pub fn close(&mut self, is_done: impl Fn(&str) -> bool) {
        self.open.retain(|capture| !is_done(capture.id()));
    }
}
