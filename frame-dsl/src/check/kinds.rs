//! Kinds of frames: `@span`, `@chain`, `@point` and `@key`, and the fields that ppt adds.

use std::collections::HashMap;

use super::fields::DraftField;
use super::names;
use ppt_text::nearest;

use crate::ast::{self, SourceWord};
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::mistake::{AttributeMistake, NameKind, NameMistake, RoleMistake};
use crate::names::mark_enum;
use crate::role::{
    ACROSS, AT, Across, CHAIN, EDGE, EDGES, FIFO, KEY, PLAIN, POINT, SPAN, STAMP, STEP,
};
use crate::schema::{Enum, Extra, Field, FieldType, Int, IntervalEnd, MAX_NAME_BYTES, MAX_VALUES};

const SPAN_FORM: &str = "@span(process, fifo)";
const CHAIN_FORM: &str = "@chain(first, second, third)";
const POINT_FORM: &str = "@point";

/// `@span(…)`, `@chain(…)` or `@point` of a frame.
pub(super) struct RoleAttribute {
    what: RoleKind,
    /// From `@` to the closing bracket.
    place: SourceRange,
}

enum RoleKind {
    Span {
        across: Across,
        fifo: bool,
    },
    /// A chain with these steps.
    Chain(Vec<SourceWord>),
    Point,
}

/// An enum that no line of the file declares, and the origin of it and of its values.
pub(super) struct OwnEnum {
    pub declared: Enum,
    pub place: SourceRange,
    pub values: Vec<SourceRange>,
}

/// The content of `@span`, `@chain` or `@point`, if the frame has one. Invalid parts are treated as
/// omitted.
pub(super) fn find_role_attribute(
    attributes: &[ast::Attribute],
    sink: &mut DiagnosticSink,
) -> Option<RoleAttribute> {
    let named = |name: &str| attributes.iter().find(|attribute| attribute.name.text == name);
    let kinds: Vec<_> = [SPAN, CHAIN, POINT].into_iter().filter_map(named).collect();
    let first = kinds.iter().min_by_key(|kind| kind.span.start)?;
    for other in kinds.iter().filter(|kind| kind.span != first.span) {
        let note = DiagnosticNote { span: first.span.clone(), label: "one kind".to_owned() };
        sink.report_with(other.span.clone(), RoleMistake::TwoKinds, [note]);
    }
    let attribute = kinds[0];
    let what = match attribute.name.text.as_str() {
        SPAN => span_of(attribute, sink),
        CHAIN => RoleKind::Chain(steps(attribute, sink)),
        _ => point(attribute, sink),
    };
    Some(RoleAttribute { what, place: attribute.span.clone() })
}

fn point(attribute: &ast::Attribute, sink: &mut DiagnosticSink) -> RoleKind {
    if !attribute.arguments.is_empty() {
        wrong_form(attribute, POINT_FORM, sink);
    }
    RoleKind::Point
}

fn span_of(attribute: &ast::Attribute, sink: &mut DiagnosticSink) -> RoleKind {
    let (mut across, mut fifo) = (Across::Process, false);
    let words: Vec<_> = attribute.arguments.iter().map(|argument| &argument.word).collect();
    if let Some(word) = words.first() {
        match Across::of_word(&word.text) {
            Some(known) => across = known,
            None => {
                let suggestion = match word.text.as_str() {
                    FIFO => Some("process, fifo"),
                    text => nearest(text, Across::ALL.map(Across::word)),
                };
                let mistake = RoleMistake::UnknownAcross { word: word.text.clone(), suggestion };
                sink.report(word.span.clone(), mistake);
            }
        }
    }
    match words.get(1..).unwrap_or_default() {
        [] => {}
        [order] if order.text == FIFO => fifo = true,
        [order] => {
            let mistake = RoleMistake::UnknownOrder { word: order.text.clone() };
            sink.report(order.span.clone(), mistake);
        }
        _ => wrong_form(attribute, SPAN_FORM, sink),
    }
    RoleKind::Span { across, fifo }
}

/// The steps of a chain. Their names follow the rules for enum values.
fn steps(attribute: &ast::Attribute, sink: &mut DiagnosticSink) -> Vec<SourceWord> {
    let count = attribute.arguments.len();
    if count < 2 {
        wrong_form(attribute, CHAIN_FORM, sink);
    } else if count > MAX_VALUES {
        sink.report(attribute.span.clone(), RoleMistake::TooManySteps { count });
    }
    let mut declared: HashMap<&str, SourceRange> = HashMap::new();
    let mut steps = Vec::new();
    for argument in attribute.arguments.iter().take(MAX_VALUES) {
        let word = &argument.word;
        if argument.quoted || word.text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            sink.report(word.span.clone(), RoleMistake::StepForm { word: word.text.clone() });
            continue;
        }
        names::check(NameKind::Step, word, sink);
        if let Some(first) = declared.get(word.text.as_str()) {
            let note =
                DiagnosticNote { span: first.clone(), label: "first declared here".to_owned() };
            let mistake = NameMistake::Twice { kind: NameKind::Step, name: word.text.clone() };
            sink.report_with(word.span.clone(), mistake, [note]);
            continue;
        }
        declared.insert(&word.text, word.span.clone());
        steps.push(word.clone());
    }
    steps
}

fn wrong_form(attribute: &ast::Attribute, form: &'static str, sink: &mut DiagnosticSink) {
    let name = attribute.name.text.clone();
    sink.report(attribute.span.clone(), AttributeMistake::AttributeArguments { name, form });
}

/// Marks the key fields. Reports fields that cannot be keys, and missing keys.
pub(super) fn keys(
    frame: &ast::FrameDecl,
    said: Option<&RoleAttribute>,
    fields: &mut [DraftField],
    sink: &mut DiagnosticSink,
) {
    let said = said.filter(|attribute| attribute.mark().is_some());
    for DraftField { field, key, .. } in fields {
        let Some(place) = key.clone() else { continue };
        let start =
            field.interval.as_ref().is_none_or(|interval| interval.edge == IntervalEnd::Start);
        let mistake = match said {
            None => RoleMistake::KeyOfPlain { name: frame.name.text.clone() },
            Some(_) if field.interval.is_some() => RoleMistake::KeyType { what: "an interval" },
            Some(_) if field.array.is_some() => RoleMistake::KeyType { what: "an array" },
            Some(_) if !field.ty.can_be_key() => RoleMistake::KeyType { what: unfit(&field.ty) },
            Some(said) if field.ty == FieldType::Addr && said.leaves_process() => {
                RoleMistake::KeyOfAddr { kind: said.kind() }
            }
            Some(_) => {
                field.extra.insert(KEY.to_owned(), true.into());
                continue;
            }
        };
        // The halves of an interval have one span.
        if start {
            sink.report(place, mistake);
        }
    }
    let is_key = |field: &ast::FieldDecl| {
        field.attributes.iter().any(|attribute| attribute.name.text == "key")
    };
    if let Some(said) = said
        && !frame.damaged
        && !frame.fields.iter().any(is_key)
    {
        let (kind, name) = (said.kind(), frame.name.text.clone());
        sink.report(frame.name.span.clone(), RoleMistake::NoKey { kind, name });
    }
}

/// A description of a type that no key can have.
fn unfit(ty: &FieldType) -> &'static str {
    match ty {
        FieldType::F32 | FieldType::F64 => "a floating-point number",
        FieldType::Duration => "a duration",
        _ => "a time",
    }
}

/// The kind of a frame.
pub(super) fn kind(said: Option<&RoleAttribute>) -> &'static str {
    said.map_or(PLAIN, RoleAttribute::kind)
}

impl RoleAttribute {
    /// Whether frames of different processes can belong together.
    fn leaves_process(&self) -> bool {
        match self.what {
            RoleKind::Span { across, .. } => across != Across::Process,
            RoleKind::Chain(_) | RoleKind::Point => true,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self.what {
            RoleKind::Span { .. } => SPAN,
            RoleKind::Chain(_) => CHAIN,
            RoleKind::Point => POINT,
        }
    }

    /// The JSON keys that state how such frames belong together.
    pub fn extra(&self) -> Extra {
        let RoleKind::Span { across, fifo } = self.what else { return Extra::new() };
        let fifo = fifo.then(|| (FIFO.to_owned(), true.into()));
        [(ACROSS.to_owned(), across.word().into())].into_iter().chain(fifo).collect()
    }

    /// The name of the field that states which part of the whole a frame is, if there is one. Its
    /// key in JSON is the same.
    fn mark(&self) -> Option<&'static str> {
        match self.what {
            RoleKind::Span { .. } => Some(EDGE),
            RoleKind::Chain(_) => Some(STEP),
            RoleKind::Point => None,
        }
    }

    /// The enum of that field.
    fn own_enum(&self, frame: &str, name: String) -> OwnEnum {
        let (what, values, places): (_, Vec<_>, Vec<_>) = match &self.what {
            RoleKind::Chain(steps) => (
                "step",
                steps.iter().zip(0..).map(|(step, number)| (step.text.clone(), number)).collect(),
                steps.iter().map(|step| step.span.clone()).collect(),
            ),
            _ => (
                "end",
                EDGES.map(|(name, value)| (name.to_owned(), value)).into(),
                vec![self.place.clone(); EDGES.len()],
            ),
        };
        let doc = format!("Which {what} of a `{frame}` a frame is.");
        let repr = if values.len() > 256 { Int::U16 } else { Int::U8 };
        let declared = Enum { name, repr, values, doc, extra: Extra::new() };
        OwnEnum { declared, place: self.place.clone(), values: places }
    }
}

/// Reports the first rule that the name of a field breaks. If ppt adds a field with this name, the
/// error states that, even if the name is reserved everywhere.
pub(super) fn field_name(
    said: Option<&RoleAttribute>,
    word: &SourceWord,
    sink: &mut DiagnosticSink,
) {
    let adds = |said: &&RoleAttribute| {
        let mut own = said.mark().into_iter().chain([AT]);
        own.any(|own| own.eq_ignore_ascii_case(&word.text))
    };
    match said.filter(adds) {
        Some(said) => {
            let mistake = RoleMistake::OwnField { kind: said.kind(), name: word.text.clone() };
            sink.report(word.span.clone(), mistake);
        }
        None => names::check(NameKind::Field, word, sink),
    }
}

/// Adds the field that states which part of the whole a frame is, if it is one, and its stamp
/// unless a field has an explicit `@at`. Returns the enum of the former.
pub(super) fn complete(
    frame: &ast::FrameDecl,
    said: &RoleAttribute,
    fields: &mut Vec<DraftField>,
    sink: &mut DiagnosticSink,
) -> Option<OwnEnum> {
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
        sides: Vec::new(),
        halves: Vec::new(),
        thread: None,
    };
    let written = fields.iter().any(|draft| draft.at.is_some());
    let own_enum = said.mark().map(|mark| {
        let name = mark_enum(&frame.name.text, mark);
        if name.len() > MAX_NAME_BYTES && frame.name.span.len() <= MAX_NAME_BYTES {
            let mistake = NameMistake::NameTooLong { bytes: name.len(), name: name.clone() };
            sink.report(frame.name.span.clone(), mistake);
        }
        fields.push(own(mark, FieldType::Enum { name: name.clone() }, mark, None));
        said.own_enum(&frame.name.text, name)
    });
    if !written {
        fields.push(own(AT, FieldType::Tsc, STAMP, Some(said.place.clone())));
    }
    own_enum
}
