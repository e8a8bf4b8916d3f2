//! The interval that a scope measures.

use ppt_frame_dsl::schema::{Field, Frame, IntervalEnd};

/// The fields that a scope stamps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScopeInterval<T> {
    pub start: T,
    pub end: T,
}

impl<T> ScopeInterval<T> {
    pub fn map<U>(self, f: impl Fn(T) -> U) -> ScopeInterval<U> {
        ScopeInterval { start: f(self.start), end: f(self.end) }
    }
}

/// The fields of start and end: of the interval that places the frame in time, or else of the last one, or else
/// those with the names `start` and `end`.
pub(super) fn interval(frame: &Frame) -> Option<ScopeInterval<usize>> {
    // A span does not necessarily end where it began, and fields that ppt stamps do not make a scope.
    if frame.fields.iter().any(Field::is_own) {
        return None;
    }
    let interval_name =
        |field: &Field| field.interval.as_ref().map(|interval| interval.name.clone());
    let last =
        || frame.fields.iter().rev().filter(|field| field.is_stamped()).find_map(interval_name);
    let name = frame.at().and_then(interval_name).or_else(last);
    let find = |edge: IntervalEnd, plain: &str| {
        frame.fields.iter().position(|field| {
            field.is_stamped()
                && match (&name, &field.interval) {
                    (Some(name), Some(interval)) => interval.name == *name && interval.edge == edge,
                    (None, _) => field.name == plain,
                    _ => false,
                }
        })
    };
    Some(ScopeInterval {
        start: find(IntervalEnd::Start, "start")?,
        end: find(IntervalEnd::End, "end")?,
    })
}
