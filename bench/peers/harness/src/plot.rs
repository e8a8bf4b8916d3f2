//! Plots of medians over powers of two, as SVG. Both axes are logarithmic.

use std::fmt::Write;

use crate::table::Table;

/// A name and its points.
pub type Line = (String, Vec<(f64, f64)>);

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;
const COLOURS: [&str; 4] = ["#0b6bcb", "#c4411f", "#2d8a3e", "#7a4fb5"];

/// The rows of a section whose `what` is a number, by peer.
pub fn lines(table: &Table, section: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in table.rows.iter().filter(|row| row.section == section) {
        let Ok(x) = row.what.parse() else { continue };
        // A logarithm has no zero.
        let point = (x, row.median().max(1e-3));
        match lines.iter_mut().find(|line| line.0 == row.peer) {
            Some(line) => line.1.push(point),
            None => lines.push((row.peer.clone(), vec![point])),
        }
    }
    lines
}

pub fn svg(title: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.1);
    let range = |of: fn(&(f64, f64)) -> f64| {
        let (least, most) =
            points().map(of).fold((f64::MAX, f64::MIN), |it, v| (it.0.min(v), it.1.max(v)));
        (least.log2().floor(), most.log2().ceil().max(least.log2().floor() + 1.0))
    };
    let ((left, right), (bottom, top)) = (range(|it| it.0), range(|it| it.1));
    let x = |value: f64| MARGIN + (value.log2() - left) / (right - left) * (WIDTH - 2.0 * MARGIN);
    let y = |value: f64| {
        HEIGHT - MARGIN - (value.log2() - bottom) / (top - bottom) * (HEIGHT - 2.0 * MARGIN)
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"14\">{title}</text>\n"
    );
    for power in left as i32..=right as i32 {
        let (value, at) = (2_f64.powi(power), x(2_f64.powi(power)));
        let (low, high) = (HEIGHT - MARGIN, MARGIN);
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {low}V{high}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            low + 18.0,
            short(value)
        );
    }
    for power in bottom as i32..=top as i32 {
        let (value, at) = (2_f64.powi(power), y(2_f64.powi(power)));
        let _ = writeln!(
            out,
            "<path d=\"M{MARGIN} {at:.1}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{value}</text>",
            WIDTH - MARGIN,
            MARGIN - 6.0,
            at + 4.0
        );
    }
    for (index, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let path: Vec<String> =
            points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            path.join(" "),
            MARGIN + 8.0,
            MARGIN + 16.0 * (index as f64 + 1.0)
        );
    }
    out + "</svg>\n"
}

/// 1024 as 1k.
fn short(value: f64) -> String {
    match value {
        it if it >= 1_048_576.0 => format!("{}M", it / 1_048_576.0),
        it if it >= 1024.0 => format!("{}k", it / 1024.0),
        it => it.to_string(),
    }
}
