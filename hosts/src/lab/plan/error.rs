//! Why a text is not a valid plan, and where.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use ppt_text::{alternatives, did_you_mean, escaped, masked_in_place, quoted_char};
use thiserror::Error;

/// A mistake in the text of an experiment.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{mistake}")]
pub struct PlanError {
    /// The mistake.
    pub mistake: Mistake,
    /// The byte range in the text.
    pub span: Range<usize>,
}

/// A mistake in the text of an experiment.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "experiment-")]
pub enum Mistake {
    /// The text is too long.
    #[error("the file has {bytes} bytes: at most {most} are read")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
        /// The limit in bytes.
        most: usize,
    },
    /// Not TOML.
    #[error("{what}")]
    Toml {
        /// The parser's message.
        what: String,
    },
    /// An unknown key.
    #[error("{place} has no `{key}`{}; it has: {}", did_you_mean(.nearest), .known.join(", "))]
    Unknown {
        /// The key.
        key: String,
        /// The table that has the key.
        place: String,
        /// A valid key with a similar spelling.
        nearest: Option<String>,
        /// All valid keys.
        known: Vec<String>,
    },
    /// A missing key.
    #[error("{place} lacks `{key}`")]
    Missing {
        /// The key.
        key: &'static str,
        /// The table that lacks it.
        place: String,
    },
    /// A value of another type.
    #[error("`{key}` is {found}, and should be {wanted}")]
    Type {
        /// The key.
        key: String,
        /// The type found.
        found: &'static str,
        /// The type expected.
        wanted: &'static str,
    },
    /// A number out of range.
    #[error("`{key}` is {value}: it may be from {least} to {most}")]
    Range {
        /// The key.
        key: String,
        /// The number that is out of range.
        value: i64,
        /// The smallest.
        least: i64,
        /// The largest.
        most: i64,
    },
    /// An invalid name.
    #[error(
        "`{name}` is no name: use 1 to 64 letters, digits, `-` and `_`, and begin with a letter or a digit"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A duplicate name.
    #[error("there are two {what} of the name `{name}`")]
    Twice {
        /// The items that share it.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A parameter whose name is a predefined placeholder.
    #[error("`{{{name}}}` is there without a matrix: give the parameter another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// Not a duration.
    #[error("`{text}` is no time: {why}; write for example 60s or 500ms")]
    Time {
        /// The text.
        text: String,
        /// The parser's message.
        why: String,
    },
    /// A duration of zero, or of more than a day.
    #[error("`{text}` is not between 1 ns and 24 h")]
    TimeRange {
        /// The text.
        text: String,
    },
    /// An unknown way to reach a host.
    #[error("`{via}` leads to no host: write local, netns, netns:NAME or ssh:user@host")]
    Via {
        /// The text.
        via: String,
    },
    /// A text with characters that have a special meaning elsewhere.
    #[error(
        "{what} `{text}` has characters that another program may take for something else: \
             use letters, digits and {allowed}, and do not begin with `-`"
    )]
    Unsafe {
        /// The kind of text, in words.
        what: &'static str,
        /// The text.
        text: String,
        /// The allowed characters in addition to letters and digits.
        allowed: &'static str,
    },
    /// A host with this name would be mistaken for all hosts.
    #[error("`all` means every host: give the host another name")]
    All,
    /// An empty report.
    #[error("a report needs `sql`, a file of queries, or `html`, the name of a page, or both")]
    NoReport,
    /// No hosts.
    #[error("the experiment has no host; add for example host.a = {{ via = \"local\" }}")]
    NoHost,
    /// A phase names an unknown host.
    #[error("there is no host `{name}`{}; there are: {}", did_you_mean(.nearest), .available.join(", "))]
    NoSuchHost {
        /// The name.
        name: String,
        /// A host with a similar name.
        nearest: Option<String>,
        /// All hosts.
        available: Vec<String>,
    },
    /// A host without a known address.
    #[error(
        "the address of `{host}` is not known: give it, as in host.{host} = {{ via = …, addr = \"10.0.0.1\" }}"
    )]
    NoAddress {
        /// The host.
        host: String,
    },
    /// A host without a known folder.
    #[error(
        "the folder of `{host}` is not known: give it, as in host.{host} = {{ via = …, dir = \"/srv/test\" }}"
    )]
    NoFolder {
        /// The host.
        host: String,
    },
    /// An address was given for a namespace that lab creates.
    #[error(
        "`{host}` gets its address from ppt: leave `addr` out, and write {{{host}.addr}} where it is needed"
    )]
    OwnAddress {
        /// The host.
        host: String,
    },
    /// A key that does not apply to hosts of this type.
    #[error("`{key}` is for hosts via {of} only")]
    NotHere {
        /// The key.
        key: &'static str,
        /// The values of `via` for which the key applies.
        of: &'static str,
    },
    /// A clock is measured by a program, and there can be one.
    #[error("a host measures its clock or does something else in a phase: make two phases of it")]
    ClockAndProgram,
    /// Both `start` and `run`.
    #[error("a host does one of `start` and `run` in a phase: make two phases of it")]
    StartAndRun,
    /// A key that needs a program, without one.
    #[error("`{key}` belongs to a program, and here is neither `start` nor `run`")]
    NoProgram {
        /// The key.
        key: &'static str,
    },
    /// `ready` for a program that the phase waits for.
    #[error("`ready` belongs to `start`: a phase waits until a program of `run` has ended")]
    ReadyRun,
    /// An empty command.
    #[error("the program is missing: write it and its arguments as a list, [\"sleep\", \"1\"]")]
    NoWords,
    /// An empty step.
    #[error("nothing is done here: use start, run, stop, collect or clock")]
    Nothing,
    /// A parameter without values.
    #[error("`{axis}` has no value")]
    NoValues {
        /// The parameter.
        axis: String,
    },
    /// A list has a value twice.
    #[error("`{axis}` has the value {value} twice")]
    SameValue {
        /// The parameter.
        axis: String,
        /// The repeated value.
        value: String,
    },
    /// Values of several types.
    #[error("`{axis}` has values of several types: give {first} or {other}, not both")]
    MixedValues {
        /// The parameter.
        axis: String,
        /// One type.
        first: &'static str,
        /// Another.
        other: &'static str,
    },
    /// Too many runs.
    #[error("the matrix makes {runs} runs, repetitions included: at most {most} are possible")]
    TooMany {
        /// The number of runs.
        runs: u128,
        /// The limit.
        most: u128,
    },
    /// An unknown placeholder.
    #[error("nothing fills in `{{{name}}}`{}; there are: {}", did_you_mean(.nearest), .available.join(", "))]
    Placeholder {
        /// The name of the placeholder.
        name: String,
        /// A placeholder with a similar name.
        nearest: Option<String>,
        /// All placeholders.
        available: Vec<String>,
    },
    /// A bracket without its partner.
    #[error("a single `{bracket}`: write `{bracket}{bracket}` if you mean the character")]
    Bracket {
        /// The bracket.
        bracket: char,
    },
    /// A NUL.
    #[error("the text has a NUL character, which no argument can have")]
    Nul,
    /// A pattern that leaves its folder.
    #[error(
        "`{pattern}` leads out of the folder of the run: collect names that are relative, without `..`"
    )]
    Outside {
        /// The pattern.
        pattern: String,
    },
    /// A pattern that cannot be parsed.
    #[error("`{pattern}` is no pattern: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The parser's message.
        why: String,
    },
    /// `stop` names no earlier phase.
    #[error("no earlier phase has the name `{name}`{}", did_you_mean(.nearest))]
    NoPhase {
        /// The name.
        name: String,
        /// A phase with a similar name.
        nearest: Option<String>,
    },
    /// The variable is reserved for ppt, or its name is invalid.
    #[error("`{name}` is no name of a variable")]
    Variable {
        /// The name.
        name: String,
    },
    /// The predicate of `when` cannot be parsed.
    #[error("expected {}, found {}", alternatives(.names, "a test"), quoted_char(*.found))]
    When {
        /// The text found; None at the end.
        found: Option<char>,
        /// The tokens expected.
        names: Vec<&'static str>,
    },
    /// The predicate names an unknown parameter.
    #[error("the matrix has no `{name}`{}; it has: {}", did_you_mean(.nearest), .available.join(", "))]
    NoAxis {
        /// The name.
        name: String,
        /// A parameter with a similar name.
        nearest: Option<String>,
        /// All parameters.
        available: Vec<String>,
    },
    /// The predicate compares values of different types.
    #[error("`{axis}` is {is}, and is compared with {compared}")]
    WhenType {
        /// The parameter.
        axis: String,
        /// The type of the value.
        is: &'static str,
        /// The type that it is compared with.
        compared: &'static str,
    },
    /// The predicate is too long.
    #[error("the predicate has more than {most} bytes")]
    WhenTooLong {
        /// The limit in bytes.
        most: usize,
    },
    /// The predicate is nested too deeply.
    #[error("the predicate has more than {most} brackets and `not`s")]
    WhenTooDeep {
        /// The limit.
        most: usize,
    },
}

impl PlanError {
    /// The message above the line with the mistake, with carets below its location.
    pub fn drawn(&self, file: &str, text: &str) -> String {
        let (file, text) = (escaped(file), masked_in_place(text, |char| char == '\n'));
        let floor =
            |at: usize| (0..=at.min(text.len())).rev().find(|index| text.is_char_boundary(*index));
        let start = floor(self.span.start).unwrap_or(0);
        let line = text[start..].find('\n').map_or(text.len(), |index| start + index);
        let end = floor(self.span.end).unwrap_or(0).clamp(start, line);
        let mark = AnnotationKind::Primary.span(start..end);
        let snippet = Snippet::source(text.as_str()).path(file.as_str()).annotation(mark);
        let title = escaped(&self.mistake.to_string());
        let group = Level::ERROR.primary_title(title.as_str()).element(snippet);
        Renderer::plain().decor_style(DecorStyle::Ascii).render(&[group])
    }
}
