//! Counters and histograms: numbers that programs accumulate, without a frame for each event.
//!
//! The JSON of a schema lists them under a separate key, in declared order. A reader that does not
//! know this key finds a buffer without any. For the same reason the hash of the layout does not
//! cover them: [`Schema::roles_hash`] does.
//!
//! ```text
//! "metrics":[{"name":"bytes_in","kind":"counter","type":"u64","unit":"B"},
//!            {"name":"handling","kind":"histogram","type":"duration"},
//!            {"name":"queue","kind":"histogram","type":"u32","from":0,"to":1024,"buckets":64}]
//! ```
//!
//! Each consists of cells, u64 words. A *row* has the cells of all of them, in declared order. A
//! counter has one cell. A histogram has the sum of its values (modulo 2^64), the number of values
//! below its first bucket, the number in each bucket, and, if it is linear, the number above the
//! last bucket.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::names::is_identifier;
use crate::schema::{Attribute, FieldType, Frame, Schema};

/// Most counters and histograms of a buffer.
pub const MAX_METRICS: usize = 256;
/// Most buckets of a linear histogram.
pub const MAX_BUCKETS: u32 = 4096;
/// Buckets of an exponential histogram.
pub const EXPONENTIAL_BUCKETS: u32 = 960;
/// Buckets per power of two in an exponential histogram.
const PARTS: u32 = 16;
/// Cells of a histogram before its first bucket: the sum, and the number of values below.
const BEFORE_BUCKETS: u32 = 2;

/// Key of the list in a schema.
pub(crate) const METRICS: &str = "metrics";
/// Key of a frame that exists only because readers of the first release expect one.
pub(crate) const HIDDEN: &str = "hidden";
/// Name of such a frame, and of its field.
#[cfg(feature = "parser")]
pub(crate) const HIDDEN_FRAME: (&str, &str) = ("ppt_none", "nothing");

/// A counter or a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Name as the frame file spells it.
    pub name: String,
    /// The type of the metric.
    pub shape: MetricShape,
    /// `@unit("B")`. Without one, durations are in ns.
    pub unit: String,
    /// `///` lines, joined by newlines.
    pub doc: String,
    /// Attributes as written, known or not.
    pub attributes: Vec<Attribute>,
    /// The cells of the metric in a row.
    pub cells: Range<u32>,
}

/// The shape of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricShape {
    /// Only increases: `u64`.
    Counter,
    /// Increases and decreases: `i64` in two's complement.
    UpDownCounter,
    /// Durations in ns. Each bucket is at most a 16th as wide as its lowest value.
    Exponential,
    /// Values of type `u32`.
    Linear {
        /// The lowest value of the first bucket.
        from: u64,
        /// The end of the last bucket: at most 2^32.
        to: u64,
        /// Number of buckets, at most `to - from`.
        buckets: u32,
    },
}

impl MetricShape {
    /// Number of its cells.
    pub fn cells(self) -> u32 {
        match self {
            MetricShape::Counter | MetricShape::UpDownCounter => 1,
            MetricShape::Exponential => BEFORE_BUCKETS + EXPONENTIAL_BUCKETS,
            MetricShape::Linear { buckets, .. } => BEFORE_BUCKETS + buckets + 1,
        }
    }

    /// Whether it is a histogram.
    pub fn is_histogram(self) -> bool {
        matches!(self, MetricShape::Exponential | MetricShape::Linear { .. })
    }

    /// `counter` or `histogram`.
    pub fn kind(self) -> &'static str {
        if self.is_histogram() { "histogram" } else { "counter" }
    }

    /// The word in the name of the function that adds to it.
    pub fn verb(self) -> &'static str {
        if self.is_histogram() { "observe" } else { "add" }
    }

    /// The type of its values, as a frame file spells it.
    pub fn ty(self) -> &'static str {
        match self {
            MetricShape::Counter => "u64",
            MetricShape::UpDownCounter => "i64",
            MetricShape::Exponential => "duration",
            MetricShape::Linear { .. } => "u32",
        }
    }

    /// The values that cell `cell` of a histogram counts: `lo ≤ value < hi`, with `None` for a
    /// missing bound. `None` for its sum, for counters, and for cells out of range.
    pub fn bucket(self, cell: u32) -> Option<(Option<i128>, Option<i128>)> {
        let index = || cell.checked_sub(BEFORE_BUCKETS);
        match self {
            MetricShape::Exponential if cell == BEFORE_BUCKETS - 1 => Some((None, Some(0))),
            MetricShape::Exponential => {
                let index = index().filter(|&index| index < EXPONENTIAL_BUCKETS)?;
                Some((Some(exponential(index)), Some(exponential(index + 1))))
            }
            MetricShape::Linear { from, .. } if cell == BEFORE_BUCKETS - 1 => {
                Some((None, Some(from.into())))
            }
            MetricShape::Linear { from, to, buckets } => {
                let least = |index: u32| {
                    let width = u128::from(to - from);
                    let part = (width * u128::from(index)).div_ceil(buckets.into());
                    i128::from(from) + part as i128
                };
                match index()? {
                    index if index < buckets => Some((Some(least(index)), Some(least(index + 1)))),
                    index if index == buckets => Some((Some(to.into()), None)),
                    _ => None,
                }
            }
            MetricShape::Counter | MetricShape::UpDownCounter => None,
        }
    }

    fn is_sound(self) -> bool {
        match self {
            MetricShape::Linear { from, to, buckets } => {
                from < to
                    && to <= 1 << 32
                    && (1..=MAX_BUCKETS).contains(&buckets)
                    && u64::from(buckets) <= to - from
            }
            _ => true,
        }
    }
}

/// The lowest value of a bucket; 2^63 for the index after the last.
fn exponential(index: u32) -> i128 {
    match index.checked_sub(PARTS) {
        None => index.into(),
        Some(rest) => i128::from(PARTS + rest % PARTS) << (rest / PARTS),
    }
}

/// A metric in JSON.
#[derive(Serialize, Deserialize)]
struct MetricText {
    name: String,
    kind: String,
    #[serde(rename = "type")]
    ty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unit: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    doc: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<Attribute>,
}

impl MetricText {
    #[cfg(feature = "parser")]
    fn from_metric(metric: &Metric) -> MetricText {
        let (from, to, buckets) = match metric.shape {
            MetricShape::Linear { from, to, buckets } => (Some(from), Some(to), Some(buckets)),
            _ => (None, None, None),
        };
        MetricText {
            name: metric.name.clone(),
            kind: metric.shape.kind().to_owned(),
            ty: metric.shape.ty().to_owned(),
            from,
            to,
            buckets,
            unit: metric.unit.clone(),
            doc: metric.doc.clone(),
            attributes: metric.attributes.clone(),
        }
    }

    /// The metric with cells from `first` on, if it is valid.
    fn metric(self, first: u32) -> Option<Metric> {
        let range = (self.from, self.to, self.buckets);
        let shape = match (self.kind.as_str(), self.ty.as_str(), range) {
            ("counter", "u64", (None, None, None)) => MetricShape::Counter,
            ("counter", "i64", (None, None, None)) => MetricShape::UpDownCounter,
            ("histogram", "duration", (None, None, None)) => MetricShape::Exponential,
            ("histogram", "u32", (Some(from), Some(to), Some(buckets))) => {
                MetricShape::Linear { from, to, buckets }
            }
            _ => return None,
        };
        let sound = shape.is_sound() && is_identifier(&self.name);
        sound.then(|| Metric {
            name: self.name,
            shape,
            unit: self.unit,
            doc: self.doc,
            attributes: self.attributes,
            cells: first..first + shape.cells(),
        })
    }
}

/// The JSON of metrics, as the value of a schema's key.
#[cfg(feature = "parser")]
pub(crate) fn to_json(metrics: &[Metric]) -> serde_json::Value {
    let texts: Vec<_> = metrics.iter().map(MetricText::from_metric).collect();
    serde_json::to_value(texts).expect("a metric has a JSON text")
}

impl Schema {
    /// The counters and histograms, in declared order. A schema may be untrusted: if the list is
    /// invalid or of a later version, the buffer has none.
    pub fn metrics(&self) -> Vec<Metric> {
        self.metrics_of_json().unwrap_or_default()
    }

    fn metrics_of_json(&self) -> Option<Vec<Metric>> {
        let texts = self.extra.get(METRICS)?.as_array()?;
        if texts.len() > MAX_METRICS {
            return None;
        }
        let mut metrics: Vec<Metric> = Vec::with_capacity(texts.len());
        for text in texts {
            let text = MetricText::deserialize(text).ok()?;
            let metric = text.metric(cells(&metrics))?;
            if metrics.iter().any(|other| other.name == metric.name) {
                return None;
            }
            metrics.push(metric);
        }
        Some(metrics)
    }

    /// Cells of one row.
    pub fn cells(&self) -> u32 {
        cells(&self.metrics())
    }
}

fn cells(metrics: &[Metric]) -> u32 {
    metrics.last().map_or(0, |last| last.cells.end)
}

impl Schema {
    /// Unhides frames that are not stand-ins. A frame is hidden only if it can be the stand-in of a
    /// file with counters only; programs may write any other frame that a schema marks as hidden.
    pub(crate) fn show_what_is_no_stand_in(&mut self) {
        let is_alone = self.frames.len() == 1 && !self.metrics().is_empty();
        for frame in &mut self.frames {
            let is_empty = match &frame.fields[..] {
                [field] => field.ty == FieldType::U64 && field.array.is_none(),
                _ => false,
            };
            if !(is_alone && is_empty && frame.size == 16) {
                frame.extra.remove(HIDDEN);
            }
        }
    }
}

impl Frame {
    /// Whether the frame exists only because readers of the first release expect one. It is never
    /// written, and tables do not show it.
    pub fn is_hidden(&self) -> bool {
        self.extra.get(HIDDEN).is_some_and(|value| *value == true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"v":1,"buffer":"b","slots":2,"stride":16,"frames":[{"name":"ppt_none","kind":"plain","size":16,"fields":[{"name":"nothing","type":"u64","offset":8}],"hidden":true}],"metrics":[{"name":"a","kind":"counter","type":"u64","unit":"B"},{"name":"h","kind":"histogram","type":"duration"},{"buckets":4,"from":10,"kind":"histogram","name":"l","to":20,"type":"u32"},{"name":"d","kind":"counter","type":"i64"}]}"#;

    fn metrics(from: &str, to: &str) -> Vec<Metric> {
        let text = TEXT.replacen(from, to, 1);
        assert!(from == to || text != TEXT, "`{from}` is not in the text");
        Schema::from_json(text.as_bytes()).unwrap().metrics()
    }

    #[test]
    fn cells_follow_each_other() {
        let all = metrics("", "");
        let cells = all.iter().map(|metric| metric.cells.clone()).collect::<Vec<_>>();
        assert_eq!(cells, [0..1, 1..963, 963..970, 970..971]);
        let shapes = [MetricShape::Counter, MetricShape::Exponential];
        assert_eq!([all[0].shape, all[1].shape], shapes);
        assert_eq!(all[2].shape, MetricShape::Linear { from: 10, to: 20, buckets: 4 });
        let schema = Schema::from_json(TEXT.as_bytes()).unwrap();
        assert_eq!(schema.cells(), 971);
        assert!(schema.frames[0].is_hidden());
    }

    #[test]
    fn only_what_stands_in_for_frames_is_hidden() {
        let is_hidden = |from: &str, to: &str| {
            let text = TEXT.replacen(from, to, 1);
            assert!(text != TEXT, "`{from}` is not in the text");
            let schema = Schema::from_json(text.as_bytes()).unwrap();
            schema.frames.iter().any(Frame::is_hidden)
        };
        let (_, metrics) = TEXT.split_once(r#","metrics":"#).unwrap();
        let metrics = format!(r#","metrics":{}"#, &metrics[..metrics.len() - 1]);
        assert!(is_hidden(r#""name":"nothing""#, r#""name":"other""#));
        assert!(!is_hidden(&metrics, ""), "no counters");
        assert!(!is_hidden(r#""type":"u64","offset""#, r#""type":"i64","offset""#));
        assert!(!is_hidden(
            r#""type":"u64","offset":8}"#,
            r#""type":"u32","offset":8},{"name":"b","type":"u32","offset":12}"#
        ));
        let larger = TEXT.replace("16", "24");
        let schema = Schema::from_json(larger.as_bytes()).unwrap();
        assert!(!schema.frames[0].is_hidden(), "it has more room");
    }

    #[test]
    fn what_makes_no_sense_is_no_metric() {
        for (from, to) in [
            (r#""type":"u64","unit""#, r#""type":"f64","unit""#),
            (r#""kind":"counter""#, r#""kind":"meter""#),
            (r#""name":"a""#, r#""name":"h""#),
            (r#""name":"a""#, r#""name":"a b""#),
            (r#""to":20"#, r#""to":10"#),
            (r#""to":20"#, r#""to":4294967297"#),
            (r#""to":20"#, r#""to":13"#),
            (r#""buckets":4"#, r#""buckets":0"#),
            (r#""buckets":4,"#, ""),
            (r#""type":"duration""#, r#""type":"duration","from":1"#),
            (r#""metrics":["#, r#""metrics":[1,"#),
        ] {
            assert_eq!(metrics(from, to), [], "{to}");
        }
    }

    #[test]
    fn buckets_touch() {
        let linear = MetricShape::Linear { from: 10, to: 20, buckets: 4 };
        for (shape, above) in [(MetricShape::Exponential, false), (linear, true)] {
            let buckets: Vec<_> =
                (1..shape.cells()).map(|number| shape.bucket(number).unwrap()).collect();
            for pair in buckets.windows(2) {
                assert_eq!(pair[0].1, pair[1].0);
            }
            assert_eq!((buckets[0].0, buckets.last().unwrap().1.is_none()), (None, above));
            assert_eq!((shape.bucket(0), shape.bucket(shape.cells())), (None, None));
        }
        assert_eq!(MetricShape::Exponential.bucket(961).unwrap().1, Some(1 << 63));
        let bounds: Vec<_> =
            (2..6).map(|number| linear.bucket(number).unwrap().0.unwrap()).collect();
        assert_eq!(bounds, [10, 13, 15, 18]);
    }
}
