//! The account of a capture for people.

use std::io::{self, Write};

use ppt_capture::Cause;

use crate::escape::escape;
use crate::info::{BufferInfo, Info};

/// Rings of one buffer that are listed; the JSON has all of them.
const MAX_RINGS: usize = 64;
/// Damaged places that are listed.
const MAX_DAMAGED: usize = 10;

impl Info {
    /// Writes the account as text for people.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: impl Write) -> io::Result<()> {
        write(self, out)
    }
}

fn write(info: &Info, mut out: impl Write) -> io::Result<()> {
    if let Some(capture) = &info.capture {
        writeln!(
            out,
            "capture   {}, {} s, on {} by {}",
            capture.id,
            seconds(capture.duration_ns),
            or_unknown(&capture.host),
            or_unknown(&capture.tool),
        )?;
    }
    for target in &info.targets {
        let (comm, exe) = (or_unknown(&target.comm), or_unknown(&target.exe));
        writeln!(out, "target    pid {}, {comm}, {exe}", target.pid)?;
    }
    match (&info.end, info.cut) {
        (Some(end), _) if end.message.is_empty() => writeln!(out, "end       {}", end.reason)?,
        (Some(end), _) => writeln!(out, "end       {}: {}", end.reason, escape(&end.message))?,
        (None, cut) => writeln!(
            out,
            "end       none: cut off at byte {}, or still being written",
            cut.unwrap_or_default()
        )?,
    }
    write_stored(info, &mut out)?;
    for buffer in &info.buffers {
        write_buffer(buffer, info.targets.len() > 1, &mut out)?;
    }
    write_clock(info, &mut out)?;
    for step in &info.clock.steps {
        let sign = if step.by_ns < 0 { "back" } else { "forward" };
        let (by, at) = (seconds(step.by_ns.unsigned_abs()), seconds(step.mono_ns));
        writeln!(out, "\nclock     realtime went {by} s {sign} at monotonic {at} s")?;
    }
    if info.mismatches > 0 {
        writeln!(
            out,
            "\nthe end of the capture gives another account of {} rings",
            info.mismatches
        )?;
    }
    if info.damages > 0 {
        writeln!(out, "\ndamaged   {} places", info.damages)?;
        for damage in info.damaged.iter().take(MAX_DAMAGED) {
            writeln!(out, "          byte {}: {}", damage.offset, escape(&damage.what))?;
        }
    }
    Ok(())
}

/// How frames are compressed, if they are.
fn write_stored(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let stored = &info.stored;
    if stored.codecs.is_empty() {
        return Ok(());
    }
    let frames: u64 = info.buffers.iter().map(|buffer| buffer.frames).sum();
    let each = |bytes: u64| bytes as f64 / frames.max(1) as f64;
    writeln!(
        out,
        "stored    {}: {:.1} of {:.1} bytes a frame, {:.1} times smaller",
        stored.codecs.join(", "),
        each(stored.bytes),
        each(stored.raw_bytes),
        stored.raw_bytes as f64 / stored.bytes.max(1) as f64
    )
}

/// What became of stamps of `option time tsc`, where there are any.
fn write_clock(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let clock = &info.clock;
    let used = |name: &str| info.buffers.iter().any(|buffer| buffer.clock == name);
    let within = |error: Option<u64>| match error {
        Some(ns) => format!("within {ns} ns of CLOCK_REALTIME"),
        None => "too few for times".to_owned(),
    };
    if used("tick") {
        let (readings, error) = (clock.tick_readings, within(clock.tick_error_ns));
        writeln!(out, "\nclock     ticks, {readings} readings, {error}")?;
        for step in &clock.tick_steps {
            let sign = if step.by_ns < 0 { "back" } else { "forward" };
            let by = seconds(step.by_ns.unsigned_abs());
            let (after, before) = (seconds(step.after_mono_ns), seconds(step.before_mono_ns));
            writeln!(
                out,
                "clock     ticks went {by} s {sign} between monotonic {after} s and {before} s: \
                 times in between are uncertain"
            )?;
        }
        if let Some(at) = clock.ticks_distrusted_ns {
            let at = seconds(at);
            writeln!(
                out,
                "clock     at monotonic {at} s the system stopped trusting ticks: stamps are of \
                 the monotonic clock from then on"
            )?;
        }
    }
    if used("monotonic") {
        let error = within(clock.monotonic_error_ns);
        writeln!(out, "\nclock     monotonic instead of ticks, {error}")?;
    }
    Ok(())
}

fn write_buffer(buffer: &BufferInfo, by_process: bool, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nbuffer    {}, schema {}", escape(&buffer.name), buffer.schema_hash)?;
    if by_process {
        writeln!(out, "process   {}", buffer.pid)?;
    }
    writeln!(out, "kinds     {}", escape(&buffer.kinds.join(", ")))?;
    if !buffer.object.is_empty() {
        writeln!(out, "object    {}", escape(&buffer.object))?;
    }
    if !buffer.clock.is_empty() {
        writeln!(out, "stamps    {}", escape(&buffer.clock))?;
    }
    for (name, value) in &buffer.tags {
        writeln!(out, "tag       {} = {}", escape(name), escape(value))?;
    }
    writeln!(out, "frames    {}", buffer.frames)?;
    writeln!(out, "lost      {}{}", buffer.lost, causes(&buffer.lost_by.by_cause()))?;
    let dropped = &buffer.dropped;
    writeln!(out, "dropped   {}{}", dropped.total(), causes(&dropped.by_cause()))?;
    if buffer.unattended > 0 {
        writeln!(out, "between sessions {} frames", buffer.unattended)?;
    }
    for ring in buffer.rings.iter().take(MAX_RINGS) {
        writeln!(
            out,
            "ring      {} of {}: {} up to {}, {} frames, {} lost",
            ring.ring, ring.segment, ring.first_seq, ring.next_seq, ring.frames, ring.lost
        )?;
    }
    if buffer.rings.len() > MAX_RINGS {
        writeln!(out, "          and {} more rings", buffer.rings.len() - MAX_RINGS)?;
    }
    Ok(())
}

/// ` (overrun 3, disk 1)`, or nothing.
fn causes(counts: &[(Cause, u64)]) -> String {
    let some = counts.iter().filter(|(_, count)| *count > 0);
    let some: Vec<String> =
        some.map(|(cause, count)| format!("{} {count}", cause.name())).collect();
    if some.is_empty() { String::new() } else { format!(" ({})", some.join(", ")) }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}

fn or_unknown(text: &str) -> String {
    if text.is_empty() { "unknown".to_owned() } else { escape(text) }
}
