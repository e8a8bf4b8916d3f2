//! The payload of a clock chunk: readings of two clocks at once, and up to when frames are complete.

use ppt_clock::{ClockId, ClockReading};

use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::error::DamageKind;
use crate::format::clock;

/// Payload of a clock chunk. Every frame that was published before `complete` is in an earlier chunk;
/// 0: nothing is known of that.
pub(crate) fn encode(readings: &[ClockReading], complete: u64) -> Vec<u8> {
    let mut bytes = vec![0; readings.len() * clock::LEN];
    for (bytes, reading) in bytes.chunks_exact_mut(clock::LEN).zip(readings) {
        put_u16(bytes, clock::A, reading.a.code());
        put_u16(bytes, clock::B, reading.b.code());
        put_u32(bytes, clock::FLAGS, if reading.distrusted { clock::DISTRUSTED } else { 0 });
        put_u64(bytes, clock::A_BEFORE, reading.a_before);
        put_u64(bytes, clock::B_VALUE, reading.b_value);
        put_u64(bytes, clock::A_AFTER, reading.a_after);
    }
    if complete != 0 {
        let mut entry = [0; clock::LEN];
        put_u16(&mut entry, clock::A, clock::COMPLETE);
        put_u16(&mut entry, clock::B, ClockId::Monotonic.code());
        put_u64(&mut entry, clock::B_VALUE, complete);
        bytes.extend(entry);
    }
    bytes
}

/// The readings of a clock chunk, without those of clocks of a later version.
pub(crate) fn decode(payload: &[u8]) -> Result<Vec<ClockReading>, DamageKind> {
    if !payload.len().is_multiple_of(clock::LEN) {
        return Err(DamageKind::Length);
    }
    let readings = payload.chunks_exact(clock::LEN).filter_map(|bytes| {
        Some(ClockReading {
            a: ClockId::from_code(u16_at(bytes, clock::A))?,
            a_before: u64_at(bytes, clock::A_BEFORE),
            b: ClockId::from_code(u16_at(bytes, clock::B))?,
            b_value: u64_at(bytes, clock::B_VALUE),
            a_after: u64_at(bytes, clock::A_AFTER),
            distrusted: u32_at(bytes, clock::FLAGS) & clock::DISTRUSTED != 0,
        })
    });
    Ok(readings.collect())
}

/// Up to when frames are complete, as a payload says that [`decode`] takes; 0: it does not.
pub(crate) fn complete(payload: &[u8]) -> u64 {
    let codes = (clock::COMPLETE, ClockId::Monotonic.code());
    let entries = payload.chunks_exact(clock::LEN);
    let mut entries =
        entries.filter(|entry| (u16_at(entry, clock::A), u16_at(entry, clock::B)) == codes);
    entries.next().map_or(0, |entry| u64_at(entry, clock::B_VALUE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_read_back() {
        let reading = ClockReading {
            a: ClockId::Tick,
            a_before: 1,
            b: ClockId::Monotonic,
            b_value: 2,
            a_after: 3,
            distrusted: true,
        };
        let trusted = ClockReading { distrusted: false, ..reading };
        let mut bytes = encode(&[reading, trusted, reading], 0);
        put_u16(&mut bytes, 2 * clock::LEN + clock::B, 999);
        assert_eq!(
            decode(&bytes).unwrap(),
            [reading, trusted],
            "one of a later version is skipped"
        );
        assert!(decode(&bytes[1..]).is_err());
        assert_eq!(complete(&bytes), 0);
        let bytes = encode(&[reading], 77);
        assert_eq!((decode(&bytes).unwrap(), complete(&bytes)), (vec![reading], 77));
    }
}
