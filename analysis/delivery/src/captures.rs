//! The captures that names mean while files come and go.

use std::path::PathBuf;

use ppt_tables::{SetError, capture_files};

use crate::growing::GrowingCapture;

/// Captures that are open at once: each has a descriptor.
const MAX_OPEN: usize = 128;

/// The captures that names mean, while files come and go.
#[derive(Debug)]
pub struct GrowingCaptures {
    names: Vec<PathBuf>,
    open: Vec<GrowingCapture>,
}

impl GrowingCaptures {
    /// Of files, patterns and names of rotated ones.
    pub fn new(names: Vec<PathBuf>) -> GrowingCaptures {
        GrowingCaptures { names, open: Vec::new() }
    }

    /// Opens those that are new, and not `is_done` by their id. Says whether all that are there are open
    /// now.
    ///
    /// # Errors
    /// Nothing is there, or it cannot be read.
    pub fn find(&mut self, is_done: impl Fn(&str) -> bool) -> Result<bool, SetError> {
        for path in capture_files(&self.names)? {
            let opened = match GrowingCapture::open(&path) {
                Ok(Some(opened)) => opened,
                Ok(None) => continue,
                // Removed since it was listed.
                Err(_) if !path.exists() && !self.names.contains(&path) => continue,
                Err(error) => return Err(error),
            };
            let is_known = self.open.iter().any(|known| known.id() == opened.id());
            if is_known || is_done(opened.id()) {
                continue;
            }
            if self.open.len() == MAX_OPEN {
                return Ok(false);
            }
            self.open.push(opened);
        }
        Ok(true)
    }

    /// Those that are open.
    pub fn open(&mut self) -> &mut [GrowingCapture] {
        &mut self.open
    }

    /// The one with this id, if it is open.
    pub fn get(&self, id: &str) -> Option<&GrowingCapture> {
        self.open.iter().find(|capture| capture.id() == id)
    }

    /// Closes those of which nothing more is wanted.
    pub fn close(&mut self, is_done: impl Fn(&str) -> bool) {
        self.open.retain(|capture| !is_done(capture.id()));
    }
}
