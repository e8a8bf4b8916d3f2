//! Expressions over counters: `errors > 0`.
//!
//! Each counter is a number: the sum added since the last evaluation. A histogram is the number of
//! values added.

use std::collections::{BTreeMap, HashMap};

use ppt_capture::{ClockTable, FramesHead, Source, Stamps, TimeNamespace};
use ppt_frame_dsl::Schema;
use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::schema::{Extra, Field, FieldType, Frame};

use crate::error::ExpressionError;
use crate::frame_kind::FrameKind;
use crate::predicate::Predicate;
use crate::program::CheckedExpression;
use crate::row::{Chunk, PredicateRow};

/// An expression over the counters of sources.
#[derive(Debug)]
pub struct Counts {
    predicate: Predicate,
    sources: HashMap<usize, Counting>,
}

/// The counters of a source.
#[derive(Debug)]
struct Counting {
    metrics: Vec<Metric>,
    program: Option<CheckedExpression>,
}

impl Counts {
    /// An expression without sources.
    pub fn new(predicate: Predicate) -> Counts {
        Counts { predicate, sources: HashMap::new() }
    }

    /// Whether the expression fits the counters of these buffers.
    ///
    /// # Errors
    /// The expression names a counter that none of them has, or does not match the type of one.
    pub fn check<'a>(
        predicate: &Predicate,
        buffers: impl IntoIterator<Item = &'a Schema>,
    ) -> Result<(), ExpressionError> {
        let schemas: Vec<Schema> = buffers.into_iter().map(counting).collect();
        let kinds: Vec<FrameKind<'_>> = schemas.iter().map(kind).collect();
        predicate.compile(&kinds).map(|_| ())
    }

    /// Introduces sources, with numbers chosen by the caller. The expression is never true for a
    /// source without such counters.
    pub fn introduce(&mut self, new: &[(usize, &Source)]) {
        for &(number, source) in new {
            let Ok(schema) = Schema::from_json(&source.schema_json) else { continue };
            let fields = counting(&schema);
            let compiled = self.predicate.compile(&[kind(&fields)]);
            let program = compiled.ok().and_then(|mut all| all.pop().flatten());
            self.sources.insert(number, Counting { metrics: schema.metrics(), program });
        }
    }

    /// Whether the expression holds for the sums added to the cells of source `number`.
    pub fn is_true(&self, number: usize, added: &BTreeMap<u32, u64>) -> bool {
        let Some(Counting { metrics, program: Some(program) }) = self.sources.get(&number) else {
            return false;
        };
        let words = std::iter::once(0).chain(metrics.iter().map(|metric| value(metric, added)));
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let (clocks, head) = (ClockTable::default(), FramesHead::default());
        let stamps = Stamps::new(&clocks, 0, TimeNamespace { monotonic: 0, boottime: None });
        let chunk = Chunk { stamps: &stamps, offset: None, head: &head, pid: 0 };
        program.matches(&PredicateRow { chunk: &chunk, seqno: 0, bytes: &bytes }) == Some(true)
    }
}

/// The sum added to a counter, or the number of values added to a histogram.
fn value(metric: &Metric, added: &BTreeMap<u32, u64>) -> u64 {
    let of = |cell: u32| added.get(&cell).copied().unwrap_or_default();
    match metric.shape.is_histogram() {
        false => of(metric.cells.start),
        // The first cell is the sum.
        true => metric.cells.clone().skip(1).fold(0, |sum, cell| sum.wrapping_add(of(cell))),
    }
}

fn kind(schema: &Schema) -> FrameKind<'_> {
    FrameKind { buffer: &schema.buffer, schema, frame: &schema.frames[0] }
}

/// A schema whose only frame has a field for each counter of `schema`.
fn counting(schema: &Schema) -> Schema {
    let field = |(index, metric): (u32, Metric)| Field {
        name: metric.name,
        ty: if metric.shape == MetricShape::UpDownCounter {
            FieldType::I64
        } else {
            FieldType::U64
        },
        array: None,
        offset: 8 * (index + 1),
        interval: None,
        at: false,
        unit: if metric.shape.is_histogram() { String::new() } else { metric.unit },
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    let fields: Vec<Field> = (0..).zip(schema.metrics()).map(field).collect();
    let stride = 8 * (fields.len() as u32 + 1);
    let frame = Frame {
        name: schema.buffer.clone(),
        kind: "plain".to_owned(),
        size: stride,
        fields,
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    Schema {
        v: schema.v,
        buffer: schema.buffer.clone(),
        slots: schema.slots,
        stride,
        frames: vec![frame],
        enums: Vec::new(),
        tags: Vec::new(),
        extra: Extra::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = r#"[{"name":"errors","kind":"counter","type":"u64"},
        {"name":"users","kind":"counter","type":"i64"},
        {"name":"sizes","kind":"histogram","type":"u32","from":0,"to":4,"buckets":4},
        {"name":"bytes","kind":"counter","type":"u64","unit":"B"}]"#;

    fn source(metrics: &str) -> Source {
        let json = format!(
            r#"{{"v":1,"buffer":"game","slots":2,"stride":16,"frames":[{{"name":"ppt_none",
            "kind":"plain","size":16,"fields":[{{"name":"nothing","type":"u64","offset":8}}],
            "hidden":true}}],"metrics":{metrics}}}"#
        );
        Source { schema_json: json.into_bytes(), ..Source::default() }
    }

    fn is_true(text: &str, added: &[(u32, u64)]) -> bool {
        let mut counts = Counts::new(Predicate::parse(text).unwrap());
        counts.introduce(&[(3, &source(METRICS)), (4, &source("[]"))]);
        let added = added.iter().copied().collect();
        assert!(!counts.is_true(4, &added) && !counts.is_true(5, &added));
        counts.is_true(3, &added)
    }

    #[test]
    fn counters_are_numbers() {
        assert!(!is_true("errors > 0", &[]) && is_true("errors > 0", &[(0, 1)]));
        assert!(is_true("users < 0", &[(1, (-2i64) as u64)]) && !is_true("users < 0", &[(1, 2)]));
        // Cell 2 is the sum of the values, the others count them.
        assert!(is_true("sizes = 3", &[(2, 100), (3, 1), (5, 2)]));
        let last = Schema::from_json(&source(METRICS).schema_json).unwrap().cells() - 1;
        assert!(is_true("game.bytes >= 4KiB AND errors = 0", &[(last, 4096)]));
    }

    #[test]
    fn a_counter_that_is_not_there_is_refused() {
        let check = |text: &str| {
            let schema = Schema::from_json(&source(METRICS).schema_json).unwrap();
            let predicate = Predicate::parse(text).unwrap();
            Counts::check(&predicate, [&schema]).map_err(|error| error.to_string())
        };
        assert_eq!(check("errors > 1 AND users > 0"), Ok(()));
        assert!(check("error > 1").unwrap_err().contains("error"));
    }
}
