//! The lines of a `.sync` file.

use std::fmt;
use std::io::{self, Write};

use super::error::RecordError;
use super::host::Host;
use super::record_fields::RecordFields;
use crate::ClockReading;

/// The first line of a file.
pub const HEADER: &str = "ppt sync 1";

/// The content of one line. Hosts are identified by the index from their `host` line.
///
/// A record displays as its line, without the `\n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// `host INDEX NAME BOOT_ID TICK_HZ`: a host. Index 0 is the host that writes the file.
    Host(u32, Host),
    /// `clock HOST A B A_BEFORE B_VALUE A_AFTER`: a bracketed reading of two clocks of a host.
    ///
    /// Files have no field for [`ClockReading::distrusted`]: writers omit such readings.
    Clock(u32, ClockReading),
    /// `probe FROM TO FROM_TICK TO_TICK T1 T2 T3 T4`.
    Probe(Probe),
    /// `oneway FROM TO FROM_TICK TO_TICK`.
    OneWay(OneWay),
    /// `pulse HOST SECOND TICK_BEFORE TICK_AFTER`.
    Pulse(Pulse),
    /// `said HOST SOURCE TICK OFFSET_NS ERROR_NS`.
    Reported(TimeSourceReport),
    /// `count WHAT N`: the number of packets that did not count as readings, with the cause.
    Count(String, u64),
}

/// A packet and its answer, with the kernel's stamps: CLOCK_REALTIME of each host, in ns.
///
/// The ticks identify the clock readings that are near the stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The host that asks.
    pub from: u32,
    /// The host that answers.
    pub to: u32,
    /// A tick of `from`, read just before it sent.
    pub from_tick: u64,
    /// A tick of `to`, read right after it received.
    pub to_tick: u64,
    /// The time at which `from` sent the packet.
    pub t1: u64,
    /// The time at which `to` received it.
    pub t2: u64,
    /// The time at which `to` sent the answer.
    pub t3: u64,
    /// The time at which `from` received it.
    pub t4: u64,
}

/// A one-way message: of an application, or a probe without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneWay {
    /// The host that sent.
    pub from: u32,
    /// The host that received.
    pub to: u32,
    /// A tick of `from`, read before the message left.
    pub from_tick: u64,
    /// A tick of `to`, read after the message arrived.
    pub to_tick: u64,
}

/// An edge of a signal that marks the seconds of true time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// The host that saw it.
    pub host: u32,
    /// True time of the edge, in ns since the epoch.
    pub second: u64,
    /// A tick of the host before the edge.
    pub tick_before: u64,
    /// A tick of the host after the edge.
    pub tick_after: u64,
}

/// A report of another program (chrony, ptp4l) about a host's CLOCK_REALTIME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSourceReport {
    /// The host.
    pub host: u32,
    /// The program that reports it.
    pub source: String,
    /// The time of the report, as a tick of the host.
    pub tick: u64,
    /// True time − CLOCK_REALTIME, in ns.
    pub offset_ns: i64,
    /// Largest error of the offset, in ns.
    pub error_ns: u64,
}

impl Record {
    /// Reads a line without its `\n`. Returns `None` if its first word is of a later version.
    ///
    /// # Errors
    /// The line has other fields than its first word requires.
    pub fn parse(line: &[u8]) -> Result<Option<Self>, RecordError> {
        let word = line.split(|&byte| byte == b'\t').next().unwrap_or_default();
        Ok(Some(match word {
            b"host" => {
                let words = RecordFields::split_line(line, "host", 4)?;
                let host = Host::new(words.name(2)?, words.name(3)?, words.number(4)?)?;
                Self::Host(words.index(1)?, host)
            }
            b"clock" => clock(&RecordFields::split_line(line, "clock", 6)?)?,
            b"probe" => {
                let words = RecordFields::split_line(line, "probe", 8)?;
                let (from, to) = words.hosts()?;
                let (from_tick, to_tick) = (words.number(3)?, words.number(4)?);
                let (t1, t2) = (words.number(5)?, words.number(6)?);
                let (t3, t4) = (words.number(7)?, words.number(8)?);
                Self::Probe(Probe { from, to, from_tick, to_tick, t1, t2, t3, t4 })
            }
            b"oneway" => {
                let words = RecordFields::split_line(line, "oneway", 4)?;
                let (from, to) = words.hosts()?;
                let (from_tick, to_tick) = (words.number(3)?, words.number(4)?);
                Self::OneWay(OneWay { from, to, from_tick, to_tick })
            }
            b"pulse" => {
                let words = RecordFields::split_line(line, "pulse", 4)?;
                let (tick_before, tick_after) = words.around(3, 4)?;
                let (host, second) = (words.index(1)?, words.number(2)?);
                Self::Pulse(Pulse { host, second, tick_before, tick_after })
            }
            b"said" => {
                let words = RecordFields::split_line(line, "said", 5)?;
                Self::Reported(TimeSourceReport {
                    host: words.index(1)?,
                    source: words.name(2)?.to_owned(),
                    tick: words.number(3)?,
                    offset_ns: words.signed(4)?,
                    error_ns: words.number(5)?,
                })
            }
            b"count" => {
                let words = RecordFields::split_line(line, "count", 2)?;
                Self::Count(words.name(1)?.to_owned(), words.number(2)?)
            }
            _ => return Ok(None),
        }))
    }

    /// Writes it as a line with its `\n`.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{self}")
    }
}

fn clock(words: &RecordFields<'_>) -> Result<Record, RecordError> {
    let (a, b) = (words.clock(2)?, words.clock(3)?);
    if a == b {
        return Err(RecordError::SameClock);
    }
    let (a_before, a_after) = words.around(4, 6)?;
    let b_value = words.number(5)?;
    let reading = ClockReading { a, a_before, b, b_value, a_after, distrusted: false };
    Ok(Record::Clock(words.index(1)?, reading))
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(index, host) => {
                let (name, boot_id, tick_hz) = (host.name(), host.boot_id(), host.tick_hz());
                write!(f, "host\t{index}\t{name}\t{boot_id}\t{tick_hz}")
            }
            Self::Clock(host, reading) => {
                let (a, b) = (reading.a.name(), reading.b.name());
                let ClockReading { a_before, b_value, a_after, .. } = reading;
                write!(f, "clock\t{host}\t{a}\t{b}\t{a_before}\t{b_value}\t{a_after}")
            }
            Self::Probe(Probe { from, to, from_tick, to_tick, t1, t2, t3, t4 }) => {
                write!(f, "probe\t{from}\t{to}\t{from_tick}\t{to_tick}\t{t1}\t{t2}\t{t3}\t{t4}")
            }
            Self::OneWay(OneWay { from, to, from_tick, to_tick }) => {
                write!(f, "oneway\t{from}\t{to}\t{from_tick}\t{to_tick}")
            }
            Self::Pulse(Pulse { host, second, tick_before, tick_after }) => {
                write!(f, "pulse\t{host}\t{second}\t{tick_before}\t{tick_after}")
            }
            Self::Reported(TimeSourceReport { host, source, tick, offset_ns, error_ns }) => {
                write!(f, "said\t{host}\t{source}\t{tick}\t{offset_ns}\t{error_ns}")
            }
            Self::Count(what, n) => write!(f, "count\t{what}\t{n}"),
        }
    }
}
