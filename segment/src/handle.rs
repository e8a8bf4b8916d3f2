//! The gate's value: one word that states the segment to write into.

/// `generation << 32 | kind << 31 | id`.
///
/// The generation is never 0 and increases at every poke, so that no stale copy of a gate ever
/// matches the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    /// Number of pokes of one control page, never 0.
    pub generation: u32,
    /// The kind of object that `id` names.
    pub kind: SegmentKind,
    /// 31 bits: the segment id of shmget(2), or a number of the agent's choice.
    pub id: u32,
}

/// Kind of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// System V shared memory, attached by id.
    SysV,
    /// A sealed memfd made by the target.
    Memfd,
}

impl Handle {
    /// The gate's value.
    pub fn word(self) -> u64 {
        let kind = matches!(self.kind, SegmentKind::Memfd) as u64;
        (self.generation as u64) << 32 | kind << 31 | (self.id & 0x7fff_ffff) as u64
    }

    /// Reads a gate's value. `None` if it is not a handle: off, or half-written.
    pub fn from_word(word: u64) -> Option<Self> {
        let generation = (word >> 32) as u32;
        let kind = if word >> 31 & 1 == 0 { SegmentKind::SysV } else { SegmentKind::Memfd };
        (generation != 0).then_some(Self { generation, kind, id: word as u32 & 0x7fff_ffff })
    }

    /// The generation that the next poke uses after the one in `gate`.
    pub fn generation_after(generation: u32) -> u32 {
        generation.checked_add(1).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::NO_GATE;

    #[test]
    fn a_word_is_read_back() {
        for kind in [SegmentKind::SysV, SegmentKind::Memfd] {
            let handle = Handle { generation: 7, kind, id: 0x7fff_fffe };
            assert_eq!(Handle::from_word(handle.word()), Some(handle));
        }
    }

    #[test]
    fn off_and_no_gate_are_no_handles() {
        assert_eq!(Handle::from_word(0), None);
        assert_eq!(Handle::from_word(NO_GATE), None);
    }

    #[test]
    fn generations_skip_zero() {
        assert_eq!(Handle::generation_after(u32::MAX), 1);
        assert_eq!(Handle::generation_after(1), 2);
    }
}
