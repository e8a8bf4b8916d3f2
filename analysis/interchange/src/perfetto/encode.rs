//! Packets with a track event, byte for byte as `prost` encodes [`TracePacket`](super::message), but
//! without a structure for each: nearly all packets of a trace are such.

use prost::encoding::WireType;

/// Fields of `TracePacket`, `TrackEvent`, `DebugAnnotation`, `InternedData`, and `InternedString`.
mod tag {
    pub const PACKET: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const MACHINE: u32 = 98;

    pub const CATEGORY: u32 = 3;
    pub const ANNOTATION: u32 = 4;
    pub const KIND: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const NAME: u32 = 23;
    pub const COUNTER: u32 = 30;
    pub const DOUBLE_COUNTER: u32 = 44;
    pub const FLOW: u32 = 47;

    pub const NOTE_NAME: u32 = 1;
    pub const NOTE_BOOL: u32 = 2;
    pub const NOTE_UINT: u32 = 3;
    pub const NOTE_INT: u32 = 4;
    pub const NOTE_DOUBLE: u32 = 5;
    pub const NOTE_TEXT: u32 = 6;
    pub const NOTE_TEXT_IID: u32 = 17;

    pub const STRINGS: u32 = 29;
    pub const IID: u32 = 1;
    pub const STR: u32 = 2;
}

/// The value of an annotation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Note<'a> {
    Bool(bool),
    Uint(u64),
    Int(i64),
    Double(f64),
    Text(&'a str),
    /// The id of an interned text.
    TextIid(u64),
}

/// The value of a counter.
#[derive(Debug, Clone, Copy)]
pub(super) enum CounterValue {
    Int(i64),
    Double(f64),
}

/// Bytes of a number, or of a short note.
const ROOM: usize = 16;
/// Bytes reserved before an event for the head of its packet.
const HEAD: usize = 48;

/// A number as a varint: groups of 7 bits, the least significant first.
#[derive(Debug, Clone, Copy)]
struct Varint {
    bytes: [u8; 10],
    len: usize,
}

impl Varint {
    #[inline(always)]
    fn new(value: u64) -> Varint {
        const CONTINUES: u64 = 0x8080_8080_8080_8080;
        let len = (70 - (value | 1).leading_zeros() as usize) / 7;
        // The lowest 8 groups, each moved to its byte.
        let low = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
        let low = (low & 0x0000_3fff_0000_3fff) | (low & 0x0fff_c000_0fff_c000) << 2;
        let low = (low & 0x007f_007f_007f_007f) | (low & 0x3f80_3f80_3f80_3f80) << 1;
        let follow = if len > 8 { CONTINUES } else { CONTINUES & ((1 << (8 * (len - 1))) - 1) };
        let last = (value >> 63) as u8;
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&(low | follow).to_le_bytes());
        bytes[8] = (value >> 56) as u8 & 0x7f | last << 7;
        bytes[9] = last;
        Varint { bytes, len }
    }

    fn append(self, out: &mut Vec<u8>) {
        append(out, &self.bytes, self.len);
    }
}

/// Appends the first `len` bytes of `room`: a copy of a constant length is cheapest.
#[inline(always)]
fn append<const N: usize>(out: &mut Vec<u8>, room: &[u8; N], len: usize) {
    let before = out.len();
    out.extend_from_slice(room);
    out.truncate(before + len);
}

/// The tag of a field with its wire type.
const fn key(tag: u32, wire: WireType) -> u64 {
    (tag << 3) as u64 | wire as u64
}

fn keyed(out: &mut Vec<u8>, tag: u32, wire: WireType, value: u64) {
    Varint::new(key(tag, wire)).append(out);
    Varint::new(value).append(out);
}

fn varint(out: &mut Vec<u8>, tag: u32, value: u64) {
    keyed(out, tag, WireType::Varint, value);
}

fn bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    keyed(out, tag, WireType::LengthDelimited, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn fixed(out: &mut Vec<u8>, tag: u32, value: u64) {
    Varint::new(key(tag, WireType::SixtyFourBit)).append(out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A track event that is being built; fields are added in the order of their numbers.
#[derive(Debug)]
pub(super) struct Event {
    /// [`HEAD`] bytes, and the event.
    event: Vec<u8>,
    interned: Vec<u8>,
    note: Vec<u8>,
}

impl Default for Event {
    fn default() -> Self {
        Event { event: vec![0; HEAD], interned: Vec::new(), note: Vec::new() }
    }
}

impl Event {
    pub fn category(&mut self, iid: u64) {
        varint(&mut self.event, tag::CATEGORY, iid);
    }

    /// Adds an annotation whose name is interned.
    #[inline]
    pub fn note(&mut self, name: u64, value: Note<'_>) {
        const INT: u8 = key(tag::NOTE_INT, WireType::Varint) as u8;
        const UINT: u8 = key(tag::NOTE_UINT, WireType::Varint) as u8;
        const BOOL: u8 = key(tag::NOTE_BOOL, WireType::Varint) as u8;
        if name < 0x80 {
            // Most notes are these.
            match value {
                Note::Int(value) => return self.short_note(name as u8, INT, value as u64),
                Note::Uint(value) => return self.short_note(name as u8, UINT, value),
                Note::Bool(value) => return self.short_note(name as u8, BOOL, value.into()),
                Note::Text(text) if text.len() < 0x70 => {
                    return self.short_text(name as u8, text);
                }
                Note::Double(value) => return self.short_double(name as u8, value),
                Note::TextIid(iid) => return self.short_text_iid(name as u8, iid),
                Note::Text(_) => {}
            }
        }
        let note = &mut self.note;
        note.clear();
        varint(note, tag::NOTE_NAME, name);
        match value {
            Note::Bool(value) => varint(note, tag::NOTE_BOOL, value.into()),
            Note::Uint(value) => varint(note, tag::NOTE_UINT, value),
            Note::Int(value) => varint(note, tag::NOTE_INT, value as u64),
            Note::Double(value) => fixed(note, tag::NOTE_DOUBLE, value.to_bits()),
            Note::Text(text) => bytes(note, tag::NOTE_TEXT, text.as_bytes()),
            Note::TextIid(iid) => varint(note, tag::NOTE_TEXT_IID, iid),
        }
        bytes(&mut self.event, tag::ANNOTATION, note);
    }

    /// The head of a short annotation: `len` bytes follow its name.
    #[inline(always)]
    fn note_head(name: u8, len: usize) -> [u8; 4] {
        const NAME: u8 = key(tag::NOTE_NAME, WireType::Varint) as u8;
        const ANNOTATION: u8 = key(tag::ANNOTATION, WireType::LengthDelimited) as u8;
        [ANNOTATION, 2 + len as u8, NAME, name]
    }

    #[inline(always)]
    fn short_note(&mut self, name: u8, key: u8, value: u64) {
        let value = Varint::new(value);
        let mut room = [0; ROOM];
        room[..4].copy_from_slice(&Event::note_head(name, 1 + value.len));
        room[4] = key;
        room[5..15].copy_from_slice(&value.bytes);
        append(&mut self.event, &room, 5 + value.len);
    }

    #[inline(always)]
    fn short_double(&mut self, name: u8, value: f64) {
        const DOUBLE: u8 = key(tag::NOTE_DOUBLE, WireType::SixtyFourBit) as u8;
        let mut room = [0; 13];
        room[..4].copy_from_slice(&Event::note_head(name, 9));
        room[4] = DOUBLE;
        room[5..].copy_from_slice(&value.to_le_bytes());
        self.event.extend_from_slice(&room);
    }

    #[inline(always)]
    fn short_text_iid(&mut self, name: u8, iid: u64) {
        const TEXT_IID: u64 = key(tag::NOTE_TEXT_IID, WireType::Varint);
        let value = Varint::new(iid);
        let mut room = [0; ROOM];
        room[..4].copy_from_slice(&Event::note_head(name, 2 + value.len));
        // The tag takes two bytes.
        room[4..6].copy_from_slice(&[TEXT_IID as u8 | 0x80, (TEXT_IID >> 7) as u8]);
        room[6..].copy_from_slice(&value.bytes);
        append(&mut self.event, &room, 6 + value.len);
    }

    #[inline(always)]
    fn short_text(&mut self, name: u8, text: &str) {
        const TEXT: u8 = key(tag::NOTE_TEXT, WireType::LengthDelimited) as u8;
        let [annotation, len, key, name] = Event::note_head(name, 2 + text.len());
        self.event.extend_from_slice(&[annotation, len, key, name, TEXT, text.len() as u8]);
        self.event.extend_from_slice(text.as_bytes());
    }

    /// Interns a text, from this packet on.
    pub fn intern(&mut self, iid: u64, text: &str) {
        self.note.clear();
        varint(&mut self.note, tag::IID, iid);
        bytes(&mut self.note, tag::STR, text.as_bytes());
        bytes(&mut self.interned, tag::STRINGS, &self.note);
    }

    pub fn kind(&mut self, kind: i32) {
        varint(&mut self.event, tag::KIND, kind as u64);
    }

    pub fn name_iid(&mut self, iid: u64) {
        varint(&mut self.event, tag::NAME_IID, iid);
    }

    pub fn track(&mut self, uuid: u64) {
        varint(&mut self.event, tag::TRACK, uuid);
    }

    pub fn name(&mut self, name: &str) {
        bytes(&mut self.event, tag::NAME, name.as_bytes());
    }

    pub fn counter(&mut self, value: CounterValue) {
        match value {
            CounterValue::Int(value) => varint(&mut self.event, tag::COUNTER, value as u64),
            CounterValue::Double(value) => {
                fixed(&mut self.event, tag::DOUBLE_COUNTER, value.to_bits());
            }
        }
    }

    pub fn flow(&mut self, flow: u64) {
        fixed(&mut self.event, tag::FLOW, flow);
    }

    /// Appends the packet to `out`, as a field of the trace, and begins the next event. `machine`: None
    /// for the first.
    pub fn packet(
        &mut self,
        time: u64,
        (sequence, flags, machine): (u32, u32, Option<u32>),
        out: &mut Vec<u8>,
    ) {
        const TIMESTAMP: u8 = key(tag::TIMESTAMP, WireType::Varint) as u8;
        const SEQUENCE: u8 = key(tag::SEQUENCE, WireType::Varint) as u8;
        const TRACK_EVENT: u8 = key(tag::TRACK_EVENT, WireType::LengthDelimited) as u8;
        const PACKET: u8 = key(tag::PACKET, WireType::LengthDelimited) as u8;
        let event = self.event.len() - HEAD;
        let (time, sequence) = (Varint::new(time), Varint::new(sequence.into()));
        let of_event = Varint::new(event as u64);
        if !self.interned.is_empty() {
            bytes(&mut self.event, tag::INTERNED_DATA, &self.interned);
            self.interned.clear();
        }
        varint(&mut self.event, tag::SEQUENCE_FLAGS, flags.into());
        if let Some(machine) = machine {
            varint(&mut self.event, tag::MACHINE, machine.into());
        }
        let head = 3 + time.len + sequence.len + of_event.len;
        let length = Varint::new((head + self.event.len() - HEAD) as u64);
        // Written backwards.
        let mut end = HEAD;
        let mut before = |key: u8, value: Varint| {
            end -= value.len;
            self.event[end..end + value.len].copy_from_slice(&value.bytes[..value.len]);
            end -= 1;
            self.event[end] = key;
        };
        before(TRACK_EVENT, of_event);
        before(SEQUENCE, sequence);
        before(TIMESTAMP, time);
        before(PACKET, length);
        out.extend_from_slice(&self.event[end..]);
        self.event.truncate(HEAD);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{DebugAnnotation, Interned, InternedData, TracePacket, TrackEvent};
    use super::*;

    fn encoded(packet: &TracePacket) -> Vec<u8> {
        let mut out = Vec::new();
        prost::encoding::message::encode(1, packet, &mut out);
        out
    }

    #[test]
    fn numbers_are_those_of_prost() {
        let near = |bits: u32| [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1];
        for value in (0..64).flat_map(near).chain([u64::MAX, 0x0123_4567_89ab_cdef]) {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            Varint::new(value).append(&mut ours);
            prost::encoding::encode_varint(value, &mut theirs);
            assert_eq!(ours, theirs, "{value}");
        }
    }

    #[test]
    fn short_notes_are_those_of_prost() {
        for len in [0, 1, 0x6f, 0x70, 0x7f, 0x80, 300] {
            let text = "x".repeat(len);
            for name_iid in [1, 0x7f, 0x80] {
                let number =
                    DebugAnnotation { name_iid: Some(name_iid), ..DebugAnnotation::default() };
                let annotations = vec![
                    DebugAnnotation { string_value: Some(text.clone()), ..number.clone() },
                    DebugAnnotation { uint_value: Some(len as u64), ..number.clone() },
                    DebugAnnotation { int_value: Some(-(len as i64)), ..number.clone() },
                    DebugAnnotation { double_value: Some(-0.1 * len as f64), ..number.clone() },
                    DebugAnnotation { string_value_iid: Some(len as u64), ..number.clone() },
                    DebugAnnotation { string_value_iid: Some(u64::MAX), ..number },
                ];
                let whole = TracePacket {
                    timestamp: Some(7),
                    trusted_packet_sequence_id: Some(1),
                    sequence_flags: Some(2),
                    track_event: Some(TrackEvent {
                        debug_annotations: annotations,
                        ..TrackEvent::default()
                    }),
                    ..TracePacket::default()
                };
                let (mut event, mut packet) = (Event::default(), Vec::new());
                for note in [
                    Note::Text(&text),
                    Note::Uint(len as u64),
                    Note::Int(-(len as i64)),
                    Note::Double(-0.1 * len as f64),
                    Note::TextIid(len as u64),
                    Note::TextIid(u64::MAX),
                ] {
                    event.note(name_iid, note);
                }
                event.packet(7, (1, 2, None), &mut packet);
                assert_eq!(packet, encoded(&whole), "{len} {name_iid:?}");
            }
        }
    }

    #[test]
    fn packets_are_those_of_prost() {
        let name_iid =
            |name_iid| DebugAnnotation { name_iid: Some(name_iid), ..DebugAnnotation::default() };
        let long = "long ".repeat(100);
        let annotations = vec![
            DebugAnnotation { bool_value: Some(false), ..name_iid(1) },
            DebugAnnotation { uint_value: Some(u64::MAX), ..name_iid(200) },
            DebugAnnotation { int_value: Some(-1), ..name_iid(3) },
            DebugAnnotation { double_value: Some(-0.0), ..name_iid(4) },
            DebugAnnotation { string_value: Some(long.clone()), ..name_iid(5) },
            DebugAnnotation { string_value_iid: Some(70_000), ..name_iid(6) },
        ];
        let interned = Interned { iid: Some(70_000), str: Some("näme".as_bytes().to_vec()) };
        let whole = TracePacket {
            timestamp: Some(1_795_530_000_123_456_789),
            trusted_packet_sequence_id: Some(1),
            sequence_flags: Some(2),
            machine_id: Some(300),
            interned_data: Some(InternedData {
                debug_annotation_string_values: vec![interned],
                ..InternedData::default()
            }),
            track_event: Some(TrackEvent {
                kind: Some(1),
                track_uuid: Some(300),
                category_iids: vec![1],
                name_iid: Some(7),
                name: Some("a name".to_owned()),
                debug_annotations: annotations,
                counter_value: Some(-5),
                double_counter_value: Some(0.5),
                flow_ids: vec![9, u64::MAX],
            }),
            ..TracePacket::default()
        };
        let mut event = Event::default();
        event.category(1);
        event.note(1, Note::Bool(false));
        event.note(200, Note::Uint(u64::MAX));
        event.note(3, Note::Int(-1));
        event.note(4, Note::Double(-0.0));
        event.note(5, Note::Text(&long));
        event.intern(70_000, "näme");
        event.note(6, Note::TextIid(70_000));
        event.kind(1);
        event.name_iid(7);
        event.track(300);
        event.name("a name");
        event.counter(CounterValue::Int(-5));
        event.counter(CounterValue::Double(0.5));
        event.flow(9);
        event.flow(u64::MAX);
        let mut packet = Vec::new();
        event.packet(1_795_530_000_123_456_789, (1, 2, Some(300)), &mut packet);
        assert_eq!(packet, encoded(&whole));

        let short = TracePacket {
            timestamp: Some(0),
            trusted_packet_sequence_id: Some(1),
            sequence_flags: Some(2),
            track_event: Some(TrackEvent { kind: Some(2), ..TrackEvent::default() }),
            ..TracePacket::default()
        };
        event.kind(2);
        packet.clear();
        event.packet(0, (1, 2, None), &mut packet);
        assert_eq!(packet, encoded(&short), "nothing is left of the one before");
    }
}
