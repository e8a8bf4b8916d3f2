//! Probes other hosts, and passes on their clock readings and the kernels' stamps.

mod run;

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use ppt_clock::sync::Record;

use super::clock::{ClockError, HostClock};
use super::key::SharedKey;
use super::link::LinkCounts;
use super::packet::{PeerIdentity, VERSION};
use super::true_time::{TimeSource, TimeSourceError};

/// The range of bursts a second. With fewer, readings of the other host's clocks are too far apart to place
/// stamps.
pub const RATES: RangeInclusive<f64> = 4.0..=1000.0;

/// A host to probe.
#[derive(Debug, Clone)]
pub struct ProbedHost {
    /// The name, as the user gave it.
    pub name: String,
    /// The candidate addresses; the first that answers is used.
    pub addresses: Vec<SocketAddr>,
}

/// Options of a measurement.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// Duration; `None` is until the stop.
    pub duration: Option<Duration>,
    /// Pairs of probes per second to each host. Values outside [`RATES`] are clamped.
    pub rate: f64,
    /// Time limit for a host's first answer.
    pub patience: Duration,
    /// The sources of true time of this host.
    pub sources: Vec<TimeSource>,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        let (duration, patience) = (Some(Duration::from_secs(60)), Duration::from_secs(5));
        Self { duration, rate: 10.0, patience, sources: Vec::new() }
    }
}

/// Receives the measurements.
pub trait RecordSink {
    /// Writes one line.
    ///
    /// # Errors
    /// Errors of the underlying storage.
    fn put(&mut self, record: &Record) -> io::Result<()>;
    /// Makes all lines written so far durable. Called each second, and at the end.
    ///
    /// # Errors
    /// Errors of the underlying storage.
    fn keep(&mut self) -> io::Result<()>;
}

/// Events during a measurement. Hosts are numbered as in the call.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeEvent {
    /// A host answered for the first time, or again after it was silent.
    Answered {
        /// The host.
        place: usize,
        /// The address that answered.
        address: SocketAddr,
        /// The identity of the host.
        identity: PeerIdentity,
    },
    /// A host stopped answering. Probing continues.
    Silent {
        /// The host.
        place: usize,
    },
    /// A reading of one of [`ProbeOptions::sources`] was dropped, or the source gave none. The same
    /// reason is reported once, until the source gives a usable reading.
    LeftOut {
        /// The index of the source.
        place: usize,
        /// The reason.
        error: TimeSourceError,
    },
    /// A second has passed: the counts of each host so far.
    Second(Vec<LinkCounts>),
}

/// Why a measurement cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A host does not answer. It answers only hosts with its key.
    #[error("{name} ({address}) does not answer{}", silence(*is_refused, *foreign))]
    NoAnswer {
        /// The host, as the user calls it.
        name: String,
        /// The last address tried.
        address: SocketAddr,
        /// Whether the system of the host reported that no program listens there.
        is_refused: bool,
        /// Packets from that address with another signature or none.
        foreign: u64,
    },
    /// The host speaks another version of the protocol.
    #[error("{name} speaks version {version} of the protocol, and this program version {VERSION}")]
    OtherVersion {
        /// The host, as the user calls it.
        name: String,
        /// The version of the other host's protocol.
        version: u8,
    },
    /// The other host is this host.
    #[error("{name} is this host itself (\"{host}\", and the same boot)")]
    Oneself {
        /// The host, as the user calls it.
        name: String,
        /// The name of this host.
        host: String,
    },
    /// Two hosts that files cannot distinguish.
    #[error("two hosts call themselves \"{host}\", {first} and {second}: give one another name")]
    OneName {
        /// The name of both hosts.
        host: String,
        /// One of them, as the user calls it.
        first: String,
        /// The other one.
        second: String,
    },
    /// The socket fails.
    #[error("cannot ask other hosts: {0}")]
    System(#[source] io::Error),
    /// The measurements cannot be written.
    #[error("cannot write what was measured: {0}")]
    Write(#[source] io::Error),
    /// The clocks of this host are unusable.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// One of [`ProbeOptions::sources`] is missing.
    #[error(transparent)]
    TimeSource(#[from] TimeSourceError),
}

fn silence(is_refused: bool, foreign: u64) -> &'static str {
    match (is_refused, foreign) {
        (_, 1..) => ": packets from there are signed with another key",
        (true, 0) => ": no program listens there",
        (false, 0) => ": possible reasons are the address, a firewall or another key",
    }
}

/// The parameters of a measurement.
#[derive(Debug)]
pub struct Measurement<'a> {
    /// The hosts to probe.
    pub hosts: &'a [ProbedHost],
    /// The shared key.
    pub key: &'a SharedKey,
    /// The identity of this host.
    pub me: &'a PeerIdentity,
    /// The clocks of this host.
    pub clock: &'a HostClock,
    /// The options.
    pub options: &'a ProbeOptions,
}
