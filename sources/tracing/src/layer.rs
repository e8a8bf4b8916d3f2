//! The layer that writes frames.

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Dispatch, Event, LevelFilter, Metadata, Subscriber};
#[cfg(feature = "log")]
use tracing_log::NormalizeEvent;
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::describe::{describe, id, level};
use crate::fields::Fields;
use crate::frames::tracing::{self, Cut, Entered, Level, Recorded, Task, TooDeep};
use crate::{entered, watch};

/// Writes spans and events as frames while ppt is attached. [`layer`](crate::layer()) makes it.
#[derive(Debug)]
pub struct Frames {
    /// Whether no other layer wants the spans and events that ppt does not see.
    pub(crate) alone: bool,
}

/// A filter of one layer, which is open while ppt is attached.
#[derive(Debug)]
pub struct Attached(pub(crate) ());

fn interest() -> Interest {
    if tracing::on() { Interest::always() } else { Interest::never() }
}

fn hint() -> LevelFilter {
    if tracing::on() { LevelFilter::TRACE } else { LevelFilter::OFF }
}

impl<S> Filter<S> for Attached {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        tracing::on()
    }
    fn callsite_enabled(&self, _: &'static Metadata<'static>) -> Interest {
        interest()
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(hint())
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Frames {
    fn on_register_dispatch(&self, _: &Dispatch) {
        watch::start();
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        describe(metadata);
        // "Never" would disable the callsite for all layers, and "sometimes" would ask them each time.
        if self.alone { interest() } else { Interest::always() }
    }

    fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
        !self.alone || tracing::on()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.alone.then(hint)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, span: &Id, context: Context<'_, S>) {
        if !tracing::on() {
            return;
        }
        let metadata = attributes.metadata();
        let parent = match attributes.parent() {
            Some(parent) => Some(parent.into_u64()),
            None if attributes.is_contextual() => current(&context),
            None => None,
        };
        let mut fields = Fields::<48>::new();
        attributes.record(&mut fields);
        count_cut(fields.cut);
        Task::begin(|f| {
            f.id = span.into_u64();
            f.parent = parent.unwrap_or(0);
            f.callsite = id(metadata);
            f.types = fields.types;
            [f.a, f.b, f.c, f.d] = fields.whole;
            [f.x, f.y] = fields.floats;
            f.level = Level(level(metadata.level()));
            f.name.set(metadata.name());
            f.text.set(fields.text.as_str());
        });
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if !tracing::on() {
            return;
        }
        let mut fields = Fields::<48>::new();
        values.record(&mut fields);
        count_cut(fields.cut);
        Recorded::write(|f| {
            f.at = tracing::now();
            f.id = span.into_u64();
            f.callsite = context.metadata(span).map_or(0, id);
            f.types = fields.types;
            [f.a, f.b, f.c, f.d] = fields.whole;
            [f.x, f.y] = fields.floats;
            f.text.set(fields.text.as_str());
        });
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !tracing::on() {
            return;
        }
        let at = tracing::now();
        let mut fields = Fields::<64>::new();
        event.record(&mut fields);
        count_cut(fields.cut);
        let task = match event.parent() {
            Some(parent) => Some(parent.into_u64()),
            None if event.is_contextual() => current(&context),
            None => None,
        };
        let metadata = event.metadata();
        // Records of the crate `log` have this target, and their own one in a field.
        #[cfg(feature = "log")]
        let normalized =
            (metadata.target() == "log").then(|| event.normalized_metadata()).flatten();
        #[cfg(not(feature = "log"))]
        let normalized: Option<Metadata<'_>> = None;
        let target = normalized.as_ref().unwrap_or(metadata).target();
        tracing::Event::write(|f| {
            f.at = at;
            f.task = task.unwrap_or(0);
            f.callsite = id(metadata);
            f.types = fields.types;
            [f.a, f.b, f.c, f.d] = fields.whole;
            [f.x, f.y] = fields.floats;
            f.level = Level(level(metadata.level()));
            f.target.set(target);
            f.text.set(fields.text.as_str());
        });
    }

    fn on_enter(&self, span: &Id, _: Context<'_, S>) {
        let session = tracing::session();
        if session != 0 && !entered::enter(session, span.into_u64(), tracing::now()) {
            TooDeep::add(1);
        }
    }

    fn on_exit(&self, span: &Id, context: Context<'_, S>) {
        let session = tracing::session();
        if session == 0 {
            return;
        }
        let Some(start) = entered::leave(session, span.into_u64()) else { return };
        let Some(metadata) = context.metadata(span) else { return };
        Entered::write(|f| {
            f.poll_start = start;
            f.poll_end = tracing::now();
            f.id = span.into_u64();
            f.callsite = id(metadata);
            f.name.set(metadata.name());
        });
    }

    fn on_close(&self, span: Id, _: Context<'_, S>) {
        Task::end(|f| f.id = span.into_u64());
    }
}

fn current<S: Subscriber + for<'a> LookupSpan<'a>>(context: &Context<'_, S>) -> Option<u64> {
    context.current_span().id().map(Id::into_u64)
}

fn count_cut(cut: bool) {
    if cut {
        Cut::add(1);
    }
}
