//! `emit`, `buffer` and `option` lines.

use super::{names, number};
use ppt_text::nearest;

use crate::ast::{Argument, FrameFile, Setting, SourceWord};
use crate::diagnostic::{DiagnosticNote, DiagnosticSink};
use crate::language::Language;
use crate::mistake::{BufferMistake, NameKind, OptionMistake};
use crate::names::is_identifier;
use crate::reserved::is_keyword_of_java;
use crate::schema::{Clock, FieldType, MAX_SLOTS, MIN_SLOTS};
use crate::verify::is_slot_count;

/// The meaning of the type word `time`.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimeMeaning {
    Timeval,
    Timespec(Clock),
    Ns(Clock),
    Tsc,
}

impl TimeMeaning {
    const WORDS: [&str; 4] = ["timeval", "ns", "timespec", "tsc"];

    /// The field type.
    pub fn ty(self) -> FieldType {
        match self {
            TimeMeaning::Timeval => FieldType::Timeval,
            TimeMeaning::Timespec(clock) => FieldType::Timespec { clock },
            TimeMeaning::Ns(clock) => FieldType::Ns { clock },
            TimeMeaning::Tsc => FieldType::Tsc,
        }
    }
}

/// The languages of all `emit` lines, each once.
pub(super) fn languages(file: &FrameFile, sink: &mut DiagnosticSink) -> Vec<Language> {
    let mut languages = Vec::new();
    for word in &file.emits {
        match Language::of_word(&word.text) {
            Some(language) if languages.contains(&language) => {
                sink.report(
                    word.span.clone(),
                    BufferMistake::LanguageTwice { word: word.text.clone() },
                );
            }
            Some(language) => languages.push(language),
            None => {
                let suggestion = Language::nearest(&word.text);
                let mistake =
                    BufferMistake::UnknownLanguage { word: word.text.clone(), suggestion };
                sink.report(word.span.clone(), mistake);
            }
        }
    }
    languages
}

/// The buffer's name and slots, if stated.
pub(super) fn buffer(
    file: &FrameFile,
    stem: &str,
    sink: &mut DiagnosticSink,
) -> (String, Option<u32>) {
    let Some(buffer) = file.buffers.first() else {
        return (named_after_file(file, stem, sink), None);
    };
    for again in &file.buffers[1..] {
        let note =
            DiagnosticNote { span: buffer.span.clone(), label: "first named here".to_owned() };
        sink.report_with(again.span.clone(), BufferMistake::BufferTwice, [note]);
    }
    names::check(NameKind::Buffer, &buffer.name, sink);
    let slots = buffer.slots.as_ref().and_then(|word| slots(word, sink));
    (buffer.name.text.clone(), slots)
}

fn named_after_file(file: &FrameFile, stem: &str, sink: &mut DiagnosticSink) -> String {
    let name = stem.to_owned();
    if is_identifier(stem) {
        if let Some(violation) =
            names::first_violation(NameKind::Buffer, stem, stem.len(), sink.languages())
        {
            sink.report(0..0, BufferMistake::StemIsNotAllowed { why: violation.wording().message });
        }
    } else if !file.damaged {
        // The `buffer` line may be in a part that could not be parsed.
        sink.report(0..0, BufferMistake::StemIsNoName { stem: name.clone() });
    }
    name
}

fn slots(word: &SourceWord, sink: &mut DiagnosticSink) -> Option<u32> {
    let value = number::value(word, sink)?;
    match u64::try_from(value) {
        Ok(slots) if is_slot_count(slots) => u32::try_from(slots).ok(),
        _ => {
            sink.report(
                word.span.clone(),
                BufferMistake::BadSlots { nearest: nearest_slots(value) },
            );
            None
        }
    }
}

fn nearest_slots(value: i128) -> u64 {
    let (least, most) = (u64::from(MIN_SLOTS), u64::from(MAX_SLOTS));
    let value = u64::try_from(value.max(0)).unwrap_or(most).clamp(least, most);
    let above = value.next_power_of_two();
    let below = (above / 2).max(least);
    if value - below.min(value) < above - value { below } else { above }
}

/// The option that suppresses a warning.
pub(super) const ALLOW: &str = "allow";
/// The option that names the package of generated classes.
const PACKAGE: &str = "package";
/// Most bytes of a package's name, which becomes a part of paths and of function names.
const MAX_PACKAGE_BYTES: usize = 200;

/// Checks that every `option` line is a known one.
pub(super) fn known(file: &FrameFile, sink: &mut DiagnosticSink) {
    for setting in &file.settings {
        let word = &setting.key.text;
        if !["time", "tag", PACKAGE, ALLOW].contains(&&**word) {
            let suggestion = nearest(word, ["time", "tag", PACKAGE, ALLOW]);
            let mistake = OptionMistake::UnknownOption { word: word.clone(), suggestion };
            sink.report(setting.key.span.clone(), mistake);
        }
    }
}

/// `option time …`; timeval by default.
pub(super) fn time(file: &FrameFile, sink: &mut DiagnosticSink) -> TimeMeaning {
    let mut settings = file.settings.iter().filter(|setting| setting.key.text == "time");
    let Some(first) = settings.next() else {
        return TimeMeaning::Timeval;
    };
    for again in settings {
        let note =
            DiagnosticNote { span: first.span.clone(), label: "first given here".to_owned() };
        sink.report_with(again.span.clone(), OptionMistake::TimeTwice, [note]);
    }
    kind_of_time(first, sink).unwrap_or(TimeMeaning::Timeval)
}

fn kind_of_time(setting: &Setting, sink: &mut DiagnosticSink) -> Option<TimeMeaning> {
    let Some((kind, rest)) = setting.arguments.split_first() else {
        sink.report(setting.key.span.clone(), OptionMistake::TimeWithoutKind);
        return None;
    };
    let text = kind.word.text.as_str();
    let (time, rest) = match text {
        "timeval" => (TimeMeaning::Timeval, rest),
        "tsc" => (TimeMeaning::Tsc, rest),
        "ns" | "timespec" => {
            let kind = if text == "ns" { "ns" } else { "timespec" };
            let (clock, rest) = match rest.split_first() {
                Some((word, rest)) => (clock(&word.word, kind, sink)?, rest),
                None => (Clock::Realtime, rest),
            };
            (if text == "ns" { TimeMeaning::Ns(clock) } else { TimeMeaning::Timespec(clock) }, rest)
        }
        _ => {
            let word = text.to_owned();
            let suggestion = nearest(text, TimeMeaning::WORDS);
            sink.report(kind.word.span.clone(), OptionMistake::UnknownTime { word, suggestion });
            return None;
        }
    };
    if let Some(surplus) = rest.first() {
        let what = "option time";
        sink.report(surplus.word.span.clone(), OptionMistake::TooManyWords { what });
    }
    Some(time)
}

/// The choice of `@clock(…)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenClock {
    /// The CPU's counter.
    Tsc,
    /// One of clock_gettime(2).
    Clock(Clock),
}

/// The clock of `option time KIND CLOCK`.
fn clock(word: &SourceWord, kind: &'static str, sink: &mut DiagnosticSink) -> Option<Clock> {
    if word.text == "tsc" {
        sink.report(word.span.clone(), OptionMistake::TscIsNoClock { kind });
        return None;
    }
    let clock = system_clock(word, sink);
    if clock.is_none() {
        let suggestion = nearest(&word.text, Clock::ALL.map(Clock::word));
        let mistake = OptionMistake::UnknownClock { word: word.text.clone(), suggestion };
        sink.report(word.span.clone(), mistake);
    }
    clock
}

/// The clock of `@clock(CLOCK)`.
pub(super) fn field_clock(word: &SourceWord, sink: &mut DiagnosticSink) -> Option<ChosenClock> {
    if word.text == "tsc" {
        return Some(ChosenClock::Tsc);
    }
    let clock = system_clock(word, sink);
    if clock.is_none() {
        let suggestion =
            nearest(&word.text, Clock::ALL.map(Clock::word).into_iter().chain(["tsc"]));
        let mistake = OptionMistake::UnknownFieldClock { word: word.text.clone(), suggestion };
        sink.report(word.span.clone(), mistake);
    }
    clock.map(ChosenClock::Clock)
}

/// A clock by its word. A CPU-time clock gives a warning.
fn system_clock(word: &SourceWord, sink: &mut DiagnosticSink) -> Option<Clock> {
    let clock = Clock::ALL.into_iter().find(|clock| clock.word() == word.text)?;
    if clock.is_cpu() {
        sink.report(word.span.clone(), OptionMistake::CpuClock { word: clock.word() });
    }
    Some(clock)
}

/// `option tag NAME "value";` in order.
pub(super) fn tags(file: &FrameFile, sink: &mut DiagnosticSink) -> Vec<(String, String)> {
    let mut declared = names::Declared::default();
    let mut tags = Vec::new();
    for setting in file.settings.iter().filter(|setting| setting.key.text == "tag") {
        match setting.arguments.as_slice() {
            [name @ Argument { quoted: false, .. }, value @ Argument { quoted: true, .. }]
                if !name.word.text.starts_with(|c: char| c.is_ascii_digit() || c == '-') =>
            {
                names::check(NameKind::Tag, &name.word, sink);
                declared.insert(NameKind::Tag, &name.word.text, &name.word.span, sink);
                tags.push((name.word.text.clone(), value.word.text.clone()));
            }
            _ => sink.report(setting.span.clone(), OptionMistake::TagForm),
        }
    }
    tags
}

/// `option package "org.example.job";`
pub(super) fn package(file: &FrameFile, sink: &mut DiagnosticSink) -> Option<String> {
    let mut settings = file.settings.iter().filter(|setting| setting.key.text == PACKAGE);
    let first = settings.next()?;
    for again in settings {
        let note =
            DiagnosticNote { span: first.span.clone(), label: "first given here".to_owned() };
        sink.report_with(again.span.clone(), OptionMistake::PackageTwice, [note]);
    }
    let [name @ Argument { quoted: true, .. }] = first.arguments.as_slice() else {
        sink.report(first.span.clone(), OptionMistake::PackageForm);
        return None;
    };
    let text = &name.word.text;
    let is_name = |part: &str| is_identifier(part) && !is_keyword_of_java(part);
    if text.len() > MAX_PACKAGE_BYTES || !text.split('.').all(is_name) {
        sink.report(name.word.span.clone(), OptionMistake::BadPackage { name: text.clone() });
        return None;
    }
    Some(text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_proposed() {
        for (value, nearest) in
            [(0, 2), (-5, 2), (3, 4), (5, 4), (1000, 1024), (1 << 40, 1 << 26), (16383, 16384)]
        {
            assert_eq!(nearest_slots(value), nearest, "{value}");
        }
    }
}
