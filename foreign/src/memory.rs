//! Memory that is mapped from a file system that may not answer.

use std::io;

use crate::helper::fill;
use crate::request::{Memory, Request};
use crate::subject::Subject;

/// Reads memory of a process that is mapped from a file system that may not answer. Returns fewer bytes where the
/// mapping ends.
///
/// # Errors
/// The file system did not answer, or the memory cannot be read.
pub fn read_memory(
    memory: &Memory<'_>,
    address: u64,
    buffer: &mut [u8],
    subject: &Subject,
) -> io::Result<usize> {
    fill(buffer, subject, |done| Request::Memory {
        memory: *memory,
        address: address.wrapping_add(done),
    })
}
