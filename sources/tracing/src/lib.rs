//! Writes the spans and events of the crate `tracing` as frames, while ppt is attached.
//!
//! A program that has no subscriber of its own:
//! ```no_run
//! ppt_tracing::init().unwrap();
//! tracing::info!(port = 80, "listening");
//! ```
//! A program that has one gives ppt a layer beside the others:
//! ```no_run
//! use tracing_subscriber::prelude::*;
//! tracing_subscriber::registry().with(ppt_tracing::layer()).init();
//! ```
//!
//! | | sees | while nobody is attached |
//! |---|---|---|
//! | [`subscriber`], [`init`] | everything | nothing: `tracing` itself skips each span and event |
//! | [`layer`] | what the other layers let through | a load and a branch for each span and event that they let through |
//! | [`layer_all`] | everything, whatever filters of their own the other layers have | `tracing` asks each layer's filter anew |
//!
//! A thread looks each 50 ms whether ppt has attached. A process that is forked while ppt is attached stays seen; one
//! that is forked before has no such thread, and shows nothing with [`subscriber`] and [`layer_all`] until it
//! executes a program.
#![forbid(unsafe_code)]

mod describe;
mod entered;
mod fields;
mod frames;
mod layer;
#[cfg(feature = "log")]
mod records;
mod watch;

use tracing_core::dispatcher::{self, SetGlobalDefaultError};
use tracing_core::{Dispatch, Subscriber};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Layer, Layered, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

pub use layer::{Attached, Frames};

/// A subscriber that only writes frames. Off, it costs nothing: `tracing` remembers that nobody is interested.
pub fn subscriber() -> Layered<Frames, Registry> {
    Registry::default().with(Frames { alone: true })
}

/// A layer that sees what the layers beside it let through.
pub fn layer() -> Frames {
    Frames { alone: false }
}

/// A layer with a filter of its own: while ppt is attached, it sees spans and events of all levels. Layers beside it
/// that are filtered by [`with_filter`](Layer::with_filter) see what they saw before; a filter that is itself a layer
/// (an `EnvFilter` in `with`) holds for this one, too.
pub fn layer_all<S>() -> Filtered<Frames, Attached, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    layer().with_filter(Attached(()))
}

/// Makes [`subscriber`] the program's. With the feature `log`, records of the crate `log` become events, if the program
/// has no logger.
///
/// # Errors
/// The program has a subscriber already: give it a [`layer`].
pub fn init() -> Result<(), SetGlobalDefaultError> {
    dispatcher::set_global_default(Dispatch::new(subscriber()))?;
    #[cfg(feature = "log")]
    records::take();
    Ok(())
}
