//! `thread_states`, `syscalls` and `faults`: what the kernel did with the threads of programs.

pub(super) mod wakes;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::StringArray;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ppt_capture::Stamps;
use ppt_capture::columns::{EnumNames, Time};
use ppt_capture::frame_dsl::schema::{self, FieldType};
use strum::IntoEnumIterator;

use super::named::NamedTable;
use crate::bounds::{Bounded, BoundedNumber, BoundedText as Bounding, Bounds, Range};
use crate::builder::{Builder, Dictionary, EnumKeys, timestamp, word_type};
use crate::error::{SetError, TableError};
use crate::kernel::{
    Call, Calls, Event, FrameChunk, KernelFrameKind, KernelLoss, KernelWord, Knows, Records,
    RecordsBuilder, Stretch, ThreadTrack,
};
use crate::of_chunks::{ChunkScan, OfChunks, Ts, Wanted, kind_bit};
use crate::rows::RowsInChunk;
use crate::set::{CaptureSet, KERNEL};
use crate::standard::{ChunkRows, STANDARD, Standard};
use crate::table::{CaptureTable, Pass, Planned, Runner, Scan, Start, TableRequest};

/// Rows of a batch that comes out.
const ROWS: usize = 8192;

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let frames = Arc::new(KernelFrames::new(set));
    let table = |(what, name): (KernelTable, &str)| {
        let fields = what.columns().into_iter().map(|column| {
            let unit = (column == KernelColumn::Dur).then(|| ("unit".to_owned(), "ns".to_owned()));
            let field = Field::new(column.name(), column.data_type(), true);
            field.with_metadata(unit.into_iter().collect())
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (set, frames) = (set.clone(), frames.clone());
        NamedTable::fixed(name, KernelScan { what, set, frames, schema })
    };
    let all = [
        (KernelTable::States, "thread_states"),
        (KernelTable::Calls, "syscalls"),
        (KernelTable::Faults, "faults"),
    ];
    Ok(all.map(table).into())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelTable {
    States,
    Calls,
    Faults,
}

/// A column that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum KernelColumn {
    Capture,
    Buffer,
    Host,
    Pid,
    Tid,
    Ts,
    Dur,
    State,
    Name,
    Kind,
    Cpu,
    BlockedIn,
    WokenBy,
    Waker,
    Successor,
    SuccessorName,
    Result,
    Address,
}

impl KernelColumn {
    fn name(self) -> &'static str {
        self.into()
    }

    fn data_type(self) -> DataType {
        match self {
            KernelColumn::Pid
            | KernelColumn::Tid
            | KernelColumn::Cpu
            | KernelColumn::Waker
            | KernelColumn::Successor => DataType::Int32,
            KernelColumn::Dur | KernelColumn::Result => DataType::Int64,
            KernelColumn::Address => DataType::UInt64,
            KernelColumn::Ts => timestamp(),
            KernelColumn::SuccessorName => DataType::Utf8,
            _ => word_type(),
        }
    }
}

/// What each table begins with.
const OWNER: [KernelColumn; 6] = [
    KernelColumn::Capture,
    KernelColumn::Buffer,
    KernelColumn::Host,
    KernelColumn::Pid,
    KernelColumn::Tid,
    KernelColumn::Ts,
];

impl KernelTable {
    fn columns(self) -> Vec<KernelColumn> {
        let own: &[KernelColumn] = match self {
            KernelTable::States => &[
                KernelColumn::Dur,
                KernelColumn::State,
                KernelColumn::Cpu,
                KernelColumn::BlockedIn,
                KernelColumn::WokenBy,
                KernelColumn::Waker,
                KernelColumn::Successor,
                KernelColumn::SuccessorName,
            ],
            KernelTable::Calls => {
                &[KernelColumn::Dur, KernelColumn::Name, KernelColumn::Result, KernelColumn::Cpu]
            }
            KernelTable::Faults => &[KernelColumn::Kind, KernelColumn::Address, KernelColumn::Cpu],
        };
        OWNER.iter().chain(own).copied().collect()
    }

    /// The frames that it is made of.
    fn frame_kinds(self) -> &'static [KernelFrameKind] {
        match self {
            KernelTable::States => &[
                KernelFrameKind::Watched,
                KernelFrameKind::ThreadStart,
                KernelFrameKind::ThreadEnd,
                KernelFrameKind::SwitchIn,
                KernelFrameKind::SwitchOut,
                KernelFrameKind::Successor,
                KernelFrameKind::Wakeup,
                KernelFrameKind::SyscallEnter,
                KernelFrameKind::SyscallExit,
                KernelFrameKind::PageFault,
            ],
            KernelTable::Calls => &[
                KernelFrameKind::ThreadStart,
                KernelFrameKind::ThreadEnd,
                KernelFrameKind::SyscallEnter,
                KernelFrameKind::SyscallExit,
            ],
            KernelTable::Faults => &[KernelFrameKind::PageFault],
        }
    }
}

/// What is read of frames, behind the standard columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadColumn {
    /// Number of the [`Group`].
    Group,
    Thread,
    /// [`KernelFrameKind`], as a number.
    Told,
    Cpu,
    A,
    B,
    Name,
    /// Key of the capture.
    Capture,
}

const READ: [(ReadColumn, &str, DataType); 8] = [
    (ReadColumn::Group, "ppt_group", DataType::Int32),
    (ReadColumn::Thread, "ppt_thread", DataType::Int32),
    (ReadColumn::Told, "ppt_told", DataType::Int32),
    (ReadColumn::Cpu, "ppt_cpu", DataType::Int32),
    (ReadColumn::A, "ppt_a", DataType::Int64),
    (ReadColumn::B, "ppt_b", DataType::Int64),
    (ReadColumn::Name, "ppt_name", DataType::Utf8),
    (ReadColumn::Capture, "ppt_capture", DataType::Int32),
];

/// What a scan reads, in this order.
const SEQNO: usize = 0;
const TS: usize = 1;
const FIRST: usize = 2;

fn columns_read() -> Vec<usize> {
    let standard =
        |standard| STANDARD.iter().position(|column| *column == standard).unwrap_or_default();
    let own = STANDARD.len()..STANDARD.len() + READ.len();
    [standard(Standard::Seqno), standard(Standard::Ts)].into_iter().chain(own).collect()
}

/// Where what is read is.
fn at(read: ReadColumn) -> usize {
    FIRST + READ.iter().position(|entry| entry.0 == read).unwrap_or_default()
}

/// A session's frames of one process: they have one ring, whose numbers all threads share.
#[derive(Debug, Clone, Copy)]
struct Group {
    buffer: i32,
    segment: i32,
    ring: Option<i32>,
    host: i32,
    pid: Option<i32>,
}

/// How the frames of a source are read.
#[derive(Debug)]
struct KernelForm {
    multi: bool,
    kinds: Vec<(u16, KernelFrameFields)>,
}

#[derive(Debug)]
struct KernelFrameFields {
    told: KernelFrameKind,
    at: Option<Time>,
    since: Option<Time>,
    thread: Option<FieldPlace>,
    cpu: Option<FieldPlace>,
    a: Option<NumberField>,
    b: Option<NumberField>,
    name: Option<FieldPlace>,
}

/// Calls below this number are called by it where they have no name.
const NUMBERED_CALLS: i128 = 1024;

/// A number, or a word of a number.
#[derive(Debug)]
struct NumberField {
    place: FieldPlace,
    words: Option<EnumKeys>,
}

/// Where a field is.
#[derive(Debug, Clone, Copy)]
struct FieldPlace {
    at: usize,
    len: usize,
    signed: bool,
}

impl FieldPlace {
    fn bytes(self, frame: &[u8]) -> &[u8] {
        frame.get(self.at..).map_or(&[], |frame| &frame[..self.len.min(frame.len())])
    }

    fn number(self, frame: &[u8]) -> i64 {
        let bytes = self.bytes(frame);
        let negative = self.signed && bytes.last().is_some_and(|byte| byte >> 7 == 1);
        let mut value = [if negative { 0xff } else { 0 }; 8];
        let len = bytes.len().min(8);
        value[..len].copy_from_slice(&bytes[..len]);
        i64::from_le_bytes(value)
    }
}

impl NumberField {
    fn read(&self, frame: &[u8]) -> i64 {
        let number = self.place.number(frame);
        match &self.words {
            Some(keys) => keys.get(number.into()).unwrap_or(KernelWord::Other.key()).into(),
            None => number,
        }
    }
}

impl KernelFrameFields {
    fn new(
        schema: &schema::Schema,
        frame: &schema::Frame,
        dictionary: &mut Dictionary,
    ) -> Option<KernelFrameFields> {
        let told = KernelFrameKind::named(&frame.name)?;
        let field = |name: &str| frame.fields.iter().find(|field| field.name == name);
        let place = |field: &schema::Field| {
            let repr = match &field.ty {
                FieldType::Enum { name } => {
                    schema.enum_named(name).map(|enum_named| enum_named.repr.signed())
                }
                _ => None,
            };
            let signed = matches!(
                field.ty,
                FieldType::I8 | FieldType::I16 | FieldType::I32 | FieldType::I64
            );
            FieldPlace {
                at: field.offset as usize,
                len: field.ty.size(schema) as usize,
                signed: repr.unwrap_or(signed),
            }
        };
        let mut value = |name: &str| {
            let field = field(name)?;
            let words = match &field.ty {
                FieldType::Enum { name } => {
                    let mut declared = schema.enum_named(name)?.clone();
                    if field.name == "call" {
                        // A kernel may have calls that are younger than the ppt that captured them.
                        let numbers =
                            (0..NUMBERED_CALLS).map(|number| (number.to_string(), number));
                        declared.values.extend(numbers);
                    }
                    Some(EnumKeys::new(&EnumNames::from_enum(&declared), dictionary))
                }
                _ => None,
            };
            Some(NumberField { place: place(field), words })
        };
        let (a, b) = match told {
            KernelFrameKind::ThreadStart => ("parent", ""),
            KernelFrameKind::SwitchOut => ("preempted", ""),
            KernelFrameKind::Successor => ("next", ""),
            KernelFrameKind::Wakeup => ("by", "waker"),
            KernelFrameKind::SyscallEnter => ("call", ""),
            KernelFrameKind::SyscallExit => ("call", "result"),
            KernelFrameKind::PageFault => ("kind", "address"),
            KernelFrameKind::Lost => ("", "count"),
            KernelFrameKind::Watched
            | KernelFrameKind::ThreadEnd
            | KernelFrameKind::SwitchIn
            | KernelFrameKind::WatchEnd => ("", ""),
        };
        let (a, b) = (value(a), value(b));
        Some(KernelFrameFields {
            told,
            at: frame.at().and_then(Time::from_field),
            since: field("since").and_then(Time::from_field),
            thread: field("thread").map(place),
            cpu: field("cpu").map(place),
            a,
            b,
            name: field("name").map(place),
        })
    }
}

/// The kernel's frames in captures.
#[derive(Debug)]
struct KernelFrames {
    schema: SchemaRef,
    /// What all words of the tables are, but those that name captures, buffers and hosts.
    words: Arc<StringArray>,
    groups: Vec<Group>,
    /// By process and segment.
    group_of: HashMap<(i32, u64), i32>,
    /// By capture and source.
    forms: HashMap<(usize, u16), KernelForm>,
    /// By group, once they are known.
    records: Mutex<Option<Arc<Vec<Records>>>>,
}

impl KernelFrames {
    fn new(set: &CaptureSet) -> KernelFrames {
        let mut dictionary = Dictionary::default();
        KernelWord::iter().for_each(|word| _ = dictionary.key(word.into()));
        let (mut groups, mut group_of, mut forms) = (Vec::new(), HashMap::new(), HashMap::new());
        for (number, capture) in set.captures().iter().enumerate() {
            let catalog = capture.catalog();
            for info in catalog.sources.iter().filter(|source| source.source.kind == KERNEL) {
                let kinds = info.schema.frames.iter().enumerate().filter_map(|(id, frame)| {
                    Some((id as u16, KernelFrameFields::new(&info.schema, frame, &mut dictionary)?))
                });
                let form = KernelForm { multi: info.schema.multi(), kinds: kinds.collect() };
                forms.insert((number, info.id), form);
            }
            for owner in set.owners(number, catalog) {
                if forms.contains_key(&(number, owner.source)) {
                    group_of.entry((owner.process, owner.nonce)).or_insert_with(|| {
                        groups.push(Group {
                            buffer: owner.buffer,
                            segment: owner.segment,
                            ring: owner.ring,
                            host: owner.host,
                            pid: owner.pid,
                        });
                        groups.len() as i32 - 1
                    });
                }
            }
        }
        let standard = STANDARD.iter().map(|standard| standard.field(&Default::default()));
        let own = READ.iter().map(|(_, name, ty)| Field::new(*name, ty.clone(), true));
        KernelFrames {
            schema: Arc::new(Schema::new(standard.chain(own).collect::<Vec<_>>())),
            words: dictionary.array(),
            groups,
            group_of,
            forms,
            records: Mutex::default(),
        }
    }

    /// What is missing, by group: read once.
    fn records(self: &Arc<Self>, set: &Arc<CaptureSet>) -> Result<Arc<Vec<Records>>, TableError> {
        let mut known = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let mut builders: Vec<RecordsBuilder> = Vec::new();
        builders.resize_with(self.groups.len(), RecordsBuilder::default);
        for (number, capture) in set.captures().iter().enumerate() {
            let catalog = capture.verified()?;
            let owners = set.owners(number, catalog);
            for chunk in &catalog.chunks {
                let Some(owner) = owners.get(chunk.owner as usize) else { continue };
                let Some(form) = self.forms.get(&(number, owner.source)) else { continue };
                let Some(&group) = self.group_of.get(&(owner.process, owner.nonce)) else {
                    continue;
                };
                let builder = &mut builders[group as usize];
                let has = |told| {
                    let mut of = form.kinds.iter().filter(|kind| kind.1.told == told);
                    of.any(|entry| chunk.mask == 0 || chunk.mask & kind_bit(entry.0.into()) != 0)
                };
                let Knows { calls, faults } = builder.knows;
                builder.knows = Knows {
                    calls: calls
                        || has(KernelFrameKind::SyscallEnter)
                        || has(KernelFrameKind::SyscallExit),
                    faults: faults || has(KernelFrameKind::PageFault),
                };
                let namespace = catalog.sources[owner.info].source.process.time_namespace();
                let stamps = Stamps::new(&catalog.clocks, chunk.drained, namespace);
                let time = form.kinds.iter().find_map(|kind| kind.1.at);
                let words = chunk.t_min..=chunk.t_max;
                let offset = catalog.offset();
                let times =
                    time.and_then(|time| time.bounds(words, &stamps, &catalog.clocks, offset));
                let times =
                    times.and_then(|(from, to)| Some((from.try_into().ok()?, to.try_into().ok()?)));
                builder.parts.push(FrameChunk {
                    first: chunk.first_seq,
                    count: chunk.count.into(),
                    has_bad: chunk.bad > 0,
                    times,
                });
            }
        }
        let chosen = Arc::new(Chosen {
            frames: self.clone(),
            told: &[KernelFrameKind::Lost],
            threads: None,
        });
        let (columns, bounds) = (columns_read(), Bounds::default());
        let request = TableRequest {
            columns: &columns,
            bounds: &bounds,
            limit: None,
            parts: 1,
            memory: None,
        };
        let scan = ChunkScan::new(set, &chosen, &request)?;
        for part in 0..scan.parts() {
            for batch in scan.read(part) {
                let batch = KernelBatch::new(&batch?);
                for row in (0..batch.rows).filter(|&row| batch.times.is_valid(row)) {
                    let Some(builder) = builders.get_mut(batch.groups.value(row) as usize) else {
                        continue;
                    };
                    builder.losses.push(KernelLoss {
                        seqno: batch.seqno(row),
                        since: batch.a.is_valid(row).then(|| batch.a.value(row)),
                        at: batch.times.value(row),
                        cpu: batch.cpu(row),
                        thread: batch.threads.value(row),
                        count: batch.b.value(row).max(0) as u64,
                    });
                }
            }
        }
        let records = Arc::new(builders.into_iter().map(RecordsBuilder::build).collect());
        Ok(known.insert(records).clone())
    }
}

/// Some of the kernel's frames.
#[derive(Debug)]
struct Chosen {
    frames: Arc<KernelFrames>,
    told: &'static [KernelFrameKind],
    /// Numbers of threads.
    threads: Option<Range>,
}

impl Chosen {
    /// Whether the frame is of a thread that is asked for. What is of no known thread is of none.
    fn is_asked(&self, kind: &KernelFrameFields, frame: &[u8]) -> bool {
        let thread = kind.thread.map_or(0, |thread| thread.number(frame));
        match self.threads {
            Some((from, to)) => thread != 0 && from <= thread && thread <= to,
            None => thread != 0 || kind.told == KernelFrameKind::Lost,
        }
    }
}

impl OfChunks for Chosen {
    fn schema(&self) -> &SchemaRef {
        &self.frames.schema
    }

    fn dictionary(&self, _: usize) -> Option<Arc<StringArray>> {
        None
    }

    fn wanted(&self, capture: usize, source: u16, _: &Bounds) -> Wanted {
        let Some(form) = self.frames.forms.get(&(capture, source)) else { return Wanted::NOTHING };
        let wanted = form.kinds.iter().filter(|kind| self.told.contains(&kind.1.told));
        let kinds = wanted.fold(0, |kinds, entry| kinds | kind_bit(entry.0.into()));
        Wanted { kinds, each: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let owner = chunk.owner;
        let Some(form) = self.frames.forms.get(&(chunk.capture, owner.source)) else { return 0 };
        let Some(&group) = self.frames.group_of.get(&(owner.process, owner.nonce)) else {
            return 0;
        };
        let (mut own, mut count) = (Vec::new(), 0);
        for (id, kind) in form.kinds.iter().filter(|kind| self.told.contains(&kind.1.told)) {
            let rows = if form.multi { chunk.rows.of_kind(*id, &mut own) } else { chunk.rows };
            let (mut asked, mut place) = (Vec::new(), 0);
            rows.each(|frame| {
                if self.is_asked(kind, frame) {
                    asked.push(rows.which.map_or(place, |which| which[place as usize]));
                }
                place += 1;
            });
            let rows = RowsInChunk { which: Some(&asked), ..rows };
            count += rows.len();
            for (&column, builder) in columns.iter().zip(&mut *to) {
                append(chunk, (group, kind), rows, column, builder);
            }
        }
        count
    }
}

fn append(
    chunk: &ChunkRows<'_>,
    (group, kind): (i32, &KernelFrameFields),
    rows: RowsInChunk<'_>,
    column: usize,
    builder: &mut Builder,
) {
    let from = chunk.from(rows);
    let time = |time: Option<Time>, builder: &mut Builder| match time {
        Some(time) => builder.time(time, &from),
        None => builder.nulls(rows.len()),
    };
    let place = |place: Option<FieldPlace>, builder: &mut Builder| match place {
        // Numbers beyond 31 bits are no number of a thread or of a CPU: −1.
        Some(place) => {
            let number = |frame: &[u8]| i32::try_from(place.number(frame)).unwrap_or(-1);
            builder.each(rows, |frame| Some(number(frame)));
        }
        None => builder.repeat(Some(-1), rows.len()),
    };
    let value = |value: &Option<NumberField>, builder: &mut Builder| match value {
        Some(value) => builder.each(rows, |frame| Some(value.read(frame))),
        None => builder.repeat(Some(0i64), rows.len()),
    };
    match (STANDARD.get(column), READ.get(column.wrapping_sub(STANDARD.len()))) {
        (Some(Standard::Ts), _) => time(kind.at, builder),
        (Some(standard), _) => chunk.standard(*standard, rows, builder),
        (None, Some((read, ..))) => match read {
            ReadColumn::Group => builder.repeat(Some(group), rows.len()),
            ReadColumn::Thread => place(kind.thread, builder),
            ReadColumn::Told => builder.repeat(Some(kind.told.number()), rows.len()),
            ReadColumn::Cpu => place(kind.cpu, builder),
            ReadColumn::A if kind.told == KernelFrameKind::Lost => time(kind.since, builder),
            ReadColumn::A => value(&kind.a, builder),
            ReadColumn::B => value(&kind.b, builder),
            ReadColumn::Name => builder.texts(rows, |frame| {
                let bytes = kind.name?.bytes(frame);
                Some(bytes.split(|&byte| byte == 0).next().unwrap_or_default())
            }),
            ReadColumn::Capture => builder.repeat(Some(chunk.owner.capture), rows.len()),
        },
        (None, None) => builder.nulls(rows.len()),
    }
}

/// What was read.
struct KernelBatch {
    rows: usize,
    seqnos: arrow_array::Int64Array,
    times: arrow_array::TimestampNanosecondArray,
    groups: arrow_array::Int32Array,
    threads: arrow_array::Int32Array,
    told: arrow_array::Int32Array,
    cpus: arrow_array::Int32Array,
    a: arrow_array::Int64Array,
    b: arrow_array::Int64Array,
    names: StringArray,
    captures: arrow_array::Int32Array,
}

impl KernelBatch {
    fn new(batch: &RecordBatch) -> KernelBatch {
        let int = |read| batch.column(at(read)).as_primitive::<Int32Type>().clone();
        let long = |column: usize| batch.column(column).as_primitive::<Int64Type>().clone();
        KernelBatch {
            rows: batch.num_rows(),
            seqnos: long(SEQNO),
            times: batch.column(TS).as_primitive::<TimestampNanosecondType>().clone(),
            groups: int(ReadColumn::Group),
            threads: int(ReadColumn::Thread),
            told: int(ReadColumn::Told),
            cpus: int(ReadColumn::Cpu),
            a: long(at(ReadColumn::A)),
            b: long(at(ReadColumn::B)),
            names: batch.column(at(ReadColumn::Name)).as_string::<i32>().clone(),
            captures: int(ReadColumn::Capture),
        }
    }

    fn seqno(&self, row: usize) -> u64 {
        self.seqnos.value(row).max(0) as u64
    }

    /// −1: unknown.
    fn cpu(&self, row: usize) -> i32 {
        self.cpus.value(row)
    }

    fn event(&self, row: usize) -> Option<Event> {
        let (cpu, a, b) = (self.cpu(row), self.a.value(row), self.b.value(row));
        let int = |value: i64| i32::try_from(value).unwrap_or(-1);
        Some(match KernelFrameKind::numbered(self.told.value(row))? {
            KernelFrameKind::Watched => Event::Watched,
            KernelFrameKind::ThreadStart => Event::Start { parent: int(a) },
            KernelFrameKind::ThreadEnd => Event::End,
            KernelFrameKind::SwitchIn => Event::In { cpu },
            KernelFrameKind::SwitchOut => Event::Out { cpu, preempted: a != 0 },
            KernelFrameKind::Successor => {
                Event::Successor { next: int(a), name: self.names.value(row).into() }
            }
            KernelFrameKind::Wakeup => Event::Wake { cpu, by: int(a), waker: int(b) },
            KernelFrameKind::SyscallEnter => Event::Enter { cpu, call: int(a) },
            KernelFrameKind::SyscallExit => Event::Exit { cpu, call: int(a), result: b },
            KernelFrameKind::PageFault => Event::Fault { cpu, kind: int(a), address: b },
            KernelFrameKind::Lost | KernelFrameKind::WatchEnd => return None,
        })
    }
}

#[derive(Debug)]
struct KernelScan {
    what: KernelTable,
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    schema: SchemaRef,
}

impl CaptureTable for KernelScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match self.what.columns().get(column)? {
            KernelColumn::Host => Some(Bounded::Word(Bounding::Host)),
            KernelColumn::Pid => Some(Bounded::Number(BoundedNumber::Pid)),
            KernelColumn::Tid => Some(Bounded::Number(BoundedNumber::Tid)),
            _ => None,
        }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        // What a thread does depends on what it did before: whole threads can be left out.
        let bounds = request.bounds.only(&[BoundedNumber::Pid], &[Bounding::Host]);
        let threads = request.bounds.range(BoundedNumber::Tid);
        let frames = self.frames.clone();
        let chosen =
            Arc::new(Chosen { frames: frames.clone(), told: self.what.frame_kinds(), threads });
        let read = columns_read();
        let inner = TableRequest { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &chosen, &inner)?);
        let schema = Arc::new(self.schema.project(request.columns)?);
        let all = self.what.columns();
        let columns: Vec<KernelColumn> =
            request.columns.iter().map(|&column| all[column]).collect();
        let (what, set, out) = (self.what, self.set.clone(), schema.clone());
        let start = Start(Arc::new(move || {
            let follower = Follower::new(what, Knows::default());
            Box::new(Walk {
                set: set.clone(),
                frames: frames.clone(),
                records: None,
                what,
                thread: None,
                follower,
                latest: (0, i64::MIN),
                columns: columns.clone(),
                schema: out.clone(),
                rows: Vec::new(),
            })
        }));
        let together = vec![at(ReadColumn::Group), at(ReadColumn::Thread)];
        let order = together.iter().copied().chain([SEQNO]).map(|column| (column, false)).collect();
        let told = "threads: what the kernel did with each".to_owned();
        let pass = Pass { schema, together, order, start, told };
        Ok(Planned { scan, pass: Some(pass), beside: Vec::new() })
    }
}

/// A row on its way out.
enum KernelRow {
    State(Stretch),
    Call(Call),
    Fault { ts: i64, capture: i32, kind: i32, address: i64, cpu: i32 },
}

/// What follows a thread.
enum Follower {
    States(Box<ThreadTrack>),
    Calls(Calls),
    Faults(Vec<KernelRow>),
}

impl Follower {
    fn new(what: KernelTable, knows: Knows) -> Follower {
        match what {
            KernelTable::States => Follower::States(Box::new(ThreadTrack::new(knows))),
            KernelTable::Calls => Follower::Calls(Calls::default()),
            KernelTable::Faults => Follower::Faults(Vec::new()),
        }
    }

    /// The CPU that the thread has all the time until its next event, if it has one.
    fn cpu(&self) -> Option<i32> {
        match self {
            Follower::States(thread) => thread.cpu(),
            _ => None,
        }
    }

    fn add_event(&mut self, at: i64, capture: i32, event: &Event) {
        match (self, event) {
            (Follower::States(thread), _) => thread.add_event(at, capture, event),
            (Follower::Calls(calls), _) => calls.add_event(at, capture, event),
            (Follower::Faults(rows), &Event::Fault { cpu, kind, address }) => {
                rows.push(KernelRow::Fault { ts: at, capture, kind, address, cpu });
            }
            (Follower::Faults(_), _) => {}
        }
    }

    fn lose(&mut self, at: i64, capture: i32) {
        match self {
            Follower::States(thread) => thread.lose(at, capture),
            Follower::Calls(calls) => calls.lose(),
            Follower::Faults(_) => {}
        }
    }

    fn finish(&mut self, at: i64) {
        match self {
            Follower::States(thread) => thread.finish(at),
            Follower::Calls(calls) => calls.lose(),
            Follower::Faults(_) => {}
        }
    }

    fn done(&mut self, to: &mut Vec<KernelRow>) {
        match self {
            Follower::States(thread) => to.extend(thread.done().map(KernelRow::State)),
            Follower::Calls(calls) => to.extend(calls.done().map(KernelRow::Call)),
            Follower::Faults(rows) => to.append(rows),
        }
    }
}

/// Threads, one after the other.
struct Walk {
    set: Arc<CaptureSet>,
    frames: Arc<KernelFrames>,
    records: Option<Arc<Vec<Records>>>,
    what: KernelTable,
    /// Group and thread that are followed, and the capture of its latest frame.
    thread: Option<(i32, i32, i32)>,
    follower: Follower,
    /// Number and time of its latest frame.
    latest: (u64, i64),
    columns: Vec<KernelColumn>,
    schema: SchemaRef,
    /// Each with its group and thread.
    rows: Vec<(i32, i32, KernelRow)>,
}

impl Runner for Walk {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let records = self.known()?;
        let batch = KernelBatch::new(&batch);
        let mut done = Vec::new();
        for row in (0..batch.rows).filter(|&row| batch.times.is_valid(row)) {
            let (group, thread) = (batch.groups.value(row), batch.threads.value(row));
            let capture = batch.captures.value(row);
            if self.thread.is_none_or(|entry| (entry.0, entry.1) != (group, thread)) {
                self.end(&records);
                let knows =
                    records.get(group as usize).map(|record| record.knows).unwrap_or_default();
                self.follower = Follower::new(self.what, knows);
                self.latest = (0, i64::MIN);
            } else if batch.seqno(row) <= self.latest.0 {
                // Two captures of one session have the same frame.
                continue;
            }
            self.thread = Some((group, thread, capture));
            // Clocks of two files of one session may differ by a few ns.
            let here = (batch.seqno(row), batch.times.value(row).max(self.latest.1));
            let Some(event) = batch.event(row) else { continue };
            self.lose(&records, group, here, capture);
            self.latest = here;
            self.follower.add_event(here.1, capture, &event);
            self.collect();
            if self.rows.len() >= ROWS {
                done.push(self.batch()?);
            }
        }
        Ok(done)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        if self.thread.is_some() {
            let records = self.known()?;
            self.end(&records);
        }
        if self.rows.is_empty() { Ok(Vec::new()) } else { Ok(vec![self.batch()?]) }
    }
}

impl Walk {
    fn known(&mut self) -> Result<Arc<Vec<Records>>, TableError> {
        if let Some(known) = &self.records {
            return Ok(known.clone());
        }
        Ok(self.records.insert(self.frames.records(&self.set)?).clone())
    }

    /// What is missing before `here`.
    fn lose(&mut self, records: &[Records], group: i32, here: (u64, i64), capture: i32) {
        let Some(records) = records.get(group as usize).filter(|_| self.latest.0 > 0) else {
            return;
        };
        if let Some(since) = records.missing(self.latest, here, self.follower.cpu()) {
            self.follower.lose(since, capture);
        }
    }

    /// The thread has no more frames.
    fn end(&mut self, records: &[Records]) {
        let Some((group, _, capture)) = self.thread else { return };
        let end =
            records.get(group as usize).map_or(i64::MIN, |record| record.end).max(self.latest.1);
        self.lose(records, group, (u64::MAX, end), capture);
        self.follower.finish(end);
        self.collect();
        self.thread = None;
    }

    fn collect(&mut self) {
        let Some((group, thread, _)) = self.thread else { return };
        let mut rows = Vec::new();
        self.follower.done(&mut rows);
        self.rows.extend(rows.into_iter().map(|row| (group, thread, row)));
    }

    fn batch(&mut self) -> Result<RecordBatch, TableError> {
        let rows = std::mem::take(&mut self.rows);
        let names = self.set.names();
        let column = |column: &KernelColumn| {
            let words = match column {
                KernelColumn::Capture => &names.captures,
                KernelColumn::Buffer => &names.buffers,
                KernelColumn::Host => &names.hosts,
                _ => &self.frames.words,
            };
            let mut builder = Builder::new(&column.data_type(), Some(words));
            for (group, thread, row) in &rows {
                let group = self.frames.groups.get(*group as usize);
                cell(*column, (group, *thread, row), &mut builder);
            }
            builder.finish()
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// Appends a cell.
fn cell(
    column: KernelColumn,
    (group, thread, row): (Option<&Group>, i32, &KernelRow),
    to: &mut Builder,
) {
    let cpu = |cpu: i32| Some(cpu).filter(|&number| number >= 0);
    let (ts, capture) = match row {
        KernelRow::State(stretch) => (stretch.ts, stretch.capture),
        KernelRow::Call(call) => (call.ts, call.capture),
        KernelRow::Fault { ts, capture, .. } => (*ts, *capture),
    };
    match (column, row) {
        (KernelColumn::Capture, _) => to.repeat(Some(capture), 1),
        (KernelColumn::Buffer, _) => to.repeat(group.map(|group| group.buffer), 1),
        (KernelColumn::Host, _) => to.repeat(group.map(|group| group.host), 1),
        (KernelColumn::Pid, _) => to.repeat(group.and_then(|group| group.pid), 1),
        (KernelColumn::Tid, _) => to.repeat(Some(thread), 1),
        (KernelColumn::Ts, _) => to.repeat(Some(ts), 1),
        (KernelColumn::Dur, KernelRow::State(stretch)) => {
            to.repeat(stretch.end.checked_sub(stretch.ts), 1);
        }
        (KernelColumn::State, KernelRow::State(stretch)) => to.repeat(Some(stretch.state.key()), 1),
        (KernelColumn::Cpu, KernelRow::State(stretch)) => to.repeat(stretch.cpu.and_then(cpu), 1),
        (KernelColumn::BlockedIn, KernelRow::State(stretch)) => to.repeat(stretch.blocked_in, 1),
        (KernelColumn::WokenBy, KernelRow::State(stretch)) => to.repeat(stretch.woken_by, 1),
        (KernelColumn::Waker, KernelRow::State(stretch)) => to.repeat(stretch.waker, 1),
        (KernelColumn::Successor, KernelRow::State(stretch)) => to.repeat(stretch.successor, 1),
        (KernelColumn::SuccessorName, KernelRow::State(stretch)) => {
            to.text(
                stretch.successor_name.as_ref().map(|successor_name| successor_name.as_bytes()),
            );
        }
        (KernelColumn::Dur, KernelRow::Call(call)) => to.repeat(call.dur, 1),
        (KernelColumn::Name, KernelRow::Call(call)) => to.repeat(Some(call.name), 1),
        (KernelColumn::Result, KernelRow::Call(call)) => to.repeat(call.result, 1),
        (KernelColumn::Cpu, KernelRow::Call(call)) => to.repeat(cpu(call.cpu), 1),
        (KernelColumn::Kind, KernelRow::Fault { kind, .. }) => to.repeat(Some(*kind), 1),
        (KernelColumn::Address, KernelRow::Fault { address, .. }) => {
            to.repeat(Some(*address as u64), 1);
        }
        (KernelColumn::Cpu, KernelRow::Fault { cpu: n, .. }) => to.repeat(cpu(*n), 1),
        _ => to.nulls(1),
    }
}
