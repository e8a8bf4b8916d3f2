//! Captures: as they are, and once more with checksums that are right, which an attacker can make.

use std::io::{self, Cursor, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::time::Duration;

use ppt_dump::{Bound, DumpRequest, Info, TableFormat, dump, dump_stream};

/// Every table, every account.
pub(crate) fn capture(input: &[u8]) {
    read(input);
    let resealed = reseal(input);
    if resealed != input {
        read(&resealed);
    }
}

/// A chunk's header, as `capture/src/format.rs` has it.
const FILE_CRC: usize = 16;
const HEADER_LEN: usize = 16;
const HEADER_CRC: usize = 28;
const STORED_LEN: usize = 32;
const PAYLOAD_CRC: usize = 56;
const ALIGN: usize = 64;
const CHUNK: &[u8] = b"\x89ppt-ch1";

fn read(bytes: &[u8]) {
    for format in [TableFormat::Tsv, TableFormat::Csv, TableFormat::JsonLines] {
        for gaps in [false, true] {
            let options = DumpRequest { format, gaps, ..DumpRequest::default() };
            let _ = dump_stream(Cursor::new(bytes.to_vec()), &options, Harmless);
        }
    }
    if let Ok(info) = Info::read_stream(Cursor::new(bytes.to_vec())) {
        info.write_text(Harmless).unwrap();
        info.write_json(Harmless).unwrap();
    }
    // A file is read in another way than a stream.
    let (_file, path) = file(bytes);
    let _ = dump(&path, &DumpRequest::default(), Harmless);
    // And so is a part of one.
    for gaps in [false, true] {
        let (from, to) = (Some(Bound::Seq(2)), Some(Bound::Since(Duration::from_secs(1))));
        let _ = dump(&path, &DumpRequest { gaps, from, to, ..DumpRequest::default() }, Harmless);
    }
}

fn file(bytes: &[u8]) -> (std::fs::File, PathBuf) {
    // SAFETY: the name is a string; the result is checked.
    let fd = unsafe { libc::memfd_create(c"capture".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: it was just made, and is nobody else's.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    file.write_all(bytes).unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    (file, path)
}

/// A terminal that nothing must be able to command.
struct Harmless;

impl Write for Harmless {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bad = |byte: &u8| (*byte < 0x20 && !b"\n\t\r".contains(byte)) || *byte == 0x7f;
        assert!(!bytes.iter().any(bad), "{:?}", String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same with the right checksums wherever something looks like a header.
fn reseal(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize
    };
    if bytes.len() >= ALIGN {
        let len = word(&bytes, 12);
        if let Some(header) = bytes.get_mut(..len).filter(|byte| byte.len() > FILE_CRC + 4) {
            seal(header, FILE_CRC);
        }
    }
    let mut at = 0;
    while at + ALIGN <= bytes.len() {
        if bytes[at..].starts_with(CHUNK) {
            let (header, stored) = (word(&bytes, at + HEADER_LEN), word(&bytes, at + STORED_LEN));
            let payload = at.saturating_add(header);
            if let Some(payload) = bytes.get(payload..payload.saturating_add(stored)) {
                let crc = crc32c::crc32c(payload);
                bytes[at + PAYLOAD_CRC..][..4].copy_from_slice(&crc.to_le_bytes());
            }
            if let Some(header) = bytes.get_mut(at..payload).filter(|byte| byte.len() >= ALIGN) {
                seal(header, HEADER_CRC);
            }
        }
        at += ALIGN;
    }
    bytes
}

fn seal(header: &mut [u8], at: usize) {
    header[at..at + 4].fill(0);
    let crc = crc32c::crc32c(header);
    header[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}
