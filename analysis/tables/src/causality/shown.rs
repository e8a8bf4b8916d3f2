//! The columns of what comes of matching.

use arrow_schema::{DataType, Field, Schema};

use crate::builder::word_type;
use crate::standard::{STANDARD, Standard};

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
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

/// What is said of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndColumn {
    Standard(Standard),
    Point,
}

/// A column of `edges`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeColumn {
    Of(ShownEnd, EndColumn),
    Kind,
    Type,
    Policy,
    Latency,
    LatencyLo,
    LatencyHi,
    Certainty,
}

const OF_END: [(&str, EndColumn); 10] = [
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

const OF_EDGE: [(&str, EdgeColumn); 7] = [
    ("kind", EdgeColumn::Kind),
    ("type", EdgeColumn::Type),
    ("policy", EdgeColumn::Policy),
    ("latency", EdgeColumn::Latency),
    ("latency_lo", EdgeColumn::LatencyLo),
    ("latency_hi", EdgeColumn::LatencyHi),
    ("certainty", EdgeColumn::Certainty),
];

/// A column of `edges` by its number.
pub(crate) fn edge_column(column: usize) -> EdgeColumn {
    let (all, ends) = (OF_END.len(), [ShownEnd::Source, ShownEnd::Destination]);
    match ends.get(column / all) {
        Some(&end) => EdgeColumn::Of(end, OF_END[column % all].1),
        None => OF_EDGE[column - 2 * all].1,
    }
}

/// A column of `unmatched` behind the standard ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftColumn {
    Point,
    Side,
    Type,
    Hash,
    Reason,
}

pub(crate) const LEFT: [(&str, LeftColumn); 5] = [
    ("point", LeftColumn::Point),
    ("side", LeftColumn::Side),
    ("type", LeftColumn::Type),
    ("hash", LeftColumn::Hash),
    ("reason", LeftColumn::Reason),
];

/// The columns of `matching` behind `type`.
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

impl Shows {
    /// The name of the table.
    pub fn table(self) -> &'static str {
        match self {
            Shows::Edges => "edges",
            Shows::Unmatched => "unmatched",
            Shows::Counts => "matching",
        }
    }

    /// All its columns.
    pub fn schema(self) -> Schema {
        let field = |name: String, ty: DataType| Field::new(name, ty, true);
        let ns = |name: &str| {
            let unit = [("unit".to_owned(), "ns".to_owned())];
            field(name.to_owned(), DataType::Int64).with_metadata(unit.into())
        };
        let fields: Vec<Field> = match self {
            Shows::Edges => {
                let ends = ["src", "dst"].into_iter().flat_map(|end| {
                    OF_END.iter().map(move |(name, what)| (format!("{end}_{name}"), what))
                });
                let ends = ends.map(|(name, what)| match what {
                    EndColumn::Standard(it) => it.field(&Default::default()).with_name(name),
                    EndColumn::Point => field(name, word_type()),
                });
                let own = OF_EDGE.iter().map(|(name, column)| match column {
                    EdgeColumn::Latency | EdgeColumn::LatencyLo | EdgeColumn::LatencyHi => ns(name),
                    _ => field((*name).to_owned(), word_type()),
                });
                ends.chain(own).collect()
            }
            Shows::Unmatched => {
                let standard = STANDARD.iter().map(|standard| standard.field(&Default::default()));
                let own = LEFT.iter().map(|(name, column)| match column {
                    LeftColumn::Hash => field((*name).to_owned(), DataType::Utf8),
                    _ => field((*name).to_owned(), word_type()),
                });
                standard.chain(own).collect()
            }
            Shows::Counts => {
                let counts = COUNTED.iter().map(|text| field((*text).to_owned(), DataType::Int64));
                [field("type".to_owned(), word_type())].into_iter().chain(counts).collect()
            }
        };
        Schema::new(fields)
    }
}
