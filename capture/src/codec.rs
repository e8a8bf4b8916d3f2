//! How frames are stored: raw or compressed, chunk by chunk.

use std::ffi::c_int;

use zstd_sys::{ZSTD_compress, ZSTD_decompress, ZSTD_isError};

use crate::error::DamageKind;
use crate::format::{MAX_CODED, codec};

/// Fast, with most of the possible compression.
const ZSTD_LEVEL: c_int = 1;
const NOT_DECODED: DamageKind =
    DamageKind::Content("compressed frames that do not decompress to their length");

/// A way to compress frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// One Zstandard frame per chunk.
    Zstd,
    /// One LZ4 block per chunk.
    Lz4,
}

impl Codec {
    /// The name of the codec.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Zstd => "zstd",
            Codec::Lz4 => "lz4",
        }
    }

    pub(crate) fn code(self) -> u16 {
        match self {
            Codec::Zstd => codec::ZSTD,
            Codec::Lz4 => codec::LZ4,
        }
    }

    pub(crate) fn from_code(code: u16) -> Option<Self> {
        [Codec::Zstd, Codec::Lz4].into_iter().find(|codec| codec.code() == code)
    }
}

/// Compresses the payloads of chunks, one after the other.
#[derive(Debug, Default)]
pub struct Packer {
    codec: Option<Codec>,
    stored: Vec<u8>,
}

impl Packer {
    /// Compresses with `codec`, or not at all.
    pub fn new(codec: Option<Codec>) -> Self {
        Self { codec, ..Self::default() }
    }

    /// Compresses `raw`. The result is raw if compression would not make it smaller.
    pub fn pack<'a>(&'a mut self, raw: &'a [u8]) -> Packed<'a> {
        self.pack_summed(raw, checksum(0, raw))
    }

    /// Compresses `raw`, whose [`checksum`] is `crc`.
    pub fn pack_summed<'a>(&'a mut self, raw: &'a [u8], crc: u32) -> Packed<'a> {
        let codec = self.codec.filter(|_| raw.len() as u64 <= MAX_CODED);
        match codec.and_then(|codec| Some((codec, self.shrink(codec, raw)?))) {
            Some((codec, len)) => {
                let stored = &self.stored[..len];
                let crc = checksum(0, stored);
                Packed { codec: codec.code(), stored, raw_len: raw.len(), crc }
            }
            None => Packed::summed(raw, crc),
        }
    }

    /// The compressed length of `raw`, if that is shorter.
    fn shrink(&mut self, codec: Codec, raw: &[u8]) -> Option<usize> {
        let room = match codec {
            // A result that is not at least one byte shorter saves nothing.
            Codec::Zstd => raw.len().checked_sub(1)?,
            // It requires room for the worst case.
            Codec::Lz4 => lz4_flex::block::get_maximum_output_size(raw.len()),
        };
        if self.stored.len() < room {
            self.stored.resize(room, 0);
        }
        let room = &mut self.stored[..room];
        let len = match codec {
            Codec::Zstd => compress(raw, room)?,
            Codec::Lz4 => lz4_flex::block::compress_into(raw, room).ok()?,
        };
        (len < raw.len()).then_some(len)
    }
}

/// A payload as the file stores it.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    pub(crate) codec: u16,
    pub(crate) stored: &'a [u8],
    pub(crate) raw_len: usize,
    pub(crate) crc: u32,
}

/// Extends the checksum `before` (0 for no bytes) by `bytes`.
pub fn checksum(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

impl<'a> Packed<'a> {
    /// A raw payload.
    pub fn raw(bytes: &'a [u8]) -> Self {
        Self::summed(bytes, checksum(0, bytes))
    }

    /// An uncompressed payload whose checksum is known.
    fn summed(bytes: &'a [u8], crc: u32) -> Self {
        Self { codec: codec::NONE, stored: bytes, raw_len: bytes.len(), crc }
    }

    /// Bytes of the payload in the file.
    pub fn stored_len(&self) -> usize {
        self.stored.len()
    }
}

/// Unpacks payloads, one after the other, into its own buffer of at most [`MAX_CODED`] bytes.
#[derive(Default)]
pub(crate) struct Unpacker {
    raw: Vec<u8>,
}

impl Unpacker {
    /// Unpacks `stored`, which must have `raw_len` bytes unpacked.
    pub fn unpack(&mut self, codec: u16, stored: &[u8], raw_len: u64) -> Result<(), DamageKind> {
        self.raw.clear();
        let known = Codec::from_code(codec).ok_or(DamageKind::Codec(codec))?;
        let len = usize::try_from(raw_len).ok().filter(|_| raw_len <= MAX_CODED);
        self.raw.resize(len.ok_or(DamageKind::Length)?, 0);
        let unpacked = match known {
            Codec::Zstd => decompress(stored, &mut self.raw),
            Codec::Lz4 => lz4_flex::block::decompress_into(stored, &mut self.raw).ok(),
        };
        if unpacked == len { Ok(()) } else { Err(NOT_DECODED) }
    }

    /// The bytes that were unpacked last.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }
}

/// The number of bytes that compressed `raw` takes in `room`, if it fits.
fn compress(raw: &[u8], room: &mut [u8]) -> Option<usize> {
    let (to, from) = (room.as_mut_ptr().cast(), raw.as_ptr().cast());
    // SAFETY: two slices, each with its length; only we use the one that is written to.
    let done = unsafe { ZSTD_compress(to, room.len(), from, raw.len(), ZSTD_LEVEL) };
    zstd_length(done)
}

/// The number of bytes that unpacked `stored` takes in `room`, if it is valid and fits.
fn decompress(stored: &[u8], room: &mut [u8]) -> Option<usize> {
    let (to, from) = (room.as_mut_ptr().cast(), stored.as_ptr().cast());
    // SAFETY: as above. The function trusts nothing in the compressed bytes.
    let done = unsafe { ZSTD_decompress(to, room.len(), from, stored.len()) };
    zstd_length(done)
}

fn zstd_length(done: usize) -> Option<usize> {
    // SAFETY: a pure function of a number.
    (unsafe { ZSTD_isError(done) } == 0).then_some(done)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODECS: [Codec; 2] = [Codec::Zstd, Codec::Lz4];

    fn frames(count: u64) -> Vec<u8> {
        (1..=count).flat_map(|seq| [seq, seq * 1000, 7]).flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls zstd")]
    fn what_is_packed_comes_back() {
        let mut unpacker = Unpacker::default();
        for codec in CODECS {
            let mut packer = Packer::new(Some(codec));
            for count in [1000, 20, 65_536] {
                let raw = frames(count);
                let packed = packer.pack(&raw);
                assert_eq!((packed.codec, packed.raw_len), (codec.code(), raw.len()));
                assert!(packed.stored_len() < raw.len() * 3 / 4, "{}", packed.stored_len());
                unpacker.unpack(packed.codec, packed.stored, raw.len() as u64).unwrap();
                assert!(unpacker.raw() == raw);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls zstd")]
    fn what_would_not_shrink_stays_as_it_is() {
        let mut word = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (word >> 56) as u8
        })
        .take(4096)
        .collect();
        for codec in CODECS.map(Some).into_iter().chain([None]) {
            for raw in [&noise[..], &[], &[1]] {
                let mut packer = Packer::new(codec);
                let packed = packer.pack_summed(raw, 7);
                let expected = (0, raw, 7);
                assert_eq!((packed.codec, packed.stored, packed.crc), expected, "{codec:?}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls zstd")]
    fn lengths_that_lie_are_damage_and_take_no_memory() {
        let raw = frames(100);
        let mut unpacker = Unpacker::default();
        for codec in CODECS {
            let mut packer = Packer::new(Some(codec));
            let (code, stored) = (codec.code(), packer.pack(&raw).stored.to_vec());
            for len in [0, 1, raw.len() as u64 - 1, raw.len() as u64 + 1, MAX_CODED] {
                assert_eq!(unpacker.unpack(code, &stored, len), Err(NOT_DECODED), "{len}");
            }
            for len in [MAX_CODED + 1, 1 << 40, u64::MAX] {
                assert_eq!(unpacker.unpack(code, &stored, len), Err(DamageKind::Length));
            }
            let cut = &stored[..stored.len() - 1];
            assert_eq!(unpacker.unpack(code, cut, raw.len() as u64), Err(NOT_DECODED));
        }
        assert_eq!(unpacker.unpack(9, &[], 8), Err(DamageKind::Codec(9)));
        assert!(unpacker.raw.capacity() as u64 <= 2 * MAX_CODED);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        #[cfg_attr(miri, ignore = "calls zstd")]
        fn garbage_is_damage(
            code in 1..3u16,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            len in 0..5000u64,
        ) {
            let mut unpacker = Unpacker::default();
            if unpacker.unpack(code, &bytes, len).is_ok() {
                prop_assert_eq!(unpacker.raw().len() as u64, len);
            }
        }
    }
}
