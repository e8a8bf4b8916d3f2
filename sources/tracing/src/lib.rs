//! Writes the spans and events of the crate `tracing` as frames, while ppt is attached.
//!
//! A program that has no subscriber of its own:
//! ```no_run
//! ppt_tracing::init().unwrap();
//! tracing::info!(port = 80, "listening");
//! ```
//! A program that has one adds a layer for ppt:
//! ```no_run
//! use tracing_subscriber::prelude::*;
//! tracing_subscriber::registry().with(ppt_tracing::layer()).init();
//! ```
//!
//! | | sees | while ppt is not attached |
//! |---|---|---|
//! | [`subscriber`], [`init`] | everything | nothing: `tracing` itself skips each span and event |
//! | [`layer`] | what the other layers let through | a load and a branch for each span and event that they let through |
//! | [`layer_all`] | everything, whatever filters of their own the other layers have | `tracing` asks each layer's filter each time |
//!
//! A thread checks every 50 ms whether ppt has attached. A process that is forked while ppt is attached continues to
//! write. One that is forked earlier has no such thread, and with [`subscriber`] and [`layer_all`] it writes nothing
//! until it executes a program.
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

/// A subscriber that only writes frames. It costs nothing while ppt is not attached, because `tracing` remembers that
/// no subscriber wants a callsite.
pub fn subscriber() -> Layered<Frames, Registry> {
    Registry::default().with(Frames { alone: true })
}

/// A layer that sees what the other layers let through.
pub fn layer() -> Frames {
    Frames { alone: false }
}

/// A layer with a filter of its own: while ppt is attached, it sees spans and events of all levels. Other layers that
/// are filtered by [`with_filter`](Layer::with_filter) see the same as without it. A filter that is itself a layer (an
/// `EnvFilter` in `with`) also filters this one.
pub fn layer_all<S>() -> Filtered<Frames, Attached, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    layer().with_filter(Attached(()))
}

/// Makes [`subscriber`] the program's subscriber. With the feature `log`, records of the crate `log` become events,
/// unless the program has a logger.
///
/// # Errors
/// The program already has a subscriber, which needs a [`layer`] instead.
pub fn init() -> Result<(), SetGlobalDefaultError> {
    dispatcher::set_global_default(Dispatch::new(subscriber()))?;
    #[cfg(feature = "log")]
    records::take();
    Ok(())
}
