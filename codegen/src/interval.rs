//! Which interval a scope measures, the same in every language.

use ppt_frame_dsl::schema::{Edge, Field, Frame};

use crate::stamps::stamped;

/// Start and end: of the interval that places the frame in time, else of the last one, else the
/// fields `start` and `end`.
pub(crate) fn interval(frame: &Frame) -> Option<(&Field, &Field)> {
    let of = |field: &Field| field.interval.as_ref().map(|it| it.name.clone());
    let last = || frame.fields.iter().rev().filter(|it| stamped(it)).find_map(of);
    let name = frame.at().and_then(of).or_else(last);
    let find = |edge: Edge, plain: &str| {
        frame.fields.iter().find(|field| {
            stamped(field)
                && match (&name, &field.interval) {
                    (Some(name), Some(it)) => it.name == *name && it.edge == edge,
                    (None, _) => field.name == plain,
                    _ => false,
                }
        })
    };
    Some((find(Edge::Start, "start")?, find(Edge::End, "end")?))
}
