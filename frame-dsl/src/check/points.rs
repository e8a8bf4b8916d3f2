//! Points: `@in` and `@out`.

use super::attributes::PointSide;
use super::fields::DraftField;
use crate::ast;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::mistake::PointMistake;
use crate::role::{IN, MAX_IDENTITIES, OUT, POINT};
use crate::schema::IntervalEnd;

/// Marks the incoming and outgoing identities among the fields. Reports invalid ones, and a point
/// without any.
pub(super) fn sides(frame: &ast::FrameDecl, fields: &mut [DraftField], sink: &mut DiagnosticSink) {
    let is_point = frame.attributes.iter().any(|attribute| attribute.name.text == POINT);
    let name = &frame.name.text;
    let mut seen: Vec<PointSide> = Vec::new();
    for DraftField { field, sides, .. } in fields.iter_mut() {
        // The halves of an interval have one span.
        if field.interval.as_ref().is_some_and(|interval| interval.edge == IntervalEnd::End) {
            continue;
        }
        for point_side in sides {
            let side = point_side.key;
            let again =
                seen.iter().find(|other| other.key == side && other.ty.text == point_side.ty.text);
            let note = again.map(|first| first_given(&first.place));
            let count = seen.iter().filter(|other| other.key == side).count();
            let mistake = if !is_point {
                PointMistake::SideOfPlain { side, name: name.clone() }
            } else if field.hash().is_none() {
                PointMistake::SideOfNoHash { side }
            } else if again.is_some() {
                PointMistake::SideTwice { side, ty: point_side.ty.text.clone(), name: name.clone() }
            } else if count == MAX_IDENTITIES {
                PointMistake::TooManySides { side }
            } else {
                field.extra.insert(side.to_owned(), point_side.ty.text.as_str().into());
                seen.push(point_side.clone());
                continue;
            };
            sink.report_with(point_side.place.clone(), mistake, note);
        }
    }
    let is_side = |attribute: &ast::Attribute| [IN, OUT].contains(&&*attribute.name.text);
    let says = frame.fields.iter().any(|field| field.attributes.iter().any(is_side));
    if is_point && !says && !frame.damaged {
        sink.report(frame.name.span.clone(), PointMistake::NoSides { name: name.clone() });
    }
}

fn first_given(place: &SourceRange) -> DiagnosticNote {
    DiagnosticNote { span: place.clone(), label: "first given here".to_owned() }
}
