//! The points of a set: numbers of points and hash types, and the positions of identities in frames.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringArray;
use ppt_capture::columns::Time;
use ppt_capture::frame_dsl::role;
use ppt_capture::frame_dsl::schema::{Field, FieldType, Frame};

use crate::builder::Dictionary;
use crate::hosts::Clocks;
use crate::set::{CaptureSet, OwnerKeys};
use crate::standard::ChunkRows;

/// A point: a kind of frames.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PointFrames {
    pub buffer: String,
    pub name: String,
}

impl PointFrames {
    /// `buffer.frame`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.buffer, self.name)
    }
}

/// A hash type. Identities of 8 and of 16 bytes are never equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HashType {
    pub name: String,
    /// Size of an identity, in bytes.
    pub width: usize,
}

/// The position of an identity of data in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataIdentity {
    /// Number of the [`HashType`].
    pub hash_type: usize,
    /// Key of the type's name in [`PointDirectory::type_words`].
    pub type_key: i32,
    pub offset: usize,
    pub width: usize,
}

impl DataIdentity {
    /// The bytes, most significant first.
    pub fn bytes(self, frame: &[u8]) -> Option<[u8; WIDEST]> {
        let from = frame.get(self.offset..self.offset + self.width)?;
        let mut bytes = [0; WIDEST];
        bytes[..self.width].copy_from_slice(from);
        // 64 bits are a little-endian number; 128 bits are stored in the order in which they are shown.
        if self.width == 8 {
            bytes[..8].reverse();
        }
        Some(bytes)
    }
}

/// Size of the widest identity, in bytes.
pub(crate) const WIDEST: usize = role::Hash::WIDE as usize;

/// The reader of a point from its frames.
#[derive(Debug)]
pub(crate) struct PointForm {
    /// Number of the [`PointFrames`].
    pub point: i32,
    pub at: Option<Time>,
    pub ins: Vec<DataIdentity>,
    /// The stated ones; empty: data leaves as it entered.
    pub outs: Vec<DataIdentity>,
}

impl PointForm {
    /// The identities of data that leaves: the stated ones, or else those that entered.
    pub fn all_outs(&self) -> &[DataIdentity] {
        if self.has_implied_outs() { &self.ins } else { &self.outs }
    }

    /// Whether data leaves as it entered.
    pub fn has_implied_outs(&self) -> bool {
        self.outs.is_empty()
    }
}

/// The points of a source.
#[derive(Debug)]
struct SourcePoints {
    /// Frames carry their kind.
    multi: bool,
    /// By frame id.
    forms: Vec<Option<PointForm>>,
}

/// Whether data enters a point, and whether it leaves it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Directions {
    pub enters: bool,
    pub leaves: bool,
}

/// The points of a set.
#[derive(Debug)]
pub(crate) struct PointDirectory {
    pub points: Vec<PointFrames>,
    pub types: Vec<HashType>,
    /// Names of points and of types, in the order of their keys. Points of two buffers may share a name.
    pub point_words: Arc<StringArray>,
    pub type_words: Arc<StringArray>,
    /// By point: the key of its name.
    point_keys: Vec<i32>,
    /// By hash type: the key of its name.
    pub type_keys: Vec<i32>,
    /// By capture and source.
    sources: HashMap<(usize, u16), SourcePoints>,
    /// By capture: the number of its first owner.
    first_owners: Vec<i32>,
    pub owners: Vec<OwnerKeys>,
    /// Time scales that have points, each with a host and its boot.
    pub scales: Vec<(u32, String)>,
    pub clocks: Arc<Clocks>,
}

impl PointDirectory {
    pub fn new(set: &CaptureSet) -> PointDirectory {
        let mut found = FoundPoints::default();
        let mut directory = PointDirectory {
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
            directory.first_owners.push(directory.owners.len() as i32);
            directory.owners.extend(set.owners(capture, catalog));
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
                directory.sources.insert((capture, info.id), source);
            }
            if has_points {
                let scale = directory.clocks.scale(capture);
                if directory.scales.iter().all(|entry| entry.0 != scale) {
                    directory.scales.push((scale, set.host(capture)));
                }
            }
        }
        directory.point_words = found.point_names.array();
        directory.type_words = found.type_names.array();
        (directory.points, directory.point_keys) = found.points.into_iter().unzip();
        let key = |hash_type: &HashType| found.type_names.get(&hash_type.name).unwrap_or_default();
        directory.type_keys = found.types.iter().map(key).collect();
        directory.types = found.types;
        directory
    }

    /// The capture of an owner.
    pub fn capture_of(&self, owner: i32) -> usize {
        self.owners.get(owner as usize).map_or(usize::MAX, |owner| owner.capture as usize)
    }

    /// The name of a point.
    pub fn name(&self, point: i32) -> &str {
        self.points.get(point as usize).map_or("", |point| &point.name)
    }

    /// The points that a text names: `frame`, or `buffer.frame`.
    pub fn points_named(&self, text: &str) -> impl Iterator<Item = usize> {
        let is_named = move |point: &PointFrames| point.name == text || point.full_name() == text;
        self.points
            .iter()
            .enumerate()
            .filter(move |(_, point)| is_named(point))
            .map(|entry| entry.0)
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

    /// The points of a source, each with its frame id.
    pub fn forms(&self, capture: usize, source: u16) -> impl Iterator<Item = (usize, &PointForm)> {
        let forms =
            self.sources.get(&(capture, source)).into_iter().flat_map(|points| &points.forms);
        forms.enumerate().filter_map(|(id, form)| Some((id, form.as_ref()?)))
    }

    /// Whether frames of a source carry their kind.
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

    /// Whether data of a hash type enters a point, and whether it leaves it, in any source.
    pub fn directions(&self, point: usize, hash_type: usize) -> Directions {
        let forms = self.sources.values().flat_map(|source| source.forms.iter().flatten());
        let own = forms.filter(|form| form.point as usize == point);
        own.fold(Directions::default(), |found, form| {
            let has_type = |identity: &DataIdentity| identity.hash_type == hash_type;
            Directions {
                enters: found.enters || form.ins.iter().any(has_type),
                leaves: found.leaves || form.all_outs().iter().any(has_type),
            }
        })
    }

    /// Whether data of a hash type can leave the point `from` and enter the point `to`.
    pub fn may_lead(&self, from: usize, to: usize, hash_type: usize) -> bool {
        self.directions(from, hash_type).leaves && self.directions(to, hash_type).enters
    }

    /// Largest number of identities that enter and leave one frame.
    pub fn max_endpoints_per_frame(&self) -> usize {
        let forms = self.sources.values().flat_map(|source| source.forms.iter().flatten());
        forms.map(|form| form.ins.len() + form.outs.len()).max().unwrap_or_default()
    }

    /// Passes each frame of a chunk that is a point to `take`, with its row number.
    pub fn each<'a>(
        &'a self,
        chunk: &ChunkRows<'a>,
        mut take: impl FnMut(u32, &'a [u8], &'a PointForm),
    ) {
        let Some(source) = self.sources.get(&(chunk.capture, chunk.owner.source)) else { return };
        chunk.rows.each_row(|row, frame| {
            let id = if source.multi { ppt_capture::columns::frame_id(frame).into() } else { 0 };
            if let Some(Some(form)) = source.forms.get(id) {
                take(row, frame, form);
            }
        });
    }
}

/// Collects points and hash types.
#[derive(Debug, Default)]
struct FoundPoints {
    /// Each with the key of its name.
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
        // Identities have one of two types.
        let width = if field.ty == FieldType::U64 { 8 } else { WIDEST };
        let own = HashType { name: name.to_owned(), width };
        let known = self.types.iter().position(|types| *types == own);
        let hash_type = known.unwrap_or_else(|| {
            self.types.push(own);
            self.types.len() - 1
        });
        let type_key = self.type_names.key(name);
        DataIdentity { hash_type, type_key, offset: field.offset as usize, width }
    }
}
