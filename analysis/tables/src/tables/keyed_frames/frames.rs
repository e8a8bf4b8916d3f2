//! The frames of one name, and the groups in which they are paired.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ppt_capture::Cause;
use ppt_capture::frame_dsl::role::Across;
use ppt_capture::frame_dsl::schema::{self, FieldType};

use super::form::{KeyForm, form_of, version};
use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::catalog::{Catalog, GapAt};
use crate::chunk_scan::{ChunkRowSource, Wanted};
use crate::error::{SetError, TableError};
use crate::gap_times::Neighbours;
use crate::growing::{GrowingGroup, WholeForm};
use crate::set::{CaptureSet, Opened};
use crate::spans_and_chains::Missing;
use crate::standard::{ChunkRows, STANDARD, Standard};
use crate::tables::frame::{FrameOfSource, NamedFrames};

/// A column by which frames are paired, after the columns of the frames. It is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tables) enum Hidden {
    /// Number of the [`Group`].
    Group,
    /// The bytes of all key fields.
    Key,
    /// Index of the frame's step in [`schema::Frame::steps`]; −1: unknown.
    Mark,
}

pub(in crate::tables) const HIDDEN: [Hidden; 3] = [Hidden::Group, Hidden::Key, Hidden::Mark];

/// A group of frames: those with equal keys form a span or a chain.
#[derive(Debug)]
pub(in crate::tables) struct Group {
    scope: Scope,
    /// Index in [`KeyedFrames::plans`].
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

/// The plan by which frames of a schema are paired. Frames with different plans are never paired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tables) struct PairPlan {
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

/// The frames of one name, which are parts of spans or chains.
#[derive(Debug)]
pub(in crate::tables) struct KeyedFrames {
    pub(super) frames: NamedFrames,
    schema: SchemaRef,
    /// Bytes of all keys.
    width: usize,
    pub buffer: String,
    pub plans: Vec<PairPlan>,
    pub groups: Vec<Group>,
    /// By capture and source: the group of its frames, and how they are read.
    sources: HashMap<(usize, u16), (i32, Arc<KeyForm>)>,
    boots: Vec<String>,
    /// Time scales that have frames, each with the name of a host.
    scales: Vec<(u32, String)>,
}

impl KeyedFrames {
    pub fn new(
        set: &CaptureSet,
        (buffer, name): (&str, &str),
        kinds: &[FrameOfSource<'_>],
    ) -> Result<KeyedFrames, SetError> {
        let frames = NamedFrames::new(set, (buffer, name), kinds)?;
        let mut keyed = KeyedFrames {
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
        keyed.width = places.values().map(|&len| len as usize).sum();
        let mut forms: HashMap<_, Arc<KeyForm>> = HashMap::new();
        for kind in kinds {
            let plan = PairPlan::new(kind);
            let plan = position(&mut keyed.plans, plan);
            let boot = position(&mut keyed.boots, set.boot(kind.capture).to_owned());
            let scope = match keyed.plans[plan].across {
                Across::Process => Scope::Process(set.process(kind.capture, kind.info)),
                Across::Host => Scope::Boot(boot),
                Across::Everywhere => Scope::Scale(set.clocks().scale(kind.capture)),
            };
            let known =
                keyed.groups.iter().position(|group| (group.scope, group.plan) == (scope, plan));
            let group = known.unwrap_or_else(|| {
                keyed.groups.push(Group { scope, plan });
                keyed.groups.len() - 1
            });
            let form = forms.entry(version(kind));
            let form = form.or_insert_with(|| Arc::new(form_of(kind, place))).clone();
            keyed.sources.insert((kind.capture, kind.info.id), (group as i32, form));
            let catalog = set.captures()[kind.capture].catalog();
            let has_frames = catalog.owners.iter().any(|owner| owner.source == kind.info.id);
            let scale = set.clocks().scale(kind.capture);
            if has_frames && keyed.scales.iter().all(|entry| entry.0 != scale) {
                keyed.scales.push((scale, set.host(kind.capture)));
            }
        }
        let hidden = HIDDEN.map(|hidden| match hidden {
            Hidden::Group => Field::new("ppt_group", DataType::Int32, true),
            Hidden::Key => {
                Field::new("ppt_key", DataType::FixedSizeBinary(keyed.width as i32), true)
            }
            Hidden::Mark => Field::new("ppt_mark", DataType::Int32, true),
        });
        let fields = keyed.schema.fields().iter().cloned().chain(hidden.map(Arc::new));
        keyed.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(keyed)
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

    /// Texts that identify the groups across sets. `ppt export --follow` keeps them in files, with the names of
    /// [`PairPlan`] and its fields.
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

/// Bounds of a time; None if unknown.
type Between = (Option<i64>, Option<i64>);

/// The index of `wanted` in `all`, to which it is added if it is absent.
fn position<T: PartialEq>(all: &mut Vec<T>, wanted: T) -> usize {
    all.iter().position(|other| *other == wanted).unwrap_or_else(|| {
        all.push(wanted);
        all.len() - 1
    })
}

impl ChunkRowSource for KeyedFrames {
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
