//! `--where`: the frames that a capture leaves out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_agent::{Buffer, Target};
use ppt_dump::DumpError;
use ppt_listener::{ClockReading, Filter, FramesHead, SharedFilter, Source};
use ppt_predicate::{ExpressionError, FrameKind, Predicate, Sieve};

use crate::args;
use crate::failure::Failure;

/// Messages of the thread that writes the capture.
pub(super) type Remarks = Arc<Mutex<Vec<String>>>;

/// The name of the messages about an expression, here as in `ppt dump`.
pub(super) fn code() -> &'static str {
    const WHERE: &str = "where";
    debug_assert!(DumpError::codes().any(|code| code == WHERE));
    WHERE
}

/// Rejects an invalid expression, or one that does not fit the frames of `buffers`.
pub(crate) fn check_where<'a>(
    args: &args::CaptureArgs,
    buffers: impl IntoIterator<Item = (&'a Target, &'a Buffer)>,
) -> Result<(), Failure> {
    let Some(predicate) = predicate(args)? else { return Ok(()) };
    let kinds = buffers.into_iter().flat_map(|(_, buffer)| {
        let kind =
            |frame| FrameKind { buffer: &buffer.schema.buffer, schema: &buffer.schema, frame };
        buffer.schema.frames.iter().filter(|frame| !frame.is_hidden()).map(kind)
    });
    let kinds: Vec<FrameKind<'_>> = kinds.collect();
    predicate.compile(&kinds).map_err(|error| refused(&error))?;
    Ok(())
}

fn predicate(args: &args::CaptureArgs) -> Result<Option<Predicate>, Failure> {
    let parsed = args.matching.as_deref().map(Predicate::parse).transpose();
    parsed.map_err(|error| refused(&error))
}

fn refused(error: &ExpressionError) -> Failure {
    Failure::usage(code(), format!("--where: {}", drawn(error)))
}

fn drawn(error: &ExpressionError) -> String {
    format!("{error}\n{}", error.draw("--where", false))
}

/// The filter of a capture and its messages.
pub(super) fn filter(args: &args::CaptureArgs) -> Result<Option<(SharedFilter, Remarks)>, Failure> {
    let Some(predicate) = predicate(args)? else { return Ok(None) };
    let remarks = Remarks::default();
    let matching = Matching { sieve: Sieve::new(predicate), remarks: remarks.clone() };
    Ok(Some((Arc::new(Mutex::new(matching)), remarks)))
}

/// Queues a message for the next check.
pub(super) fn remark(remarks: &Remarks, message: String) {
    locked(remarks).push(message);
}

/// The messages since the last call.
pub(super) fn messages(remarks: &Remarks) -> Vec<String> {
    std::mem::take(&mut *locked(remarks))
}

fn locked(remarks: &Remarks) -> MutexGuard<'_, Vec<String>> {
    remarks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames for which an expression is true.
#[derive(Debug)]
struct Matching {
    sieve: Sieve,
    remarks: Remarks,
}

impl Filter for Matching {
    fn introduce(&mut self, new: &[(usize, &Source)]) {
        // Kernel events were requested by another option, so all of them pass.
        let own = new.iter().filter(|(_, source)| !ppt_kernel::is_builtin(&source.kind));
        let new: Vec<_> = own.copied().collect();
        if new.is_empty() {
            return;
        }
        if let Err(error) = self.sieve.introduce(&new) {
            let mut names: Vec<&str> =
                new.iter().map(|(_, source)| source.buffer.as_str()).collect();
            names.dedup();
            locked(&self.remarks).push(format!(
                "{}: all frames are captured, because --where cannot be held against them: {}",
                names.join(", "),
                drawn(&error)
            ));
        }
    }

    fn clocks(&mut self, readings: &[ClockReading]) {
        self.sieve.clocks(readings);
    }

    fn wants(&mut self, feed: usize, head: &FramesHead, frames: &[u8], wanted: &mut Vec<bool>) {
        self.sieve.wants(feed, head, frames, wanted);
    }
}
