//! The Common Trace Format, version 1.8: a folder with metadata and a stream for each ring.
//!
//! Everything is byte-aligned and little-endian. Times of a stream never decrease, because rows are
//! sorted by time. A packet ends where frames are missing, and the next one counts them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use crate::event::{EventRole, EventRows, EventSchema, Trace, is_loss};
use crate::values::{FieldValue, WordColumn};

/// Approximate bytes of a packet.
const PACKET_BYTES: usize = 1 << 18;
/// Maximum bytes of unwritten packets together.
const MAX_UNWRITTEN: usize = 64 << 20;
/// First word of a packet.
const MAGIC: u32 = 0xC1FC_1FC1;

/// A trace in a folder.
#[derive(Debug)]
pub struct Ctf {
    folder: PathBuf,
    kinds: Vec<CtfEvent>,
    streams: Vec<Stream>,
    numbers: HashMap<StreamKey, usize>,
    /// Bytes of unwritten packets.
    unwritten: usize,
    /// Streams of the current batch of each kind.
    batches: Vec<StreamBatch>,
}

/// Streams by their keys in a batch.
#[derive(Debug, Default)]
struct StreamBatch {
    /// The lists of captures, buffers and segments that keys are indices of.
    lists: Option<[WordColumn; 3]>,
    known: HashMap<DictionaryKeys, usize>,
}

/// Capture, buffer, segment, ring, pid. Rows without a ring belong to a process.
type StreamKey = (String, String, Option<String>, Option<i32>, Option<i32>);
/// The same key; texts are indices of the lists of a batch.
type DictionaryKeys = (Option<i32>, Option<i32>, Option<i32>, Option<i32>, Option<i32>);

#[derive(Debug)]
struct CtfEvent {
    kind: EventSchema,
    fields: Vec<FieldLayout>,
}

/// The storage of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldLayout {
    Int { bytes: usize, signed: bool },
    Single,
    Double,
    Text,
    Bytes(usize),
}

/// A stream of packets.
#[derive(Debug)]
struct Stream {
    path: PathBuf,
    /// Identity of the stream, which is in each packet.
    identity: Vec<u8>,
    events: Vec<u8>,
    first: u64,
    last: u64,
    packets: u64,
    discarded: u64,
}

impl Ctf {
    /// A trace of events of `kinds` in an empty folder.
    ///
    /// # Errors
    /// A field has a type that no trace has.
    pub fn new(folder: &Path, kinds: &[EventSchema]) -> io::Result<Self> {
        let written = |kind: &EventSchema| {
            let fields = kind.fields.iter().map(|field| layout(field.data_type()));
            Ok(CtfEvent { kind: kind.clone(), fields: fields.collect::<io::Result<_>>()? })
        };
        Ok(Ctf {
            folder: folder.to_owned(),
            kinds: kinds.iter().map(written).collect::<io::Result<_>>()?,
            streams: Vec::new(),
            numbers: HashMap::new(),
            unwritten: 0,
            batches: kinds.iter().map(|_| StreamBatch::default()).collect(),
        })
    }

    fn stream(&mut self, kind: usize, rows: &EventRows, row: usize) -> usize {
        let keys = (
            rows.capture.key(row),
            rows.buffer.key(row),
            rows.segment.key(row),
            rows.ring(row),
            rows.pid(row),
        );
        if let Some(&known) = self.batches[kind].known.get(&keys) {
            return known;
        }
        let word = |word: Option<&str>| word.unwrap_or("").to_owned();
        let key = (
            word(rows.capture.get(row)),
            word(rows.buffer.get(row)),
            rows.segment.get(row).map(str::to_owned),
            rows.ring(row),
            rows.pid(row),
        );
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None => {
                let number = self.streams.len();
                let mut identity = Vec::new();
                for text in [Some(&*key.0), Some(&*key.1), key.2.as_deref(), rows.host.get(row)] {
                    put_text(&mut identity, text.unwrap_or(""));
                }
                identity.extend(key.3.unwrap_or(-1).to_le_bytes());
                identity.extend(key.4.unwrap_or(-1).to_le_bytes());
                let path = self.folder.join(format!("stream-{number}"));
                self.streams.push(Stream {
                    path,
                    identity,
                    events: Vec::new(),
                    first: 0,
                    last: 0,
                    packets: 0,
                    discarded: 0,
                });
                self.numbers.insert(key, number);
                number
            }
        };
        self.batches[kind].known.insert(keys, number);
        number
    }

    fn flush(&mut self, stream: usize) -> io::Result<()> {
        let stream = &mut self.streams[stream];
        self.unwritten -= stream.events.len();
        stream.flush()
    }

    /// The metadata of the trace.
    fn metadata(&self) -> String {
        let mut out = String::from(HEAD);
        for (id, CtfEvent { kind, fields }) in self.kinds.iter().enumerate() {
            let name = match kind.what {
                EventRole::Frames | EventRole::Counter | EventRole::Histogram
                    if !kind.buffer.is_empty() =>
                {
                    format!("{}:{}", kind.buffer, kind.label())
                }
                _ => kind.label(),
            };
            let _ = write!(out, "\nevent {{\n\tname = ");
            quote(&mut out, &name);
            let _ = writeln!(out, ";\n\tid = {id};\n\tstream_id = 0;\n\tfields := struct {{");
            let _ = writeln!(out, "\t\tint64_t _{};", kind.seqno);
            for (field, layout) in kind.fields.iter().zip(fields) {
                let name = field.name();
                let _ = match layout {
                    FieldLayout::Int { bytes, signed } => {
                        let sign = if *signed { "" } else { "u" };
                        writeln!(out, "\t\t{sign}int{}_t _{name};", bytes * 8)
                    }
                    FieldLayout::Single => writeln!(out, "\t\tfloat _{name};"),
                    FieldLayout::Double => writeln!(out, "\t\tdouble _{name};"),
                    FieldLayout::Text => writeln!(out, "\t\tstring _{name};"),
                    FieldLayout::Bytes(bytes) => writeln!(out, "\t\thex_t _{name}[{bytes}];"),
                };
            }
            let null = null_name(kind);
            let _ = writeln!(out, "\t\tstring _{null};\n\t}};\n}};");
        }
        out
    }
}

impl Trace for Ctf {
    fn turn_to(&mut self, kind: usize, rows: &EventRows) {
        let lists = [&rows.capture, &rows.buffer, &rows.segment];
        let batch = &mut self.batches[kind];
        let is_same = |known: &[WordColumn; 3]| (0..3).all(|at| known[at].is_of_list(lists[at]));
        if !batch.lists.as_ref().is_some_and(is_same) {
            *batch =
                StreamBatch { lists: Some(lists.map(WordColumn::clone)), known: HashMap::new() };
        }
    }

    fn event(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        let at = self.stream(number, rows, row);
        let time = rows.begin(row) as u64;
        if self.kinds[number].kind.what == EventRole::Missing {
            self.flush(at)?;
            let (count, cause) = rows.missing(row);
            if is_loss(cause) {
                let stream = &mut self.streams[at];
                if stream.packets == 0 {
                    // Readers count from one packet to the next.
                    (stream.first, stream.last) = (time, time);
                    stream.packet()?;
                }
                stream.discarded = stream.discarded.saturating_add(count.max(0) as u64);
            }
        }
        let stream = &mut self.streams[at];
        let before = stream.events.len();
        if stream.events.is_empty() {
            stream.first = time;
        }
        stream.last = time;
        let out = &mut stream.events;
        out.extend((number as u32).to_le_bytes());
        out.extend(time.to_le_bytes());
        out.extend(rows.tid(row).unwrap_or(-1).to_le_bytes());
        out.extend(rows.seqno(row).unwrap_or(-1).to_le_bytes());
        let CtfEvent { kind, fields } = &self.kinds[number];
        let mut nulls = String::new();
        for ((column, layout), field) in rows.fields.iter().zip(fields).zip(&kind.fields) {
            let value = column.get(row);
            if matches!(value, None | Some(FieldValue::Text("") | FieldValue::Word(""))) {
                nulls.push_str(if nulls.is_empty() { "" } else { " " });
                nulls.push_str(field.name());
            }
            layout.put(value, out);
        }
        put_text(out, if nulls.is_empty() { EMPTY_TEXT } else { &nulls });
        let full = out.len() >= PACKET_BYTES;
        self.unwritten += out.len() - before;
        if full {
            self.flush(at)?;
        }
        if self.unwritten >= MAX_UNWRITTEN {
            for stream in 0..self.streams.len() {
                self.flush(stream)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        for stream in 0..self.streams.len() {
            self.flush(stream)?;
        }
        let mut file = File::create_new(self.folder.join("metadata"))?;
        file.write_all(self.metadata().as_bytes())
    }
}

impl Stream {
    fn flush(&mut self) -> io::Result<()> {
        if self.events.is_empty() { Ok(()) } else { self.packet() }
    }

    /// Writes the waiting events as a packet.
    fn packet(&mut self) -> io::Result<()> {
        let fixed = 4 + 4 + 6 * 8;
        let bits = (fixed + self.identity.len() + self.events.len()) as u64 * 8;
        let mut head = Vec::with_capacity(fixed + self.identity.len());
        head.extend(MAGIC.to_le_bytes());
        head.extend(0u32.to_le_bytes());
        for word in [self.first, self.last, bits, bits, self.packets, self.discarded] {
            head.extend(word.to_le_bytes());
        }
        head.extend(&self.identity);
        // The file is not kept open: there may be more rings than a process may open files.
        let file = match self.packets {
            0 => File::create_new(&self.path),
            _ => File::options().append(true).open(&self.path),
        };
        let mut file = file?;
        file.write_all(&head)?;
        file.write_all(&self.events)?;
        self.events.clear();
        self.packets += 1;
        Ok(())
    }
}

fn layout(ty: &DataType) -> io::Result<FieldLayout> {
    let int = |bytes, signed| FieldLayout::Int { bytes, signed };
    Ok(match ty {
        DataType::Int8 => int(1, true),
        DataType::Int16 => int(2, true),
        DataType::Int32 => int(4, true),
        DataType::Int64 | DataType::Timestamp(..) => int(8, true),
        DataType::UInt8 | DataType::Boolean => int(1, false),
        DataType::UInt16 => int(2, false),
        DataType::UInt32 => int(4, false),
        DataType::UInt64 => int(8, false),
        DataType::Float32 => FieldLayout::Single,
        DataType::Float64 => FieldLayout::Double,
        DataType::Dictionary(..) | DataType::Utf8 => FieldLayout::Text,
        DataType::FixedSizeBinary(bytes) => FieldLayout::Bytes(*bytes as usize),
        other => return Err(crate::values::unexpected(other)),
    })
}

impl FieldLayout {
    /// Appends a value; NULL becomes 0 or empty.
    fn put(self, value: Option<FieldValue<'_>>, out: &mut Vec<u8>) {
        match self {
            FieldLayout::Int { bytes, .. } => {
                let word = match value {
                    Some(FieldValue::Int(value)) => value as u64,
                    Some(FieldValue::Uint(value)) => value,
                    Some(FieldValue::Bool(value)) => value.into(),
                    _ => 0,
                };
                out.extend(&word.to_le_bytes()[..bytes]);
            }
            FieldLayout::Single | FieldLayout::Double => {
                let value = if let Some(FieldValue::Float(value)) = value { value } else { 0.0 };
                match self {
                    FieldLayout::Single => out.extend((value as f32).to_le_bytes()),
                    _ => out.extend(value.to_le_bytes()),
                }
            }
            FieldLayout::Text => match value {
                Some(FieldValue::Word(text) | FieldValue::Text(text)) => put_text(out, text),
                _ => put_text(out, ""),
            },
            FieldLayout::Bytes(len) => {
                let end = out.len() + len;
                if let Some(FieldValue::Bytes(bytes)) = value {
                    out.extend(bytes);
                }
                out.resize(end, 0);
            }
        }
    }
}

/// Appends text with a terminating 0; other zeros are replaced.
fn put_text(out: &mut Vec<u8>, text: &str) {
    if text.contains('\0') {
        out.extend(text.replace('\0', "\u{fffd}").as_bytes());
    } else {
        out.extend(text.as_bytes());
    }
    out.push(0);
}

/// Replacement for an empty text. Babeltrace 2.0 shows an older text if a field is empty.
const EMPTY_TEXT: &str = "-";

/// The field that lists fields without a value, and empty texts.
fn null_name(kind: &EventSchema) -> String {
    let mut name = "null".to_owned();
    while kind.fields.iter().any(|field| *field.name() == name) || kind.seqno == name {
        name.insert_str(0, "ppt_");
    }
    name
}

/// Text in the metadata.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            char if ppt_text::is_unsafe(char) => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
    out.push('"');
}

/// Metadata that all traces share. Readers remove the `_` before the name of a field, which keeps names
/// from being keywords.
const HEAD: &str = "/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = true; } := int8_t;
typealias integer { size = 16; align = 8; signed = true; } := int16_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = false; base = 16; } := hex_t;
typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := float;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double;

trace {
\tmajor = 1;
\tminor = 8;
\tbyte_order = le;
\tpacket.header := struct {
\t\tuint32_t magic;
\t\tuint32_t stream_id;
\t};
};

env {
\ttracer_name = \"ppt\";
};

clock {
\tname = \"realtime\";
\tdescription = \"CLOCK_REALTIME, ns since the epoch\";
\tfreq = 1000000000;
\toffset_s = 0;
\toffset = 0;
\tabsolute = TRUE;
};

typealias integer {
\tsize = 64; align = 8; signed = false; map = clock.realtime.value;
} := time_ns_t;

stream {
\tid = 0;
\tpacket.context := struct {
\t\ttime_ns_t timestamp_begin;
\t\ttime_ns_t timestamp_end;
\t\tuint64_t content_size;
\t\tuint64_t packet_size;
\t\tuint64_t packet_seq_num;
\t\tuint64_t events_discarded;
\t\tstring _capture;
\t\tstring _buffer;
\t\tstring _segment;
\t\tstring _host;
\t\tint32_t _ring;
\t\tint32_t _pid;
\t};
\tevent.header := struct {
\t\tuint32_t id;
\t\ttime_ns_t timestamp;
\t};
\tevent.context := struct {
\t\tint32_t _tid;
\t};
};
";
