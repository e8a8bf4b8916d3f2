//! A histogram of a field, drawn with characters.

use std::io::{self, Write};

use ppt_query::plain;
use ppt_query::stats::{BinScale, Histogram};
use ppt_query::summary::{FrameSummary, SummaryValues};

use ppt_query::text::{grouped, measured};

/// Rows of a drawing, and characters of its longest bar.
const ROWS: usize = 24;
const WIDE: u64 = 50;
/// Eighths of a character.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

pub(super) fn write(frames: &[FrameSummary], out: &mut impl Write) -> io::Result<()> {
    for frame in frames {
        for group in &frame.groups {
            for field in &group.fields {
                let SummaryValues::Numbers { spread: Some(spread), .. } = &field.values else {
                    continue;
                };
                let by: Vec<&str> =
                    group.by.iter().map(|text| text.as_deref().unwrap_or("NULL")).collect();
                let by = if by.is_empty() { String::new() } else { format!(" {}", by.join(" ")) };
                let name = plain(&format!("{}.{}{by}", frame.frame, field.label()));
                match Histogram::from_sketch(spread, ROWS, None) {
                    None => writeln!(out, "{name}   no values{}", not_drawn(spread.count()))?,
                    Some(histogram) => draw(&name, &histogram, &plain(&field.unit), out)?,
                }
            }
        }
    }
    Ok(())
}

/// The number of infinite values, for the first line.
fn not_drawn(infinite: u64) -> String {
    match infinite {
        0 => String::new(),
        1 => ", 1 infinite one is not drawn".to_owned(),
        _ => format!(", {} infinite ones are not drawn", grouped(infinite)),
    }
}

fn draw(name: &str, histogram: &Histogram, unit: &str, out: &mut impl Write) -> io::Result<()> {
    let scale = match histogram.scale {
        BinScale::Linear => "",
        BinScale::Logarithmic => ", logarithmic",
    };
    let all: u64 = histogram.bins.iter().map(|bin| bin.count).sum();
    let infinite = not_drawn(histogram.infinite);
    writeln!(out, "{name}   {} values{scale}{infinite}", grouped(all))?;
    let from: Vec<String> = histogram.bins.iter().map(|bin| measured(bin.from, unit)).collect();
    let counts: Vec<String> = histogram.bins.iter().map(|bin| grouped(bin.count)).collect();
    let width = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let (wide, long) = (width(&from), width(&counts));
    let most = histogram.bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
    for ((bin, from), count) in histogram.bins.iter().zip(&from).zip(&counts) {
        // Small counts stay visible.
        let eighths = (u128::from(bin.count) * u128::from(WIDE) * 8).div_ceil(u128::from(most));
        let bar = "█".repeat((eighths / 8) as usize) + PARTS[(eighths % 8) as usize];
        writeln!(out, "  {from:>wide$}  {count:>long$}  {bar}")?;
    }
    if histogram.modes.len() > 1 {
        let modes: Vec<String> = histogram.modes.iter().map(|&mode| measured(mode, unit)).collect();
        writeln!(out, "  {} modes: about {}", modes.len(), modes.join(", "))?;
    }
    Ok(())
}
