//! What is declared, by the names that languages make of it.

use crate::ast::FrameFile;
use crate::check::frames::Draft;
use crate::diagnostic::SourceRange;
use crate::names::upper_camel;
use crate::role::{HALF, SpanHalf};

/// How what no line declares is called in messages.
pub(super) const OF_PPT: &str = "what ppt adds to";

/// A name in the output and the declaration that it comes from.
pub(super) struct Generated<'a> {
    pub name: String,
    /// The declaration in words.
    pub of: String,
    /// Its name: equal names in equal words are one declaration too many, which is reported as that.
    pub declared: &'a str,
    pub place: &'a SourceRange,
}

/// Of each frame and each enum: a struct of Rust, a class of Java, a type of Go.
pub(super) fn types<'a>(file: &'a FrameFile, drafts: &'a [Draft]) -> Vec<Generated<'a>> {
    let frames = drafts.iter().map(|Draft { frame, places, .. }| Generated {
        name: upper_camel(&frame.name),
        of: format!("frame `{}`", frame.name),
        declared: &frame.name,
        place: &places.name,
    });
    let enums = file.enums.iter().map(|it| Generated {
        name: upper_camel(&it.name.text),
        of: format!("enum `{}`", it.name.text),
        declared: &it.name.text,
        place: &it.name.span,
    });
    let own = drafts.iter().flat_map(|Draft { frame, own, .. }| {
        own.iter().map(|own| Generated {
            name: own.declared.name.clone(),
            of: format!("{OF_PPT} frame `{}`", frame.name),
            // No line declares it: an enum of its very name is another one.
            declared: &frame.name,
            place: &own.place,
        })
    });
    frames.chain(enums).chain(own).collect()
}

/// The structs of the halves of spans, in Rust and Go.
pub(super) fn halves(drafts: &[Draft]) -> impl Iterator<Item = Generated<'_>> {
    drafts.iter().flat_map(|Draft { frame, places, .. }| {
        let is_of_half = |field: &crate::schema::Field| field.extra.contains_key(HALF);
        let has_halves = frame.fields.iter().any(is_of_half);
        let halves = SpanHalf::ALL.into_iter().filter(move |_| has_halves);
        halves.map(|half| Generated {
            name: format!("{}{}", upper_camel(&frame.name), upper_camel(half.word())),
            of: format!("the {} of frame `{}`", half.word(), frame.name),
            declared: &frame.name,
            place: &places.name,
        })
    })
}
