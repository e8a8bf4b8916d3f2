//! The clocks of a buffer's stamps.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::schema::{Clock, Field, FieldType, Schema};

use super::stored::stored;

/// A kind of time stamp: its type and the function that reads its clock.
pub(crate) struct Stamp<'a> {
    /// `now`, or `now_CLOCK`.
    pub name: String,
    pub ty: &'a FieldType,
    pub stored: Stored<'a>,
    /// The clock; None for ticks of the CPU's counter.
    pub clock: Option<Clock>,
}

impl Stamp<'_> {
    /// The name of the value that the function returns while ppt is attached.
    pub fn about(&self) -> String {
        match self.clock {
            Some(clock) => format!("The {} clock", clock.word()),
            None => "Ticks of the CPU, which ppt makes nanoseconds of".into(),
        }
    }

    /// The function that converts a difference of two such stamps: `ns_between`, or
    /// `ns_between_CLOCK`. None if they are no ticks: the program can subtract them itself.
    pub fn length(&self) -> Option<String> {
        self.clock.is_none().then(|| self.name.replacen("now", "ns_between", 1))
    }
}

/// The result of [`Stamp::length`] in words, for the generated code.
pub(crate) const ABOUT_LENGTH: &str = "Nanoseconds between two stamps. Negative if the end came first, \
    or if a stamp is 0 or of another clock.";

/// The stamps of a buffer; the first is the buffer's own, others come from `@clock`.
pub(super) fn stamps(schema: &Schema) -> Vec<Stamp<'_>> {
    let times = || {
        let fields = schema.frames.iter().flat_map(|frame| &frame.fields);
        fields.filter(|field| field.is_stamped())
    };
    let plain = |field: &&Field| {
        !field.is_own_stamp() && !field.attributes.iter().any(|attribute| attribute.name == "clock")
    };
    let first = times().find(plain).or_else(|| times().next());
    let mut stamps: Vec<Stamp<'_>> = Vec::new();
    for field in first.into_iter().chain(times()) {
        if stamps.iter().any(|stamp| *stamp.ty == field.ty) {
            continue;
        }
        let clock = field.ty.clock();
        let name = if stamps.is_empty() {
            "now".into()
        } else {
            format!("now_{}", clock.map_or("tsc", Clock::word))
        };
        stamps.push(Stamp { name, ty: &field.ty, stored: stored(schema, &field.ty), clock });
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
