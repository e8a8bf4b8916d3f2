//! Delivers the content of growing captures in files, each row exactly once.
//!
//! A [`Delivery`] puts files into a [`Target`], a folder or a prefix of an object store, and keeps a
//! [`Manifest`] there. An exporter that was killed continues from the manifest. The steps for a range of
//! chunks are:
//!
//! 1. [`Delivery::plan`] writes the range into the manifest.
//! 2. [`Delivery::put`] puts the files of the range. Their names follow from the range ([`file_name`]).
//!    Each file appears as a whole, in one step.
//! 3. [`Delivery::commit`] writes the manifest with the files, and the position after them.
//!
//! After a kill, the manifest has either the planned range or the position after it. The next exporter
//! writes a planned range again, under the same names. The rows of a range depend only on the bytes of the
//! capture up to its end ([`ppt_tables::CaptureSet::open_part`]), so the second files have the same rows.
//!
//! Frames of a span or a chain may be in several ranges. A file for each range has the frames that wait for
//! others ([`Delivery::keep_open`]). The manifest with the range names that file, so the frames that wait
//! depend only on the manifest, too.
//!
//! A lock makes sure that one exporter at a time writes into a folder. In an object store, an exporter
//! replaces only the manifest that it read or wrote last. Of two exporters, the one that began later
//! continues, and the other one ends at its next step.
//!
//! A [`GrowingCapture`] reports the growth of a capture and cuts ranges.
#![forbid(unsafe_code)]

mod chunk_heads;
mod delivery;
mod error;
mod folder;
mod growing_capture;
mod growing_captures;
mod manifest;
mod object_client;
mod objects;
mod outage;
mod s3;
mod target;

pub use delivery::{Delivery, file_name};
pub use error::DeliveryError;
pub use growing_capture::{CaptureGrowth, GrowingCapture, RangeEnd};
pub use growing_captures::GrowingCaptures;
pub use manifest::{
    CaptureProgress, CaptureState, DeliveredFile, DeliveryState, FileList, Manifest, OpenFile,
    OpenWholes, PlannedRange, Settings, UndeliveredFrames,
};
pub use object_client::{ClientError, ObjectClient, PutCondition, StoredObject};
pub use outage::OutageWatch;
pub use ppt_capture::EndReason;
pub use s3::s3_client;
pub use target::Target;
