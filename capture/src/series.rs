//! Series chunks: the position of this file, if the capture continues in several files.

use crate::bytes::{get, put, put_u32, put_u64, u32_at, u64_at};
use crate::error::DamageKind;
use crate::format::series;

/// The position of a file in its series, which is the files of one capture. The first file does not
/// state it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeriesPart {
    /// The id of the first file, which is the id of the series.
    pub series: [u8; 16],
    /// The id of the previous file.
    pub previous: [u8; 16],
    /// The number of this file in the series, from 2.
    pub number: u32,
    /// The number of files that are kept (`--keep`). Once this file has begun and the previous one
    /// has its end, ppt removes all but the last `keep` files. 0: all files are kept.
    pub keep: u32,
    /// Frames captured in all files before this one.
    pub captured_before: u64,
}

impl SeriesPart {
    /// The number of files, from the first on, that `--keep` has removed once this file is the
    /// current one.
    pub fn removed(&self) -> u32 {
        if self.keep == 0 { 0 } else { self.number.saturating_sub(self.keep) }
    }

    pub(crate) fn encode(&self) -> [u8; series::LEN] {
        let mut bytes = [0; series::LEN];
        put(&mut bytes, series::SERIES, self.series);
        put(&mut bytes, series::PREVIOUS, self.previous);
        put_u32(&mut bytes, series::NUMBER, self.number);
        put_u32(&mut bytes, series::KEEP, self.keep);
        put_u64(&mut bytes, series::CAPTURED_BEFORE, self.captured_before);
        bytes
    }

    /// Later versions may append to the payload.
    pub(crate) fn decode(payload: &[u8]) -> Result<SeriesPart, DamageKind> {
        let bytes = payload.get(..series::LEN).ok_or(DamageKind::Length)?;
        let part = SeriesPart {
            series: get(bytes, series::SERIES),
            previous: get(bytes, series::PREVIOUS),
            number: u32_at(bytes, series::NUMBER),
            keep: u32_at(bytes, series::KEEP),
            captured_before: u64_at(bytes, series::CAPTURED_BEFORE),
        };
        if part.number < 2 {
            return Err(DamageKind::Content("a file that continues a series and is its first"));
        }
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_and_says_what_keep_removed() {
        let part = SeriesPart {
            series: [1; 16],
            previous: [2; 16],
            number: 5,
            keep: 3,
            captured_before: 1 << 40,
        };
        let bytes = part.encode();
        assert_eq!(
            SeriesPart::decode(&[&bytes[..], &[9; 8]].concat()),
            Ok(part),
            "a later version"
        );
        assert_eq!((part.removed(), SeriesPart { keep: 0, ..part }.removed()), (2, 0));
        assert_eq!(SeriesPart { keep: 9, ..part }.removed(), 0);
        assert_eq!(SeriesPart::decode(&bytes[1..]), Err(DamageKind::Length));
        assert!(SeriesPart::decode(&SeriesPart { number: 1, ..part }.encode()).is_err());
    }
}
