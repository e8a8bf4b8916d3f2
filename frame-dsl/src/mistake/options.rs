//! Mistakes in `option`.

use crate::wording::{Short, Wording, say};

/// A mistake in `option`.
#[derive(Debug, Clone)]
pub(crate) enum OptionMistake {
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
}

impl OptionMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            OptionMistake::UnknownOption { .. } => "unknown-option",
            OptionMistake::TimeTwice => "time-twice",
            OptionMistake::UnknownTime { .. } => "unknown-time",
            OptionMistake::UnknownClock { .. } => "unknown-clock",
            OptionMistake::UnknownFieldClock { .. } => "unknown-clock",
            OptionMistake::TscIsNoClock { .. } => "unknown-clock",
            OptionMistake::CpuClock { .. } => "cpu-clock",
            OptionMistake::TooManyWords { .. } => "too-many-words",
            OptionMistake::TimeWithoutKind => "unknown-time",
            OptionMistake::TagForm => "tag-form",
            OptionMistake::PackageForm => "package-form",
            OptionMistake::PackageTwice => "package-twice",
            OptionMistake::BadPackage { .. } => "bad-package",
            OptionMistake::AllowForm => "allow-form",
            OptionMistake::UnknownWarning { .. } => "unknown-warning",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            OptionMistake::UnknownOption { word, suggestion } => say(
                format!("there is no option `{}`", Short(word)),
                "expected `time`, `tag`, `package` or `allow`",
            )
            .meant(
                *suggestion,
                "options are `option time …;`, `option tag NAME \"…\";`, `option package \"…\";` and `option allow \"…\";`",
            ),
            OptionMistake::TimeTwice => say("`option time` is given twice", "given again here").help(
                "one kind of time serves the whole buffer; `@clock(…)` picks a clock per field",
            ),
            OptionMistake::UnknownTime { word, suggestion } => say(
                format!("there is no kind of time called `{}`", Short(word)),
                "expected `timeval`, `ns`, `timespec` or `tsc`",
            )
            .meant(*suggestion, "for example `option time ns monotonic;`"),
            OptionMistake::UnknownClock { word, suggestion } => say(
                format!("there is no clock called `{}`", Short(word)),
                "expected `realtime`, `monotonic`, `boottime`, `thread_cpu` or `process_cpu`",
            )
            .meant(*suggestion, "clocks are those of clock_gettime(2)"),
            OptionMistake::UnknownFieldClock { word, suggestion } => say(
                format!("there is no clock called `{}`", Short(word)),
                "expected `tsc`, `realtime`, `monotonic`, `boottime`, `thread_cpu` or `process_cpu`",
            )
            .meant(*suggestion, "clocks are those of clock_gettime(2), and the CPU's counter"),
            OptionMistake::TscIsNoClock { kind } => say(
                format!("`tsc` is a kind of time, not a clock of `{kind}`"),
                "ticks of the CPU's counter",
            )
            .help("write `option time tsc;`, or `@clock(tsc)` after a field"),
            OptionMistake::CpuClock { word } => say(
                format!("reading the clock `{word}` enters the kernel"),
                "a few hundred nanoseconds each time, while a capture runs",
            ),
            OptionMistake::TooManyWords { what } => {
                say(format!("`{what}` takes no more words"), "expected `;` before this")
            }
            OptionMistake::TimeWithoutKind => {
                say("`option time` needs a kind of time", "expected a kind of time after this")
                    .help(
                        "`timeval` (as without the option), `ns CLOCK`, `timespec CLOCK` or `tsc`",
                    )
            }
            OptionMistake::TagForm => {
                say("a tag is a name and a string", "expected `option tag NAME \"value\";`")
            }
            OptionMistake::PackageForm => say(
                "`option package` takes one string",
                "expected `option package \"org.example.job\";`",
            ),
            OptionMistake::PackageTwice => {
                say("`option package` is given twice", "given again here").help("one package holds all classes of a buffer")
            }
            OptionMistake::BadPackage { name } => {
                say(format!("`{}` is not the name of a package", Short(name)), "not such a name")
                    .help("a package is names with dots between them, `org.example.job`; none is a keyword of Java")
            }
            OptionMistake::AllowForm => say(
                "`option allow` takes the name of one warning",
                "expected `option allow \"uneven-frames\";`",
            ),
            OptionMistake::UnknownWarning { word, suggestion } => {
                say(format!("there is no warning called `{}`", Short(word)), "has no effect")
                    .meant(*suggestion, "each warning and hint begins with its name in brackets")
            }
        }
    }
}
