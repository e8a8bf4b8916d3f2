//! The file header: identity of the file, and the place and time of its creation.

use crate::bytes::{get, put, put_u32, put_u64, u32_at, u64_at};
use crate::format::{self, file};

/// The content of the file header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHeader {
    /// The random id of this capture.
    pub capture_id: [u8; 16],
    /// Name of the host; cut to 64 bytes.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`; cut to 64 bytes.
    pub boot_id: String,
    /// Program and version that wrote it, `ppt 0.1.0`; cut to 64 bytes.
    pub tool: String,
    /// CLOCK_REALTIME at creation, ns.
    pub created_realtime_ns: u64,
    /// CLOCK_MONOTONIC at creation, ns.
    pub created_mono_ns: u64,
}

/// Why the first bytes are not a file header of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// Another magic, or too short.
    Magic,
    /// The checksum does not match; the version may be wrong, too.
    Checksum { version: u32 },
    /// Intact, of a later version.
    Newer(u32),
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; file::LEN] {
        let mut bytes = [0; file::LEN];
        put(&mut bytes, file::MAGIC, file::MAGIC_VALUE);
        put_u32(&mut bytes, file::VERSION, format::VERSION);
        put_u32(&mut bytes, file::HEADER_LEN, file::LEN as u32);
        put(&mut bytes, file::CAPTURE_ID, self.capture_id);
        put_u64(&mut bytes, file::CREATED_REALTIME, self.created_realtime_ns);
        put_u64(&mut bytes, file::CREATED_MONOTONIC, self.created_mono_ns);
        put_text(&mut bytes[file::HOST..][..file::TEXT], &self.host);
        put_text(&mut bytes[file::BOOT_ID..][..file::TEXT], &self.boot_id);
        put_text(&mut bytes[file::TOOL..][..file::TEXT], &self.tool);
        let crc = crc_without(&bytes, file::CRC);
        put_u32(&mut bytes, file::CRC, crc);
        bytes
    }

    /// The header and its length, from the first bytes of a file (up to [`format::MAX_HEADER`]).
    pub(crate) fn decode(bytes: &[u8]) -> Result<(FileHeader, usize), HeaderFault> {
        if bytes.len() < file::LEN || !bytes.starts_with(&file::MAGIC_VALUE) {
            return Err(HeaderFault::Magic);
        }
        let version = u32_at(bytes, file::VERSION);
        let len = u32_at(bytes, file::HEADER_LEN) as usize;
        let whole = len.is_multiple_of(format::ALIGN) && (file::LEN..=bytes.len()).contains(&len);
        if !whole || crc_without(&bytes[..len], file::CRC) != u32_at(bytes, file::CRC) {
            return Err(HeaderFault::Checksum { version });
        }
        if version > format::VERSION {
            return Err(HeaderFault::Newer(version));
        }
        let header = FileHeader {
            capture_id: get(bytes, file::CAPTURE_ID),
            host: text(&bytes[file::HOST..][..file::TEXT]),
            boot_id: text(&bytes[file::BOOT_ID..][..file::TEXT]),
            tool: text(&bytes[file::TOOL..][..file::TEXT]),
            created_realtime_ns: u64_at(bytes, file::CREATED_REALTIME),
            created_mono_ns: u64_at(bytes, file::CREATED_MONOTONIC),
        };
        Ok((header, len))
    }
}

/// crc32c of `bytes` with the four bytes at `at` taken as zero.
pub(crate) fn crc_without(bytes: &[u8], at: usize) -> u32 {
    let crc = crc32c::crc32c(&bytes[..at]);
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc32c::crc32c_append(crc, &bytes[at + 4..])
}

/// The longest prefix of `text` that fits, cut at a character boundary.
fn put_text(bytes: &mut [u8], text: &str) {
    let ends = text.char_indices().map(|(at, char)| at + char.len_utf8());
    let len = ends.take_while(|&end| end <= bytes.len()).last().unwrap_or(0);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
}

fn text(bytes: &[u8]) -> String {
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            capture_id: *b"0123456789abcdef",
            host: "h".repeat(63) + "é",
            boot_id: "b".into(),
            tool: "ppt 0.1.0".into(),
            created_realtime_ns: 7,
            created_mono_ns: 8,
        }
    }

    #[test]
    fn comes_back_with_text_cut_at_a_character() {
        let bytes = header().encode();
        let (back, len) = FileHeader::decode(&bytes).unwrap();
        assert_eq!(len, file::LEN);
        assert_eq!(back, FileHeader { host: "h".repeat(63), ..header() });
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = header().encode();
        // Miri is slow.
        let step = if cfg!(miri) { 911 } else { 1 };
        for bit in (0..bytes.len() * 8).step_by(step) {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(FileHeader::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut bytes = header().encode();
        put_u32(&mut bytes, file::VERSION, 9);
        let crc = crc_without(&bytes, file::CRC);
        put_u32(&mut bytes, file::CRC, crc);
        assert_eq!(FileHeader::decode(&bytes), Err(HeaderFault::Newer(9)));
    }
}
