//! Frames that are parts of spans or chains: their columns, and the groups in which they are paired.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ppt_capture::Cause;
use ppt_capture::frame_dsl::columns::{WholeColumn, WholePart, free, whole_columns};
use ppt_capture::frame_dsl::role::{Across, SpanHalf};
use ppt_capture::frame_dsl::schema::{self, FieldType, Frame};

use super::frame::{FrameOfSource, NamedFrames};
use crate::bounds::Bounds;
use crate::builder::{Builder, timestamp, word_type};
use crate::catalog::{Catalog, GapAt};
use crate::chunk_scan::{ChunkRowSource, Wanted};
use crate::error::{SetError, TableError};
use crate::gap_times::Neighbours;
use crate::growing::{GrowingGroup, HalfColumns, WholeForm};
use crate::pair::FindMissing;
use crate::set::{CaptureSet, Opened};
use crate::standard::{ChunkRows, STANDARD, Standard};
use crate::table::{Pass, Start};
use crate::whole::Missing;

/// A column by which frames are paired, after the columns of the frames. It is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Number of the [`Group`].
    Group,
    /// The bytes of all key fields.
    Key,
    /// Index of the frame's step in [`Frame::steps`]; −1: unknown.
    Mark,
}

pub(super) const HIDDEN: [Hidden; 3] = [Hidden::Group, Hidden::Key, Hidden::Mark];

/// A group of frames: those with equal keys form a span or a chain.
#[derive(Debug)]
pub(super) struct Group {
    scope: Scope,
    /// Index in [`Parts::plans`].
    pub plan: usize,
}

/// The scope in which frames can form a span or a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scope {
    /// Number of the process in the set.
    Process(i32),
    /// Number of the time scale: all hosts whose times can be compared.
    Scale(u32),
    /// Index of the boot.
    Boot(usize),
}

/// How a schema pairs frames. Frames with different plans are never paired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PairPlan {
    keys: Vec<(String, FieldType)>,
    pub across: Across,
    pub fifo: bool,
    pub steps: Vec<String>,
    /// ppt takes the time of a frame when it begins.
    is_taken_by_ppt: bool,
}

impl PairPlan {
    fn new(kind: &FrameOfSource<'_>) -> PairPlan {
        let frame = kind.frame;
        let keys = frame.fields.iter().filter(|field| field.is_key());
        // The type of an enum is its name: versions of a program may add values.
        let keys = keys.map(|key| (key.name.clone(), key.ty.clone())).collect();
        let is_taken_by_ppt = frame.at().is_some_and(schema::Field::is_own_stamp);
        let steps = || frame.steps(&kind.info.schema).iter().map(|step| step.0.clone()).collect();
        match frame.span() {
            Some(span) => PairPlan {
                keys,
                across: span.across,
                fifo: span.fifo,
                steps: Vec::new(),
                is_taken_by_ppt,
            },
            // A chain goes through all processes of a boot.
            None => PairPlan {
                keys,
                across: Across::Host,
                fifo: false,
                steps: steps(),
                is_taken_by_ppt,
            },
        }
    }
}

/// How keys and marks are read from the frames of one schema.
#[derive(Debug)]
struct PairForm {
    /// The kind that frames carry; None: the buffer has one kind.
    id: Option<u16>,
    keys: Vec<KeyBytes>,
    mark: Mark,
}

/// The position of a key field in the frame, and in the bytes of all keys.
#[derive(Debug)]
struct KeyBytes {
    from: usize,
    len: usize,
    to: usize,
    /// A text ends at its first zero byte.
    is_text: bool,
    is_bool: bool,
}

/// The field that has the half or the step of a frame.
#[derive(Debug)]
struct Mark {
    at: usize,
    len: usize,
    signed: bool,
    /// By step: its value.
    values: Vec<i128>,
}

impl Mark {
    /// The step of a frame; −1: unknown.
    fn step(&self, frame: &[u8]) -> i32 {
        let Some(bytes) = frame.get(self.at..self.at + self.len) else { return -1 };
        let negative = self.signed && bytes.last().is_some_and(|byte| byte >> 7 == 1);
        let mut value = [if negative { 0xff } else { 0 }; 16];
        value[..bytes.len()].copy_from_slice(bytes);
        let value = i128::from_le_bytes(value);
        self.values.iter().position(|&number| number == value).map_or(-1, |step| step as i32)
    }
}

/// The frames of one name, which are parts of spans or chains.
#[derive(Debug)]
pub(super) struct Parts {
    frames: NamedFrames,
    schema: SchemaRef,
    /// Bytes of all keys.
    width: usize,
    pub buffer: String,
    pub plans: Vec<PairPlan>,
    pub groups: Vec<Group>,
    /// By capture and source: the group of its frames, and how they are read.
    sources: HashMap<(usize, u16), (i32, Arc<PairForm>)>,
    boots: Vec<String>,
    /// Time scales that have frames, each with the name of a host.
    scales: Vec<(u32, String)>,
}

impl Parts {
    pub fn new(
        set: &CaptureSet,
        (buffer, name): (&str, &str),
        kinds: &[FrameOfSource<'_>],
    ) -> Result<Parts, SetError> {
        let frames = NamedFrames::new(set, (buffer, name), kinds)?;
        let mut parts = Parts {
            schema: frames.schema().clone(),
            frames,
            width: 0,
            buffer: buffer.to_owned(),
            plans: Vec::new(),
            groups: Vec::new(),
            sources: HashMap::new(),
            boots: Vec::new(),
            scales: Vec::new(),
        };
        // A key takes the space of its longest version: the length of a text may differ between schemas.
        let mut places: BTreeMap<&str, u32> = BTreeMap::new();
        for kind in kinds {
            for key in kind.frame.fields.iter().filter(|field| field.is_key()) {
                let len = places.entry(&key.name).or_default();
                *len = key.ty.size(&kind.info.schema).max(*len);
            }
        }
        let place = |name: &str| places.range(..name).map(|entry| *entry.1 as usize).sum::<usize>();
        parts.width = places.values().map(|&len| len as usize).sum();
        let mut forms: HashMap<_, Arc<PairForm>> = HashMap::new();
        for kind in kinds {
            let plan = PairPlan::new(kind);
            let plan = position(&mut parts.plans, plan);
            let boot = position(&mut parts.boots, set.boot(kind.capture).to_owned());
            let scope = match parts.plans[plan].across {
                Across::Process => Scope::Process(set.process(kind.capture, kind.info)),
                Across::Host => Scope::Boot(boot),
                Across::Everywhere => Scope::Scale(set.clocks().scale(kind.capture)),
            };
            let known =
                parts.groups.iter().position(|group| (group.scope, group.plan) == (scope, plan));
            let group = known.unwrap_or_else(|| {
                parts.groups.push(Group { scope, plan });
                parts.groups.len() - 1
            });
            let form = forms.entry(version(kind));
            let form = form.or_insert_with(|| Arc::new(form_of(kind, place))).clone();
            parts.sources.insert((kind.capture, kind.info.id), (group as i32, form));
            let catalog = set.captures()[kind.capture].catalog();
            let has_frames = catalog.owners.iter().any(|owner| owner.source == kind.info.id);
            let scale = set.clocks().scale(kind.capture);
            if has_frames && parts.scales.iter().all(|entry| entry.0 != scale) {
                parts.scales.push((scale, set.host(kind.capture)));
            }
        }
        let hidden = HIDDEN.map(|hidden| match hidden {
            Hidden::Group => Field::new("ppt_group", DataType::Int32, true),
            Hidden::Key => {
                Field::new("ppt_key", DataType::FixedSizeBinary(parts.width as i32), true)
            }
            Hidden::Mark => Field::new("ppt_mark", DataType::Int32, true),
        });
        let fields = parts.schema.fields().iter().cloned().chain(hidden.map(Arc::new));
        parts.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(parts)
    }

    /// The index of a hidden column.
    pub fn hidden(&self, hidden: Hidden) -> usize {
        let index = HIDDEN.iter().position(|other| *other == hidden).unwrap_or_default();
        self.frames.schema().fields().len() + index
    }

    /// The index of a column of the frames.
    pub fn column(&self, name: &str) -> Option<usize> {
        let fields = self.frames.schema().fields().iter().enumerate().skip(STANDARD.len());
        fields.filter(|field| field.1.name() == name).map(|field| field.0).next()
    }

    /// The index of a standard column.
    pub fn standard(standard: Standard) -> usize {
        STANDARD.iter().position(|other| *other == standard).unwrap_or_default()
    }

    /// Fails if a span or a chain can include frames of several hosts whose clocks are not related.
    pub fn comparable(&self, table: &str) -> Result<(), TableError> {
        let everywhere = self.plans.iter().any(|plan| plan.across == Across::Everywhere);
        if !everywhere || self.scales.len() < 2 {
            return Ok(());
        }
        let hosts = self.scales.iter().map(|scale| scale.1.clone()).collect();
        Err(TableError::Incomparable { table: format!("{}.{table}", self.buffer), hosts })
    }

    /// By group: when frames may be missing.
    pub fn missing(&self, set: &CaptureSet) -> Result<Vec<Missing>, TableError> {
        let verified = set.captures().iter().map(Opened::verified);
        let catalogs = verified.collect::<Result<Vec<_>, _>>()?;
        Ok(self.missing_by(set, &catalogs, |_| true))
    }

    /// By group: when frames may be missing, from the gaps for which `counts` is true.
    fn missing_by(
        &self,
        set: &CaptureSet,
        catalogs: &[&Arc<Catalog>],
        counts: impl Fn(&GapAt) -> bool,
    ) -> Vec<Missing> {
        let mut gaps: HashMap<Scope, Vec<Between>> = HashMap::new();
        for (number, &catalog) in catalogs.iter().enumerate() {
            let boot = self.boots.iter().position(|boot| boot == set.boot(number));
            let neighbours = Neighbours::new(catalog);
            let is_of_buffer = |info: &&ppt_capture::SourceInfo| info.source.buffer == self.buffer;
            let sources: HashMap<u16, _> =
                catalog.sources.iter().filter(is_of_buffer).map(|info| (info.id, info)).collect();
            for gap in catalog.gaps.iter().filter(|gap| counts(gap)) {
                let Some(info) = sources.get(&gap.gap.source) else { continue };
                let times = neighbours.bounds_of_missing(gap);
                let process = Scope::Process(set.process(number, info));
                let scale = Scope::Scale(set.clocks().scale(number));
                for scope in
                    [Some(process), Some(scale), boot.map(Scope::Boot)].into_iter().flatten()
                {
                    gaps.entry(scope).or_default().push(times);
                }
            }
        }
        let missing = |group: &Group| {
            let gaps = gaps.get(&group.scope).into_iter().flatten().copied();
            // A time that the program states may be arbitrarily early.
            let is_taken_by_ppt = self.plans[group.plan].is_taken_by_ppt;
            Missing::during(gaps.map(|(from, to)| (from.filter(|_| is_taken_by_ppt), to)))
        };
        self.groups.iter().map(missing).collect()
    }

    /// The groups for readers of growing captures, each with its form.
    pub fn growing_groups(
        &self,
        set: &CaptureSet,
        forms: impl Iterator<Item = WholeForm>,
        with_absent: bool,
    ) -> Vec<GrowingGroup> {
        let missing = self.missing_by_heads(set, with_absent);
        let all = self.group_names(set).into_iter().zip(forms).zip(missing);
        all.map(|((name, form), missing)| GrowingGroup { name, form, missing }).collect()
    }

    /// By group: when frames may be missing, from heads of chunks. `with_absent`: frames before the
    /// captures count, too.
    fn missing_by_heads(&self, set: &CaptureSet, with_absent: bool) -> Vec<Missing> {
        let catalogs: Vec<_> = set.captures().iter().map(Opened::catalog).collect();
        self.missing_by(set, &catalogs, |gap| with_absent || gap.gap.cause != Cause::Absent)
    }

    /// Texts that identify the groups across sets.
    fn group_names(&self, set: &CaptureSet) -> Vec<String> {
        let name = |group: &Group| {
            let scope = match group.scope {
                Scope::Process(number) => set.process_name(number),
                Scope::Scale(_) => String::new(),
                Scope::Boot(boot) => self.boots[boot].clone(),
            };
            format!("{scope} {:?}", self.plans[group.plan])
        };
        self.groups.iter().map(name).collect()
    }
}

/// Bounds of a time; None: unknown.
type Between = (Option<i64>, Option<i64>);

/// The index of `wanted` in `all`, to which it is added if it is absent.
fn position<T: PartialEq>(all: &mut Vec<T>, wanted: T) -> usize {
    all.iter().position(|other| *other == wanted).unwrap_or_else(|| {
        all.push(wanted);
        all.len() - 1
    })
}

/// Identifies a schema: its layout, and the roles of its fields.
fn version(kind: &FrameOfSource<'_>) -> (u64, Option<u64>) {
    (kind.info.source.schema_hash, kind.info.schema.roles_hash())
}

fn form_of(kind: &FrameOfSource<'_>, place: impl Fn(&str) -> usize) -> PairForm {
    let schema = &kind.info.schema;
    let key = |field: &schema::Field| KeyBytes {
        from: field.offset as usize,
        len: field.ty.size(schema) as usize,
        to: place(&field.name),
        is_text: matches!(field.ty, FieldType::Char { .. }),
        is_bool: field.ty == FieldType::Bool,
    };
    let mark = kind.frame.fields.iter().find(|field| field.is_mark());
    let repr = mark.and_then(|mark| match &mark.ty {
        FieldType::Enum { name } => schema.enum_named(name).map(|declared| declared.repr),
        _ => None,
    });
    // Edges are found by name, as steps are: their values may be others if the schema is not from a frame
    // file.
    let steps = kind.frame.steps(schema);
    let value = |name: &str| steps.iter().find(|step| step.0 == name).map(|step| step.1);
    let values = match kind.frame.span() {
        Some(_) => ppt_capture::frame_dsl::role::EDGES
            .map(|(name, usual)| value(name).unwrap_or(usual))
            .to_vec(),
        None => steps.iter().map(|step| step.1).collect(),
    };
    PairForm {
        id: schema.multi().then_some(kind.id as u16),
        keys: kind.frame.fields.iter().filter(|field| field.is_key()).map(key).collect(),
        mark: Mark {
            at: mark.map_or(0, |mark| mark.offset as usize),
            len: repr.map_or(0, |repr| repr.size() as usize),
            signed: repr.is_some_and(|repr| repr.signed()),
            values,
        },
    }
}

impl PairForm {
    /// Writes the bytes of all keys to `to`.
    fn key(&self, frame: &[u8], to: &mut [u8]) {
        to.fill(0);
        for key in &self.keys {
            let Some(bytes) = frame.get(key.from..key.from + key.len) else { continue };
            let bytes = match bytes.iter().position(|&byte| byte == 0) {
                Some(end) if key.is_text => &bytes[..end],
                _ => bytes,
            };
            if key.is_bool {
                to[key.to] = u8::from(bytes != [0]);
            } else {
                to[key.to..key.to + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

impl ChunkRowSource for Parts {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>> {
        (column < self.frames.schema().fields().len())
            .then(|| self.frames.dictionary(column))
            .flatten()
    }

    fn wanted(&self, capture: usize, source: u16, bounds: &Bounds) -> Wanted {
        self.frames.wanted(capture, source, bounds)
    }

    /// The hidden columns must come after the others.
    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let shown = self.frames.schema().fields().len();
        let first = columns.iter().position(|&column| column >= shown).unwrap_or(columns.len());
        let count = self.frames.append(chunk, &columns[..first], &mut to[..first]);
        let key = (chunk.capture, chunk.owner.source);
        let Some((group, form)) = self.sources.get(&key) else { return count };
        let mut scratch = Vec::new();
        let rows = match form.id {
            Some(id) => chunk.rows.of_kind(id, &mut scratch),
            None => chunk.rows,
        };
        for (&column, builder) in columns[first..].iter().zip(&mut to[first..]) {
            match HIDDEN.get(column - shown) {
                Some(Hidden::Group) => builder.repeat(Some(*group), count),
                Some(Hidden::Key) => builder.fixed(rows, |frame, to| form.key(frame, to)),
                Some(Hidden::Mark) => builder.each(rows, |frame| Some(form.mark.step(frame))),
                None => builder.nulls(count),
            }
        }
        count
    }
}

/// A column of a table of spans or chains, for all schemas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PairedColumn {
    Standard(usize),
    /// A key; texts here and below are names of columns of the frames, or of steps.
    Key(String),
    Dur,
    Where(usize),
    Begin(String),
    End(String),
    Total,
    Step(String),
    Between(String, String),
    State,
}

/// The columns of the table of spans or chains of `kinds`, and its schema.
pub(super) fn whole_schema(
    parts: &Parts,
    kinds: &[FrameOfSource<'_>],
) -> (Vec<PairedColumn>, SchemaRef) {
    let mut found: Vec<(PairedColumn, String)> = Vec::new();
    let mut seen = HashSet::new();
    for kind in kinds.iter().filter(|kind| seen.insert(version(kind))) {
        let steps = kind.frame.steps(&kind.info.schema);
        let step = |n: usize| steps.get(n).map(|step| step.0.clone()).unwrap_or_default();
        for WholeColumn { name, part } in whole_columns(&kind.info.schema, kind.frame) {
            let column = match part {
                WholePart::Key(column) => PairedColumn::Key(column.name),
                WholePart::Dur => PairedColumn::Dur,
                WholePart::Where(name) => {
                    let place = STANDARD.iter().position(|standard| standard.name() == name);
                    PairedColumn::Where(place.unwrap_or_default())
                }
                WholePart::Begin(column) => PairedColumn::Begin(column.name),
                WholePart::End(column) => PairedColumn::End(column.name),
                WholePart::Total => PairedColumn::Total,
                WholePart::Step(n) => PairedColumn::Step(step(n)),
                WholePart::Between(n) => PairedColumn::Between(step(n), step(n + 1)),
                WholePart::State => PairedColumn::State,
            };
            if !found.iter().any(|entry| entry.0 == column) {
                found.push((column, name));
            }
        }
    }
    // The order of columns in one schema; columns of other schemas follow those of their kind.
    let order = |column: &PairedColumn| match column {
        PairedColumn::Standard(_) => 0,
        PairedColumn::Key(_) => 1,
        PairedColumn::Dur | PairedColumn::Total => 2,
        PairedColumn::Where(_) => 3,
        PairedColumn::Begin(_) | PairedColumn::Step(_) => 4,
        PairedColumn::End(_) | PairedColumn::Between(..) => 5,
        PairedColumn::State => 6,
    };
    found.sort_by_key(|entry| order(&entry.0));
    // Keys keep their names. Names may collide if the schema is not from a frame file.
    let mut taken = HashSet::new();
    let mut own = Vec::new();
    let mut columns = Vec::new();
    for (column, name) in found {
        let name = free(&name, &taken);
        taken.insert(name.to_ascii_lowercase());
        own.push(field(parts, &column, &name));
        columns.push(column);
    }
    let standard = STANDARD.iter().map(|standard| standard.field(&taken));
    let schema = Schema::new(standard.chain(own).collect::<Vec<_>>());
    ((0..STANDARD.len()).map(PairedColumn::Standard).chain(columns).collect(), Arc::new(schema))
}

fn field(parts: &Parts, column: &PairedColumn, name: &str) -> Field {
    let like = |place: usize| parts.frames.schema().field(place).clone().with_name(name);
    let metadata_of = |entries: &[(&str, &str)]| {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        entries.iter().map(owned).collect::<HashMap<_, _>>()
    };
    let ns = |role: &str| {
        let metadata = metadata_of(&[("unit", "ns"), ("role", role)]);
        Field::new(name, DataType::Int64, true).with_metadata(metadata)
    };
    let of_frames =
        |of: &str| parts.column(of).map_or_else(|| Field::new(name, DataType::Null, true), like);
    let of_half = |half: SpanHalf, of: &str| {
        let field = of_frames(of);
        let mut metadata = field.metadata().clone();
        metadata.extend(metadata_of(&[("half", half.word()), ("of", of)]));
        field.with_metadata(metadata)
    };
    match column {
        PairedColumn::Key(of) => of_frames(of),
        PairedColumn::Begin(of) => of_half(SpanHalf::Begin, of),
        PairedColumn::End(of) => of_half(SpanHalf::End, of),
        PairedColumn::Standard(place) => like(*place),
        PairedColumn::Where(place) => like(*place).with_metadata(metadata_of(&[("role", "where")])),
        PairedColumn::Dur => ns("dur"),
        PairedColumn::Total => ns("total"),
        PairedColumn::Between(..) => ns("between"),
        PairedColumn::Step(_) => {
            Field::new(name, timestamp(), true).with_metadata(metadata_of(&[("role", "step")]))
        }
        PairedColumn::State => {
            Field::new(name, word_type(), true).with_metadata(metadata_of(&[("role", "state")]))
        }
    }
}

/// The columns that are read to pair frames.
#[derive(Debug)]
pub(super) struct ReadParts {
    /// Columns of [`Parts`]; the hidden ones are last.
    pub columns: Vec<usize>,
}

impl ReadParts {
    /// The columns `shown` of the frames, and those that pairing needs.
    pub fn new(parts: &Parts, shown: impl IntoIterator<Item = usize>) -> ReadParts {
        let mut columns: Vec<usize> = Vec::new();
        let all = shown.into_iter().chain(ORDER.map(Parts::standard));
        for column in all.chain(HIDDEN.map(|hidden| parts.hidden(hidden))) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        ReadParts { columns }
    }

    /// The index of a column of the parts among the read columns.
    pub fn at(&self, column: usize) -> usize {
        self.columns.iter().position(|&index| index == column).unwrap_or_default()
    }

    /// Indices of the columns by which frames are paired.
    pub fn half_columns(&self, parts: &Parts) -> HalfColumns {
        let at = |standard| self.at(Parts::standard(standard));
        HalfColumns {
            group: self.at(parts.hidden(Hidden::Group)),
            key: self.at(parts.hidden(Hidden::Key)),
            mark: self.at(parts.hidden(Hidden::Mark)),
            ts: at(Standard::Ts),
            ring: at(Standard::Ring),
            seqno: at(Standard::Seqno),
            segment: at(Standard::Segment),
            capture: at(Standard::Capture),
        }
    }

    /// A pass over frames that are grouped by group and key, and in pairing order.
    pub fn pass(&self, parts: &Parts, schema: SchemaRef, explain_text: &str, start: Start) -> Pass {
        let group_by =
            [Hidden::Group, Hidden::Key].map(|hidden| self.at(parts.hidden(hidden))).to_vec();
        let order = ORDER.map(|order| self.at(Parts::standard(order)));
        let order = group_by.iter().copied().chain(order).map(|column| (column, false)).collect();
        Pass { schema, group_by, order, start, explain_text: explain_text.to_owned() }
    }
}

/// Pairing order: by time, then by the columns that identify a frame.
const ORDER: [Standard; 5] =
    [Standard::Ts, Standard::Ring, Standard::Seqno, Standard::Segment, Standard::Capture];

/// Computes by group when frames may be missing.
pub(super) fn find_missing(set: &Arc<CaptureSet>, parts: &Arc<Parts>) -> FindMissing {
    let (set, parts) = (set.clone(), parts.clone());
    Arc::new(move || parts.missing(&set))
}

/// Whether frames of this kind make spans.
pub(super) fn is_span(frame: &Frame) -> bool {
    frame.span().is_some()
}

/// Whether frames of this kind make chains.
pub(super) fn is_chain(frame: &Frame) -> bool {
    frame.chain().is_some()
}
