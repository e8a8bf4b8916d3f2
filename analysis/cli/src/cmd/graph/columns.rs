//! Cells in aligned columns.

use std::io::{self, Write};

/// Lines with aligned cells; numbers are right-aligned.
pub(super) fn columns(
    lines: &[Vec<String>],
    left: &[usize],
    out: &mut impl Write,
) -> io::Result<()> {
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).map(width).collect();
    for line in lines {
        let mut text = String::new();
        for (at, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let fill = " ".repeat(width - cell.chars().count());
            text += if at == 0 { "  " } else { "   " };
            if left.contains(&at) {
                text += &(cell.clone() + &fill);
            } else {
                text += &(fill + cell);
            }
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
