//! A frame as the 64-bit words that are stored into a slot.
//!
//! Words are composed from the fields, so that a compiler can keep the fields in registers; a
//! struct that is read back as words costs twice as much.

use std::ops::Range;

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::schema::{FRAME_ID_OFFSET, Field, Frame, Int, Schema};

use super::stored::stored;

/// The smallest number of full words inside one array that become a loop.
const LOOP_FROM: u32 = 8;

/// One step of storing a frame.
#[derive(Clone)]
pub(crate) enum Store {
    /// Word `index` consists of parts; without parts, it is 0.
    Word { index: u32, parts: Vec<WordPart> },
    /// The words from `first` on are copied from the array `field`, from its byte `from` on.
    Array { first: u32, words: u32, field: usize, from: u32 },
}

/// A part of a word, shifted left by `shift` bits. The parts of a word do not overlap.
#[derive(Clone)]
pub(crate) struct WordPart {
    pub shift: u32,
    pub value: BitSource,
}

/// The source of the bits of a part.
#[derive(Clone)]
pub(crate) enum BitSource {
    FrameId(usize),
    /// `count` bytes from byte `at` of a text or of bytes.
    Bytes {
        field: usize,
        at: u32,
        count: u32,
    },
    /// One value, or an element of an array of them.
    Number {
        field: usize,
        element: Option<u32>,
        bits: Bits,
    },
}

/// The conversion of a value to bits.
#[derive(Clone, Copy)]
pub(crate) enum Bits {
    Int(Int),
    /// An enum with this integer type.
    Enum(Int),
    F32,
    F64,
    Bool,
    /// The seconds of a timeval or timespec.
    Seconds,
    /// The microseconds of a timeval.
    Microseconds,
    /// The nanoseconds of a timespec.
    Nanoseconds,
}

impl Bits {
    /// The parts of one value, with their offsets.
    fn with_offsets(stored: Stored<'_>) -> Vec<(u32, Bits)> {
        match stored {
            Stored::Int(int) => vec![(0, Bits::Int(int))],
            Stored::Enum(declared) => vec![(0, Bits::Enum(declared.repr))],
            Stored::F32 => vec![(0, Bits::F32)],
            Stored::F64 => vec![(0, Bits::F64)],
            Stored::Bool => vec![(0, Bits::Bool)],
            Stored::Timeval => vec![(0, Bits::Seconds), (8, Bits::Microseconds)],
            Stored::Timespec => vec![(0, Bits::Seconds), (8, Bits::Nanoseconds)],
            Stored::Text { .. } | Stored::Bytes { .. } => unreachable!("stored by their bytes"),
        }
    }
}

/// The words of `frame`, except the first, which is its sequence number.
pub(super) fn stores(schema: &Schema, frame: &Frame, id: usize) -> Vec<Store> {
    let mut words: Vec<Vec<WordPart>> = vec![Vec::new(); frame.size as usize / 8];
    if schema.multi() {
        let (index, bytes) = (FRAME_ID_OFFSET as usize / 8, FRAME_ID_OFFSET % 8);
        words[index].push(WordPart { shift: bytes * 8, value: BitSource::FrameId(id) });
    }
    let mut arrays = Vec::new();
    for (index, field) in frame.fields.iter().enumerate() {
        let bytes = field.bytes(schema);
        match whole_words(schema, field) {
            Some(whole) => {
                compose(schema, (index, field), 0..whole.start, &mut words);
                compose(schema, (index, field), whole.end..bytes, &mut words);
                let first = (field.offset + whole.start) / 8;
                arrays.push((first, whole.len() as u32 / 8, index, whole.start));
            }
            None => compose(schema, (index, field), 0..bytes, &mut words),
        }
    }
    let mut stores = Vec::new();
    let mut index = 1;
    while index < words.len() as u32 {
        match arrays.iter().find(|array| array.0 == index) {
            Some(&(first, words, field, from)) => {
                stores.push(Store::Array { first, words, field, from });
                index += words;
            }
            None => {
                let parts = std::mem::take(&mut words[index as usize]);
                stores.push(Store::Word { index, parts });
                index += 1;
            }
        }
    }
    stores
}

/// The bytes of an array that fill whole words, if these are enough for a loop.
fn whole_words(schema: &Schema, field: &Field) -> Option<Range<u32>> {
    match stored(schema, &field.ty) {
        Stored::Timeval | Stored::Timespec => return None,
        Stored::Text { .. } | Stored::Bytes { .. } => {}
        _ => _ = field.array?,
    }
    let end = field.offset + field.bytes(schema);
    let (first, last) = (field.offset.div_ceil(8), end / 8);
    (last >= first + LOOP_FROM).then(|| first * 8 - field.offset..last * 8 - field.offset)
}

/// Adds some bytes of a field to the words that contain them.
fn compose(
    schema: &Schema,
    (index, field): (usize, &Field),
    bytes: Range<u32>,
    words: &mut [Vec<WordPart>],
) {
    let mut put = |offset: u32, value: BitSource| {
        words[offset as usize / 8].push(WordPart { shift: offset % 8 * 8, value });
    };
    let stored = stored(schema, &field.ty);
    if let Stored::Text { .. } | Stored::Bytes { .. } = stored {
        let mut at = bytes.start;
        while at < bytes.end {
            let offset = field.offset + at;
            let count = (8 - offset % 8).min(bytes.end - at);
            put(offset, BitSource::Bytes { field: index, at, count });
            at += count;
        }
        return;
    }
    let size = stored.size();
    for number in bytes.start / size..bytes.end / size {
        let element = field.array.map(|_| number);
        for (offset, bits) in Bits::with_offsets(stored) {
            let value = BitSource::Number { field: index, element, bits };
            put(field.offset + number * size + offset, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BufferModel, MemberKind};

    fn bytes(value: &BitSource) -> u32 {
        match value {
            BitSource::FrameId(_) => 2,
            BitSource::Bytes { count, .. } => *count,
            BitSource::Number { bits: Bits::Int(int) | Bits::Enum(int), .. } => int.size(),
            BitSource::Number { bits: Bits::Bool, .. } => 1,
            BitSource::Number { bits: Bits::F32, .. } => 4,
            BitSource::Number { .. } => 8,
        }
    }

    /// Each word is stored once, and each byte of a member comes from one place, in every golden.
    #[test]
    fn every_byte_is_stored_once() {
        let goldens = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"));
        let paths = goldens.unwrap().map(|golden| golden.unwrap().path());
        let mut arrays = 0;
        for path in
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "frame"))
        {
            let name = path.file_name().unwrap().to_str().unwrap();
            let frames = crate::parse(&std::fs::read(&path).unwrap(), name).unwrap();
            for frame in &BufferModel::new(&frames.schema, "a", name).frames {
                let mut stored = vec![0; frame.size as usize];
                let mut next = 1;
                let mut store = |from: u32, bytes: u32| {
                    stored[from as usize..][..bytes as usize]
                        .iter_mut()
                        .for_each(|number| *number += 1);
                };
                for step in &frame.stores {
                    let (first, words) = match step {
                        Store::Word { index, parts } => {
                            for part in parts {
                                assert!(part.shift / 8 + bytes(&part.value) <= 8);
                                store(index * 8 + part.shift / 8, bytes(&part.value));
                            }
                            (*index, 1)
                        }
                        Store::Array { first, words, .. } => {
                            store(first * 8, words * 8);
                            arrays += 1;
                            (*first, *words)
                        }
                    };
                    assert_eq!(first, next, "{name}");
                    next += words;
                }
                assert_eq!(next * 8, frame.size, "{name}");
                let mut expected = vec![0; frame.size as usize];
                for member in &frame.members {
                    let bytes = match member.kind {
                        MemberKind::Sequence | MemberKind::Padding(_) => 0,
                        MemberKind::FrameId => 2,
                        MemberKind::Field(index) => {
                            let field = &frame.fields[index];
                            field.stored.size() * field.array.unwrap_or(1)
                        }
                    };
                    expected[member.offset as usize..][..bytes as usize].fill(1);
                }
                assert_eq!(stored, expected, "frame `{}` of {name}", frame.name);
            }
        }
        assert!(arrays > 0);
    }
}
