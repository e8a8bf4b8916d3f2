//! Enums.

use std::collections::HashMap;

use super::{names, number};
use ppt_text::nearest;

use crate::ast::{self, FrameFile};
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::foreign_types::from_elsewhere;
use crate::mistake::{EnumMistake, NameKind, NameMistake};
use crate::schema::{Enum, Extra, Int, MAX_ENUMS, MAX_VALUES};
use crate::type_words::is_type_word;

/// Checks the number of enums, including the `own` ones of spans, which no line declares.
pub(super) fn count(file: &FrameFile, own: usize, sink: &mut DiagnosticSink) {
    let count = file.enums.len() + own;
    if count > MAX_ENUMS {
        let first = file.enums.get(MAX_ENUMS).map(|enumeration| &enumeration.name);
        let place = first.or(file.frames.last().map(|frame| &frame.name));
        let place = place.map_or(file.end..file.end, |place| place.span.clone());
        sink.report(place, EnumMistake::TooManyEnums { count, own });
    }
}

/// The enums of a file.
pub(super) fn enums(file: &FrameFile, sink: &mut DiagnosticSink) -> Vec<Enum> {
    let mut declared = names::Declared::default();
    let mut enums = Vec::new();
    for it in file.enums.iter().take(MAX_ENUMS) {
        names::check(NameKind::Enum, &it.name, sink);
        is_no_type_word(it, sink);
        if declared.insert(NameKind::Enum, &it.name.text, &it.name.span, sink) {
            enums.push(enumeration(it, sink));
        }
    }
    enums
}

/// Checks that an enum does not have the name of a type, because it could not be used.
fn is_no_type_word(it: &ast::Enum, sink: &mut DiagnosticSink) {
    if is_type_word(&it.name.text) {
        let name = it.name.text.clone();
        sink.report(it.name.span.clone(), NameMistake::TypeWord { name });
    }
}

fn enumeration(it: &ast::Enum, sink: &mut DiagnosticSink) -> Enum {
    let name = it.name.text.clone();
    if it.values.is_empty() && !it.damaged {
        sink.report(it.name.span.clone(), EnumMistake::EmptyEnum { name: name.clone() });
    }
    if it.values.len() > MAX_VALUES {
        let mistake = EnumMistake::TooManyValues { name: name.clone(), count: it.values.len() };
        sink.report(it.name.span.clone(), mistake);
    }
    let repr = integer(it, sink);
    let values = values(it, repr, sink);
    Enum { name, repr, values, doc: it.doc.clone(), extra: Extra::new() }
}

/// The integer type: i32 unless another one is stated.
fn integer(it: &ast::Enum, sink: &mut DiagnosticSink) -> Int {
    let Some(word) = &it.integer else {
        return Int::I32;
    };
    let known = match word.text.as_str() {
        "int" => Some(Int::I32),
        text => Int::ALL.into_iter().find(|int| int.word() == text),
    };
    known.unwrap_or_else(|| {
        let suggestion = from_elsewhere(&word.text)
            .filter(|ours| Int::ALL.iter().any(|int| int.word() == *ours))
            .or_else(|| nearest(&word.text, Int::ALL.map(Int::word)));
        let mistake = EnumMistake::UnknownInteger { word: word.text.clone(), suggestion };
        sink.report(word.span.clone(), mistake);
        // Wide enough to avoid errors about the values.
        Int::I64
    })
}

fn values(it: &ast::Enum, repr: Int, sink: &mut DiagnosticSink) -> Vec<(String, i128)> {
    let (least, most) = repr.range();
    let mut declared = names::Declared::default();
    let mut by_value: HashMap<i128, (&str, SourceRange)> = HashMap::new();
    let mut values = Vec::new();
    let mut next = 0;
    for value in it.values.iter().take(MAX_VALUES) {
        names::check(NameKind::Value, &value.name, sink);
        let place = value.number.as_ref().unwrap_or(&value.name).span.clone();
        let number = value.number.as_ref().and_then(|word| number::value(word, sink));
        let number = number.unwrap_or(next);
        next = number + 1;
        if !declared.insert(NameKind::Value, &value.name.text, &value.name.span, sink) {
            continue;
        }
        if !(least..=most).contains(&number) {
            let integer = repr.word();
            let mistake = EnumMistake::ValueOutOfRange { value: number, integer, least, most };
            sink.report(place, mistake);
        } else if let Some((other, first)) = by_value.get(&number) {
            let (name, other) = (value.name.text.clone(), (*other).to_owned());
            let note = DiagnosticNote { span: first.clone(), label: format!("also {number}") };
            sink.report_with(place, EnumMistake::SameValue { name, other, value: number }, [note]);
        } else {
            by_value.insert(number, (&value.name.text, value.name.span.clone()));
        }
        values.push((value.name.text.clone(), number));
    }
    values
}
