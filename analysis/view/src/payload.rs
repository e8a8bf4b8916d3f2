//! Reads the frames of a chunk.

use ppt_capture::{ChunkFile, Payload};
use ppt_tables::{Contents, FrameChunk};

use crate::error::ViewError;

/// Gives the frames of a chunk to `take`; None where the chunk is damaged, or another one is there now.
///
/// # Errors
/// The capture cannot be read.
pub(crate) fn payload<R>(
    contents: &Contents,
    file: &mut ChunkFile,
    chunk: &FrameChunk,
    take: impl FnOnce(&Payload<'_>) -> R,
) -> Result<Option<R>, ViewError> {
    let failed = |error: std::io::Error| ViewError::Read {
        path: contents.path().to_owned(),
        error: error.into(),
    };
    match file.read(chunk.offset, chunk.len, 0).map_err(failed)? {
        Err(damage) => {
            contents.damage(damage);
            Ok(None)
        }
        Ok(payload) => {
            let head = &payload.head;
            let is_same = (chunk.first_seq, chunk.count) == (head.first_seq, head.count);
            Ok(is_same.then(|| take(&payload)))
        }
    }
}
