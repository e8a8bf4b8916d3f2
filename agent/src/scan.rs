//! Finds descriptors by their magic in mapped data. This works for stripped, static, section-less,
//! deleted and containerised objects.

use std::ops::Range;

use memchr::memmem;
use ppt_segment::abi::{DESCRIPTOR_MAGIC, Descriptor};

use crate::budget::Budget;
use crate::memory::ProcessMemory;

/// Distance between the starts of consecutive reads, in bytes.
const STEP: usize = 1 << 20;
/// Bytes that are read twice. A descriptor is 8-aligned; its magic and address may cross two reads.
const OVERLAP: usize = 32;

/// The result of a scan.
pub(crate) struct ScanResult {
    /// Addresses that hold the magic followed by their own address.
    pub(crate) found: Vec<u64>,
    /// The address at which it ended.
    pub(crate) end: u64,
}

/// Looks through memory.
#[derive(Debug)]
pub(crate) struct Scanner {
    buffer: Vec<u8>,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; STEP + OVERLAP] }
    }

    /// Looks through `range`, as far as the budget and `limit` addresses allow.
    pub(crate) fn scan(
        &mut self,
        memory: &ProcessMemory,
        range: Range<u64>,
        budget: &mut Budget,
        limit: usize,
    ) -> ScanResult {
        let mut found = Vec::new();
        let Range { start: mut at, end } = range;
        while at < end && found.len() < limit {
            let wanted = (end - at).min(self.buffer.len() as u64);
            let granted = budget.memory.take(wanted);
            if granted < wanted.min(OVERLAP as u64 + 1) {
                break;
            }
            let piece = &mut self.buffer[..granted as usize];
            let got = memory.read(at, piece).unwrap_or(0);
            budget.spent.memory += got as u64;
            budget.spent.reads += 1;
            found.extend(candidates(&piece[..got], at).take(limit - found.len()));
            at += match (got as u64) < granted {
                // A hole: continue after it.
                true => (got as u64 + 4096) / 4096 * 4096,
                false if at + granted == end => granted,
                false => granted - OVERLAP as u64,
            };
        }
        found.dedup();
        ScanResult { found, end: at.min(end) }
    }
}

fn candidates(bytes: &[u8], base: u64) -> impl Iterator<Item = u64> {
    let self_address = std::mem::offset_of!(Descriptor, self_address);
    memmem::find_iter(bytes, &DESCRIPTOR_MAGIC).filter_map(move |offset| {
        let address = bytes[offset..].get(self_address..self_address + 8)?;
        let address = u64::from_le_bytes(address.try_into().ok()?);
        (address == base + offset as u64 && address.is_multiple_of(8)).then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_descriptor_that_knows_its_address_counts() {
        let mut bytes = vec![0; 256];
        bytes[64..80].copy_from_slice(&DESCRIPTOR_MAGIC);
        assert_eq!(candidates(&bytes, 0x1000).count(), 0, "a copy");
        bytes[80..88].copy_from_slice(&0x1040u64.to_le_bytes());
        assert_eq!(candidates(&bytes, 0x1000).collect::<Vec<_>>(), [0x1040]);
        assert_eq!(candidates(&bytes[..80], 0x1000).count(), 0, "cut off");
    }
}
