//! Delivery into a folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ppt_output::{Output, Readers, Rules, lock_folder};

use crate::error::DeliveryError;

/// The time for which an exporter waits for another one to release the folder. A process that was asked to end
/// needs some time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A locked folder. Dropping this value releases the lock.
#[derive(Debug)]
pub(crate) struct DeliveryFolder {
    path: PathBuf,
    _lock: File,
}

impl DeliveryFolder {
    /// Locks a folder. Creates it if it does not exist.
    pub fn open(path: &Path) -> Result<DeliveryFolder, DeliveryError> {
        let fail = |cause| DeliveryError::Write { name: path.display().to_string(), cause };
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fail(error)),
            _ => {}
        }
        let since = Instant::now();
        loop {
            match lock_folder(path) {
                Ok(lock) => return Ok(DeliveryFolder { path: path.to_owned(), _lock: lock }),
                Err(error) if since.elapsed() > LOCK_TIMEOUT => return Err(error.into()),
                Err(ppt_output::OutputError::InUse(..)) => thread::sleep(POLL_INTERVAL),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The content of a file. None if it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        let path = self.path.join(name);
        // Reading a pipe could block forever.
        let read = || {
            if fs::metadata(&path)?.is_file() {
                fs::read(&path)
            } else {
                Err(io::Error::other("it is no regular file"))
            }
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(DeliveryError::Read { name: path.display().to_string(), cause }),
        }
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &str) -> Result<(), DeliveryError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(DeliveryError::Write { name: path.display().to_string(), cause })
            }
            _ => Ok(()),
        }
    }

    /// The name of some file that is not hidden. None if there is none.
    pub fn any_file(&self) -> Result<Option<String>, DeliveryError> {
        let fail = |cause| DeliveryError::Read { name: self.name(), cause };
        for entry in fs::read_dir(&self.path).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Writes a file in one step. It gets its name, and replaces an older file, once all of it is on the
    /// disk.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), DeliveryError> {
        let path = self.path.join(name);
        let fail = |cause| DeliveryError::Write { name: path.display().to_string(), cause };
        let parent = path.parent().unwrap_or(&self.path);
        if parent != self.path {
            match fs::create_dir(parent) {
                Ok(()) => sync(&self.path).map_err(fail)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fail(error)),
            }
        }
        let rules = Rules { force: true, readers: Readers::ByUmask, ..Rules::default() };
        let mut output = Output::open(&path, &rules)?;
        output.file().write_all(bytes).map_err(fail)?;
        output.file().sync_all().map_err(fail)?;
        output.publish()?;
        sync(parent).map_err(fail)
    }
}

/// Writes the names in a folder to the disk.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
