//! Several plots in one picture, which compare a formula with measurements.

use crate::axis::Axis;
use crate::print_svg::Picture;

/// One of two plots in a row.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// Title of the horizontal axis.
    pub across: String,
    /// Title of the vertical axis.
    pub up: String,
    /// Unit of the vertical axis.
    pub unit: String,
    /// Points that are drawn as dots.
    pub points: Vec<(f64, f64)>,
    /// Lines over the whole width.
    pub lines: Vec<PanelLine>,
    /// A horizontal line at a limit.
    pub level: Option<f64>,
}

/// A line of a panel.
#[derive(Debug, Clone, Default)]
pub struct PanelLine {
    /// Name in the legend, if there are several lines.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
    /// Interval at each point: lower and upper end. Empty if unknown.
    pub band: Vec<(f64, f64)>,
}

/// Width and height of a panel, in pixels.
const WIDTH: u32 = 480;
const HEIGHT: u32 = 300;
/// Height of the title, in pixels.
const TITLE: u32 = 26;
/// Maximum number of points of a panel; of more, every n-th is drawn.
const POINTS: usize = 10_000;
/// Maximum number of lines of a panel.
const LINES: usize = 8;

/// Draws rows of two panels each.
pub fn panels(title: &str, rows: &[[Panel; 2]]) -> String {
    let mut picture = Picture::new(title, 2 * WIDTH, TITLE + HEIGHT * rows.len() as u32);
    for (row, panels) in rows.iter().enumerate() {
        for (column, panel) in panels.iter().enumerate() {
            let (left, top) = (column as u32 * WIDTH, TITLE + row as u32 * HEIGHT);
            picture.panel(left.into(), top.into(), WIDTH.into(), HEIGHT.into());
            draw(panel, &mut picture);
        }
    }
    picture.finish()
}

fn draw(panel: &Panel, picture: &mut Picture) {
    let finite = |entry: &&(f64, f64)| entry.0.is_finite() && entry.1.is_finite();
    let lines = || panel.lines.iter().take(LINES);
    let all = || panel.points.iter().chain(lines().flat_map(|line| &line.points)).filter(finite);
    let low = all().map(|entry| entry.0).fold(f64::INFINITY, f64::min);
    let high = all().map(|entry| entry.0).fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return picture.names(&panel.across, &panel.up);
    }
    let x = Axis::linear(low, high);
    let edges = lines().flat_map(|line| &line.band).flat_map(|entry| [entry.0, entry.1]);
    let heights = all().map(|entry| entry.1).chain(edges).chain(panel.level);
    let heights: Vec<f64> = heights.filter(|height| height.is_finite()).collect();
    // The vertical axis includes 0, so that heights are proportional to values.
    let y = Axis::linear(
        heights.iter().copied().fold(0.0, f64::min),
        heights.iter().copied().fold(0.0, f64::max),
    );
    picture.axes(&x, &y, "", &panel.unit);
    let each = panel.points.len().div_ceil(POINTS).max(1);
    let place = |entry: &(f64, f64)| (x.place(entry.0), y.place(entry.1));
    for (colour, line) in lines().enumerate() {
        let edges = line.points.iter().zip(&line.band);
        let edges = edges.filter(|(at, _)| finite(at));
        let band: Vec<_> =
            edges.map(|(at, entry)| (x.place(at.0), y.place(entry.0), y.place(entry.1))).collect();
        if !band.is_empty() {
            picture.band(&band, colour);
        }
        let places: Vec<_> = line.points.iter().filter(finite).map(place).collect();
        picture.line(&places, colour);
    }
    let points: Vec<_> = panel.points.iter().filter(finite).step_by(each).map(place).collect();
    picture.points(&points, lines().count().min(LINES - 1));
    if let Some(level) = panel.level {
        picture.level(y.place(level));
    }
    let names: Vec<String> = lines().map(|line| line.name.clone()).collect();
    let up = match each {
        1 => panel.up.clone(),
        _ => format!("{} (1 of {each} points is drawn)", panel.up),
    };
    if names.len() > 1 {
        picture.names(&panel.across, "");
        picture.legend(&names);
    } else {
        picture.names(&panel.across, &up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_not_drawn() {
        let line = PanelLine {
            name: "<fit>".to_owned(),
            points: vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)],
            band: vec![(0.5, 1.5), (0.0, f64::INFINITY), (2.0, 4.0)],
        };
        let other = PanelLine { points: vec![(0.0, 0.0), (2.0, 1.0)], ..PanelLine::default() };
        let panel = Panel {
            across: "n".to_owned(),
            points: vec![(0.0, f64::INFINITY), (1.0, 2.0)],
            lines: vec![line, other],
            level: Some(9.0),
            ..Panel::default()
        };
        let svg = panels("a & b", &[[panel, Panel::default()]]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("h0").count(), 1, "one point");
        assert_eq!(svg.matches("<polygon").count(), 1);
        assert!(svg.contains("&lt;fit&gt;") && svg.contains("a &amp; b"));
    }

    #[test]
    fn many_points_are_drawn_in_part() {
        let points = (0..25_000).map(|number| (f64::from(number), 1.0)).collect();
        let panel = Panel { up: "ms".to_owned(), points, ..Panel::default() };
        let svg = panels("", &[[panel, Panel::default()]]);
        assert_eq!(svg.matches("h0").count(), 8_334);
        assert!(svg.contains("ms (1 of 3 points is drawn)"));
    }
}
