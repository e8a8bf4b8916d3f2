//! Declarations with the names that generated code has for them.

use crate::ast::FrameFile;
use crate::check::frames::Draft;
use crate::diagnostic::SourceRange;
use crate::names::upper_camel;
use crate::role::{HALF, SpanHalf};

/// Name of declarations without a line of their own, in messages.
pub(super) const OF_PPT: &str = "what ppt adds to";

/// A name in the output and the declaration that it comes from.
pub(super) struct GeneratedName<'a> {
    pub name: String,
    /// The declaration in words.
    pub origin: String,
    /// The declared name. Two equal ones are reported as one declaration too many.
    pub declared: &'a str,
    pub place: &'a SourceRange,
}

/// Of each frame and each enum: a struct of Rust, a class of Java, a type of Go.
pub(super) fn types<'a>(file: &'a FrameFile, drafts: &'a [Draft]) -> Vec<GeneratedName<'a>> {
    let frames = drafts.iter().map(|Draft { frame, places, .. }| GeneratedName {
        name: upper_camel(&frame.name),
        origin: format!("frame `{}`", frame.name),
        declared: &frame.name,
        place: &places.name,
    });
    let enums = file.enums.iter().map(|declared| GeneratedName {
        name: upper_camel(&declared.name.text),
        origin: format!("enum `{}`", declared.name.text),
        declared: &declared.name.text,
        place: &declared.name.span,
    });
    let own = drafts.iter().flat_map(|Draft { frame, own, .. }| {
        own.iter().map(|own| GeneratedName {
            name: own.declared.name.clone(),
            origin: format!("{OF_PPT} frame `{}`", frame.name),
            // No line declares it: an enum of its very name is another one.
            declared: &frame.name,
            place: &own.place,
        })
    });
    frames.chain(enums).chain(own).collect()
}

/// The structs of the halves of spans, in Rust and Go.
pub(super) fn halves(drafts: &[Draft]) -> impl Iterator<Item = GeneratedName<'_>> {
    drafts.iter().flat_map(|Draft { frame, places, .. }| {
        let is_of_half = |field: &crate::schema::Field| field.extra.contains_key(HALF);
        let has_halves = frame.fields.iter().any(is_of_half);
        let halves = SpanHalf::ALL.into_iter().filter(move |_| has_halves);
        halves.map(|half| GeneratedName {
            name: format!("{}{}", upper_camel(&frame.name), upper_camel(half.word())),
            origin: format!("the {} of frame `{}`", half.word(), frame.name),
            declared: &frame.name,
            place: &places.name,
        })
    })
}
