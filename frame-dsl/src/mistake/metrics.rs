//! Mistakes in counters and histograms.

use super::names::NameKind;
use crate::metric::{MAX_BUCKETS, MAX_METRICS};
use crate::wording::{Short, Wording, say};

/// A mistake in a counter or a histogram.
#[derive(Debug, Clone)]
pub(crate) enum MetricMistake {
    TooManyMetrics { count: usize },
    MetricAndOther { kind: NameKind, name: String, other: NameKind },
    MetricMethod { kind: NameKind, name: String },
    CounterType { word: String, suggestion: Option<&'static str> },
    HistogramType { word: String, suggestion: Option<&'static str> },
    NoRange,
    RangeOfDurations,
    RangeForm { count: usize },
    RangeValue { value: i128 },
    RangeOrder { from: i128, to: i128 },
    Buckets { buckets: i128, most: i128 },
    AttributeOnMetric { name: String },
}

impl MetricMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            MetricMistake::TooManyMetrics { .. } => "too-many-metrics",
            MetricMistake::MetricAndOther { .. } => "duplicate-name",
            MetricMistake::MetricMethod { .. } => "method-name",
            MetricMistake::CounterType { .. } => "unknown-type",
            MetricMistake::HistogramType { .. } => "unknown-type",
            MetricMistake::NoRange => "histogram-form",
            MetricMistake::RangeOfDurations => "histogram-form",
            MetricMistake::RangeForm { .. } => "histogram-form",
            MetricMistake::RangeValue { .. } => "histogram-range",
            MetricMistake::RangeOrder { .. } => "histogram-range",
            MetricMistake::Buckets { .. } => "histogram-range",
            MetricMistake::AttributeOnMetric { .. } => "attribute-place",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            MetricMistake::TooManyMetrics { count } => say(
                format!("{count} counters and histograms; a buffer has at most {MAX_METRICS}"),
                "the first one too many",
            )
            .help("put some of them into another frame file"),
            MetricMistake::MetricAndOther { kind, name, other } => say(
                format!(
                    "`{}` is the name of {} and of a {kind}",
                    Short(name),
                    with_article(*other)
                ),
                "both are types in C++ and Rust",
            ),
            MetricMistake::MetricMethod { kind, name } => say(
                format!("a {kind} cannot be called `{name}`"),
                "C++ has a function of this name inside each of them",
            )
            .other_name(name),
            MetricMistake::CounterType { word, suggestion } => say(
                format!("a counter cannot be of type `{}`", Short(word)),
                "expected `u64` or `i64`",
            )
            .meant(*suggestion, "`counter name;` counts up; `counter name : i64;` also down"),
            MetricMistake::HistogramType { word, suggestion } => say(
                format!("a histogram cannot be of type `{}`", Short(word)),
                "expected `duration` or `u32`",
            )
            .meant(
                *suggestion,
                "`histogram name : duration;` or `histogram name : u32 (from, to, buckets);`",
            ),
            MetricMistake::NoRange => say(
                "a histogram of `u32` states its buckets",
                "expected `(from, to, buckets)` after this",
            )
            .help("for example `histogram queue : u32 (0, 1024, 64);`"),
            MetricMistake::RangeOfDurations => say(
                "a histogram of durations has buckets for every length",
                "these cannot be chosen",
            )
            .help("leave the brackets out"),
            MetricMistake::RangeForm { count } => say(
                format!("{count} numbers where a histogram takes three"),
                "expected `(from, to, buckets)`",
            )
            .help("for example `histogram queue : u32 (0, 1024, 64);`"),
            MetricMistake::RangeValue { value } => say(
                format!("{value} is no value of type `u32`"),
                "expected a number from 0 to 4294967295",
            )
            .help("the end of the range itself is outside, so it may be 4294967296"),
            MetricMistake::RangeOrder { from, to } => if from == to {
                say("the range is empty", format!("{from} is where it begins, too"))
            } else {
                say(
                    format!("the range ends at {to}, before it begins"),
                    format!("expected more than {from}"),
                )
            }
            .help("the order is `(from, to, buckets)`"),
            MetricMistake::Buckets { buckets, most } => say(
                format!("a histogram of this range cannot have {buckets} buckets"),
                format!("expected 1 to {most}"),
            )
            .help(format!(
                "a bucket holds one value or more, and a histogram at most {MAX_BUCKETS} buckets"
            )),
            MetricMistake::AttributeOnMetric { name } => say(
                format!("`@{name}` has no meaning for counters and histograms"),
                "expected `@unit(…)` or `@group(…)`",
            ),
        }
    }
}

fn with_article(kind: NameKind) -> String {
    match kind {
        NameKind::Enum => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}
