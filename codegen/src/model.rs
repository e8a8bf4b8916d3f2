//! The model of a buffer, independent of languages. All emitters write what it states.
//!
//! ```text
//! schema ─→ Model ─┬─ stamps     clocks that frames are stamped by
//!                  ├─ metrics    counters and histograms, and their cells
//!                  └─ frames ─┬─ members    the struct, header and padding included
//!                             ├─ stores     the words of a slot, and what goes into each
//!                             ├─ forms      the ways to write it
//!                             └─ interval   what a scope measures
//! ```

mod forms;
mod halves;
mod interval;
mod stamps;
mod stored;
mod stores;

use ppt_frame_dsl::metric::Metric;
use ppt_frame_dsl::names::enumerator;
use ppt_frame_dsl::role::{Hash, SpanHalf};
use ppt_frame_dsl::schema::{self, Clock, FieldType, Int, MAX_FRAMES, Schema};
use ppt_frame_dsl::{Declared, Layout, Stored};
use ppt_text::masked;

use stored::stored;

pub(crate) use forms::{FormMark, MarkValue, WriteForm};
pub(crate) use interval::ScopeInterval;
pub(crate) use stamps::{ABOUT_LENGTH, Stamp, clock_number};
pub(crate) use stores::{BitSource, Bits, Store, WordPart};

/// The largest number of words whose stores are inlined wherever a frame is written.
const INLINE_WORDS: u32 = 32;

/// One buffer.
pub(crate) struct BufferModel<'a> {
    pub schema: &'a Schema,
    /// The hash of the schema's layout.
    pub hash: u64,
    /// The prefix of symbols.
    symbols: String,
    /// The frame file's name without its extension, which is also that of the outputs.
    pub stem: &'a str,
    /// The frame file's name, on one line.
    origin: String,
    /// The stamps: the first is the buffer's own, others come from `@clock`.
    pub stamps: Vec<Stamp<'a>>,
    /// The frames in declared order, without one that is never written.
    pub frames: Vec<FrameModel<'a>>,
    /// Counters and histograms.
    pub metrics: Vec<Metric>,
    /// Whether the program computes hashes.
    pub hashes: bool,
    /// `option package`.
    package: Option<&'a str>,
}

/// A frame.
pub(crate) struct FrameModel<'a> {
    /// The id in its slots, if slots have ids.
    pub id: usize,
    pub name: &'a str,
    pub doc: &'a str,
    /// The size in bytes, including the header.
    pub size: u32,
    /// The fields in declared order.
    pub fields: Vec<FieldModel<'a>>,
    /// The struct's members, in the order of their offsets.
    pub members: Vec<Member>,
    /// The stores of its words into a slot, in order, without the first word.
    stores: Vec<Store>,
    /// Whether these are few enough to be inlined wherever a frame is written.
    pub inline: bool,
    /// The forms of writing it.
    pub forms: Vec<WriteForm<'a>>,
    /// The fields that a scope stamps.
    interval: Option<ScopeInterval<usize>>,
}

/// A field of a frame.
pub(crate) struct FieldModel<'a> {
    /// The name in a frame's struct.
    pub name: &'a str,
    pub ty: &'a FieldType,
    pub stored: Stored<'a>,
    /// The number of elements of a fixed array.
    pub array: Option<u32>,
    pub unit: &'a str,
    pub doc: &'a str,
    /// The clock that stamps it, as an index of [`BufferModel::stamps`].
    pub stamp: Option<usize>,
    /// Whether ppt sets it instead of the program.
    pub own: bool,
    /// Whether ppt stamps it before the program sets the other fields.
    pub own_stamp: bool,
    /// The half of a span to which it belongs, if only one has it.
    pub only: Option<SpanHalf>,
}

/// A member of a frame's struct.
pub(crate) struct Member {
    pub offset: u32,
    /// No declared name begins with `ppt_`.
    pub name: String,
    pub kind: MemberKind,
}

/// The kind of a member.
#[derive(Clone, Copy)]
pub(crate) enum MemberKind {
    /// u64; set when the frame is written.
    Sequence,
    /// u16; set when the frame is written.
    FrameId,
    /// The field of that index.
    Field(usize),
    /// This many bytes of padding.
    Padding(u32),
}

impl<'a> BufferModel<'a> {
    /// The model of a checked schema, whose frame file has the name `origin`.
    pub fn new(schema: &'a Schema, stem: &'a str, origin: &str) -> Self {
        let stamps = stamps::stamps(schema);
        let frames = schema.frames.iter().enumerate().filter(|(_, frame)| !frame.is_hidden());
        let frames =
            frames.map(|(id, frame)| FrameModel::new(schema, &stamps, id, frame)).collect();
        let origin = origin.replace(['\n', '\r'], " ");
        let (hash, symbols) = (schema.hash(), schema.symbol_prefix());
        let metrics = schema.metrics();
        let mut fields = schema.frames.iter().flat_map(|frame| &frame.fields);
        let hashes = fields.any(|field| field.hash() == Some(Hash::Xxh3));
        let package = None;
        BufferModel {
            schema,
            hash,
            symbols,
            stem,
            origin,
            stamps,
            frames,
            metrics,
            hashes,
            package,
        }
    }

    /// Sets the package that the frame file names.
    pub fn in_package(self, package: Option<&'a str>) -> Self {
        Self { package, ..self }
    }

    /// The package of its classes: that of the frame file, or one with the name of the buffer.
    pub fn package(&self) -> &'a str {
        self.package.unwrap_or(self.buffer())
    }

    /// The name of the buffer.
    pub fn buffer(&self) -> &'a str {
        &self.schema.buffer
    }

    /// The symbol of `name`, which contains ABI version, buffer and schema.
    pub fn symbol(&self, name: &str) -> String {
        format!("{}{name}", self.symbols)
    }

    /// The name of a value of an enum in C. Values of a frame's own enum have the name of the frame as a
    /// prefix.
    pub fn enumerator(&self, index: usize, value: &str) -> String {
        let frame = self.schema.marked_by(index).map(|frame| &frame.name);
        enumerator(self.buffer(), frame.unwrap_or(&self.schema.enums[index].name), value)
    }

    /// The first two lines of a generated file. The first states that pptc made it.
    pub fn banner(&self, subject: &str) -> [String; 2] {
        let version = env!("CARGO_PKG_VERSION");
        let origin = masked(&self.origin, |_| false);
        [
            format!(
                "{subject} of buffer `{}`: generated by pptc {version} from {origin}. Do not edit.",
                self.buffer()
            ),
            format!(
                "Schema {:016x}. This file belongs to you, under any licence you like.",
                self.hash
            ),
        ]
    }

    /// Every declared name, in the order of the schema.
    pub fn declared(&self) -> impl Iterator<Item = (Declared, &str)> {
        let enums = self.schema.enums.iter().enumerate().flat_map(|(index, declared)| {
            let values = declared.values.iter().enumerate();
            let values = values.map(move |(v, value)| (Declared::Value(index, v), &*value.0));
            std::iter::once((Declared::Enum(index), &*declared.name)).chain(values)
        });
        let shown = |entry: &(usize, &schema::Frame)| !entry.1.is_hidden();
        let frames = self.schema.frames.iter().enumerate().filter(shown);
        let frames = frames.flat_map(|(index, frame)| {
            let fields = frame.fields.iter().enumerate();
            let fields = fields.map(move |(f, field)| (Declared::Field(index, f), &*field.name));
            std::iter::once((Declared::Frame(index), &*frame.name)).chain(fields)
        });
        let metrics = self.metrics.iter().enumerate();
        let metrics = metrics.map(|(index, metric)| (Declared::Metric(index), &*metric.name));
        std::iter::once((Declared::Buffer, self.buffer())).chain(enums).chain(frames).chain(metrics)
    }

    /// The bits of masks, with their frames, counters and histograms.
    pub fn bits(&self) -> impl Iterator<Item = (&str, u32)> {
        let frames = self.frames.iter().map(|frame| (frame.name, frame.id as u32));
        let metrics = self.metrics.iter().map(|metric| (&*metric.name, self.bit_of(metric)));
        frames.chain(metrics)
    }

    /// The symbol of the C function that returns whether ppt wants this frame, counter or histogram.
    pub fn on_function(&self, name: &str) -> String {
        self.symbol(&format!("on_{name}"))
    }

    /// The bit of a counter or a histogram.
    pub fn bit_of(&self, metric: &Metric) -> u32 {
        let index = self.metrics.iter().position(|other| other.name == metric.name);
        (MAX_FRAMES + index.expect("it is one of the model")) as u32
    }

    /// The stamp of a field that can be stamped.
    pub fn stamp_of(&self, field: &FieldModel<'a>) -> &Stamp<'a> {
        &self.stamps[field.stamp.expect("only of fields with one")]
    }
}

impl<'a> FrameModel<'a> {
    fn new(
        schema: &'a Schema,
        stamps: &[Stamp<'a>],
        id: usize,
        frame: &'a schema::Frame,
    ) -> FrameModel<'a> {
        let field = |field: &'a schema::Field| FieldModel {
            name: forms::member_name(frame, field),
            ty: &field.ty,
            stored: stored(schema, &field.ty),
            array: field.array,
            unit: &field.unit,
            doc: &field.doc,
            stamp: stamps.iter().position(|stamp| field.is_stamped() && *stamp.ty == field.ty),
            own: field.is_own(),
            own_stamp: field.is_own_stamp(),
            only: frame.only_half(field),
        };
        FrameModel {
            id,
            name: &frame.name,
            doc: &frame.doc,
            size: frame.size,
            fields: frame.fields.iter().map(field).collect(),
            members: members(schema, frame),
            stores: stores::stores(schema, frame, id),
            inline: frame.size / 8 <= INLINE_WORDS,
            forms: forms::forms(schema, frame),
            interval: interval::interval(frame),
        }
    }

    /// The fields that the program sets.
    pub fn given(&self) -> impl Iterator<Item = &FieldModel<'a>> {
        self.fields.iter().filter(|field| !field.own)
    }

    /// The mark that ppt sets to distinguish the forms.
    pub fn mark(&self) -> Option<&FormMark<'a>> {
        self.forms.iter().find_map(|form| form.mark.as_ref())
    }

    /// Whether ppt sets a field when the frame is written.
    pub fn is_completed(&self) -> bool {
        self.mark().is_some() || self.own_stamp().is_some()
    }

    /// The field that ppt stamps before the program sets the others.
    pub fn own_stamp(&self) -> Option<&FieldModel<'a>> {
        self.fields.iter().find(|field| field.own_stamp)
    }

    /// The start and the end that a scope stamps.
    pub fn interval(&self) -> Option<ScopeInterval<&FieldModel<'a>>> {
        self.interval.map(|interval| interval.map(|index| &self.fields[index]))
    }
}

impl FieldModel<'_> {
    /// The number of elements of the array in C: text and bytes are arrays, too.
    pub fn length(&self) -> Option<u32> {
        match self.stored {
            Stored::Text { len } | Stored::Bytes { len } => Some(len),
            _ => self.array,
        }
    }

    /// The name of its type in messages.
    pub fn type_word(&self) -> String {
        match self.ty {
            FieldType::Enum { name } => name.clone(),
            FieldType::Char { len } => format!("char[{len}]"),
            FieldType::Bytes { len } => format!("bytes[{len}]"),
            FieldType::Ns { .. } | FieldType::Timeval | FieldType::Timespec { .. } => {
                "time in ns".into()
            }
            FieldType::Duration => "duration in ns".into(),
            FieldType::Addr => "address".into(),
            ty => ty.word().into(),
        }
    }

    /// The content, in a line. `has_now`: its value may be NOW, and ticks have no sign.
    pub fn about(&self, has_now: bool) -> String {
        let mut parts = vec![match (self.ty, self.array) {
            (FieldType::Enum { name }, None) => format!("a {name}"),
            (_, None) => self.type_word(),
            (_, Some(count)) => format!("{}[{count}]", self.type_word()),
        }];
        if let Some(clock) = self.clock() {
            parts.push(format!("{} clock", clock.word()));
        }
        if self.is_ticks() {
            parts.push("ticks".into());
        }
        if has_now && self.stamp.is_some() {
            parts.push("or NOW".into());
        }
        if matches!(self.stored, Stored::Int(Int::U64)) && !(has_now && self.is_ticks()) {
            parts.push("unsigned".into());
        }
        if matches!(self.stored, Stored::Text { .. }) {
            parts.push("cut between characters".into());
        }
        if !self.unit.is_empty() {
            parts.push(format!("in {}", self.unit));
        }
        if let Some(line) = self.doc.lines().find(|line| !line.trim().is_empty()) {
            parts.push(line.trim().into());
        }
        parts.join("; ")
    }

    /// The clock of a point in time.
    pub fn clock(&self) -> Option<Clock> {
        self.ty.clock()
    }

    /// Whether it holds ticks of the CPU's counter.
    pub fn is_ticks(&self) -> bool {
        *self.ty == FieldType::Tsc
    }
}

fn members(schema: &Schema, frame: &schema::Frame) -> Vec<Member> {
    let layout = Layout::for_frame(schema, frame);
    let member = |offset, name: &str, kind| Member { offset, name: name.to_owned(), kind };
    let mut members = vec![member(0, "ppt_seqno", MemberKind::Sequence)];
    if schema.multi() {
        members.push(member(schema::FRAME_ID_OFFSET, "ppt_frame", MemberKind::FrameId));
    }
    let fields = layout.placed.iter();
    members.extend(fields.map(|field| {
        let name = forms::member_name(frame, &frame.fields[field.index]);
        member(field.offset, name, MemberKind::Field(field.index))
    }));
    let padding = layout.padding.iter().enumerate();
    members.extend(padding.map(|(index, padding)| {
        member(padding.offset, &format!("ppt_pad{index}"), MemberKind::Padding(padding.bytes))
    }));
    members.sort_by_key(|member| member.offset);
    members
}
