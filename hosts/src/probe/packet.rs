//! The packets, byte for byte: pure reading and writing.
//!
//! All integers are little endian. A question is as long as its answer. In every version, the first
//! 24 bytes are the same, and the last 16 are the tag of all bytes before them.
//!
//! ```text
//!  0  4  "pptS"
//!  4  1  version
//!  5  1  kind: odd asks, even answers
//!  6  2  0
//!  8  8  conversation: chosen by the asking host
//! 16  8  number: from 1, in each conversation
//! 24  …  body
//!    16  tag: the first half of the HMAC-SHA256 of all bytes before
//! ```
//!
//! The bodies of questions and answers, each with its number and the bytes of the packet:
//! - Hello (1, 2; 216): the question has 0 (8 bytes) and the asking host, the answer the token of
//!   the conversation (8) and the answering host.
//! - Probe (3, 4; 120): the question has the token; the answer T2, the ticks when the question
//!   arrived, T3 of the four answers before (0: not known), the latest first, a reading of ticks
//!   and REALTIME, and how many questions arrived.
//! - Clocks (5, 6; 112): the question has the token, the answer the readings of [`OTHER_CLOCKS`].
//! - Another version (254; 40): an empty answer, whose byte 4 is the version of the answering host.
//!
//! Times and ticks have 8 bytes, a reading 24: A before, B, A after. A host is its rate of ticks
//! (8), name (64), boot id (64), and the version of its program (32), filled up with zeros.

use ppt_clock::sync::{Host, MAX_NAME};
use ppt_clock::{ClockId, ClockReading};

use super::key::{SharedKey, TAG};

/// The first bytes of a packet.
const MAGIC: [u8; 4] = *b"pptS";
/// The current version.
pub const VERSION: u8 = 1;
/// Length of the header in bytes.
const HEAD: usize = 24;
/// Longest packet of any version, in bytes.
pub const MAX_PACKET: usize = 512;
/// Length of a program's name in bytes.
const PROGRAM: usize = 32;
/// The number of earlier answers with sending times in an answer.
pub const EARLIER: usize = 4;
/// The clocks read in addition to ticks and REALTIME, four times a second.
pub const OTHER_CLOCKS: [(ClockId, ClockId); 3] = [
    (ClockId::Tick, ClockId::Monotonic),
    (ClockId::Tick, ClockId::MonotonicRaw),
    (ClockId::Monotonic, ClockId::Realtime),
];

/// The header of all packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number of the conversation, which the asking side chooses.
    pub conversation: u64,
    /// The number of the question, from 1; an answer has the number of its question.
    pub number: u64,
}

/// The identity of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The name, boot id and tick rate.
    pub host: Host,
    /// The version of the peer's program.
    pub program: String,
}

/// A question. `token` comes from the answer to the conversation's hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeQuestion {
    /// Hello: states the sender's identity and requests the receiver's.
    Hello(PeerIdentity),
    /// A probe: requests its arrival time and the sending times of earlier answers.
    Probe {
        /// The token of the conversation.
        token: u64,
    },
    /// Requests the readings of the other clocks.
    Clocks {
        /// The token of the conversation.
        token: u64,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeReply {
    /// The answer to a hello.
    Hello {
        /// The token of the conversation.
        token: u64,
        /// The identity of the answering host.
        identity: PeerIdentity,
    },
    /// The answer to a probe.
    Probe(Answered),
    /// Readings of [`OTHER_CLOCKS`].
    Clocks([ClockReading; 3]),
    /// The question had another version than this host's.
    OtherVersion,
}

/// The answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The kernel's stamp of the question's arrival, ns of CLOCK_REALTIME; 0 if there is none.
    pub t2: u64,
    /// Ticks right after the question was received.
    pub tick: u64,
    /// The kernel's stamps of sending the answers to the previous question and those before it; 0
    /// without a stamp.
    pub earlier: [u64; EARLIER],
    /// Ticks and REALTIME now.
    pub now: ClockReading,
    /// The number of questions received in this conversation.
    pub questions: u64,
}

/// Why a packet is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketRefusal {
    /// The packet is not signed with the key.
    Foreign,
    /// The packet is authentic, but of this other version.
    Version(u8, Head),
    /// The packet is authentic and of this version, but malformed.
    Malformed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum PacketKind {
    Hello = 1,
    Probe = 3,
    Clocks = 5,
    /// Only answered.
    Version = 255 - 1,
}

const HELLO: usize = HEAD + 8 + 8 + 2 * MAX_NAME + PROGRAM + TAG;
const PROBE: usize = HEAD + 8 + 8 + 8 * EARLIER + 24 + 8 + TAG;
const CLOCKS: usize = HEAD + 3 * 24 + TAG;

impl PacketKind {
    fn length(self) -> usize {
        match self {
            PacketKind::Hello => HELLO,
            PacketKind::Probe => PROBE,
            PacketKind::Clocks => CLOCKS,
            PacketKind::Version => HEAD + TAG,
        }
    }
}

impl ProbeQuestion {
    /// Encodes this question.
    pub fn seal(&self, head: Head, key: &SharedKey) -> Vec<u8> {
        let kind = match self {
            ProbeQuestion::Hello(_) => PacketKind::Hello,
            ProbeQuestion::Probe { .. } => PacketKind::Probe,
            ProbeQuestion::Clocks { .. } => PacketKind::Clocks,
        };
        let mut packet = begin(VERSION, kind as u8, head);
        match self {
            ProbeQuestion::Hello(identity) => {
                packet.extend([0; 8]);
                put_identity(&mut packet, identity);
            }
            ProbeQuestion::Probe { token } | ProbeQuestion::Clocks { token } => {
                packet.extend(token.to_le_bytes());
            }
        }
        end(packet, kind.length(), key)
    }

    /// Decodes a question.
    ///
    /// # Errors
    /// The packet has another length, kind or version, or the tag is of another key.
    pub fn open(packet: &[u8], key: &SharedKey) -> Result<(Head, Self), PacketRefusal> {
        let (kind, head, mut body) = open(packet, key)?;
        let length = |kind: PacketKind| {
            (packet.len() == kind.length()).then_some(()).ok_or(PacketRefusal::Malformed)
        };
        let question = match kind {
            byte if byte == PacketKind::Hello as u8 => {
                length(PacketKind::Hello)?;
                body.number()?;
                ProbeQuestion::Hello(body.identity()?)
            }
            byte if byte == PacketKind::Probe as u8 => {
                length(PacketKind::Probe)?;
                ProbeQuestion::Probe { token: body.number()? }
            }
            byte if byte == PacketKind::Clocks as u8 => {
                length(PacketKind::Clocks)?;
                ProbeQuestion::Clocks { token: body.number()? }
            }
            _ => return Err(PacketRefusal::Malformed),
        };
        Ok((head, question))
    }
}

impl ProbeReply {
    /// Encodes this answer to a question of `length` bytes; the answer is never longer.
    pub fn seal(&self, head: Head, length: usize, key: &SharedKey) -> Vec<u8> {
        let kind = match self {
            ProbeReply::Hello { .. } => PacketKind::Hello,
            ProbeReply::Probe(_) => PacketKind::Probe,
            ProbeReply::Clocks(_) => PacketKind::Clocks,
            ProbeReply::OtherVersion => PacketKind::Version,
        };
        let code = if kind == PacketKind::Version { kind as u8 } else { kind as u8 + 1 };
        let mut packet = begin(VERSION, code, head);
        match self {
            ProbeReply::Hello { token, identity } => {
                packet.extend(token.to_le_bytes());
                put_identity(&mut packet, identity);
            }
            ProbeReply::Probe(answered) => {
                packet.extend(answered.t2.to_le_bytes());
                packet.extend(answered.tick.to_le_bytes());
                answered.earlier.iter().for_each(|number| packet.extend(number.to_le_bytes()));
                put_reading(&mut packet, &answered.now);
                packet.extend(answered.questions.to_le_bytes());
            }
            ProbeReply::Clocks(readings) => {
                readings.iter().for_each(|reading| put_reading(&mut packet, reading));
            }
            ProbeReply::OtherVersion => {}
        }
        end(packet, kind.length().min(length), key)
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// The packet has another length, kind or version, or the tag is of another key.
    pub fn open(packet: &[u8], key: &SharedKey) -> Result<(Head, Self), PacketRefusal> {
        let (kind, head, mut body) = open(packet, key)?;
        let answer = match kind {
            byte if byte == PacketKind::Hello as u8 + 1 => {
                ProbeReply::Hello { token: body.number()?, identity: body.identity()? }
            }
            byte if byte == PacketKind::Probe as u8 + 1 => {
                let (t2, tick) = (body.number()?, body.number()?);
                let mut earlier = [0; EARLIER];
                for number in &mut earlier {
                    *number = body.number()?;
                }
                let now = body.reading(ClockId::Tick, ClockId::Realtime)?;
                ProbeReply::Probe(Answered { t2, tick, earlier, now, questions: body.number()? })
            }
            byte if byte == PacketKind::Clocks as u8 + 1 => {
                let [x, y, z] = OTHER_CLOCKS;
                ProbeReply::Clocks([
                    body.reading(x.0, x.1)?,
                    body.reading(y.0, y.1)?,
                    body.reading(z.0, z.1)?,
                ])
            }
            byte if byte == PacketKind::Version as u8 => ProbeReply::OtherVersion,
            _ => return Err(PacketRefusal::Malformed),
        };
        Ok((head, answer))
    }
}

fn begin(version: u8, kind: u8, head: Head) -> Vec<u8> {
    let mut packet = Vec::with_capacity(MAX_PACKET);
    packet.extend(MAGIC);
    packet.extend([version, kind, 0, 0]);
    packet.extend(head.conversation.to_le_bytes());
    packet.extend(head.number.to_le_bytes());
    packet
}

/// Pads with zeros, and signs.
fn end(mut packet: Vec<u8>, length: usize, key: &SharedKey) -> Vec<u8> {
    packet.resize(length - TAG, 0);
    let tag = key.tag(&packet);
    packet.extend(tag);
    packet
}

/// The type, header and body of an authentic packet of this version.
fn open<'a>(packet: &'a [u8], key: &SharedKey) -> Result<(u8, Head, Body<'a>), PacketRefusal> {
    if packet.len() > MAX_PACKET || packet.len() < HEAD + TAG {
        return Err(PacketRefusal::Foreign);
    }
    let (signed, tag) = packet.split_last_chunk::<TAG>().ok_or(PacketRefusal::Foreign)?;
    let mut body = Body(signed);
    if body.bytes::<4>() != Ok(MAGIC) || !key.is_authentic(signed, tag) {
        return Err(PacketRefusal::Foreign);
    }
    let [version, kind, _, _] = body.bytes()?;
    let head = Head { conversation: body.number()?, number: body.number()? };
    if version != VERSION {
        return Err(PacketRefusal::Version(version, head));
    }
    Ok((kind, head, body))
}

fn put_identity(packet: &mut Vec<u8>, identity: &PeerIdentity) {
    packet.extend(identity.host.tick_hz().to_le_bytes());
    put_text::<MAX_NAME>(packet, identity.host.name());
    put_text::<MAX_NAME>(packet, identity.host.boot_id());
    put_text::<PROGRAM>(packet, &identity.program);
}

fn put_text<const N: usize>(packet: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.floor_char_boundary(N)];
    packet.extend(bytes);
    packet.resize(packet.len() + N - bytes.len(), 0);
}

fn put_reading(packet: &mut Vec<u8>, reading: &ClockReading) {
    let ClockReading { a_before, b_value, a_after, .. } = reading;
    [a_before, b_value, a_after].iter().for_each(|number| packet.extend(number.to_le_bytes()));
}

/// The bytes not read yet.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], PacketRefusal> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(PacketRefusal::Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn number(&mut self) -> Result<u64, PacketRefusal> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn text<const N: usize>(&mut self) -> Result<String, PacketRefusal> {
        let bytes = self.bytes::<N>()?;
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8(text.to_owned()).map_err(|_| PacketRefusal::Malformed)
    }

    fn identity(&mut self) -> Result<PeerIdentity, PacketRefusal> {
        let hz = self.number()?;
        let (name, boot) = (self.text::<MAX_NAME>()?, self.text::<MAX_NAME>()?);
        let host = Host::new(&name, &boot, hz).map_err(|_| PacketRefusal::Malformed)?;
        let program = self.text::<PROGRAM>()?;
        if program.chars().any(char::is_control) {
            Err(PacketRefusal::Malformed)
        } else {
            Ok(PeerIdentity { host, program })
        }
    }

    fn reading(&mut self, a: ClockId, b: ClockId) -> Result<ClockReading, PacketRefusal> {
        let (a_before, b_value, a_after) = (self.number()?, self.number()?, self.number()?);
        if a_before <= a_after {
            Ok(ClockReading { a, a_before, b, b_value, a_after, distrusted: false })
        } else {
            Err(PacketRefusal::Malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> SharedKey {
        SharedKey::new(b"0123456789abcdef").unwrap()
    }

    fn heads() -> impl Strategy<Value = Head> {
        any::<(u64, u64)>().prop_map(|(conversation, number)| Head { conversation, number })
    }

    fn identities() -> impl Strategy<Value = PeerIdentity> {
        ("[a-zäß ]{1,20}|[a-z]{64}", "[0-9a-f-]{36}", 1u64..5_000_000_000, "[0-9a-z.+-]{0,32}")
            .prop_map(|(name, boot, hz, program)| PeerIdentity {
                host: Host::new(&name, &boot, hz).unwrap(),
                program,
            })
    }

    fn questions() -> impl Strategy<Value = ProbeQuestion> {
        prop_oneof![
            identities().prop_map(ProbeQuestion::Hello),
            any::<u64>().prop_map(|token| ProbeQuestion::Probe { token }),
            any::<u64>().prop_map(|token| ProbeQuestion::Clocks { token }),
        ]
    }

    fn readings(a: ClockId, b: ClockId) -> impl Strategy<Value = ClockReading> {
        any::<(u64, u64, u64)>().prop_map(move |(x, b_value, y)| {
            let (a_before, a_after) = (x.min(y), x.max(y));
            ClockReading { a, a_before, b, b_value, a_after, distrusted: false }
        })
    }

    fn answers() -> impl Strategy<Value = ProbeReply> {
        let [x, y, z] = OTHER_CLOCKS.map(|(a, b)| readings(a, b));
        let probe =
            (any::<(u64, u64, u64, [u64; EARLIER])>(), readings(ClockId::Tick, ClockId::Realtime));
        prop_oneof![
            (any::<u64>(), identities())
                .prop_map(|(token, identity)| ProbeReply::Hello { token, identity }),
            probe.prop_map(|((t2, tick, questions, earlier), now)| {
                ProbeReply::Probe(Answered { t2, tick, earlier, now, questions })
            }),
            (x, y, z).prop_map(|(x, y, z)| ProbeReply::Clocks([x, y, z])),
            Just(ProbeReply::OtherVersion),
        ]
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened(head in heads(), question in questions(), answer in answers()) {
            let packet = question.seal(head, &key());
            prop_assert_eq!(ProbeQuestion::open(&packet, &key()), Ok((head, question)));
            let packet = answer.seal(head, MAX_PACKET, &key());
            prop_assert_eq!(ProbeReply::open(&packet, &key()), Ok((head, answer)));
        }

        /// Only the complete packet is accepted: no bit may change, no byte may be missing or
        /// added.
        #[test]
        fn what_is_changed_is_foreign(head in heads(), question in questions(), at in any::<prop::sample::Index>()) {
            let packet = question.seal(head, &key());
            let mut forged = packet.clone();
            let bit = at.index(packet.len() * 8);
            forged[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(ProbeQuestion::open(&forged, &key()), Err(PacketRefusal::Foreign));
            let cut = &packet[..at.index(packet.len())];
            prop_assert_eq!(ProbeQuestion::open(cut, &key()), Err(PacketRefusal::Foreign));
            let longer = [&packet[..], &vec![0; at.index(600) + 1]].concat();
            prop_assert_eq!(ProbeQuestion::open(&longer, &key()), Err(PacketRefusal::Foreign));
            let other = SharedKey::new(b"0123456789abcdeF").unwrap();
            prop_assert_eq!(ProbeQuestion::open(&packet, &other), Err(PacketRefusal::Foreign));
        }

        #[test]
        fn a_question_is_no_answer(head in heads(), question in questions(), answer in answers()) {
            let packet = question.seal(head, &key());
            prop_assert_eq!(ProbeReply::open(&packet, &key()), Err(PacketRefusal::Malformed));
            let packet = answer.seal(head, MAX_PACKET, &key());
            prop_assert_eq!(ProbeQuestion::open(&packet, &key()), Err(PacketRefusal::Malformed));
        }

        /// A holder of the key may send anything.
        #[test]
        fn any_authentic_bytes_are_read_or_refused(
            version in prop_oneof![Just(VERSION), any::<u8>()], kind in 0u8..10, head in heads(),
            body in prop::collection::vec(any::<u8>(), 0..MAX_PACKET - HEAD - TAG),
        ) {
            let mut packet = begin(version, kind, head);
            let length = HEAD + body.len() + TAG;
            packet.extend(body);
            let packet = end(packet, length, &key());
            for refused in [ProbeQuestion::open(&packet, &key()).err(), ProbeReply::open(&packet, &key()).err()] {
                if version != VERSION {
                    prop_assert_eq!(refused, Some(PacketRefusal::Version(version, head)));
                } else {
                    prop_assert!(matches!(refused, None | Some(PacketRefusal::Malformed)));
                }
            }
        }

        #[test]
        fn no_bytes_are_too_bad(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(ProbeQuestion::open(&bytes, &key()), Err(PacketRefusal::Foreign));
            prop_assert_eq!(ProbeReply::open(&bytes, &key()), Err(PacketRefusal::Foreign));
        }
    }

    #[test]
    fn an_answer_is_as_long_as_its_question() {
        let head = Head { conversation: 1, number: 2 };
        let host = Host::new("name", "boot", 1).unwrap();
        let identity = PeerIdentity { host, program: "1.2.3".into() };
        let reading =
            |(a, b)| ClockReading { a, a_before: 1, b, b_value: 2, a_after: 3, distrusted: false };
        let now = reading((ClockId::Tick, ClockId::Realtime));
        let answered = Answered { t2: 1, tick: 2, earlier: [3; EARLIER], now, questions: 4 };
        for (question, answer) in [
            (ProbeQuestion::Hello(identity.clone()), ProbeReply::Hello { token: 5, identity }),
            (ProbeQuestion::Probe { token: 5 }, ProbeReply::Probe(answered)),
            (ProbeQuestion::Clocks { token: 5 }, ProbeReply::Clocks(OTHER_CLOCKS.map(reading))),
        ] {
            let question = question.seal(head, &key());
            assert_eq!(answer.seal(head, question.len(), &key()).len(), question.len());
            assert!(
                ProbeReply::OtherVersion.seal(head, question.len(), &key()).len() <= question.len()
            );
        }
    }
}
