//! Spans: what `@span` and `@key` say, and the fields that ppt adds.

use super::fields::DraftField;
use crate::ast;
use crate::diagnostic::{Sink, Span};
use crate::mistake::Mistake;
use crate::names::mark_enum;
use crate::reserved::LATER;
use crate::role::{ACROSS, AT, Across, EDGE, EDGES, FIFO, KEY, STAMP};
use crate::schema::{Edge, Enum, Extra, Field, FieldType, Int, MAX_NAME_BYTES};
use crate::suggest::nearest;

const FORM: &str = "@span(process, fifo)";

/// `@span(…)` of a frame.
pub(super) struct Said {
    across: Across,
    fifo: bool,
    /// From `@` to the closing bracket.
    place: Span,
}

/// An enum that no line of the file declares, and where it comes from.
pub(super) struct OwnEnum {
    pub declared: Enum,
    pub place: Span,
}

impl OwnEnum {
    /// Where the enum and each of its values come from.
    pub fn places(&self) -> (Span, Vec<Span>) {
        (self.place.clone(), vec![self.place.clone(); self.declared.values.len()])
    }
}

/// What `@span` says, if the frame has it. What cannot be read is as if it were left out.
pub(super) fn said(attributes: &[ast::Attribute], sink: &mut Sink) -> Option<Said> {
    let attribute = attributes.iter().find(|it| it.name.text == "span")?;
    let place = attribute.span.clone();
    let mut said = Said { across: Across::Process, fifo: false, place };
    let words: Vec<_> = attribute.arguments.iter().map(|argument| &argument.word).collect();
    if let Some(word) = words.first() {
        match Across::of_word(&word.text) {
            Some(across) => said.across = across,
            None => {
                let suggestion = match word.text.as_str() {
                    FIFO => Some("process, fifo"),
                    text => nearest(text, Across::ALL.map(Across::word)),
                };
                let mistake = Mistake::UnknownAcross { word: word.text.clone(), suggestion };
                sink.report(word.span.clone(), mistake);
            }
        }
    }
    match words.get(1..).unwrap_or_default() {
        [] => {}
        [order] if order.text == FIFO => said.fifo = true,
        [order] => {
            let mistake = Mistake::UnknownOrder { word: order.text.clone() };
            sink.report(order.span.clone(), mistake);
        }
        _ => {
            let name = "span".to_owned();
            sink.report(said.place.clone(), Mistake::AttributeArguments { name, form: FORM });
        }
    }
    Some(said)
}

/// Marks the keys among the fields; reports what cannot be one, and where one is missing.
pub(super) fn keys(
    frame: &ast::Frame,
    span: Option<&Said>,
    fields: &mut [DraftField],
    sink: &mut Sink,
) {
    for DraftField { field, key, .. } in fields {
        let Some(place) = key.clone() else { continue };
        let start = field.interval.as_ref().is_none_or(|it| it.edge == Edge::Start);
        let mistake = match span {
            None => Mistake::KeyOfPlain { name: frame.name.text.clone() },
            Some(_) if field.interval.is_some() => Mistake::KeyType { what: "an interval" },
            Some(_) if field.array.is_some() => Mistake::KeyType { what: "an array" },
            Some(_) if !field.ty.can_be_key() => Mistake::KeyType { what: unfit(&field.ty) },
            Some(_) => {
                field.extra.insert(KEY.to_owned(), true.into());
                continue;
            }
        };
        // The halves of an interval stand in one place.
        if start {
            sink.report(place, mistake);
        }
    }
    let is_key = |field: &ast::Field| field.attributes.iter().any(|it| it.name.text == "key");
    if span.is_some() && !frame.damaged && !frame.fields.iter().any(is_key) {
        let name = frame.name.text.clone();
        sink.report(frame.name.span.clone(), Mistake::NoKey { name });
    }
}

/// What a type is that no key can have.
fn unfit(ty: &FieldType) -> &'static str {
    match ty {
        FieldType::F32 | FieldType::F64 => "a floating-point number",
        FieldType::Duration => "a duration",
        _ => "a time",
    }
}

/// The keys of JSON that say what a span is.
pub(super) fn extra(said: &Said) -> Extra {
    let fifo = said.fifo.then(|| (FIFO.to_owned(), true.into()));
    [(ACROSS.to_owned(), said.across.word().into())].into_iter().chain(fifo).collect()
}

/// Adds the field that says which end a frame is, and its stamp unless a field is written `@at`.
/// Returns the enum of the former.
pub(super) fn complete(
    frame: &ast::Frame,
    said: &Said,
    fields: &mut Vec<DraftField>,
    sink: &mut Sink,
) -> OwnEnum {
    for field in &frame.fields {
        let name = field.name.text.as_str();
        let taken = [AT, EDGE].iter().any(|own| own.eq_ignore_ascii_case(name));
        if taken && !LATER.contains(&name) {
            let mistake = Mistake::OwnField { name: name.to_owned() };
            sink.report(field.name.span.clone(), mistake);
        }
    }
    let name = mark_enum(&frame.name.text, EDGE);
    if name.len() > MAX_NAME_BYTES && frame.name.span.len() <= MAX_NAME_BYTES {
        let mistake = Mistake::NameTooLong { bytes: name.len(), name: name.clone() };
        sink.report(frame.name.span.clone(), mistake);
    }
    let own = |name: &str, ty, role: &str, at| DraftField {
        field: Field {
            name: name.to_owned(),
            ty,
            array: None,
            offset: 0,
            interval: None,
            at: false,
            unit: String::new(),
            doc: String::new(),
            attributes: Vec::new(),
            extra: [(role.to_owned(), true.into())].into(),
        },
        place: said.place.clone(),
        at,
        key: None,
    };
    let written = fields.iter().any(|draft| draft.at.is_some());
    fields.push(own(EDGE, FieldType::Enum { name: name.clone() }, EDGE, None));
    if !written {
        fields.push(own(AT, FieldType::Tsc, STAMP, Some(said.place.clone())));
    }
    let declared = Enum {
        name,
        repr: Int::U8,
        values: EDGES.map(|(name, value)| (name.to_owned(), value)).into(),
        doc: format!("Which end of a `{}` a frame is.", frame.name.text),
        extra: Extra::new(),
    };
    OwnEnum { declared, place: said.place.clone() }
}
