//! Chunks with wrong heads and right checksums.

use ppt_capture::{DamageKind, Lost};

use crate::support::{Op, STRIDE, check_rows, chunks, forge, read, small, write};

#[test]
fn an_unknown_kind_is_skipped() {
    let mut written = small();
    let (start, end) = chunks(&written.bytes)[1];
    forge(&mut written.bytes[start..end], |chunk| chunk[20..22].copy_from_slice(&[200, 1]));
    let read = read(&written.bytes).unwrap();
    assert_eq!((read.damaged, read.kinds), (vec![], vec![456]));
    assert_eq!(read.rows, written.rows);
}

#[test]
fn lengths_that_lie_cost_nothing() {
    let written = small();
    let all = chunks(&written.bytes);
    for (field, value) in [(32, u64::MAX), (32, 1 << 40), (32, 1 << 28), (40, u64::MAX)] {
        for kind in [2u8, 99] {
            let mut bytes = written.bytes.clone();
            let (start, end) = all[3];
            forge(&mut bytes[start..end], |chunk| {
                chunk[20] = kind;
                chunk[field..field + 8].copy_from_slice(&value.to_le_bytes());
            });
            check_rows(&read(&bytes).unwrap(), &written);
        }
    }
}

#[test]
fn frames_that_cannot_be_are_refused() {
    let written = small();
    let (start, end) = chunks(&written.bytes)[3];
    let forged = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = written.bytes.clone();
        forge(&mut bytes[start..end], change);
        let read = read(&bytes).unwrap();
        check_rows(&read, &written);
        assert!(!read.damaged.is_empty());
        read.rows.len()
    };
    let without = written.rows.len() - 3;
    let put = |at: usize, value: u32| {
        move |chunk: &mut [u8]| {
            chunk[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    };
    assert_eq!(forged(&put(24, 9)), without, "unknown source");
    assert_eq!(forged(&put(64, 9)), without, "unknown segment");
    assert_eq!(forged(&put(84, 4)), without, "unknown ring");
    assert_eq!(forged(&put(80, 4)), without, "count × stride");
    assert_eq!(forged(&put(92, 8)), without, "stride");
    assert_eq!(forged(&put(26, 1)), without, "codec");
    assert_eq!(forged(&put(72, 2)), without, "numbers that the frames do not carry");
    assert_eq!(forged(&|chunk: &mut [u8]| chunk[72..80].fill(255)), without, "number overflow");
}

#[test]
fn compressed_frames_that_cannot_be_are_damage() {
    let lost = Lost::default();
    let written = write(&[
        Op::Frames { ring: 0, count: 9, lost },
        Op::Frames { ring: 0, count: 10, lost },
        Op::Frames { ring: 0, count: 2, lost },
    ]);
    let all = chunks(&written.bytes);
    for (chunk, count, code) in [(3, 9, 1), (4, 10, 2)] {
        let (start, end) = all[chunk];
        assert_eq!(written.bytes[start + 26], code);
        let damage = |change: &dyn Fn(&mut [u8])| {
            let mut bytes = written.bytes.clone();
            forge(&mut bytes[start..end], change);
            let read = read(&bytes).unwrap();
            check_rows(&read, &written);
            assert_eq!(read.rows.len(), written.rows.len() - count);
            read.damaged[0].kind.to_string()
        };
        let put = |at: usize, value: u64| {
            move |chunk: &mut [u8]| chunk[at..at + 8].copy_from_slice(&value.to_le_bytes())
        };
        let raw = count as u64 * u64::from(STRIDE);
        let undone = "compressed frames that do not decompress to their length";
        for len in [0, raw - 24, raw + 24, 16 << 20] {
            assert_eq!(damage(&put(40, len)), undone, "{len} bytes");
        }
        let lengths = "a chunk whose lengths contradict each other";
        for len in [(16 << 20) + 1, 1 << 40, u64::MAX] {
            assert_eq!(damage(&put(40, len)), lengths, "{len} bytes");
        }
        assert_eq!(damage(&|chunk: &mut [u8]| chunk[26] ^= 3), undone, "the other codec");
        let unknown = "a chunk with codec 3, which this version does not know; a newer \
                       ppt may read it";
        assert_eq!(damage(&|chunk: &mut [u8]| chunk[26] = 3), unknown);
        let garbage = |chunk: &mut [u8]| {
            let stored = u64::from_le_bytes(chunk[32..40].try_into().unwrap()) as usize;
            chunk[192..192 + stored].fill(0xa5);
            let crc = crc32c::crc32c(&chunk[192..192 + stored]);
            chunk[56..60].copy_from_slice(&crc.to_le_bytes());
        };
        assert_eq!(damage(&garbage), undone, "garbage");
    }
    // Only frames are compressed.
    let mut bytes = written.bytes.clone();
    let (start, end) = all[0];
    forge(&mut bytes[start..end], |chunk| chunk[26] = 1);
    let read = read(&bytes).unwrap();
    assert!(matches!(read.damaged[0].kind, DamageKind::Codec(1)), "{:?}", read.damaged);
}
