//! Counters and histograms, and the stand-in frame of a buffer without frames.

use super::attributes;
use super::frames::{Draft, FramePlaces};
use super::names::{self, Declared};
use super::number;
use ppt_text::nearest;

use crate::ast::{self, FrameFile, SourceWord};
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::language::Language;
use crate::metric::{self, HIDDEN, HIDDEN_FRAME, MAX_BUCKETS, MAX_METRICS, Metric, MetricShape};
use crate::mistake::{MetricMistake, NameKind};
use crate::schema::{Extra, Field, FieldType, Frame};

/// C++ functions in their generated classes; no metric can have such a name.
const METHODS: [&str; 2] = ["add", "observe"];

/// The metrics of a file, each with the span of its name. A name that is declared twice appears
/// once.
pub(super) fn metrics(file: &FrameFile, sink: &mut DiagnosticSink) -> Vec<(Metric, SourceRange)> {
    if let Some(first) = file.metrics.get(MAX_METRICS) {
        let mistake = MetricMistake::TooManyMetrics { count: file.metrics.len() };
        sink.report(first.name.span.clone(), mistake);
    }
    let mut declared = Declared::default();
    let mut metrics: Vec<(Metric, SourceRange)> = Vec::new();
    for declaration in file.metrics.iter().take(MAX_METRICS) {
        let kind = kind(declaration);
        name(file, declaration, kind, sink);
        let said = attributes::of_metric(&declaration.attributes, sink);
        let shape = shape(declaration, sink);
        let Some(shape) = shape else { continue };
        if !declared.insert(kind, &declaration.name.text, &declaration.name.span, sink) {
            continue;
        }
        let first = metrics.last().map_or(0, |(last, _)| last.cells.end);
        let metric = Metric {
            name: declaration.name.text.clone(),
            shape,
            unit: said.unit,
            doc: declaration.doc.clone(),
            attributes: said.kept,
            cells: first..first + shape.cells(),
        };
        metrics.push((metric, declaration.name.span.clone()));
    }
    metrics
}

fn kind(declaration: &ast::MetricDeclaration) -> NameKind {
    if declaration.is_histogram { NameKind::Histogram } else { NameKind::Counter }
}

/// The key of a schema that lists them.
pub(super) fn extra(metrics: &[Metric]) -> Option<(String, serde_json::Value)> {
    (!metrics.is_empty()).then(|| (metric::METRICS.to_owned(), metric::to_json(metrics)))
}

fn name(
    file: &FrameFile,
    declaration: &ast::MetricDeclaration,
    kind: NameKind,
    sink: &mut DiagnosticSink,
) {
    names::check(kind, &declaration.name, sink);
    let name = &declaration.name.text;
    if METHODS.contains(&&**name) && sink.languages().contains(&Language::Cpp) {
        sink.report(
            declaration.name.span.clone(),
            MetricMistake::MetricMethod { kind, name: name.clone() },
        );
    }
    let frames = file.frames.iter().map(|frame| (NameKind::Frame, &frame.name));
    let enums = file.enums.iter().map(|enumeration| (NameKind::Enum, &enumeration.name));
    if let Some((other, word)) = frames.chain(enums).find(|(_, word)| word.text == *name) {
        let note = DiagnosticNote { span: word.span.clone(), label: format!("the {other}") };
        let mistake = MetricMistake::MetricAndOther { kind, name: name.clone(), other };
        sink.report_with(declaration.name.span.clone(), mistake, [note]);
    }
}

fn shape(declaration: &ast::MetricDeclaration, sink: &mut DiagnosticSink) -> Option<MetricShape> {
    let ty = declaration.ty.as_ref();
    let word = |ty: &SourceWord| ty.text.clone();
    if !declaration.is_histogram {
        return match ty.map(|ty| ty.text.as_str()) {
            None | Some("u64") => Some(MetricShape::Counter),
            Some("i64") => Some(MetricShape::UpDownCounter),
            Some(text) => {
                let ty = ty?;
                let suggestion = nearest(text, ["u64", "i64"]);
                sink.report(
                    ty.span.clone(),
                    MetricMistake::CounterType { word: word(ty), suggestion },
                );
                None
            }
        };
    }
    let ty = ty?;
    match (ty.text.as_str(), &declaration.range) {
        ("duration", None) => Some(MetricShape::Exponential),
        ("duration", Some((_, place))) => {
            sink.report(place.clone(), MetricMistake::RangeOfDurations);
            None
        }
        ("u32", None) => {
            sink.report(ty.span.clone(), MetricMistake::NoRange);
            None
        }
        ("u32", Some((numbers, place))) => linear(numbers, place, sink),
        (text, _) => {
            let suggestion = nearest(text, ["duration", "u32"]);
            sink.report(
                ty.span.clone(),
                MetricMistake::HistogramType { word: word(ty), suggestion },
            );
            None
        }
    }
}

fn linear(
    numbers: &[SourceWord],
    place: &SourceRange,
    sink: &mut DiagnosticSink,
) -> Option<MetricShape> {
    let [first, second, third] = numbers else {
        sink.report(place.clone(), MetricMistake::RangeForm { count: numbers.len() });
        return None;
    };
    let values = [first, second, third].map(|word| number::value(word, sink));
    let [Some(from), Some(to), Some(buckets)] = values else { return None };
    let bound = |value: i128, most: i128| u64::try_from(value).ok().filter(|_| value <= most);
    let (Some(low), Some(high)) = (bound(from, u32::MAX.into()), bound(to, 1 << 32)) else {
        for (word, value, most) in [(first, from, u32::MAX.into()), (second, to, 1 << 32)] {
            if bound(value, most).is_none() {
                sink.report(word.span.clone(), MetricMistake::RangeValue { value });
            }
        }
        return None;
    };
    if high <= low {
        sink.report(second.span.clone(), MetricMistake::RangeOrder { from, to });
        return None;
    }
    let most = i128::from(MAX_BUCKETS).min(to - from);
    if !(1..=most).contains(&buckets) {
        sink.report(third.span.clone(), MetricMistake::Buckets { buckets, most });
        return None;
    }
    let buckets = u32::try_from(buckets).ok()?;
    Some(MetricShape::Linear { from: low, to: high, buckets })
}

/// The frame of a buffer without frames: readers of the first release expect one, with a field.
pub(super) fn hidden(place: &SourceRange) -> Draft {
    let (frame, field) = HIDDEN_FRAME;
    let field = Field {
        name: field.to_owned(),
        ty: FieldType::U64,
        array: None,
        offset: 0,
        interval: None,
        at: false,
        unit: String::new(),
        doc: String::new(),
        attributes: Vec::new(),
        extra: Extra::new(),
    };
    Draft {
        frame: Frame {
            name: frame.to_owned(),
            kind: crate::role::PLAIN.to_owned(),
            size: 0,
            fields: vec![field],
            doc: String::new(),
            attributes: Vec::new(),
            extra: [(HIDDEN.to_owned(), true.into())].into(),
        },
        places: FramePlaces { name: place.clone(), fields: vec![place.clone()] },
        own: None,
    }
}
