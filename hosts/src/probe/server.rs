//! The server, which answers hosts that have the key.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ppt_clock::ClockId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::{ClockError, HostClock};
use super::key::SharedKey;
use super::packet::{
    Answered, Head, MAX_PACKET, OTHER_CLOCKS, PacketRefusal, PeerIdentity, ProbeQuestion,
    ProbeReply,
};
use super::peers::{Peers, Unanswered};
use super::random::random;
use super::stamps::Stamped;

/// The default port.
pub const PORT: u16 = 7787;
/// Interval at which the stop flag is checked. A signal wakes the server at once.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Packets between two checks of the stop flag.
const AT_ONCE: u32 = 64;

/// Answers questions on one address.
#[derive(Debug)]
pub struct ProbeServer {
    socket: Stamped<Head>,
    key: SharedKey,
    clock: HostClock,
    identity: PeerIdentity,
    peers: Peers,
    counts: Counts,
}

/// The counts of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions answered.
    pub answered: u64,
    /// Packets not signed with the key.
    pub foreign: u64,
    /// Duplicate questions.
    pub replayed: u64,
    /// Questions so late that a replay cannot be ruled out.
    pub late: u64,
    /// Authentic questions that are malformed, of an unknown conversation, or from another address.
    pub unknown: u64,
    /// Questions beyond the limit of conversations.
    pub crowded: u64,
    /// Questions of another version.
    pub other_version: u64,
    /// Answers that the system failed to send.
    pub unsent: u64,
}

/// An event at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A host asked for the first time.
    Greeted {
        /// The address of the other host.
        address: SocketAddr,
        /// The identity of the other host.
        identity: PeerIdentity,
    },
    /// A host of another version asked for the first time.
    OtherVersion {
        /// The address of the other host.
        address: SocketAddr,
        /// The version of the other host's protocol.
        version: u8,
    },
}

/// Why a server cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another program has the port.
    #[error("another program uses {0}")]
    InUse(SocketAddr),
    /// The system refuses the address.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's message.
        cause: io::Error,
    },
    /// The socket fails.
    #[error("cannot receive packets: {0}")]
    System(#[from] io::Error),
    /// The clocks of this host are unusable.
    #[error(transparent)]
    Clock(#[from] ClockError),
}

impl ProbeServer {
    /// Binds to an address.
    ///
    /// # Errors
    /// Another program uses the address, or it cannot be listened on.
    pub fn bind(
        address: SocketAddr,
        key: SharedKey,
        identity: PeerIdentity,
        clock: HostClock,
    ) -> Result<Self, ServeError> {
        let socket = UdpSocket::bind(address).map_err(|cause| match cause.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse(address),
            _ => ServeError::Bind { address, cause },
        })?;
        let socket = Stamped::new(socket, clock.clone())?;
        let (peers, counts) = (Peers::default(), Counts::default());
        Ok(Self { socket, key, clock, identity, peers, counts })
    }

    /// The bound address, with the port that the system chose if none was given.
    ///
    /// # Errors
    /// getsockname(2) fails.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.socket().local_addr()
    }

    /// Answers until `stop`.
    ///
    /// # Errors
    /// The socket fails, or the clock can no longer be trusted.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        report: &mut dyn FnMut(ServerEvent),
    ) -> Result<Counts, ServeError> {
        let mut buffer = [0; MAX_PACKET];
        while !stop.load(Relaxed) {
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut fds, Some(&POLL_INTERVAL)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                polled => polled.map_err(io::Error::from)?,
            };
            self.note_left()?;
            // A flood must not keep the server from stopping.
            for _ in 0..AT_ONCE {
                let Some(packet) = self.socket.receive(&mut buffer)? else { break };
                let Some(from) = packet.from else { continue };
                let bytes = buffer.get(..packet.length);
                let answer = match bytes {
                    Some(bytes) => self.answer(bytes, from, packet.stamp, packet.tick, report)?,
                    None => {
                        self.counts.foreign += 1;
                        None
                    }
                };
                if let Some((head, answer)) = answer {
                    let answer = answer.seal(head, packet.length, &self.key);
                    match self.socket.send(&answer, Some(from), head) {
                        Ok(()) => self.counts.answered += 1,
                        Err(_) => self.counts.unsent += 1,
                    }
                    self.note_left()?;
                }
            }
        }
        Ok(self.counts)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn note_left(&mut self) -> io::Result<()> {
        self.socket.left(|head, stamp| self.peers.left(head.conversation, head.number, stamp))
    }

    fn answer(
        &mut self,
        packet: &[u8],
        from: SocketAddr,
        stamp: Option<u64>,
        tick: u64,
        report: &mut dyn FnMut(ServerEvent),
    ) -> Result<Option<(Head, ProbeReply)>, ServeError> {
        let now_ns = ppt_now::monotonic();
        let opened = ProbeQuestion::open(packet, &self.key);
        let (head, question) = match opened {
            Ok(opened) => opened,
            Err(PacketRefusal::Version(version, head)) => {
                self.counts.other_version += 1;
                let peer = self.peers.greeted(head.conversation, head.number, from, now_ns, random);
                let peer = peer.map(|peer| peer.questions);
                return Ok(self.unless(peer).map(|questions| {
                    if questions == 1 {
                        report(ServerEvent::OtherVersion { address: from, version });
                    }
                    (head, ProbeReply::OtherVersion)
                }));
            }
            Err(PacketRefusal::Foreign) => {
                self.counts.foreign += 1;
                return Ok(None);
            }
            Err(PacketRefusal::Malformed) => {
                self.counts.unknown += 1;
                return Ok(None);
            }
        };
        let Head { conversation, number } = head;
        let asked = |peers: &mut Peers, token| {
            let peer = peers.asked(conversation, number, token, from, now_ns)?;
            Ok((peer.earlier(number), peer.questions))
        };
        let answer = match question {
            ProbeQuestion::Hello(identity) => {
                let peer = self.peers.greeted(conversation, number, from, now_ns, random);
                let peer = peer.map(|peer| (peer.token, peer.questions));
                let Some((token, questions)) = self.unless(peer) else { return Ok(None) };
                if questions == 1 {
                    report(ServerEvent::Greeted { address: from, identity });
                }
                ProbeReply::Hello { token, identity: self.identity.clone() }
            }
            ProbeQuestion::Probe { token } => {
                let peer = asked(&mut self.peers, token);
                let Some((earlier, questions)) = self.unless(peer) else { return Ok(None) };
                let now = self.clock.reading(ClockId::Tick, ClockId::Realtime);
                let t2 = stamp.unwrap_or(0);
                ProbeReply::Probe(Answered { t2, tick, earlier, now, questions })
            }
            ProbeQuestion::Clocks { token } => {
                let peer = asked(&mut self.peers, token);
                if self.unless(peer).is_none() {
                    return Ok(None);
                }
                self.clock.check()?;
                ProbeReply::Clocks(OTHER_CLOCKS.map(|(a, b)| self.clock.reading(a, b)))
            }
        };
        Ok(Some((head, answer)))
    }

    fn unless<T>(&mut self, asked: Result<T, Unanswered>) -> Option<T> {
        let why = match asked {
            Ok(it) => return Some(it),
            Err(why) => why,
        };
        *match why {
            Unanswered::Replayed => &mut self.counts.replayed,
            Unanswered::Late => &mut self.counts.late,
            Unanswered::Unknown => &mut self.counts.unknown,
            Unanswered::Full => &mut self.counts.crowded,
        } += 1;
        None
    }
}
