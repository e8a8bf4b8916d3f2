//! `--flight`: triggers, and messages about windows.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ppt_agent::{Buffer, Target};
use ppt_listener::{
    ClockReading, Codec, Content, Flight, FlightOptions, FramesHead, LEAST_MEMORY, News as Event,
    Source, Stretch, TriggerHit, TriggerWatch,
};
use ppt_predicate::{Counts, ExpressionError, FrameKind, Predicate, Sieve};
use ppt_text::grouped;

use super::filter::Remarks;
use crate::args;
use crate::code::Code;
use crate::failure::Failure;
use crate::measure::bytes;
use crate::report;

/// The time for which ppt tries to write windows after a session has ended.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The name of the messages about expressions.
const EXPRESSION: &str = "where";

/// Rejects contradictory options, and expressions that are invalid or do not fit the frames and
/// counters of `buffers`.
pub(crate) fn check_flight<'a>(
    args: &args::CaptureArgs,
    buffers: impl IntoIterator<Item = (&'a Target, &'a Buffer)>,
) -> Result<(), Failure> {
    let flight = &args.flight;
    let Some(keep) = flight.time else { return Ok(()) };
    if flight.memory < LEAST_MEMORY {
        let message = format!(
            "--memory-flight {} is too small: frames come in chunks of up to 2 MiB, and a flight \
             recorder needs at least {}",
            bytes(flight.memory),
            bytes(LEAST_MEMORY)
        );
        return Err(Failure::usage(Code::TooSmall, message));
    }
    if let Some(before) = flight.before.filter(|&before| before > keep) {
        let message = format!(
            "--before {} is longer than --flight {}: a window cannot begin with what is no longer in \
             memory",
            humantime::format_duration(before),
            humantime::format_duration(keep)
        );
        return Err(Failure::usage(Code::WindowTooLong, message));
    }
    let buffers: Vec<&Buffer> = buffers.into_iter().map(|(_, buffer)| buffer).collect();
    let kinds = buffers.iter().flat_map(|buffer| {
        let kind =
            |frame| FrameKind { buffer: &buffer.schema.buffer, schema: &buffer.schema, frame };
        buffer.schema.frames.iter().filter(|frame| !frame.is_hidden()).map(kind)
    });
    let kinds: Vec<FrameKind<'_>> = kinds.collect();
    for predicate in parsed("--on", &flight.on)? {
        predicate.compile(&kinds).map_err(|error| refused("--on", &error))?;
    }
    for predicate in parsed("--on-counter", &flight.on_counter)? {
        // Without any buffer yet, any counter may appear.
        if !buffers.is_empty() {
            let schemas = buffers.iter().map(|buffer| &buffer.schema);
            Counts::check(&predicate, schemas).map_err(|error| refused("--on-counter", &error))?;
        }
    }
    Ok(())
}

fn parsed(option: &str, texts: &[String]) -> Result<Vec<Predicate>, Failure> {
    let parse = |text: &String| Predicate::parse(text).map_err(|error| refused(option, &error));
    texts.iter().map(parse).collect()
}

fn refused(option: &str, error: &ExpressionError) -> Failure {
    Failure::usage(EXPRESSION, format!("{option}: {}", drawn(option, error)))
}

fn drawn(option: &str, error: &ExpressionError) -> String {
    format!("{error}\n{}", error.draw(option, false))
}

/// The options of the recorder, if there is one.
pub(super) fn options(args: &args::CaptureArgs) -> Option<FlightOptions> {
    let flight = &args.flight;
    let keep = flight.time?;
    Some(FlightOptions {
        keep,
        before: flight.before.unwrap_or(keep),
        after: flight.after,
        cooldown: flight.cooldown,
        memory: flight.memory,
        on_gap: flight.on_gap,
        counters: args.counters.max(super::options::FEWEST_COUNTERS),
        compress: args.compress.map(|compress| match compress {
            args::Compress::Zstd => Codec::Zstd,
            args::Compress::Lz4 => Codec::Lz4,
        }),
        patience: WRITE_TIMEOUT,
    })
}

/// The triggers and their messages.
pub(super) fn watch(args: &args::CaptureArgs) -> Result<(Box<dyn TriggerWatch>, Remarks), Failure> {
    let remarks = Remarks::default();
    let frames = parsed("--on", &args.flight.on)?.into_iter().map(|predicate| FrameTrigger {
        text: predicate.text().into(),
        sieve: Sieve::new(predicate),
        refused: HashSet::new(),
    });
    let counters = parsed("--on-counter", &args.flight.on_counter)?;
    let counters = counters.into_iter().map(|predicate| CounterTrigger {
        text: predicate.text().into(),
        counts: Counts::new(predicate),
    });
    let watch = Expressions {
        frames: frames.collect(),
        counters: counters.collect(),
        remarks: remarks.clone(),
    };
    Ok((Box::new(watch), remarks))
}

/// The expressions of the command line.
#[derive(Debug)]
struct Expressions {
    frames: Vec<FrameTrigger>,
    counters: Vec<CounterTrigger>,
    remarks: Remarks,
}

/// An expression of `--on-counter`, with its source text.
#[derive(Debug)]
struct CounterTrigger {
    text: Arc<str>,
    counts: Counts,
}

/// An expression of `--on`, with its source text.
#[derive(Debug)]
struct FrameTrigger {
    text: Arc<str>,
    sieve: Sieve,
    /// Feeds that the expression does not fit.
    refused: HashSet<usize>,
}

impl TriggerWatch for Expressions {
    fn introduce(&mut self, new: &[(usize, &Source)]) {
        // Kernel events only help to explain a trigger.
        let own = new.iter().filter(|(_, source)| !ppt_kernel::is_builtin(&source.kind));
        let new: Vec<_> = own.copied().collect();
        if new.is_empty() {
            return;
        }
        for FrameTrigger { sieve, refused, .. } in &mut self.frames {
            let Err(error) = sieve.introduce(&new) else { continue };
            refused.extend(new.iter().map(|entry| entry.0));
            let mut names: Vec<&str> =
                new.iter().map(|(_, source)| source.buffer.as_str()).collect();
            names.dedup();
            super::filter::remark(
                &self.remarks,
                format!(
                    "{}: no frame triggers, because --on cannot be held against them: {}",
                    names.join(", "),
                    drawn("--on", &error)
                ),
            );
        }
        self.counters.iter_mut().for_each(|counter| counter.counts.introduce(&new));
    }

    fn clocks(&mut self, readings: &[ClockReading]) {
        self.frames.iter_mut().for_each(|frame| frame.sieve.clocks(readings));
    }

    fn frames(
        &mut self,
        feed: usize,
        head: &FramesHead,
        frames: &[u8],
        hits: &mut Vec<TriggerHit>,
    ) {
        for FrameTrigger { text, sieve, refused } in &self.frames {
            if refused.contains(&feed) {
                continue;
            }
            sieve.find(feed, head, frames, |seqno, mono_ns| {
                hits.push(TriggerHit { seqno, mono_ns, expression: text.clone() });
            });
        }
    }

    fn added(&mut self, feed: usize, added: &BTreeMap<u32, u64>) -> Vec<Arc<str>> {
        let is_true = |counter: &&CounterTrigger| counter.counts.is_true(feed, added);
        self.counters.iter().filter(is_true).map(|counter| counter.text.clone()).collect()
    }
}

/// Reports events of windows; returns whether no window was lost.
pub(super) fn report(flight: &Flight, quiet: bool) -> bool {
    let mut ok = true;
    for event in flight.news() {
        match event {
            Event::Written { name, content, is_whole, held, wanted, triggers } => {
                if !quiet {
                    report::note(written(&name, content, held, triggers));
                }
                if !is_whole {
                    report::warning(Code::WindowInPart, in_part(&name, held, wanted));
                }
            }
            Event::Waits(error) => report::error(
                Code::WindowWaits,
                format_args!(
                    "a window cannot be written: {error}\n  it stays in memory, and ppt tries again \
                     each second"
                ),
            ),
            Event::GivenUp(error) => {
                ok = false;
                report::error(
                    Code::WindowLost,
                    format_args!("a window could not be written, and is lost: {error}"),
                );
            }
        }
    }
    ok
}

fn written(name: &str, content: Content, held: Stretch, triggers: u64) -> String {
    let more =
        if triggers > 1 { format!(", {} triggers", grouped(triggers)) } else { String::new() };
    format!(
        "{name}: {} frames of {} s, lost {}{more}; {}",
        grouped(content.frames),
        seconds(held),
        grouped(content.lost.total()),
        bytes(content.bytes)
    )
}

fn in_part(name: &str, held: Stretch, wanted: Stretch) -> String {
    format!(
        "{name} has {} of the {} s of its window: --memory-flight was too small for more",
        seconds(held),
        seconds(wanted)
    )
}

fn seconds(stretch: Stretch) -> String {
    format!("{:.1}", stretch.to_ns.saturating_sub(stretch.from_ns) as f64 / 1e9)
}

/// The windows that hold a recorder's frames, for the summary.
pub(super) fn destination(flight: &Flight, name: &str) -> String {
    let progress = flight.progress();
    let mut text = match progress.written {
        0 => "no window was written".into(),
        1 => format!("1 window in {name}"),
        count => format!("{} windows in {name}", grouped(count)),
    };
    if progress.ignored > 0 {
        text += &format!(", {} triggers within the cooldown of others", grouped(progress.ignored));
    }
    if progress.too_many > 0 {
        text +=
            &format!(", {} triggers while too many windows were open", grouped(progress.too_many));
    }
    if progress.lost > 0 {
        text += &format!(", {} windows lost", grouped(progress.lost));
    }
    text
}
