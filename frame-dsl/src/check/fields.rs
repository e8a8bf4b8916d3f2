//! Fields: their types, lengths and intervals.

use std::collections::HashSet;

use super::attributes::{self, FieldAttributes, PointSide};
use super::number;
use super::options::{ChosenClock, TimeMeaning};
use ppt_text::nearest;

use crate::ast::{self, FrameFile, SourceWord};
use crate::diagnostic::{DiagnosticSink, SourceRange};
use crate::foreign_types::from_elsewhere;
use crate::mistake::{AttributeMistake, NameMistake, TypeMistake};
use crate::reserved::RESERVED_FOR_LATER;
use crate::role::{HASH, Hash, SpanHalf};
use crate::schema::{
    Extra, Field, FieldType, Interval, IntervalEnd, MAX_FRAME_BYTES, MAX_NAME_BYTES,
};
use crate::stored::plain;
use crate::type_words::{HASHES, type_words};

/// The names of types in this file.
pub(super) struct Types<'a> {
    time: TimeMeaning,
    enums: HashSet<&'a str>,
    frames: HashSet<&'a str>,
    /// Enums that could not be parsed. Their fields are ignored without an error.
    lost: HashSet<&'a str>,
    file: &'a FrameFile,
}

/// A field without an offset, and its spans.
pub(super) struct DraftField {
    pub field: Field,
    pub place: SourceRange,
    /// The span of its `@at`.
    pub at: Option<SourceRange>,
    /// The span of its `@key`.
    pub key: Option<SourceRange>,
    /// The marks `@in` and `@out` of the field.
    pub sides: Vec<PointSide>,
    /// The marks `@begin` and `@end` of the field.
    pub halves: Vec<(SpanHalf, SourceRange)>,
    /// The span of its `@thread`.
    pub thread: Option<SourceRange>,
}

impl<'a> Types<'a> {
    pub fn from_file(file: &'a FrameFile, time: TimeMeaning) -> Types<'a> {
        Types {
            time,
            enums: file.enums.iter().map(|enumeration| enumeration.name.text.as_str()).collect(),
            frames: file.frames.iter().map(|frame| frame.name.text.as_str()).collect(),
            lost: file.lost.iter().map(String::as_str).collect(),
            file,
        }
    }

    /// The fields of one declarator: two for an interval, none if its type is unknown.
    pub fn fields(&self, field: &ast::FieldDecl, sink: &mut DiagnosticSink) -> Vec<DraftField> {
        let said = attributes::of_field(&field.attributes, sink);
        let Some((ty, array)) = self.shape(field, sink) else {
            return Vec::new();
        };
        let ty = with_clock(ty, &said, sink);
        if field.interval.is_some() {
            return interval(field, &ty, &said, sink);
        }
        let mut draft = draft(field, field.name.text.clone(), ty, array, None, &said);
        match (HASHES.contains(&&*field.ty.text), said.raw) {
            (true, raw) => {
                let hash = if raw.is_some() { Hash::Raw } else { Hash::Xxh3 };
                draft.field.extra.insert(HASH.to_owned(), hash.word().into());
            }
            (false, Some(place)) => sink.report(place, TypeMistake::RawOfNoHash),
            (false, None) => {}
        }
        vec![draft]
    }

    /// The type, and the number of array elements.
    fn shape(
        &self,
        field: &ast::FieldDecl,
        sink: &mut DiagnosticSink,
    ) -> Option<(FieldType, Option<u32>)> {
        let length = match &field.length {
            Some(word) => Some(length(word, sink)?),
            None => None,
        };
        let word = &field.ty;
        let ty = match (word.text.as_str(), length) {
            ("char", Some(len)) => return Some((FieldType::Char { len }, None)),
            ("bytes", Some(len)) => return Some((FieldType::Bytes { len }, None)),
            (text @ ("char" | "bytes"), None) => {
                let name = field.name.text.clone();
                let mistake = match field.interval {
                    Some(_) => TypeMistake::IntervalOfBytes { word: text.to_owned() },
                    None => TypeMistake::NoLength { word: text.to_owned(), name },
                };
                sink.report(word.span.clone(), mistake);
                return None;
            }
            (text, _)
                if HASHES.contains(&text) && (field.interval.is_some() || length.is_some()) =>
            {
                let what = if field.interval.is_some() { "an interval" } else { "an array" };
                let mistake = TypeMistake::HashShape { word: text.to_owned(), what };
                sink.report(word.span.clone(), mistake);
                return None;
            }
            ("hash", _) => FieldType::U64,
            ("hash128", _) => FieldType::Bytes { len: Hash::WIDE },
            ("int", _) => FieldType::I32,
            ("float", _) => FieldType::F32,
            ("double", _) => FieldType::F64,
            ("time", _) => self.time.ty(),
            (text, _) => match plain(text) {
                Some(ty) => ty,
                None if self.enums.contains(text) => FieldType::Enum { name: text.to_owned() },
                None => {
                    self.unknown(word, sink);
                    return None;
                }
            },
        };
        Some((ty, length))
    }

    fn unknown(&self, word: &SourceWord, sink: &mut DiagnosticSink) {
        let text = word.text.as_str();
        if self.lost.contains(text) {
            return;
        }
        let mistake = if RESERVED_FOR_LATER.contains(&text) {
            TypeMistake::LaterType { word: text.to_owned() }
        } else if self.frames.contains(text) {
            TypeMistake::FrameAsType { word: text.to_owned() }
        } else {
            let suggestion = if sink.is_full() { None } else { self.suggestion(text) };
            TypeMistake::UnknownType { word: text.to_owned(), suggestion }
        };
        sink.report(word.span.clone(), mistake);
    }

    fn suggestion(&self, word: &str) -> Option<String> {
        let enums =
            self.file.enums.iter().map(|enumeration| &enumeration.name.text).chain(&self.file.lost);
        let enums = enums.map(String::as_str);
        from_elsewhere(word).or_else(|| nearest(word, type_words().chain(enums))).map(str::to_owned)
    }
}

/// The number in brackets.
fn length(word: &SourceWord, sink: &mut DiagnosticSink) -> Option<u32> {
    let length = number::value(word, sink)?;
    match u32::try_from(length) {
        Ok(length @ 1..=MAX_FRAME_BYTES) => Some(length),
        _ => {
            sink.report(word.span.clone(), TypeMistake::BadLength { length });
            None
        }
    }
}

/// The type with the clock of `@clock`. In a buffer of ticks, it becomes nanoseconds of that clock.
fn with_clock(ty: FieldType, said: &FieldAttributes, sink: &mut DiagnosticSink) -> FieldType {
    let Some((chosen, place)) = said.clock.clone() else {
        return ty;
    };
    match (ty, chosen) {
        (ty, ChosenClock::Tsc) if ty.is_time() => FieldType::Tsc,
        // 8 bytes of nanoseconds, like the 8 bytes of ticks.
        (FieldType::Ns { .. } | FieldType::Tsc, ChosenClock::Clock(clock)) => {
            FieldType::Ns { clock }
        }
        (FieldType::Timespec { .. }, ChosenClock::Clock(clock)) => FieldType::Timespec { clock },
        (ty @ FieldType::Timeval, ChosenClock::Clock(clock)) => {
            if ty.clock() != Some(clock) {
                sink.report(place, AttributeMistake::ClockIsFixed { time: ty.word() });
            }
            ty
        }
        (other, _) => {
            sink.report(place, AttributeMistake::ClockNotTime);
            other
        }
    }
}

/// `interval T x` is `T x_start, x_end`. Attributes apply to both, except that `@at` applies to the
/// end.
fn interval(
    field: &ast::FieldDecl,
    ty: &FieldType,
    said: &FieldAttributes,
    sink: &mut DiagnosticSink,
) -> Vec<DraftField> {
    let place = field.name.span.clone();
    if matches!(ty, FieldType::Char { .. } | FieldType::Bytes { .. }) {
        let mistake = TypeMistake::IntervalOfBytes { word: field.ty.text.clone() };
        sink.report(field.ty.span.clone(), mistake);
        return Vec::new();
    }
    if let Some(length) = &field.length {
        sink.report(length.span.clone(), TypeMistake::IntervalArray);
        return Vec::new();
    }
    let base = &field.name.text;
    let longest = base.len() + "_start".len();
    if field.name.span.len() <= MAX_NAME_BYTES && longest > MAX_NAME_BYTES {
        let mistake = NameMistake::NameTooLong { name: format!("{base}_start"), bytes: longest };
        sink.report(place, mistake);
    }
    [(IntervalEnd::Start, "start"), (IntervalEnd::End, "end")]
        .map(|(edge, word)| {
            let interval = Interval { name: base.clone(), edge };
            let mut half =
                draft(field, format!("{base}_{word}"), ty.clone(), None, Some(interval), said);
            if edge == IntervalEnd::Start {
                half.at = None;
                half.field.attributes.retain(|attribute| attribute.name != "at");
            }
            half
        })
        .into()
}

fn draft(
    field: &ast::FieldDecl,
    name: String,
    ty: FieldType,
    array: Option<u32>,
    interval: Option<Interval>,
    said: &FieldAttributes,
) -> DraftField {
    let field_of_schema = Field {
        name,
        ty,
        array,
        offset: 0,
        interval,
        at: false,
        unit: said.unit.clone(),
        doc: field.doc.clone(),
        attributes: said.kept.clone(),
        extra: Extra::new(),
    };
    DraftField {
        field: field_of_schema,
        place: field.name.span.clone(),
        at: said.at.clone(),
        key: said.key.clone(),
        sides: said.sides.clone(),
        halves: said.halves.clone(),
        thread: said.thread.clone(),
    }
}
