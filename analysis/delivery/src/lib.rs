//! What a growing capture holds, in files that are delivered exactly once.
//!
//! A [`Delivery`] puts files into a [`Target`], a folder or a prefix of an object store, and keeps a
//! [`Manifest`] there. Whoever is killed at any moment goes on where the manifest says. The steps of one
//! range of chunks are:
//!
//! 1. [`Delivery::plan`] writes the range into the manifest.
//! 2. [`Delivery::put`] puts its files. Their names follow from the range ([`file_name`]), and each
//!    appears as a whole, in one step.
//! 3. [`Delivery::commit`] writes the manifest that has the files, and the position behind them.
//!
//! After a kill the manifest has either the range as planned, and then the same range is written again
//! under the same names, or the position behind it. What the files of a range hold follows from the
//! bytes of the capture up to the end of the range ([`ppt_tables::CaptureSet::open_part`]), so a second
//! writing replaces each file by one with the same rows.
//!
//! Spans and chains are made of frames of several ranges. The frames that wait for others are in a file of
//! their own ([`Delivery::keep_open`]), one for each range, which the manifest that has the range names. So
//! what a range is made of follows from the manifest before it, too.
//!
//! One exporter at a time writes into a folder, by a lock. In an object store, a manifest is replaced only if
//! it is the one that this exporter read or wrote last. So of two exporters the one that began later goes
//! on, and the other one ends at its next step.
//!
//! A [`GrowingCapture`] says what a capture has by now, and cuts ranges.
#![forbid(unsafe_code)]

mod captures;
mod delivery;
mod error;
mod folder;
mod growing;
mod heads;
mod manifest;
mod objects;
mod outage;
mod target;

pub use captures::GrowingCaptures;
pub use delivery::{Delivery, file_name};
pub use error::DeliveryError;
pub use growing::{CaptureGrowth, Cut, GrowingCapture};
pub use manifest::{
    CaptureProgress, CaptureState, DeliveredFile, DeliveryState, FileList, Manifest, MissingFrames,
    OpenFile, OpenWholes, PlannedRange, Settings,
};
pub use outage::OutageWatch;
pub use ppt_capture::EndReason;
pub use target::Target;
