//! One probed host: its socket, its conversation, and its outstanding questions.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};

use ppt_clock::ClockReading;
use ppt_clock::sync::Probe;

use super::clock::HostClock;
use super::key::SharedKey;
use super::packet::{
    Answered, EARLIER, Head, MAX_PACKET, PacketRefusal, PeerIdentity, ProbeQuestion, ProbeReply,
};
use super::random::random;
use super::stamps::Stamped;

/// Longest wait for an answer.
const PATIENCE_NS: u64 = 2_000_000_000;

/// A probed host.
#[derive(Debug)]
pub(super) struct ProbeLink {
    addresses: Vec<SocketAddr>,
    /// The address in use.
    at: usize,
    open: Option<Conversation>,
    /// The counts.
    pub counts: LinkCounts,
}

/// A conversation.
#[derive(Debug)]
struct Conversation {
    socket: Stamped<u64>,
    conversation: u64,
    /// The start of the conversation.
    since_ns: u64,
    /// Questions that the host did not receive in earlier conversations.
    lost_before: u64,
    /// The host's system reported that no program listens.
    is_refused: bool,
    /// The token from the answer to the hello.
    token: Option<u64>,
    /// Questions without an answer or without all stamps, by consecutive number.
    asked: VecDeque<SentQuestion>,
    /// The number of the next question.
    next: u64,
    /// The highest number answered.
    answered: u64,
}

/// A question.
#[derive(Debug, Default)]
struct SentQuestion {
    number: u64,
    /// The time sent, on the monotonic clock.
    at_ns: u64,
    /// The ticks before sending, for a probe.
    from_tick: Option<u64>,
    t1: Option<u64>,
    back: Option<Back>,
    t3: Option<u64>,
    /// Not counted.
    is_last: bool,
    /// The question has been accounted for.
    is_done: bool,
}

#[derive(Debug, Clone, Copy)]
struct Back {
    to_tick: u64,
    t2: u64,
    t4: u64,
}

/// Packets to and from one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Probes sent.
    pub asked: u64,
    /// Probes answered.
    pub answered: u64,
    /// Probes with all stamps, which are in the file.
    pub complete: u64,
    /// The shortest round trip without the host's processing time, in ns.
    pub least_ns: Option<u64>,
    /// Questions that the host did not receive.
    pub lost_there: u64,
    /// Questions with late or missing answers.
    pub unanswered: u64,
    /// Probes that lack a kernel stamp.
    pub unstamped: u64,
    /// Packets that are malformed or not signed with the key.
    pub foreign: u64,
    /// Duplicate answers.
    pub replayed: u64,
    /// Answers to no outstanding question.
    pub late: u64,
    /// Packets that the system failed to send.
    pub unsent: u64,
}

/// An event of a link.
#[derive(Debug)]
pub(super) enum Learnt {
    /// The host's identity.
    Identity(PeerIdentity),
    /// The readings of its clocks.
    Reading(ClockReading),
    /// A probe with all stamps; hosts are numbered by the caller.
    Probe(Probe),
    /// The host speaks another version.
    OtherVersion(u8),
    /// The host's system reported that no program listens there.
    Refused,
}

impl ProbeLink {
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, at: 0, open: None, counts: LinkCounts::default() }
    }

    /// The address in use.
    pub fn address(&self) -> SocketAddr {
        self.addresses[self.at]
    }

    pub fn socket(&self) -> Option<&Stamped<u64>> {
        self.open.as_ref().map(|conversation| &conversation.socket)
    }

    /// Whether the host has answered the hello of this conversation.
    pub fn is_open(&self) -> bool {
        self.open.as_ref().is_some_and(|conversation| conversation.token.is_some())
    }

    /// Sends a hello: to the same address if it has answered, else to the next one.
    pub fn greet(
        &mut self,
        me: &PeerIdentity,
        key: &SharedKey,
        clock: &HostClock,
    ) -> io::Result<()> {
        let now_ns = ppt_now::monotonic();
        let goes_on = |conversation: &Conversation| {
            !conversation.is_refused && now_ns.saturating_sub(conversation.since_ns) < PATIENCE_NS
        };
        if self.open.as_ref().is_some_and(|conversation| !goes_on(conversation)) {
            self.open = None;
            self.at = (self.at + 1) % self.addresses.len();
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => Conversation::new(self.address(), clock, now_ns, self.counts.lost_there)?,
        };
        let open = self.open.insert(open);
        let packet = ProbeQuestion::Hello(me.clone()).seal(open.head(), key);
        if open.send(&packet, None, now_ns).is_err() {
            self.counts.unsent += 1;
        }
        Ok(())
    }

    /// Sends a probe.
    pub fn probe(&mut self, key: &SharedKey, clock: &HostClock) {
        let Some(open) = &mut self.open else { return };
        let Some(token) = open.token else { return };
        let packet = ProbeQuestion::Probe { token }.seal(open.head(), key);
        let now_ns = ppt_now::monotonic();
        let sent = open.send(&packet, Some(clock.ticks()), now_ns);
        match sent {
            Ok(()) => self.counts.asked += 1,
            Err(_) => self.counts.unsent += 1,
        }
    }

    /// Sends a probe only for the stamps of earlier probes in its answer.
    pub fn probe_last(&mut self, key: &SharedKey, clock: &HostClock) {
        let asked = self.counts.asked;
        self.probe(key, clock);
        let sent = self.counts.asked > asked;
        self.counts.asked = asked;
        if let Some(last) =
            self.open.as_mut().and_then(|conversation| conversation.asked.back_mut())
        {
            last.is_last = sent;
        }
    }

    /// Requests the clocks that are read four times a second.
    pub fn ask_clocks(&mut self, key: &SharedKey) {
        let Some(open) = &mut self.open else { return };
        let Some(token) = open.token else { return };
        let packet = ProbeQuestion::Clocks { token }.seal(open.head(), key);
        if open.send(&packet, None, ppt_now::monotonic()).is_err() {
            self.counts.unsent += 1;
        }
    }

    /// Receives the packets that have arrived; returns whether there were any.
    pub fn receive(&mut self, key: &SharedKey, learn: &mut dyn FnMut(Learnt)) -> io::Result<bool> {
        let mut came = false;
        let Some(open) = &mut self.open else { return Ok(false) };
        open.note_left(&mut self.counts, learn)?;
        let mut buffer = [0; MAX_PACKET];
        // A flood from one host must not keep the others from being probed.
        for _ in 0..256 {
            let packet = match open.socket.receive(&mut buffer) {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    open.is_refused = true;
                    learn(Learnt::Refused);
                    continue;
                }
                // ICMP errors are transient. A socket that fails permanently stays silent, which is
                // reported.
                Err(_) => break,
            };
            came = true;
            let opened = match buffer.get(..packet.length) {
                Some(bytes) => ProbeReply::open(bytes, key),
                None => Err(PacketRefusal::Foreign),
            };
            match opened {
                Ok((head, answer)) => {
                    open.answered(head, answer, packet.stamp, &mut self.counts, learn);
                }
                Err(PacketRefusal::Version(version, head))
                    if head.conversation == open.conversation =>
                {
                    learn(Learnt::OtherVersion(version));
                }
                Err(_) => self.counts.foreign += 1,
            }
        }
        Ok(came)
    }

    /// Gives up questions that were sent too long ago.
    pub fn give_up(&mut self, now_ns: u64) {
        let Some(open) = &mut self.open else { return };
        while let Some(first) = open.asked.front() {
            if !first.is_done && now_ns.saturating_sub(first.at_ns) < PATIENCE_NS {
                break;
            }
            first.count(&mut self.counts);
            open.asked.pop_front();
        }
    }

    /// Gives up all questions at the end.
    pub fn close(&mut self) {
        for asked in self.open.iter_mut().flat_map(|conversation| conversation.asked.drain(..)) {
            asked.count(&mut self.counts);
        }
        self.open = None;
    }

    /// Whether a probe has no answer or lacks a stamp.
    pub fn is_incomplete(&self) -> bool {
        let mut asked = self.open.iter().flat_map(|conversation| &conversation.asked);
        asked.any(|question| question.from_tick.is_some() && !question.is_last && !question.is_done)
    }
}

impl SentQuestion {
    fn count(&self, counts: &mut LinkCounts) {
        if !self.is_done && !self.is_last && self.from_tick.is_some() {
            match self.back {
                None => counts.unanswered += 1,
                Some(_) => counts.unstamped += 1,
            }
        }
    }
}

impl Conversation {
    fn new(
        address: SocketAddr,
        clock: &HostClock,
        since_ns: u64,
        lost_before: u64,
    ) -> io::Result<Self> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        Ok(Self {
            socket: Stamped::new(socket, clock.clone())?,
            conversation: random(),
            since_ns,
            lost_before,
            is_refused: false,
            token: None,
            asked: VecDeque::new(),
            next: 1,
            answered: 0,
        })
    }

    fn head(&self) -> Head {
        Head { conversation: self.conversation, number: self.next }
    }

    fn send(&mut self, packet: &[u8], from_tick: Option<u64>, at_ns: u64) -> io::Result<()> {
        let number = self.next;
        // A number is used up even if sending fails: no two questions may share one.
        self.next += 1;
        let asked = SentQuestion { number, at_ns, from_tick, ..SentQuestion::default() };
        let sent = self.socket.send(packet, None, number);
        self.asked.push_back(SentQuestion { is_done: sent.is_err(), ..asked });
        sent
    }

    fn find(&mut self, number: u64) -> Option<&mut SentQuestion> {
        let first = self.asked.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        self.asked.get_mut(at)
    }

    fn note_left(
        &mut self,
        counts: &mut LinkCounts,
        learn: &mut dyn FnMut(Learnt),
    ) -> io::Result<()> {
        let mut left = Vec::new();
        self.socket.left(|number, stamp| left.push((number, stamp)))?;
        for (number, stamp) in left {
            if let Some(asked) = self.find(number) {
                asked.t1 = Some(stamp);
                self.complete(number, counts, learn);
            }
        }
        Ok(())
    }

    fn answered(
        &mut self,
        head: Head,
        answer: ProbeReply,
        stamp: Option<u64>,
        counts: &mut LinkCounts,
        learn: &mut dyn FnMut(Learnt),
    ) {
        let Head { conversation, number } = head;
        if conversation != self.conversation || number >= self.next {
            counts.foreign += 1;
            return;
        }
        // Readings are kept in order of time; those of overtaken answers are dropped.
        let (in_order, lost_before) = (number > self.answered, self.lost_before);
        let Some(asked) = self.find(number) else {
            counts.late += 1;
            return;
        };
        let is_probe = asked.from_tick.is_some();
        match answer {
            ProbeReply::Hello { .. } | ProbeReply::Clocks(_) if asked.is_done => {
                counts.replayed += 1;
            }
            ProbeReply::Hello { token, identity } if !is_probe => {
                asked.is_done = true;
                // Only the first answer to several hellos counts.
                if self.token.is_none() {
                    self.token = Some(token);
                    learn(Learnt::Identity(identity));
                }
            }
            ProbeReply::Clocks(readings) if !is_probe => {
                asked.is_done = true;
                if in_order {
                    readings.into_iter().for_each(|reading| learn(Learnt::Reading(reading)));
                }
            }
            ProbeReply::Probe(probe) if is_probe => {
                if asked.back.is_some() {
                    counts.replayed += 1;
                    return;
                }
                counts.answered += u64::from(!asked.is_last);
                let Answered { t2, tick, earlier, now, questions } = probe;
                // Without a stamp on either host, the probe stays incomplete.
                asked.back = Some(Back { to_tick: tick, t2, t4: stamp.unwrap_or(0) });
                if in_order {
                    learn(Learnt::Reading(now));
                    counts.lost_there = lost_before + number.saturating_sub(questions);
                }
                // If this answer was overtaken, its sending time is already known.
                self.complete(number, counts, learn);
                self.note_earlier(number, earlier, counts, learn);
            }
            ProbeReply::OtherVersion => {}
            _ => {
                counts.foreign += 1;
                return;
            }
        }
        self.answered = self.answered.max(number);
    }

    fn note_earlier(
        &mut self,
        number: u64,
        earlier: [u64; EARLIER],
        counts: &mut LinkCounts,
        learn: &mut dyn FnMut(Learnt),
    ) {
        for (back, stamp) in earlier.into_iter().enumerate().filter(|entry| entry.1 > 0) {
            let Some(before) = number.checked_sub(back as u64 + 1) else { break };
            if let Some(asked) = self.find(before) {
                asked.t3 = Some(stamp);
                self.complete(before, counts, learn);
            }
        }
    }

    fn complete(&mut self, number: u64, counts: &mut LinkCounts, learn: &mut dyn FnMut(Learnt)) {
        let Some(asked) = self.find(number).filter(|question| !question.is_done) else { return };
        let (Some(from_tick), Some(t1)) = (asked.from_tick, asked.t1) else { return };
        let (Some(Back { to_tick, t2, t4 }), Some(t3)) = (asked.back, asked.t3) else { return };
        if t2 == 0 || t4 == 0 {
            return;
        }
        asked.is_done = true;
        if asked.is_last {
            return;
        }
        counts.complete += 1;
        let took = t4.saturating_sub(t1).saturating_sub(t3.saturating_sub(t2));
        counts.least_ns = Some(counts.least_ns.map_or(took, |least_ns| least_ns.min(took)));
        learn(Learnt::Probe(Probe { from: 0, to: 0, from_tick, to_tick, t1, t2, t3, t4 }));
    }
}
