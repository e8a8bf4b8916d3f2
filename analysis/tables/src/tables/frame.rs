//! A table for each frame name: the standard columns, the fields, and the length of each interval.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ppt_capture::columns::{Reader, Time};
use ppt_capture::frame_dsl::columns::free;
use ppt_capture::frame_dsl::role::SpanHalf;
use ppt_capture::frame_dsl::schema::{self, Clock, Frame, IntervalEnd};
use ppt_capture::frame_dsl::{Column, ColumnType, Measure, Style, columns};
use ppt_capture::{Process, SourceInfo};
use ppt_symbols::Symbols;

use super::named::NamedTable;
use crate::bounds::{Bounded, Bounds};
use crate::builder::{Builder, Dictionary, EnumKeys, FrameValues, data_type, wider, word_type};
use crate::chunk_scan::{ChunkRowSource, ChunkScan, Ts, Wanted, kind_bit};
use crate::error::{Conflict, SetError, TableError};
use crate::set::CaptureSet;
use crate::standard::{ChunkRows, STANDARD, Standard};
use crate::table::{CaptureTable, Chunked, Planned, Scan, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let tables = kinds(set, |_| true).into_iter().map(|((buffer, name), kinds)| {
        let frames = Arc::new(NamedFrames::new(set, (buffer, name), &kinds)?);
        Ok(NamedTable::frame(buffer, name, FrameTable { set: set.clone(), frames }))
    });
    tables.collect()
}

/// The wanted kinds of frames of all sources, by buffer and name.
pub(super) fn kinds(
    set: &CaptureSet,
    wanted: impl Fn(&Frame) -> bool,
) -> BTreeMap<(&str, &str), Vec<FrameOfSource<'_>>> {
    let mut kinds: BTreeMap<(&str, &str), Vec<FrameOfSource<'_>>> = BTreeMap::new();
    for (capture, opened) in set.captures().iter().enumerate() {
        for info in &opened.catalog().sources {
            let frames = info.schema.frames.iter().enumerate();
            for (id, frame) in frames.filter(|(_, frame)| wanted(frame) && !frame.is_hidden()) {
                let name = (info.source.buffer.as_str(), frame.name.as_str());
                let path = opened.path.as_path();
                kinds.entry(name).or_default().push(FrameOfSource {
                    capture,
                    path,
                    info,
                    id,
                    frame,
                });
            }
        }
    }
    kinds
}

/// A kind of frames of one source.
pub(super) struct FrameOfSource<'a> {
    pub capture: usize,
    pub path: &'a Path,
    pub info: &'a SourceInfo,
    pub id: usize,
    pub frame: &'a Frame,
}

/// The plan that turns the frames of a schema into rows.
#[derive(Debug)]
struct Variant {
    id: u16,
    /// Frames carry their kind.
    multi: bool,
    at: Option<Time>,
    /// By column after the standard ones; None if the schema does not have the column.
    fields: Vec<Option<ColumnFill>>,
}

/// The way to fill a column.
#[derive(Debug)]
enum ColumnFill {
    /// With the values of a field. An enum has the keys of its words.
    Field(Reader, Option<EnumKeys>),
    /// With the names of the addresses of a field.
    Names(Reader),
}

/// A column of the table, and the column of the frame that it comes from.
#[derive(Debug, Clone)]
struct FrameColumn {
    /// Index among the columns after the standard ones.
    place: usize,
    column: Column,
    /// The column has the names of the addresses.
    is_named: bool,
}

/// Metadata key of a column of addresses: the name of the column with their names.
pub const SYMBOL: &str = "symbol";

/// Makes rows from the frames of one name.
#[derive(Debug)]
pub(super) struct NamedFrames {
    schema: SchemaRef,
    /// By column: its dictionary, if it has words.
    words: Vec<Option<Arc<StringArray>>>,
    /// By capture and source.
    sources: HashMap<(usize, u16), Arc<Variant>>,
    /// By capture and source: the names of its addresses, if its frames have addresses.
    symbols: HashMap<(usize, u16), (Arc<Symbols>, Process)>,
}

#[derive(Debug)]
struct FrameTable {
    set: Arc<CaptureSet>,
    frames: Arc<NamedFrames>,
}

impl CaptureTable for FrameTable {
    fn schema(&self) -> &SchemaRef {
        &self.frames.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        STANDARD.get(column).map(|standard| standard.bounded())
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &self.frames, request)?);
        Ok(scan.into())
    }

    fn chunked(&self) -> Option<Chunked> {
        Some(Chunked(self.frames.clone()))
    }
}

/// A column, and the capture in which it was first found.
struct Placed<'a> {
    field: Field,
    path: &'a Path,
    words: Dictionary,
}

/// The columns of all kinds of frames of one name.
#[derive(Default)]
struct FoundColumns<'a> {
    placed: Vec<Placed<'a>>,
    places: HashMap<String, usize>,
    /// By the hash of the schema. Sources with the same schema share a variant.
    variants: HashMap<u64, Vec<FrameColumn>>,
}

impl<'a> FoundColumns<'a> {
    /// Adds the columns of a kind, one of `kinds`, of whose columns the names are `taken`.
    fn add(
        &mut self,
        (buffer, name): (&str, &str),
        kind: &FrameOfSource<'a>,
        (kinds, taken): (&[FrameOfSource<'_>], &HashSet<String>),
    ) -> Result<(), SetError> {
        if self.variants.contains_key(&kind.info.source.schema_hash) {
            return Ok(());
        }
        let mut own = Vec::new();
        let columns = columns(&kind.info.schema, kind.frame, Style::Sql);
        let columns = columns.into_iter().flat_map(|column| {
            let named = (column.ty == ColumnType::Addr).then(|| (column.clone(), true));
            [(column, false)].into_iter().chain(named)
        });
        for (mut column, is_named) in columns {
            let mut field = arrow_field(kind, &column, kinds);
            if column.ty == ColumnType::Addr {
                let name = free(&format!("{}_symbol", column.name), taken);
                if is_named {
                    field = Field::new(&name, word_type(), true)
                        .with_metadata([("role".to_owned(), "symbol".to_owned())].into());
                    column.name = name;
                } else {
                    let mut metadata = field.metadata().clone();
                    metadata.insert(SYMBOL.to_owned(), name);
                    field = field.with_metadata(metadata);
                }
            }
            let place = *self.places.entry(column.name.clone()).or_insert_with(|| {
                let words = Dictionary::default();
                self.placed.push(Placed { field: field.clone(), path: kind.path, words });
                self.placed.len() - 1
            });
            let known = &mut self.placed[place];
            if let Some(ty) = wider(known.field.data_type(), field.data_type()) {
                known.field.set_data_type(ty);
            } else {
                return Err(SetError::Conflict(Box::new(Conflict {
                    table: format!("{buffer}.{name}"),
                    column: column.name,
                    first: known.path.to_owned(),
                    first_type: known.field.data_type().to_string(),
                    second: kind.path.to_owned(),
                    second_type: field.data_type().to_string(),
                })));
            }
            own.push(FrameColumn { place, column, is_named });
        }
        self.variants.insert(kind.info.source.schema_hash, own);
        Ok(())
    }
}

impl NamedFrames {
    pub fn new(
        set: &CaptureSet,
        (buffer, name): (&str, &str),
        kinds: &[FrameOfSource<'_>],
    ) -> Result<NamedFrames, SetError> {
        let taken = names_of(kinds);
        let mut found = FoundColumns::default();
        for kind in kinds {
            found.add((buffer, name), kind, (kinds, &taken))?;
        }
        let FoundColumns { mut placed, places, variants } = found;

        let mut ready: HashMap<u64, Arc<Variant>> = HashMap::new();
        let (mut sources, mut symbols) = (HashMap::new(), HashMap::new());
        for kind in kinds {
            let hash = kind.info.source.schema_hash;
            let variant = ready.entry(hash).or_insert_with(|| {
                let mut fields: Vec<_> = placed.iter().map(|_| None).collect();
                for FrameColumn { place, column, is_named } in &variants[&hash] {
                    let reader = Reader::new(&kind.info.schema, column);
                    let is_enum = matches!(column.ty, ColumnType::Enum { .. });
                    let words = &mut placed[*place].words;
                    let keys = is_enum.then(|| EnumKeys::new(reader.names(), words));
                    fields[*place] = Some(match is_named {
                        true => ColumnFill::Names(reader),
                        false => ColumnFill::Field(reader, keys),
                    });
                }
                let at = kind.frame.at().and_then(Time::from_field);
                let multi = kind.info.schema.multi();
                Arc::new(Variant { id: kind.id as u16, multi, at, fields })
            });
            let is_named = |cells: &Option<ColumnFill>| matches!(cells, Some(ColumnFill::Names(_)));
            if variant.fields.iter().any(is_named) {
                let of_capture = set.captures()[kind.capture].symbols().clone();
                let of_source = (of_capture, kind.info.source.process.clone());
                symbols.insert((kind.capture, kind.info.id), of_source);
            }
            sources.insert((kind.capture, kind.info.id), variant.clone());
        }

        let taken: HashSet<String> = places.keys().map(|name| name.to_ascii_lowercase()).collect();
        let standard = STANDARD.iter().map(|column| column.field(&taken));
        let fields = placed.iter().map(|placed| placed.field.clone());
        let schema = Arc::new(Schema::new(standard.chain(fields).collect::<Vec<_>>()));
        let standard = STANDARD.iter().map(|column| column.dictionary(set.names()));
        let words = placed.iter().map(|placed| {
            matches!(placed.field.data_type(), DataType::Dictionary(..))
                .then(|| placed.words.array())
        });
        Ok(NamedFrames { schema, words: standard.chain(words).collect(), sources, symbols })
    }
}

/// The names of all columns of these kinds, in lower case.
fn names_of(kinds: &[FrameOfSource<'_>]) -> HashSet<String> {
    let mut names = HashSet::new();
    for kind in kinds {
        let columns = columns(&kind.info.schema, kind.frame, Style::Sql);
        names.extend(columns.into_iter().map(|column| column.name.to_ascii_lowercase()));
    }
    names
}

/// The Arrow field of a column. Its metadata has the properties of the frame file.
fn arrow_field(kind: &FrameOfSource<'_>, column: &Column, kinds: &[FrameOfSource<'_>]) -> Field {
    let field = &kind.frame.fields[column.field];
    let mut metadata = HashMap::new();
    let mut describe = |key: &str, value: &str| {
        if !value.is_empty() {
            metadata.insert(key.to_owned(), value.to_owned());
        }
    };
    let unit = match column.ty {
        _ if !field.unit.is_empty() => field.unit.as_str(),
        ColumnType::Duration
        | ColumnType::Length { of: Measure::Duration | Measure::Time(_), .. } => "ns",
        ColumnType::Time(time) if time.clock().is_some_and(Clock::is_cpu) => "ns",
        _ => "",
    };
    describe("unit", unit);
    describe("doc", &field.doc);
    let role = match (&column.ty, &field.interval) {
        (ColumnType::Length { .. }, _) => "length",
        (_, _) if field.at => "at",
        (_, _) if field.is_key() => "key",
        (_, _) if field.is_mark() => {
            if kind.frame.chain().is_some() {
                "step"
            } else {
                "edge"
            }
        }
        (_, Some(interval)) if interval.edge == IntervalEnd::Start => "start",
        (_, Some(_)) => "end",
        (_, None) => "",
    };
    describe("role", role);
    let attributes: Vec<&str> =
        field.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    describe("attributes", &attributes.join(" "));
    if let Some(interval) = &field.interval {
        describe("interval", &interval.name);
    }
    if let Some(hash) = field.hash() {
        describe("hash", hash.word());
    }
    if let Some(half) = half(kinds, &field.name) {
        describe("half", half.word());
    }
    if let ColumnType::Enum { index, .. } = column.ty {
        let mut values = kind.info.schema.enums[index].values.iter();
        describe("zero", values.find(|(_, value)| *value == 0).map_or("0", |(name, _)| name));
    }
    if let Some(point) = kind.frame.point() {
        let hash_type = |side: &[(&str, &schema::Field)]| {
            side.iter().find(|entry| entry.1.name == field.name).map(|entry| entry.0.to_owned())
        };
        describe("in", &hash_type(&point.ins).unwrap_or_default());
        describe("out", &hash_type(&point.outs).unwrap_or_default());
    }
    Field::new(&column.name, data_type(column.ty), true).with_metadata(metadata)
}

/// The half of spans that sets a field; None if both halves set it, or programs differ.
fn half(kinds: &[FrameOfSource<'_>], name: &str) -> Option<SpanHalf> {
    let half = |kind: &FrameOfSource<'_>| {
        let field = kind.frame.fields.iter().find(|field| field.name == name)?;
        Some(kind.frame.only_half(field))
    };
    let mut halves = kinds.iter().filter_map(half);
    let first = halves.next()??;
    halves.all(|other| other == Some(first)).then_some(first)
}

impl ChunkRowSource for NamedFrames {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>> {
        self.words[column].clone()
    }

    fn wanted(&self, capture: usize, source: u16, _: &Bounds) -> Wanted {
        let Some(variant) = self.sources.get(&(capture, source)) else { return Wanted::NOTHING };
        let ts = variant.at.map_or(Ts::Null, Ts::At);
        // If the buffer has one kind, its frames carry no kind.
        let kinds = if variant.multi { kind_bit(variant.id.into()) } else { u64::MAX };
        Wanted { kinds, frame_is_row: !variant.multi, ts }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let source = (chunk.capture, chunk.owner.source);
        let Some(variant) = self.sources.get(&source) else { return 0 };
        let mut scratch = Vec::new();
        let mut rows = chunk.rows;
        if variant.multi {
            rows = chunk.of_kind(variant.id, &mut scratch);
        }
        let values = chunk.values(rows);
        for (&column, builder) in columns.iter().zip(to) {
            match STANDARD.get(column) {
                Some(Standard::Ts) => match variant.at {
                    Some(at) => builder.time(at, &values),
                    None => builder.nulls(rows.len()),
                },
                Some(standard) => chunk.standard(*standard, rows, builder),
                None => match &variant.fields[column - STANDARD.len()] {
                    Some(ColumnFill::Field(reader, keys)) => {
                        builder.gather(reader, &FrameValues { keys: keys.as_ref(), ..values });
                    }
                    Some(ColumnFill::Names(reader)) => match self.symbols.get(&source) {
                        Some((symbols, process)) => {
                            let mut namer = symbols.namer(process);
                            namer.at(chunk.at.drained);
                            builder.names(reader, rows, &mut namer);
                        }
                        None => builder.nulls(rows.len()),
                    },
                    None => builder.nulls(rows.len()),
                },
            }
        }
        rows.len()
    }
}
