//! All mistakes that the compiler reports, as one table. `wording` has their texts.

use std::fmt::{self, Display};

/// The kind of thing that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Buffer,
    Tag,
    Enum,
    Value,
    Frame,
    Field,
    Step,
    Counter,
    Histogram,
    HashType,
}

impl Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameKind::Buffer => "buffer",
            NameKind::Tag => "tag",
            NameKind::Enum => "enum",
            NameKind::Value => "value",
            NameKind::Frame => "frame",
            NameKind::Field => "field",
            NameKind::Step => "step",
            NameKind::Counter => "counter",
            NameKind::Histogram => "histogram",
            NameKind::HashType => "hash type",
        })
    }
}

/// The severity of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Advice; nothing is wrong.
    Hint,
    /// Probably a mistake.
    Warning,
    /// A mistake; the file has no schema.
    Error,
}

/// A mistake in a frame file.
#[derive(Debug, Clone)]
pub(crate) enum Mistake {
    // The file as a whole
    SourceTooLong { most: usize },
    NotUtf8 { byte: u8 },
    Nul,
    NoFrames,
    SchemaTooLong { bytes: usize, most: usize },
    Unsaid { count: usize, errors: bool },
    // Syntax
    OpenComment,
    Expected { expected: String, label: String, found: String, help: Option<String> },
    NotADeclaration { found: String, suggestion: Option<String> },
    NotAnEdge { found: String },
    LaterDeclaration { word: String },
    StrayBrace,
    OpenBrace { kind: NameKind, name: String },
    BadNumber { text: String, fault: NumberFault },
    // emit, buffer, option
    UnknownLanguage { word: String, suggestion: Option<&'static str> },
    LanguageTwice { word: String },
    BufferTwice,
    BadSlots { nearest: u64 },
    StemIsNoName { stem: String },
    StemIsNotAllowed { why: String },
    UnknownOption { word: String, suggestion: Option<&'static str> },
    TimeTwice,
    UnknownTime { word: String, suggestion: Option<&'static str> },
    UnknownClock { word: String, suggestion: Option<&'static str> },
    UnknownFieldClock { word: String, suggestion: Option<&'static str> },
    TscIsNoClock { kind: &'static str },
    CpuClock { word: &'static str },
    TooManyWords { what: &'static str },
    TimeWithoutKind,
    TagForm,
    PackageForm,
    PackageTwice,
    BadPackage { name: String },
    AllowForm,
    UnknownWarning { word: String, suggestion: Option<&'static str> },
    LargeRing { bytes: u64, stride: u32 },
    // Names
    NameTooLong { name: String, bytes: usize },
    Keyword { name: String, languages: String },
    ReservedWord { name: String },
    Macro { name: String },
    OurPrefix { name: String },
    Underscores { name: String },
    BecomesSelf { kind: NameKind, name: String },
    MethodName { name: String },
    TakenName { kind: NameKind, name: String, language: &'static str },
    StdBuffer,
    TypeWord { name: String },
    StandardColumn { name: String },
    Twice { kind: NameKind, name: String },
    FrameAndEnum { name: String },
    SameGenerated { language: &'static str, generated: String, first: String, second: String },
    SameColumn { column: String, first: String, second: String },
    // Enums
    EmptyEnum { name: String },
    UnknownInteger { word: String, suggestion: Option<&'static str> },
    ValueOutOfRange { value: i128, integer: &'static str, least: i128, most: i128 },
    SameValue { name: String, other: String, value: i128 },
    TooManyEnums { count: usize, own: usize },
    TooManyValues { name: String, count: usize },
    // Frames and fields
    EmptyFrame { name: String },
    TooManyFrames { count: usize },
    TooManyFields { name: String, count: usize },
    FrameTooLarge { name: String, bytes: u32, largest: String },
    LargeFrame { name: String, bytes: u32 },
    UnevenFrames { name: String, bytes: u32, largest: String, stride: u32, others: usize },
    TimelessFrame { name: String },
    ManyStamps { name: String, stamps: usize },
    UnknownType { word: String, suggestion: Option<String> },
    FrameAsType { word: String },
    LaterType { word: String },
    NoLength { word: String, name: String },
    BadLength { length: i128 },
    IntervalOfBytes { word: String },
    HashShape { word: String, what: &'static str },
    RawOfNoHash,
    IntervalArray,
    // Attributes
    UnknownAttribute { name: String, suggestion: Option<&'static str> },
    AttributeTwice { name: String },
    AttributeOnFrame { name: String },
    AttributeOnField { name: String },
    AttributeArguments { name: String, form: &'static str },
    AtTwice,
    AtNotTime,
    AtArray,
    AtCpuClock { word: &'static str },
    ClockNotTime,
    ClockIsFixed { time: &'static str },
    ThreadType,
    ThreadOfPoint,
    ThreadTwice,
    // Spans, chains and points
    TwoKinds,
    TooManySteps { count: usize },
    StepForm { word: String },
    UnknownAcross { word: String, suggestion: Option<&'static str> },
    UnknownOrder { word: String },
    NoKey { kind: &'static str, name: String },
    KeyOfPlain { name: String },
    KeyType { what: &'static str },
    KeyOfAddr { kind: &'static str },
    HalfOfPlain { name: &'static str, frame: String },
    HalfOfChain { name: &'static str, frame: String },
    HalfOfKey { name: &'static str },
    HalfOfTime { name: &'static str },
    BothHalves,
    OwnField { kind: &'static str, name: String },
    SideOfPlain { side: &'static str, name: String },
    SideOfNoHash { side: &'static str },
    SideTwice { side: &'static str, ty: String, name: String },
    TooManySides { side: &'static str },
    NoSides { name: String },
    TwoWidths { ty: String },
    // Edges
    TooManyEdges { count: usize },
    EdgeTwice { from: String, to: String, same: bool },
    EdgeOfNoPoint { name: String },
    NoSuchPoint { buffer: String, name: String, suggestion: Option<String> },
    EdgeNeverMatches { from: String, to: String, out: Vec<String>, ins: Vec<String> },
    BadDuration { text: String, fault: DurationFault },
    UnknownPolicy { word: String, suggestion: Option<&'static str> },
    // Tables: `of` is the frame that has the table already
    WholeColumn { column: String, table: String },
    WholeTable { table: String, of: String },
    // Counters and histograms
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

/// The warnings and hints that `option allow` can silence.
pub(crate) const WARNINGS: [&str; 9] = [
    "cpu-clock",
    "language-twice",
    "large-frame",
    "large-ring",
    "many-stamps",
    "no-time",
    "same-value",
    "uneven-frames",
    "unknown-attribute",
];

/// Why a number is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    Malformed,
    LeadingZero,
    TooLarge,
}

/// Why a duration is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DurationFault {
    NoUnit,
    UnknownUnit(Option<&'static str>),
    Malformed,
    Zero,
    TooLong,
}

impl Mistake {
    /// Hints and warnings do not reject a file.
    pub fn severity(&self) -> Severity {
        match self {
            Mistake::LargeFrame { .. }
            | Mistake::TimelessFrame { .. }
            | Mistake::ManyStamps { .. } => Severity::Hint,
            Mistake::CpuClock { .. }
            | Mistake::SameValue { .. }
            | Mistake::LanguageTwice { .. }
            | Mistake::UnknownAttribute { .. }
            | Mistake::UnknownWarning { .. }
            | Mistake::LargeRing { .. }
            | Mistake::UnevenFrames { .. }
            | Mistake::Unsaid { errors: false, .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            Mistake::SourceTooLong { .. } => "file-too-long",
            Mistake::NotUtf8 { .. } => "not-utf8",
            Mistake::Nul => "nul-byte",
            Mistake::NoFrames => "no-frames",
            Mistake::SchemaTooLong { .. } => "schema-too-long",
            Mistake::Unsaid { .. } => "more",
            Mistake::OpenComment => "open-comment",
            Mistake::Expected { .. } => "syntax",
            Mistake::NotADeclaration { .. } => "syntax",
            Mistake::NotAnEdge { .. } => "syntax",
            Mistake::LaterDeclaration { .. } => "reserved-word",
            Mistake::StrayBrace => "stray-brace",
            Mistake::OpenBrace { .. } => "open-brace",
            Mistake::BadNumber { .. } => "bad-number",
            Mistake::UnknownLanguage { .. } => "unknown-language",
            Mistake::LanguageTwice { .. } => "language-twice",
            Mistake::BufferTwice => "buffer-twice",
            Mistake::BadSlots { .. } => "bad-slots",
            Mistake::StemIsNoName { .. } => "buffer-name",
            Mistake::StemIsNotAllowed { .. } => "buffer-name",
            Mistake::UnknownOption { .. } => "unknown-option",
            Mistake::TimeTwice => "time-twice",
            Mistake::UnknownTime { .. } => "unknown-time",
            Mistake::UnknownClock { .. } => "unknown-clock",
            Mistake::UnknownFieldClock { .. } => "unknown-clock",
            Mistake::TscIsNoClock { .. } => "unknown-clock",
            Mistake::CpuClock { .. } => "cpu-clock",
            Mistake::TooManyWords { .. } => "too-many-words",
            Mistake::TimeWithoutKind => "unknown-time",
            Mistake::TagForm => "tag-form",
            Mistake::PackageForm => "package-form",
            Mistake::PackageTwice => "package-twice",
            Mistake::BadPackage { .. } => "bad-package",
            Mistake::AllowForm => "allow-form",
            Mistake::UnknownWarning { .. } => "unknown-warning",
            Mistake::LargeRing { .. } => "large-ring",
            Mistake::NameTooLong { .. } => "name-too-long",
            Mistake::Keyword { .. } => "keyword",
            Mistake::ReservedWord { .. } => "reserved-word",
            Mistake::Macro { .. } => "macro-name",
            Mistake::OurPrefix { .. } => "ppt-name",
            Mistake::Underscores { .. } => "underscores",
            Mistake::BecomesSelf { .. } => "becomes-self",
            Mistake::MethodName { .. } => "method-name",
            Mistake::TakenName { .. } => "taken-name",
            Mistake::StdBuffer => "buffer-name",
            Mistake::TypeWord { .. } => "type-name",
            Mistake::StandardColumn { .. } => "standard-column",
            Mistake::Twice { .. } => "duplicate-name",
            Mistake::FrameAndEnum { .. } => "duplicate-name",
            Mistake::SameGenerated { .. } => "name-clash",
            Mistake::SameColumn { .. } => "column-clash",
            Mistake::EmptyEnum { .. } => "empty-enum",
            Mistake::UnknownInteger { .. } => "unknown-integer",
            Mistake::ValueOutOfRange { .. } => "value-range",
            Mistake::SameValue { .. } => "same-value",
            Mistake::TooManyEnums { .. } => "too-many-enums",
            Mistake::TooManyValues { .. } => "too-many-values",
            Mistake::EmptyFrame { .. } => "empty-frame",
            Mistake::TooManyFrames { .. } => "too-many-frames",
            Mistake::TooManyFields { .. } => "too-many-fields",
            Mistake::FrameTooLarge { .. } => "frame-too-large",
            Mistake::LargeFrame { .. } => "large-frame",
            Mistake::UnevenFrames { .. } => "uneven-frames",
            Mistake::TimelessFrame { .. } => "no-time",
            Mistake::ManyStamps { .. } => "many-stamps",
            Mistake::UnknownType { .. } => "unknown-type",
            Mistake::FrameAsType { .. } => "unknown-type",
            Mistake::LaterType { .. } => "reserved-word",
            Mistake::NoLength { .. } => "no-length",
            Mistake::BadLength { .. } => "bad-length",
            Mistake::IntervalOfBytes { .. } => "bad-interval",
            Mistake::HashShape { .. } => "hash-shape",
            Mistake::RawOfNoHash => "raw-place",
            Mistake::IntervalArray => "bad-interval",
            Mistake::UnknownAttribute { .. } => "unknown-attribute",
            Mistake::AttributeTwice { .. } => "attribute-twice",
            Mistake::AttributeOnFrame { .. } => "attribute-place",
            Mistake::AttributeOnField { .. } => "attribute-place",
            Mistake::AttributeArguments { .. } => "attribute-form",
            Mistake::AtTwice => "at-twice",
            Mistake::ThreadType | Mistake::ThreadOfPoint => "thread-place",
            Mistake::ThreadTwice => "thread-twice",
            Mistake::AtNotTime => "at-place",
            Mistake::AtArray => "at-place",
            Mistake::AtCpuClock { .. } => "at-place",
            Mistake::ClockNotTime => "clock-place",
            Mistake::ClockIsFixed { .. } => "clock-place",
            Mistake::TwoKinds => "two-kinds",
            Mistake::TooManySteps { .. } => "chain-form",
            Mistake::StepForm { .. } => "chain-form",
            Mistake::UnknownAcross { .. } => "span-form",
            Mistake::UnknownOrder { .. } => "span-form",
            Mistake::NoKey { .. } => "no-key",
            Mistake::KeyOfPlain { .. } => "key-place",
            Mistake::KeyType { .. } | Mistake::KeyOfAddr { .. } => "key-place",
            Mistake::HalfOfPlain { .. } => "half-place",
            Mistake::HalfOfChain { .. } => "half-place",
            Mistake::HalfOfKey { .. } => "half-place",
            Mistake::HalfOfTime { .. } => "half-place",
            Mistake::BothHalves => "half-place",
            Mistake::OwnField { .. } => "own-field",
            Mistake::SideOfPlain { .. } => "side-place",
            Mistake::SideOfNoHash { .. } => "side-place",
            Mistake::SideTwice { .. } => "side-twice",
            Mistake::TooManySides { .. } => "too-many-sides",
            Mistake::NoSides { .. } => "no-side",
            Mistake::TwoWidths { .. } => "hash-type",
            Mistake::TooManyEdges { .. } => "too-many-edges",
            Mistake::EdgeTwice { .. } => "edge-twice",
            Mistake::EdgeOfNoPoint { .. } => "edge-end",
            Mistake::NoSuchPoint { .. } => "edge-end",
            Mistake::EdgeNeverMatches { .. } => "edge-types",
            Mistake::BadDuration { .. } => "bad-duration",
            Mistake::UnknownPolicy { .. } => "unknown-policy",
            Mistake::WholeColumn { .. } => "column-clash",
            Mistake::WholeTable { .. } => "table-clash",
            Mistake::TooManyMetrics { .. } => "too-many-metrics",
            Mistake::MetricAndOther { .. } => "duplicate-name",
            Mistake::MetricMethod { .. } => "method-name",
            Mistake::CounterType { .. } => "unknown-type",
            Mistake::HistogramType { .. } => "unknown-type",
            Mistake::NoRange => "histogram-form",
            Mistake::RangeOfDurations => "histogram-form",
            Mistake::RangeForm { .. } => "histogram-form",
            Mistake::RangeValue { .. } => "histogram-range",
            Mistake::RangeOrder { .. } => "histogram-range",
            Mistake::Buckets { .. } => "histogram-range",
            Mistake::AttributeOnMetric { .. } => "attribute-place",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation lists exactly the warnings that a file can suppress.
    #[test]
    fn the_page_lists_every_warning() {
        let page = include_str!("../../docs/frame-files.md");
        let section = page.split("\n## Warnings and hints\n").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let mut names: Vec<_> = rows.map(|row| row.split('`').next().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, WARNINGS);
    }
}
