//! An SVG for print: axes, lines, points, bars.

use std::fmt::Write;

use crate::axis::{Axis, label};
use crate::html::escape_html;

/// Colours that print well and that most people can tell apart.
const COLOURS: [&str; 8] =
    ["#2f6db5", "#d1603d", "#3a8f6b", "#8a5ba6", "#b8860b", "#c2457c", "#4b8e9e", "#6b6b6b"];
/// Pixels above a panel for its title, and next to it for its axis.
const ABOVE: f64 = 30.0;
const LEFT: f64 = 68.0;

/// An SVG of a fixed size, with its own colours.
pub(crate) struct Picture {
    svg: String,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Picture {
    /// An empty picture of `width` by `height` pixels with one panel.
    pub fn new(title: &str, width: u32, height: u32) -> Picture {
        let (width, height) = (f64::from(width.max(120)), f64::from(height.max(90)));
        let title = escape_html(title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
             font-size=\"12\" role=\"img\" aria-label=\"{title}\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        let top = if title.is_empty() { 30.0 } else { 52.0 };
        if !title.is_empty() {
            let _ = writeln!(
                svg,
                "<text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#1c1e21\">{title}</text>"
            );
        }
        let mut picture = Picture { svg, left: 0.0, top: 0.0, width: 0.0, height: 0.0 };
        picture.panel(0.0, top - ABOVE, width, height - top + ABOVE);
        picture
    }

    /// Restricts what follows to this part of the picture, in pixels.
    pub fn panel(&mut self, left: f64, top: f64, width: f64, height: f64) {
        (self.left, self.top) = (left + LEFT, top + ABOVE);
        (self.width, self.height) = (width - LEFT - 18.0, height - ABOVE - 52.0);
    }

    fn x(&self, share: f64) -> f64 {
        ((self.left + self.width * share) * 100.0).round() / 100.0
    }

    fn y(&self, share: f64) -> f64 {
        ((self.top + self.height * (1.0 - share)) * 100.0).round() / 100.0
    }

    /// Horizontal position of text above a panel.
    fn edge(&self) -> f64 {
        self.left - LEFT + 16.0
    }

    pub fn left_axis(&mut self, axis: &Axis, unit: &str) {
        let (from, to) = (self.x(0.0), self.x(1.0));
        for tick in axis.ticks(5) {
            let y = self.y(axis.place(tick));
            let name = escape_html(&label(tick, unit));
            let _ = writeln!(
                self.svg,
                "<line x1=\"{from}\" x2=\"{to}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#e3e3e0\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">{name}</text>",
                from - 8.0,
                y + 4.0
            );
        }
    }

    pub fn axes(&mut self, x: &Axis, y: &Axis, x_unit: &str, y_unit: &str) {
        self.left_axis(y, y_unit);
        let ground = self.y(0.0);
        let _ = writeln!(
            self.svg,
            "<line x1=\"{}\" x2=\"{}\" y1=\"{ground}\" y2=\"{ground}\" stroke=\"#888\"/>",
            self.x(0.0),
            self.x(1.0)
        );
        for tick in x.ticks(6) {
            let at = self.x(x.place(tick));
            let name = escape_html(&label(tick, x_unit));
            let _ = writeln!(
                self.svg,
                "<line x1=\"{at}\" x2=\"{at}\" y1=\"{ground}\" y2=\"{}\" stroke=\"#888\"/>\
                 <text x=\"{at}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{name}</text>",
                ground + 4.0,
                ground + 17.0
            );
        }
    }

    pub fn bar(&mut self, from: f64, width: f64, height: f64, colour: usize) {
        let (x, y) = (self.x(from), self.y(height));
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"/>",
            (width * self.width).max(0.5),
            (self.y(0.0) - y).max(0.5),
            COLOURS[colour]
        );
    }

    pub fn word(&mut self, at: f64, word: &str, of: usize) {
        let (x, y) = (self.x(at), self.y(0.0) + 16.0);
        let room = (self.width / of as f64 / 6.5) as usize;
        let short: String = if word.chars().count() > room.max(2) {
            word.chars().take(room.max(2) - 1).chain(['…']).collect()
        } else {
            word.to_owned()
        };
        let _ = writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            escape_html(&short)
        );
    }

    pub fn line(&mut self, places: &[(f64, f64)], colour: usize) {
        let places: Vec<String> =
            places.iter().map(|place| format!("{},{}", self.x(place.0), self.y(place.1))).collect();
        let _ = writeln!(
            self.svg,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" stroke-linejoin=\"round\" \
             points=\"{}\"/>",
            COLOURS[colour],
            places.join(" ")
        );
    }

    /// Fills the area between two curves. `places`: horizontal position, lower and upper end.
    pub fn band(&mut self, places: &[(f64, f64, f64)], colour: usize) {
        let point = |x: f64, y: f64| format!("{},{}", self.x(x), self.y(y));
        let low = places.iter().map(|place| point(place.0, place.1));
        let high = places.iter().rev().map(|place| point(place.0, place.2));
        let points: Vec<String> = low.chain(high).collect();
        let _ = writeln!(
            self.svg,
            "<polygon fill=\"{}\" fill-opacity=\"0.18\" points=\"{}\"/>",
            COLOURS[colour],
            points.join(" ")
        );
    }

    /// Draws a horizontal line at a limit.
    pub fn level(&mut self, at: f64) {
        let y = self.y(at);
        let _ = writeln!(
            self.svg,
            "<line x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#1c1e21\" \
             stroke-dasharray=\"5 4\"/>",
            self.x(0.0),
            self.x(1.0)
        );
    }

    pub fn points(&mut self, places: &[(f64, f64)], colour: usize) {
        // One path of dots takes a third of the bytes of circles.
        let dot = |entry: &(f64, f64)| format!("M{},{}h0", self.x(entry.0), self.y(entry.1));
        let dots: String = places.iter().map(dot).collect();
        let _ = writeln!(
            self.svg,
            "<path stroke=\"{}\" stroke-width=\"3\" stroke-linecap=\"round\" stroke-opacity=\"0.5\" \
             d=\"{dots}\"/>",
            COLOURS[colour]
        );
    }

    pub fn names(&mut self, below: &str, above: &str) {
        let (x, y) = (self.x(0.5), self.y(0.0) + 38.0);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#1c1e21\">{}</text>\
             <text x=\"{}\" y=\"{}\" fill=\"#1c1e21\">{}</text>",
            escape_html(below),
            self.edge(),
            self.top - 12.0,
            escape_html(above)
        );
    }

    pub fn legend(&mut self, names: &[String]) {
        let mut x = self.edge();
        let y = self.top - 12.0;
        for (at, name) in names.iter().enumerate() {
            let _ = writeln!(
                self.svg,
                "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" rx=\"2\" fill=\"{}\"/>\
                 <text x=\"{}\" y=\"{y}\" fill=\"#1c1e21\">{}</text>",
                y - 9.0,
                COLOURS[at],
                x + 15.0,
                escape_html(name)
            );
            x += 34.0 + 7.0 * name.chars().count().min(40) as f64;
        }
    }

    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}
