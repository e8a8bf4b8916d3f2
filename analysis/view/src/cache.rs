//! Keeps blocks in files: a file for each capture, in a folder that only its user can read.
//!
//! A block counts for a chunk with the same capture, number and checksum, and only as long as the clocks of the
//! capture give the same times. What is read may be anything.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ppt_output::{Output, OutputError, Readers, Rules};
use xxhash_rust::xxh3::xxh3_64;

use crate::block::IndexBlock;
use crate::error::ViewError;
use crate::record::{self, UnreadBytes};

/// The version of what is in the files. It is part of their names.
pub const INDEX_VERSION: u32 = 2;

pub(crate) const MAGIC: [u8; 8] = *b"ppt-view";
/// Bytes of the files in the folder, at most.
const MAX_BYTES: u64 = 2 << 30;

/// What distinguishes the block of a chunk: its number in the capture, the checksum of its bytes, and the
/// thread that its frames are about (0: the one that wrote them).
pub(crate) type BlockId = (u64, u32, u32);

/// The blocks of a capture, as bytes.
pub(crate) fn encode<'a>(
    capture: &str,
    blocks: impl Iterator<Item = (BlockId, &'a IndexBlock)>,
) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(INDEX_VERSION.to_le_bytes());
    bytes.extend((capture.len() as u32).to_le_bytes());
    bytes.extend(capture.as_bytes());
    let mut body = Vec::new();
    for (id, block) in blocks {
        body.clear();
        record::write(block, &mut body);
        append(id, &body, &mut bytes);
    }
    bytes
}

/// Appends the bytes of a block of that chunk.
pub(crate) fn append((ordinal, crc, thread): BlockId, body: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend(ordinal.to_le_bytes());
    bytes.extend(crc.to_le_bytes());
    bytes.extend(thread.to_le_bytes());
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(xxh3_64(body).to_le_bytes());
    bytes.extend(body);
}

/// The blocks that `bytes` hold of a capture. `limits` says how many frames and kinds of slices a chunk has,
/// if there is such a chunk. What is damaged is left out, and so is all that follows it.
pub(crate) fn decode(
    bytes: &[u8],
    capture: &str,
    limits: impl Fn(BlockId) -> Option<(u32, usize)>,
) -> HashMap<BlockId, Arc<IndexBlock>> {
    let mut blocks = HashMap::new();
    let mut from = UnreadBytes(bytes);
    let head = |from: &mut UnreadBytes<'_>| {
        let is_right = from.take()? == MAGIC && from.number()? == INDEX_VERSION;
        let len = from.count()?;
        Some(is_right && from.some(len)? == capture.as_bytes())
    };
    if head(&mut from) != Some(true) {
        return blocks;
    }
    while let Some((id, body)) = record(&mut from) {
        let block = limits(id).and_then(|(frames, kinds)| record::read(body, frames, kinds));
        blocks.extend(block.map(|block| (id, Arc::new(block))));
    }
    blocks
}

/// The next block's chunk, and its bytes.
fn record<'a>(from: &mut UnreadBytes<'a>) -> Option<(BlockId, &'a [u8])> {
    let id = (from.word()?, from.number()?, from.number()?);
    let (len, sum) = (from.count()?, from.word()?);
    let body = from.some(len)?;
    (xxh3_64(body) == sum).then_some((id, body))
}

/// A folder of indexes.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub fn new(folder: &Path) -> Cache {
        Cache { folder: folder.to_owned() }
    }

    fn path(&self, capture: &str) -> PathBuf {
        self.folder.join(format!("{capture}.{INDEX_VERSION}"))
    }

    /// What is kept of a capture; nothing where nothing can be read.
    pub fn load(&self, capture: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut read = || -> io::Result<File> {
            self.check()?;
            let file = File::open(self.path(capture))?;
            let kind = file.metadata()?;
            if kind.is_file() && kind.len() <= MAX_BYTES {
                (&file).take(MAX_BYTES).read_to_end(&mut bytes)?;
            }
            Ok(file)
        };
        // Those that are used are removed last.
        if let Ok(file) = read() {
            let _ = file.set_modified(SystemTime::now());
        }
        bytes
    }

    /// Keeps the blocks of a capture.
    ///
    /// # Errors
    /// The folder is not its user's own, or cannot be written.
    pub fn store(&self, capture: &str, bytes: &[u8]) -> Result<(), ViewError> {
        let failed = |error| ViewError::Cache { path: self.folder.clone(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        self.check().map_err(failed)?;
        let rules = Rules { force: true, readers: Readers::Owner, ..Rules::default() };
        let mut output = match Output::open(&self.path(capture), &rules) {
            // Another view of the capture keeps the same blocks.
            Err(OutputError::InUse(..)) => return Ok(()),
            output => output?,
        };
        output.file().write_all(bytes).map_err(failed)?;
        match output.publish() {
            Ok(()) | Err(OutputError::InUse(..)) => {}
            Err(error) => return Err(error.into()),
        }
        self.prune().map_err(failed)
    }

    /// Whether only its user can write here.
    fn check(&self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.folder)?;
        let own = rustix::process::geteuid().as_raw();
        if found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0 {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not a folder that only its user can read and write (mode 0700)",
        ))
    }

    /// Removes what was not used for longest, until the rest is small enough.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let kind = entry.metadata()?;
            let is_index =
                kind.is_file() && !entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_index {
                files.push((kind.modified()?, kind.len(), entry.path()));
            }
        }
        files.sort();
        let mut all: u64 = files.iter().map(|file| file.1).sum();
        for (_, len, path) in files {
            if all <= MAX_BYTES {
                break;
            }
            fs::remove_file(path)?;
            all -= len;
        }
        Ok(())
    }
}
