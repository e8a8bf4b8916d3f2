//! Which clocks a buffer's frames can be stamped by, the same in every language.

use ppt_frame_dsl::schema::{Clock, Field, FieldType, Schema};

/// One kind of time stamp: the type that holds it and the function that reads its clock.
pub(crate) struct Stamp {
    /// `now`, or `now_CLOCK`.
    pub name: String,
    pub ty: FieldType,
}

/// The stamps of a buffer; the first is the buffer's own, others come from `@clock`.
pub(crate) fn stamps(schema: &Schema) -> Vec<Stamp> {
    let times = || {
        let fields = schema.frames.iter().flat_map(|frame| &frame.fields);
        fields.filter(|field| stamped(field))
    };
    let plain = |field: &&Field| !field.attributes.iter().any(|it| it.name == "clock");
    let first = times().find(plain).or_else(|| times().next());
    let mut stamps: Vec<Stamp> = Vec::new();
    for field in first.into_iter().chain(times()) {
        if stamps.iter().any(|stamp| stamp.ty == field.ty) {
            continue;
        }
        let name = match (stamps.is_empty(), field.ty.clock()) {
            (true, _) => "now".into(),
            (false, clock) => format!("now_{}", clock.map_or("tsc", Clock::word)),
        };
        stamps.push(Stamp { name, ty: field.ty.clone() });
    }
    stamps
}

/// Numbers of clock_gettime(2), spelled out: strict C11 hides the names.
pub(crate) fn clock_number(clock: Clock) -> u32 {
    match clock {
        Clock::Realtime => 0,
        Clock::Monotonic => 1,
        Clock::ProcessCpu => 2,
        Clock::ThreadCpu => 3,
        Clock::Boottime => 7,
    }
}

/// Whether a field can be stamped.
pub(crate) fn stamped(field: &Field) -> bool {
    field.ty.is_time() && field.array.is_none()
}
