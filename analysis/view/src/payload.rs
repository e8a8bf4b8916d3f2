//! Reads the frames of a chunk.

use ppt_capture::{ChunkFile, Payload};
use ppt_tables::{Contents, FrameChunk};

use crate::error::ViewError;

/// Passes the payload of a chunk to `take`. None if the chunk is damaged or was overwritten.
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

/// Passes each valid frame to `take`, with its number in the chunk.
pub(crate) fn frames(payload: &Payload<'_>, mut take: impl FnMut(u32, &[u8])) {
    let (bytes, stride) = (payload.bytes(), payload.head.stride as usize);
    if payload.is_whole() {
        (0..).zip(bytes.chunks_exact(stride)).for_each(|(row, frame)| take(row, frame));
    } else {
        payload.good().for_each(|row| take(row, &bytes[row as usize * stride..][..stride]));
    }
}
