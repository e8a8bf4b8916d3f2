//! Readings of CLOCK_REALTIME from chronyd: `chronyc -n -c tracking`.
//!
//! The manual of chronyc says: "An absolute bound on the computer's clock accuracy (assuming the stratum-1
//! computer is correct) is given by: clock_error <= |system_time_offset| + root_dispersion +
//! (0.5 * root_delay)". So true time is at CLOCK_REALTIME + the offset, within the rest.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ppt_clock::sync::{Record, TimeSourceReport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::clock::HostClock;
use super::decimal;
use super::error::{TimeSourceError, shown};
use super::watched::{Watched, slewed};

/// The number of fields in a line. The last one is the leap status.
const FIELDS: usize = 14;
/// Time limit of chronyc, which gives up by itself only later.
const SECONDS: u64 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// More than the longest output.
const MAX_OUTPUT_BYTES: usize = 4096;

/// A reading.
#[derive(Debug, PartialEq, Eq)]
struct Tracking {
    /// True time − CLOCK_REALTIME.
    offset_ns: i64,
    error_ns: u64,
}

/// chronyd of this host.
pub(super) struct Chrony<'a> {
    program: PathBuf,
    clock: &'a HostClock,
}

impl<'a> Chrony<'a> {
    /// chronyc must exist; it need not be synchronised yet.
    pub fn find(program: &Path, clock: &'a HostClock) -> Result<Self, TimeSourceError> {
        let chrony = Self { program: program.to_owned(), clock };
        match chrony.ask() {
            Ok(_) | Err(TimeSourceError::Unsynchronised) => Ok(chrony),
            Err(error) => Err(error),
        }
    }

    fn ask(&self) -> Result<Record, TimeSourceError> {
        let before = self.clock.ticks();
        let began_ns = ppt_now::monotonic();
        let output = self.run()?;
        let after = self.clock.ticks();
        let took_ns = ppt_now::monotonic() - began_ns;
        let Tracking { offset_ns, error_ns } = self.tracking(&output)?;
        // The reading was true at some moment while chronyc ran.
        let error_ns = error_ns.saturating_add(slewed(took_ns));
        let (tick, source) = (before.midpoint(after), "chrony".to_owned());
        Ok(Record::Reported(TimeSourceReport { host: 0, source, tick, offset_ns, error_ns }))
    }

    /// The relevant part of its output.
    fn run(&self) -> Result<Vec<u8>, TimeSourceError> {
        let mut command = Command::new(&self.program);
        command.args(["-n", "-c", "tracking"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |cause| TimeSourceError::program(&self.program, &cause);
        let mut child = command.spawn().map_err(failed)?;
        let output = until_end(&mut child);
        // The program has written everything, or has reached the limit.
        let _ = child.kill();
        child.wait().map_err(failed)?;
        let slow = || TimeSourceError::Slow { program: self.program.clone(), seconds: SECONDS };
        output.map_err(failed)?.ok_or_else(slow)
    }

    fn tracking(&self, output: &[u8]) -> Result<Tracking, TimeSourceError> {
        let line = output.split(|&byte| byte == b'\n').next().unwrap_or_default();
        // Codes of failures are numbers, as in "506 Cannot talk to daemon".
        let is_code = |bytes: &[u8]| bytes.len() == 3 && bytes.iter().all(u8::is_ascii_digit);
        if line.is_empty() || is_code(line.split(|&byte| byte == b' ').next().unwrap_or_default()) {
            return Err(TimeSourceError::Unanswered {
                program: self.program.clone(),
                output: shown(line),
            });
        }
        let tracking = std::str::from_utf8(line).ok().and_then(tracking);
        tracking.ok_or_else(|| TimeSourceError::line(&self.program, line))?
    }
}

/// Parses a line of `chronyc -c tracking`. `None` if it has another form.
fn tracking(line: &str) -> Option<Result<Tracking, TimeSourceError>> {
    let fields: Vec<_> = line.split(',').collect();
    if fields.len() != FIELDS {
        return None;
    }
    let (id, leap) = (u32::from_str_radix(fields[0], 16).ok()?, fields[FIELDS - 1]);
    let [offset_ns, delay_ns, dispersion_ns] =
        [decimal::ns(fields[4])?, decimal::ns(fields[10])?, decimal::ns(fields[11])?];
    // 7F7F0101 is the local clock.
    if id == 0 || id == 0x7F7F_0101 || leap == "Not synchronised" {
        return Some(Err(TimeSourceError::Unsynchronised));
    }
    // Each of three numbers may be off by half a ns through rounding.
    let error_ns =
        delay_ns.unsigned_abs().div_ceil(2).checked_add(dispersion_ns.unsigned_abs())? + 2;
    Some(Ok(Tracking { offset_ns, error_ns }))
}

/// A program's output until it closes stdout; `None` if that takes too long.
fn until_end(child: &mut Child) -> io::Result<Option<Vec<u8>>> {
    let Some(mut stdout) = child.stdout.take() else { return Ok(None) };
    let end_ns = ppt_now::monotonic() + SECONDS * 1_000_000_000;
    let mut output = Vec::new();
    loop {
        let left_ns = end_ns.saturating_sub(ppt_now::monotonic());
        let timeout = Timespec {
            tv_sec: (left_ns / 1_000_000_000) as i64,
            tv_nsec: (left_ns % 1_000_000_000) as i64,
        };
        match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut part = [0; MAX_OUTPUT_BYTES];
        match stdout.read(&mut part)? {
            0 => return Ok(Some(output)),
            length => output.extend_from_slice(
                &part[..length.min(MAX_OUTPUT_BYTES - output.len().min(MAX_OUTPUT_BYTES))],
            ),
        }
    }
}

impl Watched for Chrony<'_> {
    fn look(&mut self, report: &mut dyn FnMut(Result<Record, TimeSourceError>)) {
        report(self.ask());
    }

    fn pause(&self) -> Duration {
        PAUSE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Output of chronyc 4.3.
    const GOLDEN: &[(&str, i64, u64)] = &[
        (
            "0A4D0001,10.77.0.1,2,1795437973.366689755,0.000000444,0.000001448,0.000001448,-0.542,0.090,14.554,0.000001187,0.000011567,0.1,Normal",
            444,
            594 + 11_567 + 2,
        ),
        (
            "CB00710F,203.0.113.15,3,1485510557.123456789,-0.250006523,-0.000006747,0.000035822,-3.225,-0.000,0.129,0.013639022,0.001100737,64.2,Insert second",
            -250_006_523,
            6_819_511 + 1_100_737 + 2,
        ),
    ];
    const NONE: &str = "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised";
    const LOCAL: &str = "7F7F0101,,1,1795437973.1,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,0.000000000,0.000000000,0.0,Normal";

    #[test]
    fn lines_of_chronyc_are_understood() {
        for &(line, offset_ns, error_ns) in GOLDEN {
            assert_eq!(tracking(line), Some(Ok(Tracking { offset_ns, error_ns })), "{line}");
        }
        for line in [NONE, LOCAL] {
            assert_eq!(tracking(line), Some(Err(TimeSourceError::Unsynchronised)), "{line}");
        }
        let line = GOLDEN[0].0;
        for wrong in [
            "",
            "0A4D0001",
            &line.replace("0A4D0001", "here"),
            &line.replace("0.000000444", "nan"),
            &line.replace("0.000011567", "1e-3"),
            &format!("{line},more"),
        ] {
            assert_eq!(tracking(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(line in ".{0,40}", fields in prop::collection::vec("[-0-9a-fA-F.]{0,25}", 14)) {
            tracking(&line);
            tracking(&fields.join(","));
        }
    }
}
