//! Trigger chunks: why the flight recorder wrote a window.

use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::error::DamageKind;
use crate::format::NO_SOURCE;
use crate::format::trigger::{self, MAX_TEXT, texts};

/// The type of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum TriggerCause {
    /// A frame for which an expression holds.
    On = 1,
    /// Lost frames.
    Gap = 2,
    /// The end of a process.
    Exit = 3,
    /// A counter for which an expression holds.
    Counter = 4,
    /// A request of the user.
    Hand = 5,
    /// Not a trigger: the number of further ones ([`Trigger::further`]), which are not listed.
    NotListed = 6,
    /// A reason of a later version.
    Other = 0,
}

impl TriggerCause {
    const KNOWN: [TriggerCause; 6] = [
        TriggerCause::On,
        TriggerCause::Gap,
        TriggerCause::Exit,
        TriggerCause::Counter,
        TriggerCause::Hand,
        TriggerCause::NotListed,
    ];

    /// The name in every output.
    pub fn name(self) -> &'static str {
        match self {
            TriggerCause::On => "on",
            TriggerCause::Gap => "gap",
            TriggerCause::Exit => "exit",
            TriggerCause::Counter => "counter",
            TriggerCause::Hand => "hand",
            TriggerCause::NotListed => "not_listed",
            TriggerCause::Other => "other",
        }
    }

    fn from_code(code: u16) -> TriggerCause {
        Self::KNOWN.into_iter().find(|&why| why as u16 == code).unwrap_or(TriggerCause::Other)
    }
}

/// A time interval: its first and its last moment, ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The first moment, ns of CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// The last moment, ns of CLOCK_MONOTONIC.
    pub to_ns: u64,
}

/// A trigger of the window that this capture is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The source that it came from, if any; a source chunk of this number comes first.
    pub source: Option<u16>,
    /// When it triggered, ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// The requested window.
    pub wanted: Stretch,
    /// The part of it that was in memory when the recorder wrote the window.
    pub held: Stretch,
    /// The type.
    pub why: TriggerCause,
    /// The ring: nonce of its segment, and its number there.
    pub ring: Option<(u64, u32)>,
    /// Sequence number of the frame, or of the first lost one.
    pub seqno: Option<u64>,
    /// The expression that held; empty if there is none.
    pub expression: String,
    /// Further information.
    pub note: String,
}

impl Trigger {
    /// States that a window had `count` further triggers. A reader that does not know this type
    /// shows a trigger for another reason, with this note.
    pub fn not_listed(count: u64, (wanted, held): (Stretch, Stretch)) -> Self {
        Self {
            source: None,
            mono_ns: wanted.to_ns,
            wanted,
            held,
            why: TriggerCause::NotListed,
            ring: None,
            seqno: Some(count),
            expression: String::new(),
            note: format!("{count} further triggers are not listed"),
        }
    }

    /// The number of further triggers, if this states it.
    pub fn further(&self) -> Option<u64> {
        self.seqno.filter(|_| self.why == TriggerCause::NotListed)
    }

    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        let (nonce, ring) = self.ring.unwrap_or((0, trigger::RING_NONE));
        put_u64(bytes, trigger::MONOTONIC, self.mono_ns);
        put_u64(bytes, trigger::FROM, self.wanted.from_ns);
        put_u64(bytes, trigger::TO, self.wanted.to_ns);
        put_u64(bytes, trigger::HELD_FROM, self.held.from_ns);
        put_u64(bytes, trigger::HELD_TO, self.held.to_ns);
        put_u64(bytes, trigger::NONCE, nonce);
        put_u64(bytes, trigger::SEQNO, self.seqno.unwrap_or(0));
        put_u32(bytes, trigger::RING, ring);
        put_u16(bytes, trigger::WHY, self.why as u16);
    }

    /// The payload. Longer texts are cut.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let [expression, note] = [&self.expression, &self.note].map(|text| beginning(text));
        let mut bytes = vec![0; texts::TEXTS];
        put_u32(&mut bytes, texts::EXPRESSION_LEN, expression.len() as u32);
        put_u32(&mut bytes, texts::NOTE_LEN, note.len() as u32);
        bytes.extend_from_slice(expression.as_bytes());
        bytes.extend_from_slice(note.as_bytes());
        bytes
    }

    pub(crate) fn decode(source: u16, header: &[u8], payload: &[u8]) -> Result<Self, DamageKind> {
        let (head, both) = payload.split_at_checked(texts::TEXTS).ok_or(DamageKind::Length)?;
        let expression_len = u32_at(head, texts::EXPRESSION_LEN) as usize;
        let note_len = u32_at(head, texts::NOTE_LEN) as usize;
        if expression_len.max(note_len) > MAX_TEXT || both.len() != expression_len + note_len {
            return Err(DamageKind::Length);
        }
        let (expression, note) = both.split_at(expression_len);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ring =
            Some(u32_at(header, trigger::RING)).filter(|&number| number != trigger::RING_NONE);
        Ok(Self {
            source: Some(source).filter(|&number| number != NO_SOURCE),
            mono_ns: u64_at(header, trigger::MONOTONIC),
            wanted: Stretch {
                from_ns: u64_at(header, trigger::FROM),
                to_ns: u64_at(header, trigger::TO),
            },
            held: Stretch {
                from_ns: u64_at(header, trigger::HELD_FROM),
                to_ns: u64_at(header, trigger::HELD_TO),
            },
            why: TriggerCause::from_code(u16_at(header, trigger::WHY)),
            ring: ring.map(|ring| (u64_at(header, trigger::NONCE), ring)),
            seqno: Some(u64_at(header, trigger::SEQNO)).filter(|&number| number != 0),
            expression: text(expression),
            note: text(note),
        })
    }
}

/// The longest prefix of a text that fits into a chunk.
fn beginning(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_TEXT)).rev().find(|&index| text.is_char_boundary(index));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(source: Option<u16>) -> Trigger {
        Trigger {
            source,
            mono_ns: 50,
            wanted: Stretch { from_ns: 10, to_ns: 90 },
            held: Stretch { from_ns: 20, to_ns: 80 },
            why: TriggerCause::On,
            ring: source.map(|_| (77, 3)),
            seqno: source.map(|_| 12),
            expression: "job.handle > 10ms".into(),
            note: "wörld".into(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for source in [None, Some(0), Some(9)] {
            let all = TriggerCause::KNOWN.map(|why| Trigger { why, ..trigger(source) });
            for it in all {
                let mut header = vec![0; trigger::LEN];
                it.encode(&mut header);
                let number = source.unwrap_or(NO_SOURCE);
                assert_eq!(Trigger::decode(number, &header, &it.payload()), Ok(it));
            }
        }
    }

    #[test]
    fn texts_are_bounded_and_lengths_that_lie_are_damage() {
        let long = Trigger { note: "ö".repeat(MAX_TEXT), ..trigger(None) };
        let mut header = vec![0; trigger::LEN];
        long.encode(&mut header);
        let payload = long.payload();
        let read = Trigger::decode(NO_SOURCE, &header, &payload).unwrap();
        assert!(long.note.starts_with(&read.note) && read.note.len() == MAX_TEXT);
        for len in [0, 7, payload.len() - 1] {
            let cut = Trigger::decode(NO_SOURCE, &header, &payload[..len]);
            assert_eq!(cut, Err(DamageKind::Length), "{len}");
        }
    }
}
