//! The built-in buffer of rounds: the intervals, their speeds and their times.

use std::io;
use std::sync::{Arc, OnceLock};

use ppt_segment::{RingWriter, Segment};

use crate::schema::Builtin;
use crate::watch::segment;

/// The name of the buffer of rounds.
pub const ROUNDS_BUFFER: &str = "rounds";

/// The frame file.
const SOURCE: &str = include_str!("rounds.frame");

/// A round of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Round<'a> {
    /// The times of its start and its end, in ns of CLOCK_MONOTONIC.
    pub time: (u64, u64),
    /// Counted from 1; 0 is the time before the first permutation.
    pub permutation: u32,
    /// The speed of the interval: 0.5 is half as fast.
    pub speed: f64,
    /// Whether threads slept; otherwise they waited on a CPU.
    pub sleeps: bool,
    /// The interval; empty in a baseline.
    pub slowed: &'a str,
    /// The metric of the experiment; empty if it is not chosen yet.
    pub metric: &'a str,
}

/// Writes rounds into a segment that only ppt has mapped.
#[derive(Debug)]
pub struct RoundLog(Arc<Segment>);

impl Builtin {
    /// The schema of rounds.
    pub fn rounds() -> &'static Self {
        static BUILTIN: OnceLock<Builtin> = OnceLock::new();
        BUILTIN.get_or_init(|| Self::compiled(ROUNDS_BUFFER, SOURCE))
    }
}

impl RoundLog {
    /// # Errors
    /// There is no memory for its segment.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(segment(Builtin::rounds())?)))
    }

    /// The segment of its frames.
    pub fn segment(&self) -> Arc<Segment> {
        self.0.clone()
    }

    /// Writes a round that has ended.
    pub fn write(&mut self, round: &Round<'_>) {
        let builtin = Builtin::rounds();
        let wait = match (round.slowed, round.sleeps) {
            ("", _) => 0u8,
            (_, false) => 1,
            (_, true) => 2,
        };
        let (start, end) = (round.time.0.to_le_bytes(), round.time.1.to_le_bytes());
        let (permutation, speed) = (round.permutation.to_le_bytes(), round.speed.to_le_bytes());
        let values: [&[u8]; 7] = [
            &start,
            &end,
            &permutation,
            &[wait],
            &speed,
            round.slowed.as_bytes(),
            round.metric.as_bytes(),
        ];
        RingWriter::new(self.0.ring(0)).write(builtin.words(0, &values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_values_of_its_fields() {
        let frame = &Builtin::rounds().schema.frames[0];
        let names: Vec<_> = frame.fields.iter().map(|field| field.name.as_str()).collect();
        let fields =
            ["round_start", "round_end", "permutation", "wait", "speed", "slowed", "metric"];
        assert_eq!(names, fields);
        let mut log = RoundLog::new().unwrap();
        let metric = "path(asked, got)";
        for permutation in 1..3 {
            let (time, slowed) = ((5, 9), "serve.work");
            log.write(&Round { time, permutation, speed: 0.8, sleeps: true, slowed, metric });
        }
        assert_eq!(log.segment().ring(0).tail(), 2);
    }
}
