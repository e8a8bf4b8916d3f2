//! Probes: packets between hosts with kernel stamps of sending and arrival.
//!
//! A [`ProbeServer`] answers on a host. A [`Measurement`] asks several of them, and puts raw readings into a
//! [`RecordSink`], such as a [`SyncFile`]: never results. Both sides know a [`SharedKey`]. No clock is ever set.

mod address;
mod client;
mod clock;
mod file;
mod identity;
mod key;
mod link;
mod packet;
mod peers;
mod random;
mod server;
mod stamps;
pub mod theta;
mod true_time;
mod window;

pub use address::{AddressError, resolve};
pub use client::{
    MeasureError, Measurement, ProbeEvent, ProbeOptions, ProbedHost, RATES, RecordSink,
};
pub use clock::{ClockError, HostClock};
pub use file::SyncFile;
pub use identity::IdentityError;
pub use key::{KeyError, MIN_KEY, SharedKey, TAG};
pub use link::LinkCounts;
pub use packet::{
    Answered, EARLIER, Head, MAX_PACKET, OTHER_CLOCKS, PacketRefusal, PeerIdentity, ProbeQuestion,
    ProbeReply, VERSION,
};
pub use peers::MAX_PEERS;
pub use server::{Counts, PORT, ProbeServer, ServeError, ServerEvent};
pub use true_time::{TimeSource, TimeSourceError};
