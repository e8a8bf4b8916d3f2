//! Resolves names to fields.

use std::collections::HashSet;

use ppt_capture::columns::{EnumNames, FrameThreads, Reader, Time};
use ppt_frame_dsl::columns::free;
use ppt_frame_dsl::schema::Clock;
use ppt_frame_dsl::{Column, ColumnType, Measure, Style, columns};

use crate::ast::FieldName;
use crate::error::{PlacedProblem, Problem};
use crate::frame_kind::FrameKind;
use crate::number::NumberOrigin;
use crate::text_column::TextColumn;
use crate::types::Type;

/// A field of a kind of frame, as in tables for SQL.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub name: String,
    pub ty: Type,
    /// `@unit("B")`.
    pub unit: String,
    pub read: Read,
}

/// How the field is read.
#[derive(Debug, Clone)]
pub(crate) enum Read {
    Number(NumberOrigin),
    Text(TextColumn),
    /// The name, or the value if it has none.
    Enum {
        words: TextColumn,
        value: NumberOrigin,
        names: EnumNames,
    },
}

/// All fields of a kind of frame.
#[derive(Debug)]
pub(crate) struct ExpressionFields<'a> {
    kind: FrameKind<'a>,
    all: Vec<Field>,
}

/// The standard columns, which do not depend on the schema.
const STANDARD: [&str; 6] = ["seqno", "ring", "tid", "pid", "ts", "drained"];

impl<'a> ExpressionFields<'a> {
    pub fn new(kind: FrameKind<'a>) -> ExpressionFields<'a> {
        let own = columns(kind.schema, kind.frame, Style::Sql);
        let taken: HashSet<String> =
            own.iter().map(|column| column.name.to_ascii_lowercase()).collect();
        let own = own.iter().map(|column| field(&kind, column));
        let standard = STANDARD.iter().map(|name| {
            let time = || kind.frame.at().and_then(Time::from_field);
            let (ty, source) = match *name {
                "seqno" => (Type::Whole, NumberOrigin::Seqno),
                "ring" => (Type::Whole, NumberOrigin::Ring),
                "tid" => (Type::Whole, NumberOrigin::Tid(FrameThreads::from_schema(kind.schema))),
                "pid" => (Type::Whole, NumberOrigin::Pid),
                "ts" => (Type::Time, time().map_or(NumberOrigin::Nothing, NumberOrigin::Ts)),
                _ => (Type::Time, NumberOrigin::Drained(time())),
            };
            let read = Read::Number(source);
            Field { name: free(name, &taken), ty, unit: String::new(), read }
        });
        ExpressionFields { kind, all: own.chain(standard).collect() }
    }

    /// The field of that name.
    pub fn find(&self, name: &FieldName) -> Result<&Field, PlacedProblem> {
        let Some((last, before)) = name.parts.split_last() else {
            return Err(PlacedProblem::new(name.span.clone(), Problem::Constant));
        };
        let FrameKind { buffer, frame, .. } = self.kind;
        let mut wanted = before.iter().rev();
        for (part, is) in wanted.by_ref().zip([frame.name.as_str(), buffer]) {
            if part.text != is {
                let available = vec![is.to_owned()];
                let problem = Problem::NoKind { name: part.text.clone(), available };
                return Err(PlacedProblem::new(part.span.clone(), problem));
            }
        }
        self.all.iter().find(|field| field.name == last.text).ok_or_else(|| {
            let available = self.all.iter().map(|field| field.name.clone()).collect();
            PlacedProblem::new(
                last.span.clone(),
                Problem::NoField { name: last.text.clone(), available },
            )
        })
    }
}

/// A field of a kind of frame that an expression may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedField {
    /// The name, which is that of the column in tables for SQL.
    pub name: String,
    /// The type of the field.
    pub ty: Type,
    /// The unit from the frame file; may be empty.
    pub unit: String,
}

/// The fields of a kind of frame that an expression may name, without the standard ones.
pub fn named_fields(kind: FrameKind<'_>) -> Vec<NamedField> {
    let named = |column: &Column| {
        let Field { name, ty, unit, .. } = field(&kind, column);
        NamedField { name, ty, unit }
    };
    columns(kind.schema, kind.frame, Style::Sql).iter().map(named).collect()
}

fn field(kind: &FrameKind<'_>, column: &Column) -> Field {
    let reader = Reader::new(kind.schema, column);
    let names = reader.names().clone();
    let ty = match column.ty {
        ColumnType::Int(_) | ColumnType::Addr | ColumnType::Length { of: Measure::Int(_), .. } => {
            Type::Whole
        }
        ColumnType::F32 | ColumnType::Length { of: Measure::F32, .. } => Type::Single,
        ColumnType::F64 | ColumnType::Length { of: Measure::F64, .. } => Type::Double,
        ColumnType::Bool => Type::Bool,
        ColumnType::Duration | ColumnType::Length { .. } => Type::Duration,
        ColumnType::TimevalSeconds | ColumnType::TimevalMicroseconds => Type::Whole,
        ColumnType::Time(time) if time.clock().is_some_and(Clock::is_cpu) => Type::Duration,
        ColumnType::Time(_) => Type::Time,
        ColumnType::Enum { .. } => Type::Enum,
        ColumnType::Text { .. } => Type::Text,
        ColumnType::Bytes { .. } => Type::Bytes,
    };
    let is_plain = matches!(column.ty, ColumnType::Int(_) | ColumnType::Duration);
    let read = match column.ty {
        ColumnType::Text { .. } | ColumnType::Bytes { .. } => Read::Text(TextColumn(reader)),
        ColumnType::Enum { repr, .. } => {
            let value = Column { ty: ColumnType::Int(repr), ..column.clone() };
            let value = NumberOrigin::Column(Reader::new(kind.schema, &value), true);
            Read::Enum { words: TextColumn(reader), value, names }
        }
        _ => Read::Number(NumberOrigin::Column(reader, is_plain)),
    };
    let unit = kind.frame.fields[column.field].unit.clone();
    Field { name: column.name.clone(), ty, unit, read }
}
