//! OpenMetrics text, version 1.0.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use ppt_text::escaped;

/// The media type of this text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl MetricType {
    fn name(self) -> &'static str {
        match self {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::Info => "info",
        }
    }

    /// The suffixes of the family's name in the names of its samples; the last one is only
    /// reserved.
    pub fn suffixes(self) -> &'static [&'static str] {
        match self {
            MetricType::Counter => &["_total", "_created", ""],
            MetricType::Gauge => &[""],
            MetricType::Histogram => &["_bucket", "_count", "_sum", "_created", ""],
            MetricType::Info => &["_info", ""],
        }
    }
}

/// A family of series: its name, type, base unit and description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Description<'a> {
    pub name: &'a str,
    pub ty: MetricType,
    pub unit: &'a str,
    pub help: &'a str,
}

/// Labels, as the text between braces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels(String);

impl Labels {
    /// The same labels and one more. Its name is ours, its value may be untrusted.
    pub fn with(&self, name: &str, value: &str) -> Labels {
        let mut text = self.0.clone();
        if !text.is_empty() {
            text.push(',');
        }
        let _ = write!(text, "{name}=\"{}\"", quoted(value));
        Labels(text)
    }
}

/// Text between quotes. Control characters are escaped, because a terminal may show it.
fn quoted(text: &str) -> String {
    escaped(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// A text that is built family by family.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: Vec<Family>,
    places: BTreeMap<String, usize>,
    bytes: usize,
}

#[derive(Debug)]
struct Family {
    name: String,
    head: String,
    samples: String,
}

/// A position in an exposition.
#[derive(Debug)]
pub(crate) struct ExpositionMark(Vec<usize>, usize);

impl Exposition {
    /// The number of a family. The first description counts.
    pub fn family(&mut self, what: Description<'_>) -> usize {
        if let Some(&place) = self.places.get(what.name) {
            return place;
        }
        let Description { name, ty, unit, help } = what;
        let mut head = format!("# TYPE {name} {}\n", ty.name());
        if !unit.is_empty() {
            let _ = writeln!(head, "# UNIT {name} {unit}");
        }
        if !help.is_empty() {
            let _ = writeln!(head, "# HELP {name} {}", quoted(help));
        }
        self.places.insert(name.to_owned(), self.families.len());
        self.families.push(Family { name: name.to_owned(), head, samples: String::new() });
        self.families.len() - 1
    }

    /// One sample of a family.
    pub fn sample(&mut self, family: usize, suffix: &str, labels: &Labels, value: impl Display) {
        let Family { name, samples, .. } = &mut self.families[family];
        let before = samples.len();
        let _ = writeln!(samples, "{name}{suffix}{{{}}} {value}", labels.0);
        self.bytes += samples.len() - before;
    }

    /// Bytes of all samples.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The current position, for [going back](Self::back).
    pub fn mark(&self) -> ExpositionMark {
        ExpositionMark(
            self.families.iter().map(|family| family.samples.len()).collect(),
            self.bytes,
        )
    }

    /// Removes the samples after `mark`.
    pub fn back(&mut self, mark: &ExpositionMark) {
        for (number, family) in self.families.iter_mut().enumerate() {
            family.samples.truncate(mark.0.get(number).copied().unwrap_or(0));
        }
        self.bytes = mark.1;
    }

    /// The whole text.
    pub fn finish(self) -> String {
        let families = self.families.into_iter().filter(|family| !family.samples.is_empty());
        let mut text = String::with_capacity(self.bytes + 4096);
        for Family { head, samples, .. } in families {
            text += &head;
            text += &samples;
        }
        text += "# EOF\n";
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: Description<'_> =
        Description { name: "f", ty: MetricType::Counter, unit: "", help: "say \"a\\b\"" };

    #[test]
    fn a_family_is_one_block() {
        let mut text = Exposition::default();
        let frames = text.family(FRAMES);
        let sizes = Description { name: "s_bytes", ty: MetricType::Gauge, unit: "bytes", help: "" };
        let size = text.family(sizes);
        text.family(Description { name: "nothing", ..sizes });
        let labels = Labels::default().with("pid", "1");
        text.sample(frames, "_total", &labels, 3);
        text.sample(size, "", &Labels::default(), "1.5");
        let again = text.family(FRAMES);
        text.sample(again, "_total", &labels.with("frame", "x"), 4);
        let expected = "# TYPE f counter\n# HELP f say \\\"a\\\\b\\\"\nf_total{pid=\"1\"} 3\n\
            f_total{pid=\"1\",frame=\"x\"} 4\n# TYPE s_bytes gauge\n# UNIT s_bytes bytes\n\
            s_bytes{} 1.5\n# EOF\n";
        assert_eq!(text.finish(), expected);
    }

    #[test]
    fn values_of_strangers_stay_between_their_quotes() {
        let value = "a\"} 1\n# EOF\\n\u{1b}[2J\u{202e}";
        let labels = Labels::default().with("program", value);
        let expected = r#"program="a\"} 1\\n# EOF\\n\\x1b[2J\\xe2\\x80\\xae""#;
        assert_eq!(labels.0, expected);
    }

    #[test]
    fn what_has_no_room_leaves_nothing_behind() {
        let mut text = Exposition::default();
        let frames = text.family(FRAMES);
        text.sample(frames, "_total", &Labels::default(), 1);
        let (mark, before) = (text.mark(), text.bytes());
        text.sample(frames, "_total", &Labels::default(), 2);
        let new = text.family(Description { name: "new", ..FRAMES });
        text.sample(new, "_total", &Labels::default(), 3);
        text.back(&mark);
        assert_eq!(text.bytes(), before);
        assert!(text.finish().ends_with("f_total{} 1\n# EOF\n"));
    }
}
