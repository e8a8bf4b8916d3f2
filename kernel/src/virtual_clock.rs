//! The built-in buffer of the virtual clock: the pauses of `ppt whatif --live --pause-host`.

use std::io;
use std::sync::{Arc, OnceLock};

use ppt_segment::{RingWriter, Segment};

use crate::host_pause::{LOOK_INTERVAL, PausedRound};
use crate::schema::Builtin;
use crate::watch::segment;

/// The name of the buffer of the virtual clock.
pub const VIRTUAL_CLOCK_BUFFER: &str = "virtual_clock";

/// The frame file.
const SOURCE: &str = include_str!("virtual_clock.frame");
/// The numbers of its frames.
const POINT: u16 = 0;
const PAUSES: u16 = 1;

/// Writes the pauses of rounds into a segment that only ppt has mapped.
#[derive(Debug)]
pub struct VirtualClockLog {
    segment: Arc<Segment>,
    /// G at the end of the last round. It leaves out rounds that do not count: no answer uses their time.
    paused_ns: u64,
}

impl Builtin {
    /// The schema of the virtual clock.
    pub fn virtual_clock() -> &'static Self {
        static BUILTIN: OnceLock<Builtin> = OnceLock::new();
        BUILTIN.get_or_init(|| Self::compiled(VIRTUAL_CLOCK_BUFFER, SOURCE))
    }
}

impl VirtualClockLog {
    /// The largest number of points of a round: half of the ring.
    pub const MAX_POINTS: usize = 1 << 15;

    /// Creates an empty log with a segment of its own.
    ///
    /// # Errors
    /// There is no memory for the segment.
    pub fn new() -> io::Result<Self> {
        Ok(Self { segment: Arc::new(segment(Builtin::virtual_clock())?), paused_ns: 0 })
    }

    /// The segment of its frames.
    pub fn segment(&self) -> Arc<Segment> {
        self.segment.clone()
    }

    /// Writes the pauses of a round. `time`: start and end of the round, ns of CLOCK_MONOTONIC.
    pub fn write(&mut self, time: (u64, u64), round: &PausedRound) {
        let builtin = Builtin::virtual_clock();
        let mut writer = RingWriter::new(self.segment.ring(0));
        for point in &round.clock {
            let paused_ns = self.paused_ns + point.paused_ns;
            let (at, paused) = (point.at_ns.to_le_bytes(), paused_ns.to_le_bytes());
            let values: [&[u8]; 3] = [&at, &paused, &point.rate.to_le_bytes()];
            writer.write(builtin.words(POINT, &values));
        }
        self.paused_ns += round.clock.last().map_or(0, |last| last.paused_ns);
        let interval = LOOK_INTERVAL.as_nanos() as u64;
        let values = [
            time.0,
            time.1,
            round.owed_ns,
            round.paid_ns,
            interval,
            round.look_ns,
            round.in_span_ns,
            round.waited_ns,
        ];
        let values = values.map(u64::to_le_bytes);
        writer.write(builtin.words(PAUSES, &values.each_ref().map(|value| &value[..])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClockPoint;

    #[test]
    fn a_round_has_its_points_and_its_sums() {
        let mut log = VirtualClockLog::new().unwrap();
        let point = |at_ns, paused_ns, rate| ClockPoint { at_ns, paused_ns, rate };
        let clock = vec![point(5, 0, 0.5), point(9, 2, 0.0)];
        let round =
            PausedRound { clock, owed_ns: 4, paid_ns: 3, look_ns: 2, in_span_ns: 9, waited_ns: 1 };
        log.write((1, 10), &round);
        log.write((11, 20), &round);
        assert_eq!((log.segment().ring(0).tail(), log.paused_ns), (6, 4));
    }
}
