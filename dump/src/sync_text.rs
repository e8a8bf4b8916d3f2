//! The evaluation of clock readings, for people.

use std::io::{self, Write};

use ppt_text::escaped;

use crate::sync_info::{HostInfo, SyncInfo};

/// Most lines of steps, and of loops.
const MAX_LINES: usize = 10;

impl SyncInfo {
    /// Writes it as JSON.
    ///
    /// # Errors
    /// Writing to `out` fails.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "{}", ppt_text::escaped_json(&serde_json::to_string_pretty(self)?))
    }

    /// Writes it as text for people.
    ///
    /// # Errors
    /// Writing to `out` fails.
    pub fn write_text(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "times are by the clock of {}", escaped(&self.reference))?;
        for host in &self.hosts {
            writeln!(out)?;
            write_host(host, &self.reference, &mut out)?;
        }
        for info in &self.pairs {
            let (from, to) = (escaped(&info.from), escaped(&info.to));
            write!(out, "\nbetween   {from} and {to}: {} probes", info.probes)?;
            if info.one_ways > 0 {
                write!(out, ", {} messages one way", info.one_ways)?;
            }
            if let Some(least) = info.least_ns {
                write!(out, ", least way there and back {}", time(least))?;
            }
        }
        writeln!(out)?;
        let name =
            |text: &Option<String>| text.as_deref().map_or_else(|| "true time".to_owned(), escaped);
        for step in self.steps.iter().take(MAX_LINES) {
            let s = |ns: i128| ns as f64 / 1e9;
            writeln!(
                out,
                "step      of {} beside {}: {:.6} to {:.6} s, from {:.3} to {:.3} s after the first reading",
                name(&step.to),
                name(&step.from),
                s(step.by_ns.0.into()),
                s(step.by_ns.1.into()),
                s(step.between_ns.0),
                s(step.between_ns.1)
            )?;
        }
        for info in self.loops.iter().take(MAX_LINES) {
            writeln!(
                out,
                "loop      {} and {} by themselves differ from the way by others: {} on average, {} at most",
                name(&info.from),
                name(&info.to),
                time(info.mean_ns.abs() as u64),
                time(info.worst_ns.abs() as u64)
            )?;
        }
        // At both ends of a file, some stamps lack a clock reading on one side.
        let probes: u64 = self.pairs.iter().map(|pair| pair.probes).sum();
        if self.stepped > 0 || self.far > 10 + probes / 20 {
            writeln!(
                out,
                "unused    {} stamps: CLOCK_REALTIME stepped next to {}, {} have no reading of the clock near",
                self.stepped + self.far,
                self.stepped,
                self.far
            )?;
        }
        if self.cut_lines > 0 {
            writeln!(out, "cut       the last line of {} files", self.cut_lines)?;
        }
        let counts = self.counts.iter().filter(|count| *count.1 > 0);
        let counts: Vec<_> =
            counts.map(|(what, number)| format!("{} {number}", escaped(what))).collect();
        if !counts.is_empty() {
            writeln!(out, "packets   {}", counts.join(", "))?;
        }
        Ok(())
    }
}

fn write_host(host: &HostInfo, reference: &str, out: &mut impl Write) -> io::Result<()> {
    let (name, boot) = (escaped(&host.name), escaped(&host.boot_id));
    writeln!(out, "host      {name}, boot {boot}")?;
    let span = time(host.span_ns);
    writeln!(
        out,
        "          {} readings of its clocks in {span}, {} ticks/s",
        host.readings, host.tick_hz
    )?;
    if host.pulses + host.said > 0 {
        writeln!(
            out,
            "          {} pulses, {} statements of other programs",
            host.pulses, host.said
        )?;
    }
    if let Some(true_time) = &host.true_time {
        let [least, median, most] = true_time.width_ns.map(time);
        let said = if true_time.said { ", if what other programs say is right" } else { "" };
        writeln!(
            out,
            "          true time is known within {least} to {most}, median {median}{said}"
        )?;
    }
    if host.contradicted {
        writeln!(out, "          its readings contradict those of others: it has no bounds there")?;
    }
    if host.name == reference {
        return Ok(());
    }
    let Some([least, median, most]) = host.width_ns else {
        return writeln!(
            out,
            "          nothing is known of its clock: no readings join it with {reference}"
        );
    };
    // The nominal rates are not more accurate than this.
    if let Some(ppm) = host.ppm.filter(|ppm| ppm.abs() >= 1.0) {
        writeln!(out, "rate      {ppm:+.3} ppm")?;
    }
    let unknown = match host.unknown {
        0.0 => String::new(),
        part => format!("; not known {:.1} % of the time", 100.0 * part),
    };
    let [least, median, most] = [least, median, most].map(time);
    writeln!(out, "width     {least} to {most}, median {median}{unknown}")?;
    for info in &host.widths {
        let width = info.width_ns.map_or_else(|| "not known".to_owned(), time);
        writeln!(out, "          {:>10}  {width}", time(info.at_ns))?;
    }
    Ok(())
}

/// With three digits.
fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}
