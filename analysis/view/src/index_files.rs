//! Keeps blocks in files, one for each capture, in a folder that only its user can read.
//!
//! A block is valid for a chunk with the same capture, number and checksum, as long as the clocks of the
//! capture give the same times. The content of the files is untrusted.

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
use crate::block_bytes::{self, UnreadBytes};
use crate::error::ViewError;

/// The version of the format of the files, which is part of their names.
pub const INDEX_VERSION: u32 = 2;

pub(crate) const MAGIC: [u8; 8] = *b"ppt-view";
/// The largest size of all files in the folder.
const MAX_BYTES: u64 = 2 << 30;

/// Identifies the block of a chunk, or of the share of a thread in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockId {
    /// The number of the chunk in the capture.
    pub ordinal: u64,
    /// The checksum of its bytes.
    pub crc: u32,
    /// The thread of the share. 0 for the thread that wrote the chunk.
    pub thread: u32,
}

/// The limits of the numbers in the block of a chunk.
pub(crate) struct ChunkLimits {
    pub frames: u32,
    /// The number of kinds of slices.
    pub kinds: usize,
}

/// The bytes of a file with the blocks of a capture.
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
        block_bytes::write(block, &mut body);
        append(id, &body, &mut bytes);
    }
    bytes
}

/// Appends the bytes of a block with this id.
pub(crate) fn append(id: BlockId, body: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend(id.ordinal.to_le_bytes());
    bytes.extend(id.crc.to_le_bytes());
    bytes.extend(id.thread.to_le_bytes());
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(xxh3_64(body).to_le_bytes());
    bytes.extend(body);
}

/// The blocks of a capture in the bytes of a file. `limits` returns the limits of a chunk, if the capture has
/// it. Leaves out invalid blocks, and all blocks after damaged bytes.
pub(crate) fn decode(
    bytes: &[u8],
    capture: &str,
    limits: impl Fn(BlockId) -> Option<ChunkLimits>,
) -> HashMap<BlockId, Arc<IndexBlock>> {
    let mut blocks = HashMap::new();
    let mut from = UnreadBytes(bytes);
    let head = |from: &mut UnreadBytes<'_>| {
        let is_current = from.take()? == MAGIC && from.number()? == INDEX_VERSION;
        let len = from.count()?;
        Some(is_current && from.slice(len)? == capture.as_bytes())
    };
    if head(&mut from) != Some(true) {
        return blocks;
    }
    while let Some((id, body)) = next_block(&mut from) {
        let limits = limits(id);
        let block = limits.and_then(|limits| block_bytes::read(body, limits.frames, limits.kinds));
        blocks.extend(block.map(|block| (id, Arc::new(block))));
    }
    blocks
}

/// The id and the bytes of the next block. None at the end, and if the bytes are damaged.
fn next_block<'a>(from: &mut UnreadBytes<'a>) -> Option<(BlockId, &'a [u8])> {
    let id = BlockId { ordinal: from.word()?, crc: from.number()?, thread: from.number()? };
    let (len, sum) = (from.count()?, from.word()?);
    let body = from.slice(len)?;
    (xxh3_64(body) == sum).then_some((id, body))
}

/// A folder of indexes.
#[derive(Debug, Clone)]
pub(crate) struct IndexFolder {
    folder: PathBuf,
}

impl IndexFolder {
    pub fn new(folder: &Path) -> IndexFolder {
        IndexFolder { folder: folder.to_owned() }
    }

    fn path(&self, capture: &str) -> PathBuf {
        self.folder.join(format!("{capture}.{INDEX_VERSION}"))
    }

    /// The bytes of the file of a capture. Empty if it cannot be read.
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
        // `prune` removes the files with the earliest times first.
        if let Ok(file) = read() {
            let _ = file.set_modified(SystemTime::now());
        }
        bytes
    }

    /// Writes the file of a capture.
    ///
    /// # Errors
    /// Other users can access the folder, or it cannot be written.
    pub fn store(&self, capture: &str, bytes: &[u8]) -> Result<(), ViewError> {
        let failed = |error| ViewError::IndexFolder { path: self.folder.clone(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        self.check().map_err(failed)?;
        let rules = Rules { force: true, readers: Readers::Owner, ..Rules::default() };
        let mut output = match Output::open(&self.path(capture), &rules) {
            // Another view of the capture writes the same blocks.
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

    /// Fails unless the folder belongs to the user and others cannot access it.
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

    /// Removes the files that were not used for longest, until the rest is small enough.
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
        let mut total: u64 = files.iter().map(|file| file.1).sum();
        for (_, len, path) in files {
            if total <= MAX_BYTES {
                break;
            }
            fs::remove_file(path)?;
            total -= len;
        }
        Ok(())
    }
}
