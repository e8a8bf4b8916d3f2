//! The columns of tables of spans and chains.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ppt_capture::frame_dsl::columns::{WholeColumn, WholePart, free, whole_columns};
use ppt_capture::frame_dsl::role::SpanHalf;

use super::form::version;
use super::frames::KeyedFrames;
use crate::builder::{timestamp, word_type};
use crate::chunk_row_source::ChunkRowSource;
use crate::standard::STANDARD;
use crate::tables::frame::FrameOfSource;

/// A column of a table of spans or chains, for all schemas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tables) enum SpanOrChainColumn {
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
pub(in crate::tables) fn whole_schema(
    frames: &KeyedFrames,
    kinds: &[FrameOfSource<'_>],
) -> (Vec<SpanOrChainColumn>, SchemaRef) {
    let mut found: Vec<(SpanOrChainColumn, String)> = Vec::new();
    let mut seen = HashSet::new();
    for kind in kinds.iter().filter(|kind| seen.insert(version(kind))) {
        let steps = kind.frame.steps(&kind.info.schema);
        let step = |n: usize| steps.get(n).map(|step| step.0.clone()).unwrap_or_default();
        for WholeColumn { name, part } in whole_columns(&kind.info.schema, kind.frame) {
            let column = match part {
                WholePart::Key(column) => SpanOrChainColumn::Key(column.name),
                WholePart::Dur => SpanOrChainColumn::Dur,
                WholePart::Where(name) => {
                    let place = STANDARD.iter().position(|standard| standard.name() == name);
                    SpanOrChainColumn::Where(place.unwrap_or_default())
                }
                WholePart::Begin(column) => SpanOrChainColumn::Begin(column.name),
                WholePart::End(column) => SpanOrChainColumn::End(column.name),
                WholePart::Total => SpanOrChainColumn::Total,
                WholePart::Step(n) => SpanOrChainColumn::Step(step(n)),
                WholePart::Between(n) => SpanOrChainColumn::Between(step(n), step(n + 1)),
                WholePart::State => SpanOrChainColumn::State,
            };
            if !found.iter().any(|entry| entry.0 == column) {
                found.push((column, name));
            }
        }
    }
    // The order of columns in one schema; columns of other schemas follow those of their kind.
    let order = |column: &SpanOrChainColumn| match column {
        SpanOrChainColumn::Standard(_) => 0,
        SpanOrChainColumn::Key(_) => 1,
        SpanOrChainColumn::Dur | SpanOrChainColumn::Total => 2,
        SpanOrChainColumn::Where(_) => 3,
        SpanOrChainColumn::Begin(_) | SpanOrChainColumn::Step(_) => 4,
        SpanOrChainColumn::End(_) | SpanOrChainColumn::Between(..) => 5,
        SpanOrChainColumn::State => 6,
    };
    found.sort_by_key(|entry| order(&entry.0));
    // Keys keep their names. Names may collide if the schema is not from a frame file.
    let mut taken = HashSet::new();
    let mut own = Vec::new();
    let mut columns = Vec::new();
    for (column, name) in found {
        let name = free(&name, &taken);
        taken.insert(name.to_ascii_lowercase());
        own.push(field(frames, &column, &name));
        columns.push(column);
    }
    let standard = STANDARD.iter().map(|standard| standard.field(&taken));
    let schema = Schema::new(standard.chain(own).collect::<Vec<_>>());
    (
        (0..STANDARD.len()).map(SpanOrChainColumn::Standard).chain(columns).collect(),
        Arc::new(schema),
    )
}

fn field(frames: &KeyedFrames, column: &SpanOrChainColumn, name: &str) -> Field {
    let like = |place: usize| frames.frames.schema().field(place).clone().with_name(name);
    let metadata_of = |entries: &[(&str, &str)]| {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        entries.iter().map(owned).collect::<HashMap<_, _>>()
    };
    let ns = |role: &str| {
        let metadata = metadata_of(&[("unit", "ns"), ("role", role)]);
        Field::new(name, DataType::Int64, true).with_metadata(metadata)
    };
    let of_frames =
        |of: &str| frames.column(of).map_or_else(|| Field::new(name, DataType::Null, true), like);
    let of_half = |half: SpanHalf, of: &str| {
        let field = of_frames(of);
        let mut metadata = field.metadata().clone();
        metadata.extend(metadata_of(&[("half", half.word()), ("of", of)]));
        field.with_metadata(metadata)
    };
    match column {
        SpanOrChainColumn::Key(of) => of_frames(of),
        SpanOrChainColumn::Begin(of) => of_half(SpanHalf::Begin, of),
        SpanOrChainColumn::End(of) => of_half(SpanHalf::End, of),
        SpanOrChainColumn::Standard(place) => like(*place),
        SpanOrChainColumn::Where(place) => {
            like(*place).with_metadata(metadata_of(&[("role", "where")]))
        }
        SpanOrChainColumn::Dur => ns("dur"),
        SpanOrChainColumn::Total => ns("total"),
        SpanOrChainColumn::Between(..) => ns("between"),
        SpanOrChainColumn::Step(_) => {
            Field::new(name, timestamp(), true).with_metadata(metadata_of(&[("role", "step")]))
        }
        SpanOrChainColumn::State => {
            Field::new(name, word_type(), true).with_metadata(metadata_of(&[("role", "state")]))
        }
    }
}
