//! The graph of points: its edges, with their numbers and latencies. `ppt graph` shows it.

mod paths;
mod wakes;

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::expr_fn::{count, count_distinct, sum};
use datafusion::logical_expr::{cast as cast_to, lit};
use datafusion::prelude::ident;
use futures::StreamExt;
use ppt_stats::{Budget, Samples, SummaryNumber};

use crate::causality::Texts;
use crate::engine::{BoxedAnswer, Engine};
use crate::error::QueryError;
pub use paths::{
    GraphPath, GraphPaths, MissingEdge, PathDisconnection, PathStep, PlaceShare, Stage,
};
pub use wakes::ThreadWakes;

/// Bytes that latencies may take before they are rounded to three digits.
const BUDGET: usize = 256 << 20;

/// The points of captures, and the edges between them.
#[derive(Debug, Clone, PartialEq)]
pub struct PointGraph {
    /// All points, in the order of their names.
    pub points: Vec<GraphPoint>,
    /// All edges, the most frequent first.
    pub edges: Vec<PointEdge>,
    /// Identities that entered or left points without an edge.
    pub unmatched: Vec<Unmatched>,
    /// The numbers of matched identities, by hash type.
    pub types: Vec<Matching>,
    /// Points that edge lines name but no program has.
    pub unknown: Vec<String>,
    /// Edge lines that can match nothing: nothing that leaves the first point can enter the second.
    pub idle: Vec<(String, String)>,
}

/// A kind of frames that are points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphPoint {
    /// The name, with the buffer: `BUFFER.POINT`.
    pub name: String,
    /// The number of frames.
    pub frames: u64,
    /// The number of processes with such frames.
    pub processes: u64,
}

/// All edges from one point to another that have the same kind, type and policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PointEdge {
    /// The point of the causes, with its buffer.
    pub from: String,
    /// The point of the effects, with its buffer.
    pub to: String,
    /// `hash`, `span` or `chain`.
    pub kind: String,
    /// The hash type, if the kind is `hash`.
    pub of: Option<String>,
    /// The policy by which they were matched, if the kind is `hash`.
    pub policy: Option<String>,
    /// The number of edges.
    pub count: u64,
    /// The number of edges that are not certain.
    pub possible: u64,
    /// The sum of the edges' latencies, in ns.
    pub time: i128,
    /// The share of that sum in the latencies of all edges, 0 to 1.
    pub share: f64,
    /// The smallest latency, in ns.
    pub min: i64,
    /// The largest latency, in ns.
    pub max: i64,
    /// The median latency, in ns.
    pub p50: f64,
    /// The 99th percentile of the latency, in ns.
    pub p99: f64,
}

/// Identities without an edge, for one point and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The point, without its buffer.
    pub point: String,
    /// `in`: it entered the point, but no edge leads here. `out`: it left the point, but no edge leads on.
    pub side: String,
    /// The hash type.
    pub of: String,
    /// `loss`: the other side may be among the missing frames. `none`: there is none.
    pub reason: String,
    /// The number of identities.
    pub count: u64,
}

/// The numbers of matched identities of a hash type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matching {
    /// The hash type.
    pub of: String,
    /// The number of identities that left points.
    pub outs: u64,
    /// The number of identities that entered points.
    pub ins: u64,
    /// The number of certain edges.
    pub certain: u64,
    /// The number of possible edges: the bounds of cause and effect overlap.
    pub possible: u64,
    /// The number of pairs with equal identities whose effect is before their cause.
    pub impossible: u64,
}

impl Matching {
    /// Whether nothing of this type was matched.
    pub fn never_met(&self) -> bool {
        self.certain + self.possible == 0
    }
}

impl PointGraph {
    /// The number of edges that are not certain.
    pub fn possible(&self) -> u64 {
        self.edges.iter().map(|edge| edge.possible).sum()
    }
}

impl Engine {
    /// The graph of all points that the engine shows.
    ///
    /// # Errors
    /// A capture cannot be read, clocks of hosts cannot be compared, an identity has too many edges, or the query
    /// is cancelled or exceeds its memory.
    pub fn point_graph(&self) -> BoxedAnswer<'_, PointGraph> {
        Box::pin(async move {
            let points = self.all_points().await?;
            let (unknown, idle) = (self.set().unknown_points(), self.set().idle_edges());
            let edges = self.point_edges().await?;
            let unmatched = self.all_unmatched().await?;
            let types = self.all_types().await?;
            Ok(PointGraph { points, edges, unmatched, types, unknown, idle })
        })
    }

    async fn all_points(&self) -> Result<Vec<GraphPoint>, QueryError> {
        let word = |name: &str| cast_to(ident(name), DataType::Utf8);
        // A frame with two identities has two rows.
        let frame = ["capture", "segment", "ring", "seqno", "buffer", "point", "pid"];
        let rows = self.context().table("points").await?;
        let rows = rows.select(frame.map(ident).to_vec())?.distinct()?;
        let by = vec![word("buffer").alias("b"), word("point").alias("p")];
        let rows = rows.aggregate(
            by,
            vec![count(lit(1)).alias("n"), count_distinct(ident("pid")).alias("m")],
        )?;
        let rows = rows.sort(vec![ident("b").sort(true, false), ident("p").sort(true, false)])?;
        let mut points = Vec::new();
        for batch in rows.collect().await? {
            let (buffers, names) = (Texts::new(&batch, 0)?, Texts::new(&batch, 1)?);
            for row in 0..batch.num_rows() {
                points.push(GraphPoint {
                    name: format!("{}.{}", buffers.get(row), names.get(row)),
                    frames: long(&batch, 2, row),
                    processes: long(&batch, 3, row),
                });
            }
        }
        Ok(points)
    }

    async fn point_edges(&self) -> Result<Vec<PointEdge>, QueryError> {
        let columns = [
            "src_buffer",
            "src_point",
            "dst_buffer",
            "dst_point",
            "kind",
            "type",
            "policy",
            "certainty",
            "latency",
        ];
        let kinds = ["hash", "span", "chain"].map(lit).to_vec();
        let rows = self.context().table("edges").await?;
        let rows = rows.filter(ident("kind").in_list(kinds, false))?;
        let rows = rows.select(columns.map(ident).to_vec())?;
        let mut rows = rows.execute_stream().await?;
        let budget = Budget::new(BUDGET);
        let mut found: BTreeMap<Vec<String>, (u64, Samples<i64>)> = BTreeMap::new();
        while let Some(batch) = rows.next().await.transpose()? {
            let texts = (0..8).map(|at| Texts::new(&batch, at)).collect::<Result<Vec<_>, _>>()?;
            let latency = cast(batch.column(8), &DataType::Int64).map_err(DataFusionError::from)?;
            let latency = latency.as_primitive::<Int64Type>();
            // Most rows of a batch share their key with others, so they are grouped first.
            let mut of_batch: BTreeMap<[usize; 8], (u64, Vec<i64>)> = BTreeMap::new();
            for row in (0..batch.num_rows()).filter(|&row| latency.is_valid(row)) {
                let key = std::array::from_fn(|at| texts[at].key(row));
                let entry = of_batch.entry(key).or_default();
                entry.0 += u64::from(texts[7].get(row) == "possible");
                entry.1.push(latency.value(row));
            }
            for (key, (possible, times)) in of_batch {
                let name = (0..7).map(|at| texts[at].text_of(key[at]).to_owned()).collect();
                let entry = found.entry(name).or_insert_with(|| (0, Samples::new(&budget)));
                entry.0 += possible;
                entry.1.extend(&times);
            }
        }
        let edge = |(name, (possible, times)): (Vec<String>, (u64, Samples<i64>))| {
            let summary = times.finish();
            let time = match summary.sum {
                SummaryNumber::Whole(sum) => sum,
                SummaryNumber::Real(sum) => sum as i128,
            };
            let whole = |number: Option<SummaryNumber>| match number {
                Some(SummaryNumber::Whole(number)) => i64::try_from(number).unwrap_or(i64::MAX),
                _ => 0,
            };
            let some = |text: &String| (!text.is_empty()).then(|| text.clone());
            let [p50, _, p99, _] =
                summary.percentiles_as_floats().map(|percentile| percentile.unwrap_or(0.0));
            PointEdge {
                from: format!("{}.{}", name[0], name[1]),
                to: format!("{}.{}", name[2], name[3]),
                kind: name[4].clone(),
                of: some(&name[5]),
                policy: some(&name[6]),
                count: summary.count,
                possible,
                time,
                share: 0.0,
                min: whole(summary.min),
                max: whole(summary.max),
                p50,
                p99,
            }
        };
        let mut edges: Vec<PointEdge> = found.into_iter().map(edge).collect();
        let all: i128 = edges.iter().map(|edge| edge.time).sum();
        if all > 0 {
            edges.iter_mut().for_each(|edge| edge.share = edge.time as f64 / all as f64);
        }
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.count));
        Ok(edges)
    }

    async fn all_unmatched(&self) -> Result<Vec<Unmatched>, QueryError> {
        let by = ["point", "side", "type", "reason"];
        let by = by.map(|name| cast_to(ident(name), DataType::Utf8).alias(name)).to_vec();
        let rows = self.context().table("unmatched").await?;
        let rows = rows.aggregate(by, vec![count(lit(1)).alias("n")])?;
        let mut all = Vec::new();
        for batch in rows.collect().await? {
            let texts = (0..4).map(|at| Texts::new(&batch, at)).collect::<Result<Vec<_>, _>>()?;
            let text = |at: usize, row| texts[at].get(row).to_owned();
            all.extend((0..batch.num_rows()).map(|row| Unmatched {
                point: text(0, row),
                side: text(1, row),
                of: text(2, row),
                reason: text(3, row),
                count: long(&batch, 4, row),
            }));
        }
        all.sort_by(|a, b| {
            let key = |unmatched: &Unmatched| {
                (
                    unmatched.point.clone(),
                    unmatched.side.clone(),
                    unmatched.of.clone(),
                    unmatched.reason.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        Ok(all)
    }

    async fn all_types(&self) -> Result<Vec<Matching>, QueryError> {
        let columns = ["outs", "ins", "certain", "possible", "impossible"];
        let sums = columns.map(|name| sum(ident(name)).alias(name)).to_vec();
        let of = cast_to(ident("type"), DataType::Utf8).alias("of");
        let rows = self.context().table("matching").await?.aggregate(vec![of], sums)?;
        let mut all = Vec::new();
        for batch in rows.collect().await? {
            let of = Texts::new(&batch, 0)?;
            all.extend((0..batch.num_rows()).map(|row| Matching {
                of: of.get(row).to_owned(),
                outs: long(&batch, 1, row),
                ins: long(&batch, 2, row),
                certain: long(&batch, 3, row),
                possible: long(&batch, 4, row),
                impossible: long(&batch, 5, row),
            }));
        }
        all.sort_by(|a, b| a.of.cmp(&b.of));
        Ok(all)
    }
}

fn long(batch: &RecordBatch, column: usize, row: usize) -> u64 {
    let column = cast(batch.column(column), &DataType::Int64);
    let value = column.ok().and_then(|column| {
        let array = column.as_primitive::<Int64Type>();
        array.is_valid(row).then(|| array.value(row))
    });
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}
