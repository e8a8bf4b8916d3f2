//! Figures, and the table of them.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// A figure whose spread is over this part of its median says so.
const NOISY: f64 = 0.2;

/// What was measured of one peer.
#[derive(Debug, Serialize)]
pub struct Row {
    pub section: &'static str,
    /// What, with its unit.
    pub what: String,
    pub peer: String,
    /// One a round.
    pub values: Vec<f64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Row {
    fn sorted(&self) -> Vec<f64> {
        let mut all = self.values.clone();
        all.sort_by(f64::total_cmp);
        all
    }

    pub fn median(&self) -> f64 {
        let all = self.sorted();
        let middle = all.len() / 2;
        if all.len().is_multiple_of(2) {
            (all[middle - 1] + all[middle]) / 2.0
        } else {
            all[middle]
        }
    }

    fn range(&self) -> (f64, f64) {
        self.values.iter().fold((f64::MAX, f64::MIN), |value, &v| (value.0.min(v), value.1.max(v)))
    }

    fn noisy(&self) -> bool {
        let (least, most) = self.range();
        most - least > NOISY * self.median().abs()
    }
}

/// All rows, in the order in which they were first seen.
#[derive(Debug, Default, Serialize)]
pub struct Table {
    pub rows: Vec<Row>,
}

impl Table {
    fn row(&mut self, section: &'static str, what: &str, peer: &str) -> &mut Row {
        let found = self.rows.iter().position(|row| row.is(section, what, peer));
        let index = found.unwrap_or_else(|| {
            let (what, peer) = (what.to_owned(), peer.to_owned());
            let (values, note) = (Vec::new(), String::new());
            self.rows.push(Row { section, what, peer, values, note });
            self.rows.len() - 1
        });
        &mut self.rows[index]
    }

    pub fn add(&mut self, section: &'static str, what: &str, peer: &str, value: f64) {
        self.row(section, what, peer).values.push(value);
    }

    pub fn note(&mut self, section: &'static str, what: &str, peer: &str, note: String) {
        self.row(section, what, peer).note = note;
    }

    /// Takes away what a peer that failed left in a section.
    pub fn strike(&mut self, section: &str, peer: &str) {
        self.rows.retain(|row| row.section != section || row.peer != peer);
    }

    pub fn median(&self, section: &str, what: &str, peer: &str) -> Option<f64> {
        self.rows.iter().find(|row| row.is(section, what, peer)).map(Row::median)
    }
}

impl Row {
    fn is(&self, section: &str, what: &str, peer: &str) -> bool {
        self.section == section && self.what == what && self.peer == peer
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let mut sections: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !sections.contains(&row.section) {
                sections.push(row.section);
            }
        }
        for section in sections {
            writeln!(f, "\n{section}")?;
            let mut whats: Vec<&str> = Vec::new();
            for row in self.rows.iter().filter(|row| row.section == section) {
                if !whats.contains(&row.what.as_str()) {
                    whats.push(&row.what);
                }
            }
            for what in whats {
                writeln!(f, "  {what:<52} median (min–max)             to ppt")?;
                let ppt = self.median(section, what, "ppt");
                for row in self.rows.iter().filter(|row| row.section == section && row.what == what) {
                    writeln!(f, "{}", line(row, ppt))?;
                }
            }
        }
        Ok(())
    }
}

fn line(row: &Row, ppt: Option<f64>) -> String {
    let (least, most) = row.range();
    let median = row.median();
    let ratio = match ppt {
        Some(ppt) if ppt > 0.0 => format!("{} ×", number(median / ppt)),
        _ => String::new(),
    };
    let range = format!("({}–{})", number(least), number(most));
    let noisy = if row.noisy() { "noisy" } else { "" };
    let cells =
        format!("    {:<44} {:>12} {range:<20} {ratio:>9} {noisy:5}", row.peer, number(median));
    format!("{cells} {}", row.note).trim_end().to_owned()
}

/// Three digits, or all of a large number.
fn number(value: f64) -> String {
    match value.abs() {
        it if it >= 100.0 => format!("{value:.0}"),
        it if it >= 10.0 => format!("{value:.1}"),
        it if it >= 0.1 || it == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
