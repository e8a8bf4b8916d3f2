//! The text of every mistake. A message states the mistake, the label describes the span, and the
//! help states the remedy.

use std::fmt::{self, Display};

use ppt_text::escaped;

use crate::edge::MAX_EDGES;
use crate::language::Language;
use crate::metric::{MAX_BUCKETS, MAX_METRICS};
use crate::mistake::{DurationFault, Mistake, NameKind, NumberFault};
use crate::role::MAX_IDENTITIES;
use crate::schema::{
    DEFAULT_SLOTS, MAX_ENUMS, MAX_FIELDS, MAX_FRAME_BYTES, MAX_FRAMES, MAX_NAME_BYTES, MAX_SLOTS,
    MAX_VALUES, MIN_SLOTS,
};

/// The text of one mistake.
pub(crate) struct Wording {
    pub message: String,
    pub label: String,
    pub help: Option<String>,
}

fn say(message: impl Into<String>, label: impl Into<String>) -> Wording {
    Wording { message: message.into(), label: label.into(), help: None }
}

impl Wording {
    fn help(self, help: impl Into<String>) -> Wording {
        Wording { help: Some(help.into()), ..self }
    }

    fn meant(self, suggestion: Option<&str>, otherwise: impl Into<String>) -> Wording {
        match suggestion {
            Some(word) => self.help(format!("did you mean `{word}`?")),
            None => self.help(otherwise),
        }
    }

    fn other_name(self, name: &str) -> Wording {
        self.help(format!("choose another name, such as `{name}_`"))
    }
}

/// Text from a file in a message, cut and made printable.
struct Short<'a>(&'a str);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut: String = self.0.chars().take(MAX_NAME_BYTES).collect();
        let more = if cut.len() < self.0.len() { "…" } else { "" };
        write!(f, "{}{more}", escaped(&cut))
    }
}

fn with_article(kind: NameKind) -> String {
    match kind {
        NameKind::Enum => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

impl Mistake {
    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            Mistake::SourceTooLong { most } => {
                say(format!("the file is longer than {most} bytes"), "the file begins here")
                    .help("is this a frame file?")
            }
            Mistake::NotUtf8 { byte } => {
                say("the file is not UTF-8", format!("byte 0x{byte:02x} is not valid here"))
                    .help("save the file as UTF-8")
            }
            Mistake::Nul => say("the file contains a NUL byte", "a NUL byte is here")
                .help("save the file as plain UTF-8 text"),
            Mistake::NoFrames => say("the file declares no frame", "expected a frame")
                .help("a frame looks like `frame example { int kind, who; time start, end; }`"),
            Mistake::SchemaTooLong { bytes, most } => say(
                format!(
                    "the schema would have {bytes} bytes; a program can contain at most {most}"
                ),
                "too much in this buffer",
            )
            .help("split the buffer, or shorten names and comments"),
            Mistake::Unsaid { count, .. } => {
                say(format!("and {count} more"), "the last one shown is here")
            }

            Mistake::OpenComment => say("this comment never ends", "expected `*/` after this")
                .help("everything from here to the end of the file is part of the comment"),
            Mistake::Expected { expected, label, found, help } => Wording {
                message: format!("expected {expected}, found {found}"),
                label: format!("expected {label}"),
                help: help.clone(),
            },
            Mistake::NotADeclaration { found, suggestion } => say(
                format!("expected a declaration, found {found}"),
                "expected `emit`, `buffer`, `option`, `enum`, `frame`, `counter`, `histogram` or `edge`",
            )
            .meant(
                suggestion.as_deref(),
                "a frame looks like `frame example { int kind, who; time start, end; }`",
            ),
            Mistake::NotAnEdge { found } => say(
                format!("expected an edge, found {found}"),
                "expected `edge`, as the file holds nothing else",
            )
            .help("an edge looks like `edge sent -> received within 500ms nearest;`"),
            Mistake::LaterDeclaration { word } => say(
                format!("`{word}` is reserved for a later version of the frame language"),
                "not supported yet",
            ),
            Mistake::StrayBrace => say("this `}` closes nothing", "no frame or enum is open here")
                .help("remove it, or look for an extra brace above"),
            Mistake::OpenBrace { kind, name } => say(
                format!("the {kind} `{}` is not closed", Short(name)),
                "this brace has no partner",
            )
            .help(format!("add `}}` after the last line of `{}`", Short(name))),
            Mistake::BadNumber { text, fault } => {
                let message = format!("`{}` is not a number here", Short(text));
                match fault {
                    NumberFault::Malformed => say(message, "expected a whole number")
                        .help("numbers are decimal (`16384`, `-1`) or hexadecimal (`0x4000`)"),
                    NumberFault::LeadingZero => say(message, "begins with 0")
                        .help("C would read it as octal: write it without the 0, or as `0x…`"),
                    NumberFault::TooLarge => say(message, "too large for 64 bits"),
                }
            }

            Mistake::UnknownLanguage { word, suggestion } => {
                let words: Vec<_> = Language::spellings().collect();
                let (last, first) = words.split_last().expect("there are some");
                let expected = format!("expected `{}` or `{last}`", first.join("`, `"));
                let all = format!("write `emit {};` or some of these", words.join(", "));
                say(format!("ppt does not generate `{}`", Short(word)), expected)
                    .meant(*suggestion, all)
            }
            Mistake::LanguageTwice { word } => {
                say(format!("`{word}` is named twice"), "named before")
            }
            Mistake::BufferTwice => say("the buffer is named twice", "named again here")
                .help("all frames of a file share one buffer; put others into a file of their own"),
            Mistake::BadSlots { nearest } => say(
                format!("slots must be a power of two from {MIN_SLOTS} to {MAX_SLOTS}"),
                "not such a number",
            )
            .help(format!("the nearest is {nearest}; without a number it is {DEFAULT_SLOTS}")),
            Mistake::StemIsNoName { stem } => say(
                format!("the buffer is named after the file, and `{}` is not a name", Short(stem)),
                "expected a `buffer` line",
            )
            .help(format!("add `buffer {};`", proposed_name(stem))),
            Mistake::StemIsNotAllowed { why } => say(
                format!("the buffer is named after the file, but {why}"),
                "expected a `buffer` line",
            )
            .help("add `buffer NAME;` with another name"),
            Mistake::UnknownOption { word, suggestion } => say(
                format!("there is no option `{}`", Short(word)),
                "expected `time`, `tag`, `package` or `allow`",
            )
            .meant(
                *suggestion,
                "options are `option time …;`, `option tag NAME \"…\";`, `option package \"…\";` and `option allow \"…\";`",
            ),
            Mistake::TimeTwice => say("`option time` is given twice", "given again here").help(
                "one kind of time serves the whole buffer; `@clock(…)` picks a clock per field",
            ),
            Mistake::UnknownTime { word, suggestion } => say(
                format!("there is no kind of time called `{}`", Short(word)),
                "expected `timeval`, `ns`, `timespec` or `tsc`",
            )
            .meant(*suggestion, "for example `option time ns monotonic;`"),
            Mistake::UnknownClock { word, suggestion } => say(
                format!("there is no clock called `{}`", Short(word)),
                "expected `realtime`, `monotonic`, `boottime`, `thread_cpu` or `process_cpu`",
            )
            .meant(*suggestion, "clocks are those of clock_gettime(2)"),
            Mistake::UnknownFieldClock { word, suggestion } => say(
                format!("there is no clock called `{}`", Short(word)),
                "expected `tsc`, `realtime`, `monotonic`, `boottime`, `thread_cpu` or `process_cpu`",
            )
            .meant(*suggestion, "clocks are those of clock_gettime(2), and the CPU's counter"),
            Mistake::TscIsNoClock { kind } => say(
                format!("`tsc` is a kind of time, not a clock of `{kind}`"),
                "ticks of the CPU's counter",
            )
            .help("write `option time tsc;`, or `@clock(tsc)` after a field"),
            Mistake::CpuClock { word } => say(
                format!("reading the clock `{word}` enters the kernel"),
                "a few hundred nanoseconds each time, while a capture runs",
            ),
            Mistake::TooManyWords { what } => {
                say(format!("`{what}` takes no more words"), "expected `;` before this")
            }
            Mistake::TimeWithoutKind => {
                say("`option time` needs a kind of time", "expected a kind of time after this")
                    .help(
                        "`timeval` (as without the option), `ns CLOCK`, `timespec CLOCK` or `tsc`",
                    )
            }
            Mistake::TagForm => {
                say("a tag is a name and a string", "expected `option tag NAME \"value\";`")
            }

            Mistake::PackageForm => say(
                "`option package` takes one string",
                "expected `option package \"org.example.job\";`",
            ),
            Mistake::PackageTwice => {
                say("`option package` is given twice", "given again here").help("one package holds all classes of a buffer")
            }
            Mistake::BadPackage { name } => {
                say(format!("`{}` is not the name of a package", Short(name)), "not such a name")
                    .help("a package is names with dots between them, `org.example.job`; none is a keyword of Java")
            }

            Mistake::AllowForm => say(
                "`option allow` takes the name of one warning",
                "expected `option allow \"uneven-frames\";`",
            ),
            Mistake::UnknownWarning { word, suggestion } => {
                say(format!("there is no warning called `{}`", Short(word)), "has no effect")
                    .meant(*suggestion, "each warning and hint begins with its name in brackets")
            }
            Mistake::LargeRing { bytes, stride } => say(
                format!("each thread's ring has {} MiB", bytes >> 20),
                format!("slots of {stride} bytes"),
            )
            .help(
                "fewer slots are usually enough; `ppt attach --slots` sets more for one capture \
                 (`option allow \"large-ring\";` silences this)",
            ),

            Mistake::NameTooLong { name, bytes } => say(
                format!("the name `{}` has {bytes} bytes", Short(name)),
                format!("at most {MAX_NAME_BYTES} bytes"),
            ),
            Mistake::Keyword { name, languages } => {
                say(format!("`{name}` is a keyword in {languages}"), "cannot be a name")
                    .other_name(name)
            }
            Mistake::ReservedWord { name } => {
                say(format!("`{name}` is reserved in the frame language"), "cannot be a name")
            }
            .other_name(name),
            Mistake::Macro { name } => {
                say(format!("`{name}` is a macro or a type in C and C++"), "cannot be a name")
                    .other_name(name)
            }
            Mistake::OurPrefix { name } => say(
                format!("`{}` begins with a prefix of generated names", Short(name)),
                "names that begin with `ppt_`, `ppt1_` or `pptframe` are reserved",
            ),
            Mistake::Underscores { name } => say(
                format!("C and C++ reserve names such as `{}`", Short(name)),
                "no `_` at the beginning and no `__` inside",
            ),
            Mistake::BecomesSelf { kind, name } => say(
                format!("the {kind} `{name}` would be called `Self` in Rust"),
                "`Self` is a keyword in Rust",
            )
            .help("choose another name"),
            Mistake::MethodName { name } => say(
                format!("a frame cannot be called `{name}`"),
                "the generated C++ has a function of that name inside frames",
            )
            .other_name(name),
            Mistake::TakenName { kind, name, language } => say(
                format!("the {kind} `{name}` has a name that {language} output needs for itself"),
                "used by the generated code",
            )
            .other_name(name),
            Mistake::StdBuffer => say(
                "a buffer cannot be called `std`",
                "inside the generated C++ it would hide the standard library",
            )
            .other_name("std"),
            Mistake::TypeWord { name } => {
                say(format!("`{name}` is already a type"), "an enum of this name could not be used")
                    .other_name(name)
            }
            Mistake::StandardColumn { name } => say(
                format!("`{name}` is a column that every table has"),
                "a second column of that name",
            )
            .other_name(name),
            Mistake::Twice { kind, name } => say(
                format!("the {kind} `{}` is declared twice", Short(name)),
                "declared again here",
            ),
            Mistake::FrameAndEnum { name } => say(
                format!("`{}` is the name of a frame and of an enum", Short(name)),
                "both are types in C++ and Rust",
            ),
            Mistake::SameGenerated { language, generated, first, second } => say(
                format!("{first} and {second} would both be called `{generated}` in {language}"),
                format!("`{generated}` again"),
            )
            .help("rename one of the two"),
            Mistake::SameColumn { column, first, second } => say(
                format!("`{first}` and `{second}` both have a column `{column}`"),
                format!("column `{column}` again"),
            )
            .help("rename one of the two (upper and lower case are the same in SQL)"),

            Mistake::EmptyEnum { name } => {
                say(format!("the enum `{}` has no values", Short(name)), "expected a value inside")
            }
            Mistake::UnknownInteger { word, suggestion } => say(
                format!("`{}` is not an integer type", Short(word)),
                "expected one of `i8` … `i64`, `u8` … `u64`",
            )
            .meant(*suggestion, "without a type, an enum is an `i32`"),
            Mistake::ValueOutOfRange { value, integer, least, most } => say(
                format!("{value} does not fit `{integer}`"),
                format!("expected {least} … {most}"),
            )
            .help("name a larger type: `enum NAME : i64 { … }`"),
            Mistake::SameValue { name, other, value } => say(
                format!("`{}` and `{}` are both {value}", Short(other), Short(name)),
                "tables show the first one",
            ),
            Mistake::TooManyEnums { count, own } => {
                let said = say(
                    format!("{count} enums; a buffer has at most {MAX_ENUMS}"),
                    "the first one too many",
                );
                match own {
                    0 => said,
                    _ => said.help(format!("{own} of them are those of spans and chains, one each")),
                }
            }
            Mistake::TooManyValues { name, count } => say(
                format!("the enum `{}` has {count} values; at most {MAX_VALUES}", Short(name)),
                "too many values",
            ),

            Mistake::EmptyFrame { name } => {
                say(format!("the frame `{}` has no fields", Short(name)), "expected a field inside")
                    .help("a field looks like `int who;`")
            }
            Mistake::TooManyFrames { count } => say(
                format!("{count} frames; a buffer has at most {MAX_FRAMES}"),
                "the first one too many",
            ),
            Mistake::TooManyFields { name, count } => say(
                format!("the frame `{}` has {count} fields; at most {MAX_FIELDS}", Short(name)),
                "too many fields",
            ),
            Mistake::FrameTooLarge { name, bytes, largest } => say(
                format!("the frame `{}` has {bytes} bytes; at most {MAX_FRAME_BYTES}", Short(name)),
                "too large",
            )
            .help(format!("its largest field is {largest}")),
            Mistake::ManyStamps { name, stamps } => say(
                format!("the frame `{name}` is stamped {stamps} times"),
                "each stamp asks the system for the time, which costs more than the frame",
            )
            .help("`option time tsc;` reads the CPU's counter, at a third of the cost"),
            Mistake::LargeFrame { name, bytes } => say(
                format!("the frame `{}` has {bytes} bytes", Short(name)),
                "every write copies that many bytes",
            )
            .help("frames up to 512 bytes are usual; every slot of the ring has the largest size"),
            Mistake::UnevenFrames { name, bytes, largest, stride, others } => {
                let others = match others {
                    0 => String::new(),
                    1 => "; one more frame is small, too".to_owned(),
                    _ => format!("; {others} more frames are small, too"),
                };
                say(
                    format!(
                        "`{}` has {bytes} bytes in slots of {stride}, the size of `{}`{others}",
                        Short(name),
                        Short(largest)
                    ),
                    format!("leaves {} bytes of its slots unused", stride - bytes),
                )
                .help(format!(
                    "trim `{}`, or put it into a frame file, and so a buffer, of its own \
                     (`option allow \"uneven-frames\";` silences this)",
                    Short(largest)
                ))
            }
            Mistake::TimelessFrame { name } => say(
                format!("the frame `{}` has no time", Short(name)),
                "other frames of the buffer have one",
            )
            .help(
                "without a `time` field it cannot be placed among the frames of other threads \
                 (`option allow \"no-time\";` silences this)",
            ),
            Mistake::UnknownType { word, suggestion } => {
                let text = say(format!("unknown type `{}`", Short(word)), "not a type");
                match suggestion {
                    Some(word) => text.help(format!("did you mean `{word}`?")),
                    None => text.help(
                        "types are int, float, double, time, i8 … u64, f32, f64, bool, duration, \
                         char, bytes and the enums of this file",
                    ),
                }
            }
            Mistake::FrameAsType { word } => {
                say(format!("`{}` is a frame, not a type", Short(word)), "not a type")
                    .help("frames do not contain frames: list its fields here")
            }
            Mistake::LaterType { word } => say(
                format!("`{word}` is reserved for a later version of the frame language"),
                "not a type yet",
            ),
            Mistake::NoLength { word, name } => {
                say(format!("`{word}` needs a length"), "expected `[` after this")
                    .help(format!("write `{word} {}[16]`", Short(name)))
            }
            Mistake::BadLength { length } => say(
                format!("{length} is not a possible length"),
                format!("expected 1 … {MAX_FRAME_BYTES}"),
            ),
            Mistake::IntervalOfBytes { word } => {
                say(format!("there is no interval of `{word}`"), "has no start and end")
                    .help("most intervals are of `time`: `interval time handle;`")
            }
            Mistake::HashShape { word, what } => {
                say(format!("a `{word}` identifies one thing, and {what} is no thing"), "expected one value")
                    .help(format!("write a field of its own for each: `{word} first, second;`"))
            }
            Mistake::RawOfNoHash => say("`@raw` belongs to a field of type `hash` or `hash128`", "no hash")
                .help("other types are stored as they are anyway"),
            Mistake::IntervalArray => say("there are no arrays of intervals", "expected no `[`")
                .help("write one interval per element, or two arrays of times"),

            Mistake::UnknownAttribute { name, suggestion } => say(
                format!("unknown attribute `@{}`", Short(name)),
                "kept in the schema without a meaning",
            )
            .meant(
                suggestion.map(|word| format!("@{word}")).as_deref(),
                "known are @at, @unit, @clock, @group, @name, @track, @flow, @counter, @span, @chain, @point, @key, @in, @out, @raw and @thread",
            ),
            Mistake::AttributeTwice { name } => {
                say(format!("`@{}` is given twice", Short(name)), "given again here")
            }
            Mistake::AttributeOnFrame { name } => {
                say(format!("`@{name}` belongs to a field"), "this is a frame")
            }
            Mistake::AttributeOnField { name } => {
                say(format!("`@{name}` belongs to a frame"), "this is a field")
                    .help(format!("write it after the frame's name: `frame NAME @{name} {{ … }}`"))
            }
            Mistake::AttributeArguments { name, form } => {
                let has_arguments = form.strip_prefix('@') != Some(name.as_str());
                let rule = if has_arguments { format!("is written `{form}`") } else { "takes no arguments".into() };
                say(format!("`@{name}` {rule}"), format!("expected `{form}`"))
            }
            Mistake::AtTwice => {
                say("`@at` is given twice; a frame has only one time", "given again here")
            }
            Mistake::ThreadType => {
                say("`@thread` belongs to a field of type `u32` or `i32`", "no number of a thread")
                    .help("what gettid(2) says fits: `u32 thread @thread;`; 0 is the thread that writes the frame")
            }
            Mistake::ThreadOfPoint => {
                say("`@thread` has no meaning in a point", "the thread that writes it passes it")
            }
            Mistake::ThreadTwice => {
                say("`@thread` is given twice; a frame is about one thread", "given again here")
            }
            Mistake::AtNotTime => {
                say("`@at` belongs to a field of type `time`", "not a point in time")
            }
            Mistake::AtArray => say("`@at` belongs to one point in time", "an array has several"),
            Mistake::AtCpuClock { word } => {
                say(format!("the clock `{word}` does not place a frame in time"), "counts CPU time")
                    .help("put `@at` on a field of another clock, or leave it out")
            }
            Mistake::ClockNotTime => {
                say("`@clock` belongs to a field of type `time`", "not a point in time")
            }
            Mistake::ClockIsFixed { time } => {
                say(format!("the clock of `{time}` cannot be chosen"), "has no effect on it")
                    .help("choose the kind of time with `option time ns CLOCK;`")
            }

            Mistake::TooManyMetrics { count } => say(
                format!("{count} counters and histograms; a buffer has at most {MAX_METRICS}"),
                "the first one too many",
            )
            .help("put some of them into another frame file"),
            Mistake::MetricAndOther { kind, name, other } => say(
                format!("`{}` is the name of {} and of a {kind}", Short(name), with_article(*other)),
                "both are types in C++ and Rust",
            ),
            Mistake::MetricMethod { kind, name } => say(
                format!("a {kind} cannot be called `{name}`"),
                "C++ has a function of this name inside each of them",
            )
            .other_name(name),
            Mistake::CounterType { word, suggestion } => say(
                format!("a counter cannot be of type `{}`", Short(word)),
                "expected `u64` or `i64`",
            )
            .meant(*suggestion, "`counter name;` counts up; `counter name : i64;` also down"),
            Mistake::HistogramType { word, suggestion } => say(
                format!("a histogram cannot be of type `{}`", Short(word)),
                "expected `duration` or `u32`",
            )
            .meant(
                *suggestion,
                "`histogram name : duration;` or `histogram name : u32 (from, to, buckets);`",
            ),
            Mistake::NoRange => say(
                "a histogram of `u32` states its buckets",
                "expected `(from, to, buckets)` after this",
            )
            .help("for example `histogram queue : u32 (0, 1024, 64);`"),
            Mistake::RangeOfDurations => say(
                "a histogram of durations has buckets for every length",
                "these cannot be chosen",
            )
            .help("leave the brackets out"),
            Mistake::RangeForm { count } => say(
                format!("{count} numbers where a histogram takes three"),
                "expected `(from, to, buckets)`",
            )
            .help("for example `histogram queue : u32 (0, 1024, 64);`"),
            Mistake::RangeValue { value } => say(
                format!("{value} is no value of type `u32`"),
                "expected a number from 0 to 4294967295",
            )
            .help("the end of the range itself is outside, so it may be 4294967296"),
            Mistake::RangeOrder { from, to } => if from == to { say("the range is empty", format!("{from} is where it begins, too")) } else { say(
                    format!("the range ends at {to}, before it begins"),
                    format!("expected more than {from}"),
                ) }
            .help("the order is `(from, to, buckets)`"),
            Mistake::Buckets { buckets, most } => say(
                format!("a histogram of this range cannot have {buckets} buckets"),
                format!("expected 1 to {most}"),
            )
            .help(format!(
                "a bucket holds one value or more, and a histogram at most {MAX_BUCKETS} buckets"
            )),
            Mistake::AttributeOnMetric { name } => say(
                format!("`@{name}` has no meaning for counters and histograms"),
                "expected `@unit(…)` or `@group(…)`",
            ),

            Mistake::TwoKinds => {
                say("a frame is of one kind: `@span`, `@chain` or `@point`", "another kind").help(
                    "a span has a begin and an end; a chain has steps; a point has what comes in \
                     and goes out",
                )
            }
            Mistake::TooManySteps { count } => {
                say(format!("{count} steps; a chain has at most {MAX_VALUES}"), "too many steps")
            }
            Mistake::StepForm { word } => {
                say(format!("`{}` is not the name of a step", Short(word)), "expected a name")
                    .help("steps are named like the values of an enum: `@chain(start, send, recv)`")
            }
            Mistake::UnknownAcross { word, suggestion } => say(
                format!("`{}` does not say where the end of a span can be", Short(word)),
                "expected `process`, `host` or `everywhere`",
            )
            .meant(*suggestion, "`@span` alone means `@span(process)`"),
            Mistake::UnknownOrder { word } => say(
                format!("`{}` does not say which begin an end belongs to", Short(word)),
                "expected `fifo`",
            )
            .help("`fifo` means the earliest that has no end; without it, it is the latest"),
            Mistake::NoKey { kind, name } => say(
                format!("the {kind} `{}` has no key", Short(name)),
                "expected a field with `@key` inside",
            )
            .help(match *kind {
                "span" => "mark what a begin and its end have in common: `u64 id @key;`",
                _ => "mark what all steps of one thing have in common: `u64 id @key;`",
            }),
            Mistake::KeyOfPlain { name } => {
                say("`@key` belongs to a field of a span or a chain", "this frame is neither").help(
                    format!("write `frame {} @span {{ … }}`, or `@chain(…)`", Short(name)),
                )
            }
            Mistake::KeyType { what } => say(
                format!("{what} cannot be a key"),
                "frames that belong together have the same key",
            )
            .help("a key is an integer, a bool, an enum, `char[N]` or `bytes[N]`"),
            Mistake::KeyOfAddr { kind } => say(
                "an `addr` cannot be a key of frames of several processes",
                "in another process, the same address is other code",
            )
            .help(match *kind {
                "span" => "write `@span`, or `@span(process)`: then both halves are of one process",
                _ => "write `u64` if the number means the same in all of them",
            }),
            Mistake::HalfOfPlain { name, frame } => {
                say(format!("`@{name}` belongs to a field of a span"), "this frame is none")
                    .help(format!("write `frame {} @span {{ … }}`", Short(frame)))
            }
            Mistake::HalfOfChain { name, frame } => say(
                format!("`@{name}` belongs to a field of a span, and `{}` is a chain", Short(frame)),
                "a chain has steps",
            )
            .help("leave it out: every step of a chain has all fields"),
            Mistake::HalfOfKey { name } => say(
                format!("a key cannot be `@{name}`"),
                format!("only the frame of the {name} would have it"),
            )
            .help("the begin and the end of a span have the same key: leave one of the two out"),
            Mistake::HalfOfTime { name } => say(
                format!("the time of a frame cannot be `@{name}`"),
                format!("only the frame of the {name} would have a time"),
            )
            .help("both halves of a span have a time: leave one of the two out"),
            Mistake::BothHalves => say("a field cannot be both `@begin` and `@end`", "given here")
                .help("a field with neither is set by both: leave the two out"),
            Mistake::OwnField { kind, name } => say(
                format!("a {kind} cannot have a field `{name}`"),
                format!("ppt adds a field of that name to each {kind}"),
            )
            .other_name(name),
            Mistake::SideOfPlain { side, name } => {
                say(format!("`@{side}` belongs to a field of a point"), "this frame is none").help(
                    format!("write `frame {} @point {{ … }}`", Short(name)),
                )
            }
            Mistake::SideOfNoHash { side } => say(
                format!("`@{side}` belongs to a field of type `hash` or `hash128`"),
                "identifies nothing",
            )
            .help(
                "`hash` is of the bytes that identify it; `hash … @raw` is a number that does so \
                 as it is",
            ),
            Mistake::SideTwice { side, ty, name } => say(
                format!("the point `{}` has `@{side}({})` twice", Short(name), Short(ty)),
                "given again here",
            )
            .help("each thing has a hash type of its own: give one of them another name"),
            Mistake::TooManySides { side } => say(
                format!("a point has at most {MAX_IDENTITIES} fields with `@{side}`"),
                "the first one too many",
            ),
            Mistake::NoSides { name } => say(
                format!("the point `{}` does not say what comes in or goes out", Short(name)),
                "expected a field with `@in(…)` or `@out(…)` inside",
            )
            .help("mark what identifies the data: `hash id @in(messageid);`"),
            Mistake::TwoWidths { ty } => say(
                format!("the hash type `{}` has 64 bits in one place and 128 in another", Short(ty)),
                "never equal to the other",
            )
            .help("use `hash` or `hash128` for both, or another hash type"),
            Mistake::TooManyEdges { count } => say(
                format!("{count} edges; a file has at most {MAX_EDGES}"),
                "the first one too many",
            ),
            Mistake::EdgeTwice { from, to, same } => {
                let ends = format!("{} -> {}", Short(from), Short(to));
                match same {
                    true => say(format!("the edge `{ends}` is there twice"), "given again here"),
                    false => say(
                        format!("the edge `{ends}` says two things"),
                        "something else than before",
                    ),
                }
            }
            Mistake::EdgeOfNoPoint { name } => {
                say(format!("`{}` is a frame, but no point", Short(name)), "expected a point")
                    .help(format!("write `frame {} @point {{ … }}`", Short(name)))
            }
            Mistake::NoSuchPoint { buffer, name, suggestion } => say(
                format!("the buffer `{}` has no frame `{}`", Short(buffer), Short(name)),
                "expected a point of this file",
            )
            .meant(suggestion.as_deref(), "points of other programs have another buffer"),
            Mistake::EdgeNeverMatches { from, to, out, ins } => {
                let list = |types: &[String]| match types {
                    [] => "nothing".to_owned(),
                    types => format!("`{}`", types.join("`, `")),
                };
                say(
                    format!("nothing that goes out of `{}` comes into `{}`", Short(from), Short(to)),
                    format!("{} goes out, {} comes in", list(out), list(ins)),
                )
                .help("data is the same on both sides if `@out` and `@in` name one hash type")
            }
            Mistake::BadDuration { text, fault } => {
                let said = match fault {
                    DurationFault::NoUnit => {
                        say(format!("`{}` has no unit", Short(text)), "expected a unit after this")
                    }
                    DurationFault::UnknownUnit(_) => {
                        say(format!("`{}` has an unknown unit", Short(text)), "not a length of time")
                    }
                    DurationFault::Malformed => say(
                        format!("`{}` is not a length of time", Short(text)),
                        "expected whole nanoseconds",
                    ),
                    DurationFault::Zero => say(
                        "nothing follows within no time",
                        "expected a length of time above 0",
                    ),
                    DurationFault::TooLong => {
                        say(format!("`{}` is too long", Short(text)), "more than 292 years")
                    }
                };
                let meant = match fault {
                    DurationFault::UnknownUnit(suggestion) => *suggestion,
                    _ => None,
                };
                said.meant(meant, "units are ns, us, ms, s, min and h: `within 500ms`")
            }
            Mistake::UnknownPolicy { word, suggestion } => say(
                format!("there is no policy `{}`", Short(word)),
                "expected `all`, `nearest` or `fifo`",
            )
            .meant(
                *suggestion,
                "`all` takes every match, `nearest` the latest cause, `fifo` one after the other",
            ),
            Mistake::WholeColumn { column, table } => say(
                format!("the table `{table}` would have two columns `{column}`"),
                "one of them comes from here",
            )
            .help("rename the key or the step (upper and lower case are the same in SQL)"),
            Mistake::WholeTable { table, of } => say(
                format!("a table `{table}` belongs to the frame `{of}`"),
                "a second table of that name",
            )
            .other_name(table),
        }
    }
}

/// A valid name similar to a file's stem.
fn proposed_name(stem: &str) -> String {
    let mut name: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .take(MAX_NAME_BYTES - 1)
        .collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    let name = name.trim_matches('_');
    match name.bytes().next() {
        None => "example".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("b{name}"),
        Some(_) => name.to_owned(),
    }
}
