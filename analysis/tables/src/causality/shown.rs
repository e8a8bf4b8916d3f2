//! The tables of matching results, and their columns.

use arrow_schema::{DataType, Field, Schema};

use crate::builder::word_type;
use crate::standard::{STANDARD, Standard};

/// A table of matching results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchingTable {
    Edges,
    Unmatched,
    Counts,
}

/// An end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownEnd {
    Source,
    Destination,
}

/// A column of an end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndColumn {
    Standard(Standard),
    Point,
}

/// A column of `edges`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeColumn {
    End(ShownEnd, EndColumn),
    Kind,
    Type,
    Policy,
    Latency,
    LatencyLo,
    LatencyHi,
    Certainty,
}

const END_COLUMNS: [(&str, EndColumn); 10] = [
    ("capture", EndColumn::Standard(Standard::Capture)),
    ("buffer", EndColumn::Standard(Standard::Buffer)),
    ("segment", EndColumn::Standard(Standard::Segment)),
    ("ring", EndColumn::Standard(Standard::Ring)),
    ("seqno", EndColumn::Standard(Standard::Seqno)),
    ("host", EndColumn::Standard(Standard::Host)),
    ("pid", EndColumn::Standard(Standard::Pid)),
    ("tid", EndColumn::Standard(Standard::Tid)),
    ("point", EndColumn::Point),
    ("ts", EndColumn::Standard(Standard::Ts)),
];

const OWN_COLUMNS: [(&str, EdgeColumn); 7] = [
    ("kind", EdgeColumn::Kind),
    ("type", EdgeColumn::Type),
    ("policy", EdgeColumn::Policy),
    ("latency", EdgeColumn::Latency),
    ("latency_lo", EdgeColumn::LatencyLo),
    ("latency_hi", EdgeColumn::LatencyHi),
    ("certainty", EdgeColumn::Certainty),
];

/// The column of `edges` with this index.
pub(crate) fn edge_column(column: usize) -> EdgeColumn {
    let (all, ends) = (END_COLUMNS.len(), [ShownEnd::Source, ShownEnd::Destination]);
    match ends.get(column / all) {
        Some(&end) => EdgeColumn::End(end, END_COLUMNS[column % all].1),
        None => OWN_COLUMNS[column - 2 * all].1,
    }
}

/// A column of `unmatched` after the standard ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnmatchedColumn {
    Point,
    Side,
    Type,
    Hash,
    Reason,
}

pub(crate) const UNMATCHED_COLUMNS: [(&str, UnmatchedColumn); 5] = [
    ("point", UnmatchedColumn::Point),
    ("side", UnmatchedColumn::Side),
    ("type", UnmatchedColumn::Type),
    ("hash", UnmatchedColumn::Hash),
    ("reason", UnmatchedColumn::Reason),
];

/// The columns of `matching` after `type`.
pub(crate) const COUNTED: [&str; 8] = [
    "outs",
    "ins",
    "certain",
    "possible",
    "impossible",
    "unmatched_outs",
    "unmatched_ins",
    "unmatched_by_loss",
];

impl MatchingTable {
    /// The name of the table.
    pub fn table(self) -> &'static str {
        match self {
            MatchingTable::Edges => "edges",
            MatchingTable::Unmatched => "unmatched",
            MatchingTable::Counts => "matching",
        }
    }

    /// The columns of the table.
    pub fn schema(self) -> Schema {
        let field = |name: String, ty: DataType| Field::new(name, ty, true);
        let ns = |name: &str| {
            let unit = [("unit".to_owned(), "ns".to_owned())];
            field(name.to_owned(), DataType::Int64).with_metadata(unit.into())
        };
        let fields: Vec<Field> = match self {
            MatchingTable::Edges => {
                let ends = ["src", "dst"].into_iter().flat_map(|end| {
                    END_COLUMNS.iter().map(move |(name, column)| (format!("{end}_{name}"), column))
                });
                let ends = ends.map(|(name, column)| match column {
                    EndColumn::Standard(standard) => {
                        standard.field(&Default::default()).with_name(name)
                    }
                    EndColumn::Point => field(name, word_type()),
                });
                let own = OWN_COLUMNS.iter().map(|(name, column)| match column {
                    EdgeColumn::Latency | EdgeColumn::LatencyLo | EdgeColumn::LatencyHi => ns(name),
                    _ => field((*name).to_owned(), word_type()),
                });
                ends.chain(own).collect()
            }
            MatchingTable::Unmatched => {
                let standard = STANDARD.iter().map(|standard| standard.field(&Default::default()));
                let own = UNMATCHED_COLUMNS.iter().map(|(name, column)| match column {
                    UnmatchedColumn::Hash => field((*name).to_owned(), DataType::Utf8),
                    _ => field((*name).to_owned(), word_type()),
                });
                standard.chain(own).collect()
            }
            MatchingTable::Counts => {
                let counts = COUNTED.iter().map(|text| field((*text).to_owned(), DataType::Int64));
                [field("type".to_owned(), word_type())].into_iter().chain(counts).collect()
            }
        };
        Schema::new(fields)
    }
}
