//! The points of a set: a number for each, and for each hash type, and where frames hold them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringArray;
use ppt_capture::columns::Time;
use ppt_capture::frame_dsl::role;
use ppt_capture::frame_dsl::schema::{Field, FieldType, Frame};

use crate::builder::Dictionary;
use crate::hosts::Clocks;
use crate::rows::RowsInChunk;
use crate::set::{CaptureSet, OwnerKeys};
use crate::standard::ChunkRows;

/// A kind of frames that are points.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PointFrames {
    pub buffer: String,
    pub name: String,
}

impl PointFrames {
    /// With its buffer.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.buffer, self.name)
    }
}

/// A hash type. Identities of 8 and of 16 bytes never meet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HashType {
    pub name: String,
    /// Bytes.
    pub width: usize,
}

/// What identifies data in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataIdentity {
    /// Number of the [`HashType`].
    pub of: usize,
    /// Key of its name in [`PointDirectory::type_words`].
    pub word: i32,
    pub offset: usize,
    pub width: usize,
}

impl DataIdentity {
    /// The bytes, the most significant one first.
    pub fn bytes(self, frame: &[u8]) -> Option<[u8; WIDEST]> {
        let from = frame.get(self.offset..self.offset + self.width)?;
        let mut bytes = [0; WIDEST];
        bytes[..self.width].copy_from_slice(from);
        // A number is stored with the least significant byte first; 128 bits are stored as they are shown.
        if self.width == 8 {
            bytes[..8].reverse();
        }
        Some(bytes)
    }
}

/// Bytes of the widest identity.
pub(crate) const WIDEST: usize = role::Hash::WIDE as usize;

/// How a point is read out of its frames.
#[derive(Debug)]
pub(crate) struct PointForm {
    /// Number of the [`PointFrames`].
    pub point: i32,
    pub at: Option<Time>,
    pub ins: Vec<DataIdentity>,
    /// Those that are stated.
    pub outs: Vec<DataIdentity>,
}

impl PointForm {
    /// What leaves: what is stated, or else what entered.
    pub fn all_outs(&self) -> &[DataIdentity] {
        if self.implied() { &self.ins } else { &self.outs }
    }

    /// What enters leaves as it is.
    pub fn implied(&self) -> bool {
        self.outs.is_empty()
    }
}

/// The points of a source, by the number of the frame.
#[derive(Debug)]
struct SourcePoints {
    multi: bool,
    forms: Vec<Option<PointForm>>,
}

/// The points of a set.
#[derive(Debug)]
pub(crate) struct PointDirectory {
    pub points: Vec<PointFrames>,
    pub types: Vec<HashType>,
    /// Names of points and of types, by key; points of two buffers may share a name.
    pub point_words: Arc<StringArray>,
    pub type_words: Arc<StringArray>,
    /// By point: the key of its name.
    point_keys: Vec<i32>,
    /// The same of types.
    pub type_keys: Vec<i32>,
    /// By capture and source.
    sources: HashMap<(usize, u16), SourcePoints>,
    /// By capture: where its owners begin.
    first_owners: Vec<i32>,
    pub owners: Vec<OwnerKeys>,
    /// Scales of time of which there are points: each with the name of a host and its boot.
    pub scales: Vec<(u32, String)>,
    pub clocks: Arc<Clocks>,
}

impl PointDirectory {
    pub fn new(set: &CaptureSet) -> PointDirectory {
        let mut found = FoundPoints::default();
        let mut known = PointDirectory {
            points: Vec::new(),
            types: Vec::new(),
            point_words: Arc::new(StringArray::new_null(0)),
            type_words: Arc::new(StringArray::new_null(0)),
            point_keys: Vec::new(),
            type_keys: Vec::new(),
            sources: HashMap::new(),
            first_owners: Vec::new(),
            owners: Vec::new(),
            scales: Vec::new(),
            clocks: set.clocks().clone(),
        };
        for (capture, opened) in set.captures().iter().enumerate() {
            let catalog = opened.catalog();
            known.first_owners.push(known.owners.len() as i32);
            known.owners.extend(set.owners(capture, catalog));
            let mut has_points = false;
            for info in &catalog.sources {
                let frames = info.schema.frames.iter();
                let forms: Vec<Option<PointForm>> =
                    frames.map(|frame| found.form(&info.source.buffer, frame)).collect();
                if forms.iter().all(Option::is_none) {
                    continue;
                }
                has_points = true;
                let source = SourcePoints { multi: info.schema.multi(), forms };
                known.sources.insert((capture, info.id), source);
            }
            if has_points {
                let scale = known.clocks.scale(capture);
                if known.scales.iter().all(|entry| entry.0 != scale) {
                    known.scales.push((scale, set.host(capture)));
                }
            }
        }
        known.point_words = found.point_names.array();
        known.type_words = found.type_names.array();
        (known.points, known.point_keys) = found.points.into_iter().unzip();
        let key = |of: &HashType| found.type_names.get(&of.name).unwrap_or_default();
        known.type_keys = found.types.iter().map(key).collect();
        known.types = found.types;
        known
    }

    /// The number of the capture of an owner.
    pub fn capture_of(&self, owner: i32) -> usize {
        self.owners.get(owner as usize).map_or(usize::MAX, |owner| owner.capture as usize)
    }

    /// The name of a point.
    pub fn name(&self, point: i32) -> &str {
        self.points.get(point as usize).map_or("", |point| &point.name)
    }

    /// The points that a text names: `frame`, or `buffer.frame`.
    pub fn called(&self, text: &str) -> impl Iterator<Item = usize> {
        let is = move |point: &PointFrames| point.name == text || point.full_name() == text;
        self.points.iter().enumerate().filter(move |(_, frames)| is(frames)).map(|entry| entry.0)
    }

    /// The key of the name of a point.
    pub fn point_key(&self, point: i32) -> i32 {
        self.point_keys.get(point as usize).copied().unwrap_or_default()
    }

    /// The number of the owner of a chunk.
    pub fn owner(&self, chunk: &ChunkRows<'_>) -> i32 {
        let first = self.first_owners.get(chunk.capture).copied().unwrap_or_default();
        first + chunk.at.owner as i32
    }

    /// The points of a source, each with the number of its frame; none if it has none.
    pub fn forms(&self, capture: usize, source: u16) -> impl Iterator<Item = (usize, &PointForm)> {
        let forms =
            self.sources.get(&(capture, source)).into_iter().flat_map(|points| &points.forms);
        forms.enumerate().filter_map(|(id, form)| Some((id, form.as_ref()?)))
    }

    /// Whether frames of a source say what they are.
    pub fn multi(&self, capture: usize, source: u16) -> bool {
        self.sources.get(&(capture, source)).is_some_and(|source| source.multi)
    }

    /// The sources that have a point.
    pub fn sources_of(&self, point: usize) -> impl Iterator<Item = (usize, u16)> {
        self.sources.iter().filter_map(move |(&key, source)| {
            let mut forms = source.forms.iter().flatten();
            forms.any(|form| form.point as usize == point).then_some(key)
        })
    }

    /// How every form says that it handles a type: does any form of `point` take it in, let it out?
    pub fn has(&self, point: usize, of: usize) -> (bool, bool) {
        let forms = self.sources.values().flat_map(|source| source.forms.iter().flatten());
        let own = forms.filter(|form| form.point as usize == point);
        own.fold((false, false), |(takes, gives), form| {
            let is = |identity: &DataIdentity| identity.of == of;
            (takes || form.ins.iter().any(is), gives || form.all_outs().iter().any(is))
        })
    }

    /// How much enters and leaves a frame at most.
    pub fn most_ways(&self) -> usize {
        let forms = self.sources.values().flat_map(|source| source.forms.iter().flatten());
        forms.map(|form| form.ins.len() + form.outs.len()).max().unwrap_or_default()
    }

    /// Gives each frame of a chunk that is a point to `take`, with its row.
    pub fn each<'a>(
        &'a self,
        chunk: &ChunkRows<'a>,
        mut take: impl FnMut(u32, &'a [u8], &'a PointForm),
    ) {
        let Some(source) = self.sources.get(&(chunk.capture, chunk.owner.source)) else { return };
        let RowsInChunk { which, .. } = chunk.rows;
        let mut place = 0;
        chunk.rows.each(|frame| {
            let row = which.map_or(place, |which| which[place as usize]);
            place += 1;
            let id = if source.multi { ppt_capture::columns::frame_id(frame).into() } else { 0 };
            if let Some(Some(form)) = source.forms.get(id) {
                take(row, frame, form);
            }
        });
    }
}

#[derive(Debug, Default)]
struct FoundPoints {
    points: Vec<(PointFrames, i32)>,
    types: Vec<HashType>,
    point_names: Dictionary,
    type_names: Dictionary,
}

impl FoundPoints {
    fn form(&mut self, buffer: &str, frame: &Frame) -> Option<PointForm> {
        let point = frame.point().filter(|_| !frame.is_hidden())?;
        let own = PointFrames { buffer: buffer.to_owned(), name: frame.name.clone() };
        let known = self.points.iter().position(|point| point.0 == own);
        let number = known.unwrap_or_else(|| {
            let key = self.point_names.key(&own.name);
            self.points.push((own, key));
            self.points.len() - 1
        });
        let mut identities = |all: &[(&str, &Field)]| {
            all.iter().map(|(name, field)| self.identity(name, field)).collect()
        };
        Some(PointForm {
            point: number as i32,
            at: frame.at().and_then(Time::from_field),
            ins: identities(&point.ins),
            outs: identities(&point.outs),
        })
    }

    fn identity(&mut self, name: &str, field: &Field) -> DataIdentity {
        // Other types identify nothing.
        let width = if field.ty == FieldType::U64 { 8 } else { WIDEST };
        let own = HashType { name: name.to_owned(), width };
        let known = self.types.iter().position(|types| *types == own);
        let of = known.unwrap_or_else(|| {
            self.types.push(own);
            self.types.len() - 1
        });
        let word = self.type_names.key(name);
        DataIdentity { of, word, offset: field.offset as usize, width }
    }
}
