//! Description of a part of an interval.

/// Description of a part, without its length.
pub(super) struct PartText<'a> {
    pub(super) part: &'static str,
    pub(super) call: Option<&'a str>,
    /// The kind of waker: `THREAD`, `PROCESS` or `INTERRUPT`.
    pub(super) woken_by: Option<&'a str>,
    pub(super) waker: Option<i32>,
    pub(super) waker_name: Option<&'a str>,
    pub(super) successor: Option<i32>,
    pub(super) successor_name: Option<&'a str>,
}

impl<'a> PartText<'a> {
    pub(super) fn new(part: &'a ppt_query::why::TimeUse) -> Self {
        use ppt_query::why::TimeUse;
        let (by, name) = match part {
            TimeUse::Preempted { by, name } => (*by, name.as_deref()),
            _ => (None, None),
        };
        let call = match part {
            TimeUse::Blocked { call, .. } => call.as_deref(),
            _ => None,
        };
        let woken = part.woken();
        PartText {
            part: part.into(),
            call,
            woken_by: woken.and_then(|woken| woken.kind.as_deref()),
            waker: woken.and_then(|woken| woken.thread),
            waker_name: woken.and_then(|by| by.name.as_deref()),
            successor: by,
            successor_name: name,
        }
    }
}
