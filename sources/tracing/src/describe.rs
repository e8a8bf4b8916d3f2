//! Callsites: the locations of spans and events in the program.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use tracing_core::{Level, Metadata};

use crate::fields::CutText;
use crate::frames::callsites::{Callsite, Form};

/// The number of a callsite. It is the same in forked processes, and differs in other programs.
pub(crate) fn id(metadata: &'static Metadata<'static>) -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    let start = *START.get_or_init(|| RandomState::new().hash_one(0));
    start.wrapping_add(std::ptr::from_ref(metadata).addr() as u64)
}

/// The number of a level in frames.
pub(crate) fn level(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

/// Writes the frame of a callsite, if ppt is attached.
pub(crate) fn describe(metadata: &'static Metadata<'static>) {
    if !crate::frames::callsites::on() {
        return;
    }
    let mut names = CutText::<96>::new();
    for (index, field) in metadata.fields().iter().enumerate() {
        if index > 0 {
            names.push(",");
        }
        names.push(field.name());
    }
    Callsite::write(|f| {
        f.at = crate::frames::callsites::now();
        f.id = id(metadata);
        f.line = metadata.line().unwrap_or(0);
        f.level = crate::frames::callsites::Level(level(metadata.level()));
        f.form = if metadata.is_span() { Form::Span } else { Form::Event };
        f.name.set(metadata.name());
        f.target.set(metadata.target());
        f.file.set(metadata.file().unwrap_or_default());
        f.fields.set(names.as_str());
    });
}
