//! `@thread`: the field that names the thread a frame is about.

use super::fields::DraftField;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::mistake::AttributeMistake;
use crate::role::{POINT, THREAD};
use crate::schema::IntervalEnd;

/// Marks the field. Reports fields that cannot name a thread, and every one but the first.
pub(super) fn mark(kind: &str, fields: &mut [DraftField], sink: &mut DiagnosticSink) {
    let mut first: Option<SourceRange> = None;
    for DraftField { field, thread, .. } in fields {
        let Some(place) = thread.clone() else { continue };
        // The halves of an interval have one span.
        if field.interval.as_ref().is_some_and(|interval| interval.edge == IntervalEnd::End) {
            continue;
        }
        if kind == POINT {
            sink.report(place, AttributeMistake::ThreadOfPoint);
        } else if !field.can_be_thread() {
            sink.report(place, AttributeMistake::ThreadType);
        } else if let Some(first) = &first {
            let note = DiagnosticNote { span: first.clone(), label: "first given here".to_owned() };
            sink.report_with(place, AttributeMistake::ThreadTwice, [note]);
        } else {
            field.extra.insert(THREAD.to_owned(), true.into());
            first = Some(place);
        }
    }
}
