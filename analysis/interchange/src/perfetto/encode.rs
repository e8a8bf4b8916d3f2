//! Packets with a track event, byte for byte as `prost` encodes [`TracePacket`](super::message), without
//! a structure for each: a trace is made of little else.

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

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
    /// The number of an interned text.
    TextIid(u64),
}

/// The value of a counter.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counter {
    Int(i64),
    Double(f64),
}

/// Room for a key and a number.
const LONGEST: usize = 20;

/// Puts a number behind the first `at` bytes; says how many there are then.
fn put(room: &mut [u8; LONGEST], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        room[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    room[at] = value as u8;
    at + 1
}

/// Appends a key and a number at once: they are most of a trace.
fn keyed(out: &mut Vec<u8>, tag: u32, wire: WireType, value: u64) {
    let mut room = [0; LONGEST];
    let key = put(&mut room, 0, u64::from(tag << 3) | wire as u64);
    let end = put(&mut room, key, value);
    out.extend_from_slice(&room[..end]);
}

fn varint(out: &mut Vec<u8>, tag: u32, value: u64) {
    keyed(out, tag, WireType::Varint, value);
}

fn bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    keyed(out, tag, WireType::LengthDelimited, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn fixed(out: &mut Vec<u8>, tag: u32, value: u64) {
    encode_key(tag, WireType::SixtyFourBit, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A track event on its way: fields are to be added in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Event {
    event: Vec<u8>,
    interned: Vec<u8>,
    note: Vec<u8>,
    packet: Vec<u8>,
}

impl Event {
    pub fn category(&mut self, iid: u64) {
        varint(&mut self.event, tag::CATEGORY, iid);
    }

    /// Adds an annotation whose name is interned.
    pub fn note(&mut self, name: u64, value: Note<'_>) {
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

    pub fn counter(&mut self, value: Counter) {
        match value {
            Counter::Int(value) => varint(&mut self.event, tag::COUNTER, value as u64),
            Counter::Double(value) => fixed(&mut self.event, tag::DOUBLE_COUNTER, value.to_bits()),
        }
    }

    pub fn flow(&mut self, flow: u64) {
        fixed(&mut self.event, tag::FLOW, flow);
    }

    /// The packet, as a field of the trace; the next event begins. `machine`: None of the first one.
    pub fn packet(&mut self, time: u64, sequence: u32, flags: u32, machine: Option<u32>) -> &[u8] {
        const LENGTHS: usize = 10;
        let packet = &mut self.packet;
        packet.clear();
        // A place for the key and the length, which is known in the end.
        packet.resize(1 + LENGTHS, 0);
        varint(packet, tag::TIMESTAMP, time);
        varint(packet, tag::SEQUENCE, sequence.into());
        bytes(packet, tag::TRACK_EVENT, &self.event);
        if !self.interned.is_empty() {
            bytes(packet, tag::INTERNED_DATA, &self.interned);
        }
        varint(packet, tag::SEQUENCE_FLAGS, flags.into());
        if let Some(machine) = machine {
            varint(packet, tag::MACHINE, machine.into());
        }
        self.event.clear();
        self.interned.clear();
        let length = (packet.len() - 1 - LENGTHS) as u64;
        let first = LENGTHS - encoded_len_varint(length);
        let mut head = &mut packet[first..=LENGTHS];
        encode_key(tag::PACKET, WireType::LengthDelimited, &mut head);
        encode_varint(length, &mut head);
        &packet[first..]
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
        event.counter(Counter::Int(-5));
        event.counter(Counter::Double(0.5));
        event.flow(9);
        event.flow(u64::MAX);
        assert_eq!(event.packet(1_795_530_000_123_456_789, 1, 2, Some(300)), encoded(&whole));

        let short = TracePacket {
            timestamp: Some(0),
            trusted_packet_sequence_id: Some(1),
            sequence_flags: Some(2),
            track_event: Some(TrackEvent { kind: Some(2), ..TrackEvent::default() }),
            ..TracePacket::default()
        };
        event.kind(2);
        assert_eq!(
            event.packet(0, 1, 2, None),
            encoded(&short),
            "nothing is left of the one before"
        );
    }
}
