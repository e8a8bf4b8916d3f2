//! Formats points in time, all by one clock.

use std::time::{Duration, UNIX_EPOCH};

use ppt_capture::Stamps;
use ppt_capture::columns::{Reader, Time, TimeScale};
use ppt_capture::frame_dsl::schema::Clock;

use crate::options::TimeFormat;
use crate::table::{CellValue, TableWriter, digits};

/// The clocks of columns, as far as a table can compare their times.
#[derive(Debug, Default)]
pub(crate) struct ClocksOfColumns {
    /// CLOCK_REALTIME, and ticks, which are converted to it.
    realtime: bool,
    monotonic: bool,
    boottime: bool,
}

impl ClocksOfColumns {
    pub fn add(&mut self, reader: &Reader) {
        match reader.time().map(Time::scale) {
            Some(TimeScale::Ticks | TimeScale::Ns(Clock::Realtime)) => self.realtime = true,
            Some(TimeScale::Ns(Clock::Monotonic)) => self.monotonic = true,
            Some(TimeScale::Ns(Clock::Boottime)) => self.boottime = true,
            Some(TimeScale::Ns(Clock::ThreadCpu | Clock::ProcessCpu)) | None => {}
        }
    }

    /// The default format of a table. `None`: as the program wrote its times.
    pub fn default_format(&self) -> Option<TimeFormat> {
        let clocks = [self.realtime, self.monotonic, self.boottime];
        let count = clocks.into_iter().filter(|&is_there| is_there).count();
        (count > 1).then_some(TimeFormat::Ns)
    }
}

/// The point in time that a column holds, if a table can show it by another clock than its own.
/// This excludes CPU-time clocks.
pub(crate) fn comparable(reader: &Reader) -> Option<Time> {
    let is_cpu =
        |time: &Time| matches!(time.scale(), TimeScale::Ns(Clock::ThreadCpu | Clock::ProcessCpu));
    reader.time().filter(|time| !is_cpu(time))
}

/// Converts times to cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeCells {
    pub format: TimeFormat,
    /// Realtime − monotonic, ns.
    pub offset: Option<i128>,
    /// The start of the capture, ns since the epoch.
    pub start: i128,
}

impl TimeCells {
    /// Writes the time in `frame`. An empty cell if it was not recorded or is unknown.
    pub fn write<W: TableWriter>(
        self,
        (time, frame): (Time, &[u8]),
        stamps: &Stamps<'_>,
        column: usize,
        (writer, out): (&mut W, &mut Vec<u8>),
    ) {
        let Some(ns) = time.epoch(time.word(frame), stamps, self.offset) else {
            return writer.cell(column, CellValue::Empty, out);
        };
        match self.format {
            TimeFormat::Ns | TimeFormat::Own => {
                writer.begin_cell(column, out);
                digits(ns, out);
            }
            TimeFormat::Rel => {
                writer.begin_cell(column, out);
                seconds(ns - self.start, out);
            }
            TimeFormat::Utc => match utc(ns) {
                Some(text) => writer.cell(column, CellValue::Text(text.as_bytes()), out),
                None => {
                    writer.begin_cell(column, out);
                    digits(ns, out);
                }
            },
        }
    }
}

/// Seconds with nine decimals: a number in every format.
fn seconds(ns: i128, out: &mut Vec<u8>) {
    if ns < 0 {
        out.push(b'-');
    }
    let ns = ns.unsigned_abs();
    digits(ns / 1_000_000_000, out);
    out.push(b'.');
    let fraction = (ns % 1_000_000_000) as u32;
    let zeros = 8 - fraction.checked_ilog10().unwrap_or(0) as usize;
    out.extend_from_slice(&b"00000000"[..zeros]);
    digits(fraction, out);
}

/// `2026-11-21T15:04:05.250000000Z`. `None` before 1970 and after 2262.
fn utc(ns: i128) -> Option<String> {
    let ns = i64::try_from(ns).ok().and_then(|ns| u64::try_from(ns).ok())?;
    Some(humantime::format_rfc3339_nanos(UNIX_EPOCH + Duration::from_nanos(ns)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_nine_decimals() {
        let text = |ns| {
            let mut out = Vec::new();
            seconds(ns, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0), "0.000000000");
        assert_eq!(text(1_500_000_000), "1.500000000");
        assert_eq!(text(-1), "-0.000000001");
        assert_eq!(text(-12_000_000_345), "-12.000000345");
        assert_eq!(text(999_999_999), "0.999999999");
    }

    #[test]
    fn utc_reads_back_the_same() {
        let text = utc(1_700_000_000_000_000_005).unwrap();
        assert_eq!(text, "2023-11-14T22:13:20.000000005Z");
        assert!(utc(i64::MAX.into()).unwrap().starts_with("2262-04-11T"));
        assert_eq!((utc(-1), utc(1 << 70)), (None, None));
    }
}
