//! Descriptors by their magic in mapped data: what finds them in stripped, static, section-less,
//! deleted and containerised objects.

use ppt_segment::abi::{DESCRIPTOR_MAGIC, Descriptor};

use crate::memory::Memory;

/// Bytes of one read.
const STEP: usize = 1 << 20;

/// Addresses in `[start, end)` that hold the magic followed by their own address.
///
/// At most `budget` bytes are read, in at most a read for each MiB of it, and as many are taken off
/// it; at most `limit` addresses are returned.
pub(crate) fn scan(
    memory: &Memory,
    (start, end): (u64, u64),
    budget: &mut u64,
    limit: usize,
) -> Vec<u64> {
    // A descriptor is 8-aligned; its magic and address may lie across two reads.
    const OVERLAP: usize = 32;
    let mut found = Vec::new();
    let mut buffer = vec![0; STEP + OVERLAP];
    let mut at = start;
    while at < end && *budget > 0 && found.len() < limit {
        let want = (end - at).min(buffer.len() as u64) as usize;
        let got = memory.read(at, &mut buffer[..want]).unwrap_or(0);
        // A hole costs as much as a whole read: a mapping may have no end of them.
        *budget = budget.saturating_sub(if got < want { STEP } else { got } as u64);
        found.extend(candidates(&buffer[..got], at).take(limit - found.len()));
        // A hole: try again behind it.
        at += if got < want { (got + 4096) as u64 / 4096 * 4096 } else { want.min(STEP) as u64 };
    }
    found.dedup();
    found
}

fn candidates(bytes: &[u8], base: u64) -> impl Iterator<Item = u64> {
    let self_address = std::mem::offset_of!(Descriptor, self_address);
    let first = DESCRIPTOR_MAGIC[0];
    (0..bytes.len().saturating_sub(23)).step_by(8).filter_map(move |offset| {
        let at = &bytes[offset..];
        if at[0] != first || at[..16] != DESCRIPTOR_MAGIC {
            return None;
        }
        let address = u64::from_le_bytes(at[self_address..self_address + 8].try_into().ok()?);
        (address == base + offset as u64).then_some(address)
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
