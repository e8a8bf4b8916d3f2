//! The account of a capture for people.

use std::io::{self, Write};

use ppt_capture::{Cause, FilesBetween, TriggerCause};
use ppt_text::escaped;

use crate::info::{
    AbsentFilesInfo, BucketInfo, BufferInfo, CounterInfo, FieldInfo, Info, KindFieldsInfo,
};

/// Most rings of one buffer that are listed; the JSON has all of them.
const MAX_RINGS: usize = 64;
/// Most threads that are listed; the JSON has more.
const MAX_THREADS: usize = 16;
/// Most modules that are listed; the JSON has more.
const MAX_MODULES: usize = 16;
/// Most damaged places that are listed.
const MAX_DAMAGED: usize = 10;
/// Most triggers that are listed, and the same number by hand; the JSON has more.
const MAX_TRIGGERS: usize = 10;

impl Info {
    /// Writes the account as text for people.
    ///
    /// # Errors
    /// Writing to `out` fails.
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
    write_threads(info, &mut out)?;
    write_modules(info, &mut out)?;
    match (&info.end, info.cut) {
        (Some(end), _) if end.message.is_empty() => writeln!(out, "end       {}", end.reason)?,
        (Some(end), _) => writeln!(out, "end       {}: {}", end.reason, escaped(&end.message))?,
        (None, cut) => writeln!(
            out,
            "end       none: cut off at byte {}, or still being written",
            cut.unwrap_or_default()
        )?,
    }
    write_series(info, &mut out)?;
    write_triggers(info, &mut out)?;
    if !info.masks.is_empty() {
        let count = info.masks.len();
        writeln!(out, "masks     {count} times something was enabled or disabled")?;
    }
    write_stored(info, &mut out)?;
    for buffer in &info.buffers {
        write_buffer(buffer, (info.targets.len() > 1, info.complete), &mut out)?;
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
            writeln!(out, "          byte {}: {}", damage.offset, escaped(&damage.what))?;
        }
    }
    Ok(())
}

/// The names of threads.
fn write_threads(info: &Info, out: &mut impl Write) -> io::Result<()> {
    for thread in info.threads.iter().take(MAX_THREADS) {
        let (tid, name) = (thread.tid, escaped(&thread.name));
        match info.targets.len() {
            1 => writeln!(out, "thread    {tid}, {name}")?,
            _ => writeln!(out, "thread    {tid} of process {}, {name}", thread.pid)?,
        }
    }
    if info.threads.len() > MAX_THREADS {
        writeln!(out, "          and {} more threads", info.threads.len() - MAX_THREADS)?;
    }
    Ok(())
}

/// The code mappings: each file once.
fn write_modules(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let mut files: Vec<(u32, &str, &str, bool)> = Vec::new();
    for module in &info.modules {
        let file = (module.pid, module.path.as_str(), module.build_id.as_str(), module.deleted);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    for &(pid, path, build_id, is_deleted) in files.iter().take(MAX_MODULES) {
        write!(out, "module    {}", escaped(path))?;
        match build_id {
            "" => write!(out, ", no build id")?,
            build_id => write!(out, ", {build_id}")?,
        }
        if is_deleted {
            write!(out, ", deleted or replaced")?;
        }
        match info.targets.len() {
            1 => writeln!(out)?,
            _ => writeln!(out, ", of process {pid}")?,
        }
    }
    if files.len() > MAX_MODULES {
        writeln!(out, "          and {} more modules", files.len() - MAX_MODULES)?;
    }
    if info.modules_left_out > 0 {
        writeln!(out, "          and {} that the capture does not hold", info.modules_left_out)?;
    }
    Ok(())
}

/// Writes the position in a series, and the frames missing between the previous capture and this one.
fn write_series(info: &Info, out: &mut impl Write) -> io::Result<()> {
    if let Some(series) = &info.series {
        write!(out, "series    file {}", series.number)?;
        match series.removed {
            0 => {}
            1 => write!(out, ", --keep: file 1 was removed")?,
            removed => write!(out, ", --keep: files 1 to {removed} were removed")?,
        }
        writeln!(out, ", {} frames in the files before", series.captured_before)?;
    }
    for absent in &info.absent {
        write!(out, "absent    {} frames after capture {}", absent.frames, absent.after)?;
        match absent.files {
            Some(AbsentFilesInfo { first, last, count, removed }) => {
                writeln!(out, "; {}", FilesBetween { first, last, count, removed })?;
            }
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// Why it was written, if it is a window of the flight recorder.
fn write_triggers(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let triggers = &info.triggers;
    let Some(first) = triggers.first() else { return Ok(()) };
    let span = |from: u64, to: u64| seconds(to.saturating_sub(from));
    let wanted = span(first.from_ns, first.to_ns);
    let begin = first.held_from_ns.max(first.from_ns);
    let held = span(begin, first.held_to_ns.min(first.to_ns));
    if held == wanted {
        writeln!(out, "window    {wanted} s")?;
    } else {
        writeln!(out, "window    {held} of {wanted} s: the recorder held no more")?;
    }
    let (mut listed, mut by_hand) = (0, 0);
    for (number, trigger_info) in triggers.iter().enumerate() {
        let is_by_hand = trigger_info.why == TriggerCause::Hand.name() && by_hand < MAX_TRIGGERS;
        by_hand += usize::from(is_by_hand);
        if number >= MAX_TRIGGERS && !is_by_hand {
            continue;
        }
        listed += 1;
        let into = span(begin, trigger_info.mono_ns);
        write!(out, "trigger   {}, {into} s into the window", trigger_info.why)?;
        if !trigger_info.expression.is_empty() {
            write!(out, ": {}", escaped(&trigger_info.expression))?;
        }
        if let (Some(buffer), Some(ring), Some(seqno)) =
            (&trigger_info.buffer, trigger_info.ring, trigger_info.seqno)
        {
            write!(out, ", frame {seqno} of ring {ring} of {}", escaped(buffer))?;
        }
        match trigger_info.note.as_str() {
            "" => writeln!(out)?,
            note => writeln!(out, ", {}", escaped(note))?,
        }
    }
    let more = (triggers.len() as u64 - listed).saturating_add(info.triggers_not_listed);
    if more > 0 {
        writeln!(out, "          and {more} more triggers")?;
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

/// The state of stamps of `option time tsc`, if there are any.
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

fn write_buffer(
    buffer: &BufferInfo,
    (by_process, is_complete): (bool, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "\nbuffer    {}, schema {}", escaped(&buffer.name), buffer.schema_hash)?;
    if by_process {
        writeln!(out, "process   {}", buffer.pid)?;
    }
    writeln!(out, "kinds     {}", escaped(&buffer.kinds.join(", ")))?;
    for KindFieldsInfo { kind, fields } in &buffer.fields {
        let field = |info: &FieldInfo| match info.unit.as_str() {
            "" => format!("{} ({})", info.name, info.ty),
            unit => format!("{} ({}, {unit})", info.name, info.ty),
        };
        let fields: Vec<String> = fields.iter().map(field).collect();
        writeln!(out, "fields    {}: {}", escaped(kind), escaped(&fields.join(", ")))?;
    }
    if !buffer.object.is_empty() {
        writeln!(out, "object    {}", escaped(&buffer.object))?;
    }
    if !buffer.clock.is_empty() {
        writeln!(out, "stamps    {}", escaped(&buffer.clock))?;
    }
    for (name, value) in &buffer.tags {
        writeln!(out, "tag       {} = {}", escaped(name), escaped(value))?;
    }
    writeln!(out, "frames    {}", buffer.frames)?;
    writeln!(out, "lost      {}{}", buffer.lost, causes(&buffer.lost_by.by_cause()))?;
    let dropped = &buffer.dropped;
    writeln!(out, "dropped   {}{}", dropped.total(), causes(&dropped.by_cause()))?;
    if buffer.left_out > 0 {
        writeln!(out, "left out  {} (--where)", buffer.left_out)?;
    }
    if !buffer.disabled.is_empty() {
        let names: Vec<_> = buffer.disabled.iter().map(|text| escaped(text)).collect();
        writeln!(out, "disabled  {}, at the end", names.join(", "))?;
    }
    write_metrics(buffer, out)?;
    let has_metrics = !buffer.counters.is_empty() || !buffer.histograms.is_empty();
    if has_metrics && !is_complete {
        writeln!(out, "          what was added after the last reading is not in this capture")?;
    }
    if buffer.unattended > 0 {
        writeln!(out, "between sessions {} frames", buffer.unattended)?;
    }
    if buffer.absent > 0 {
        writeln!(out, "absent    {}", buffer.absent)?;
    }
    for ring in buffer.rings.iter().take(MAX_RINGS) {
        write!(
            out,
            "ring      {} of {}: {} up to {}, {} frames, {} lost",
            ring.ring, ring.segment, ring.first_seq, ring.next_seq, ring.frames, ring.lost
        )?;
        match ring.left_out {
            0 => writeln!(out)?,
            count => writeln!(out, ", {count} left out")?,
        }
    }
    if buffer.rings.len() > MAX_RINGS {
        writeln!(out, "          and {} more rings", buffer.rings.len() - MAX_RINGS)?;
    }
    Ok(())
}

/// Totals of counters, and quantiles of histograms.
fn write_metrics(buffer: &BufferInfo, out: &mut impl Write) -> io::Result<()> {
    for CounterInfo { name, value, unit } in &buffer.counters {
        let unit = if unit.is_empty() { String::new() } else { format!(" {}", escaped(unit)) };
        writeln!(out, "counter   {} = {value}{unit}", escaped(name))?;
    }
    for histogram in &buffer.histograms {
        write!(out, "histogram {}: {} values", escaped(&histogram.name), histogram.count)?;
        if histogram.count > 0 {
            for (name, bucket) in
                [("p50", histogram.p50), ("p99", histogram.p99), ("max", histogram.max)]
            {
                write!(out, ", {name} {}", of_bucket(bucket, &histogram.unit))?;
            }
        }
        writeln!(out)?;
    }
    if buffer.adds_not_mapped > 0 {
        writeln!(out, "adds_not_mapped {}", buffer.adds_not_mapped)?;
    }
    Ok(())
}

/// The range of a bucket; durations in a suitable unit.
fn of_bucket(bucket: BucketInfo, unit: &str) -> String {
    let text = |value: i128| match unit {
        "ns" => duration(value),
        "" => value.to_string(),
        unit => format!("{value} {}", escaped(unit)),
    };
    match (bucket.lo, bucket.hi) {
        (Some(lo), Some(hi)) if hi - lo == 1 => text(lo),
        // A common unit is shown after the second value.
        (Some(lo), Some(hi)) if unit != "ns" => format!("{lo} to {}", text(hi - 1)),
        (Some(lo), Some(hi)) => format!("{} to {}", text(lo), text(hi - 1)),
        (Some(lo), None) => format!("{} or more", text(lo)),
        (None, Some(hi)) => format!("below {}", text(hi)),
        (None, None) => "unknown".into(),
    }
}

/// ns with three digits, in a suitable unit.
fn duration(ns: i128) -> String {
    let size = ns.unsigned_abs() as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    // 999.9 of a unit are shown as 1 of the next.
    let Some((each, unit)) = units.into_iter().find(|(each, _)| size >= each * 0.9995) else {
        return format!("{ns} ns");
    };
    let value = ns as f64 / each;
    let digits = match value.abs() {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// ` (overrun 3, disk 1)`, or empty.
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
    if text.is_empty() { "unknown".to_owned() } else { escaped(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_units_that_people_read() {
        let of = |lo, hi, unit: &str| of_bucket(BucketInfo { lo, hi }, unit);
        assert_eq!(of(Some(8_126_464), Some(8_388_608), "ns"), "8.13 ms to 8.39 ms");
        assert_eq!(of(Some(7), Some(8), "ns"), "7 ns");
        assert_eq!(of(Some(999_960), None, "ns"), "1.00 ms or more");
        assert_eq!(of(Some(15_000_000_000), Some(16_000_000_001), "ns"), "15.0 s to 16.0 s");
        assert_eq!(of(None, Some(0), "ns"), "below 0 ns");
        assert_eq!(of(Some(16), Some(32), ""), "16 to 31");
        assert_eq!(of(Some(16), Some(32), "kB"), "16 to 31 kB");
        assert_eq!(of(Some(16), Some(17), "kB"), "16 kB");
    }
}
