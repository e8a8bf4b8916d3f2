//! `@begin` and `@end`: the half of a span that sets a field.

use super::fields::DraftField;
use crate::ast;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink};
use crate::mistake::RoleMistake;
use crate::role::{CHAIN, HALF, SPAN};
use crate::schema::IntervalEnd;

/// Marks the fields that only one half of a span sets. Reports fields that cannot be such a field.
pub(super) fn halves(
    frame: &ast::FrameDecl,
    kind: &str,
    fields: &mut [DraftField],
    sink: &mut DiagnosticSink,
) {
    for DraftField { field, halves, key, at, .. } in fields {
        let [(half, place), rest @ ..] = halves.as_slice() else { continue };
        // The fields of an interval have one span.
        let is_first =
            field.interval.as_ref().is_none_or(|interval| interval.edge == IntervalEnd::Start);
        let name = half.word();
        let said = |span: &crate::diagnostic::SourceRange, label: &str| {
            Some(DiagnosticNote { span: span.clone(), label: label.to_owned() })
        };
        let (mistake, note) = match (kind, rest, key, at) {
            (CHAIN, ..) => {
                (RoleMistake::HalfOfChain { name, frame: frame.name.text.clone() }, None)
            }
            (SPAN, [(_, second), ..], ..) => (RoleMistake::BothHalves, said(second, "and here")),
            (SPAN, _, Some(key), _) => (RoleMistake::HalfOfKey { name }, said(key, "a key")),
            (SPAN, _, _, Some(at)) => {
                (RoleMistake::HalfOfTime { name }, said(at, "when the frame was"))
            }
            (SPAN, ..) => {
                field.extra.insert(HALF.to_owned(), half.word().into());
                continue;
            }
            _ => (RoleMistake::HalfOfPlain { name, frame: frame.name.text.clone() }, None),
        };
        // The start of an interval has no `@at`.
        if is_first || matches!(mistake, RoleMistake::HalfOfTime { .. }) {
            sink.report_with(place.clone(), mistake, note);
        }
    }
}
