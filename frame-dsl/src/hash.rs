//! The schema hash, which shows whether a program and a capture have the same frames.
//!
//! It covers only the information that a reader of raw frames needs. Docs, tags, groups and other
//! attributes, slots and unknown keys may change without changing the hash. The text below is the
//! definition; a change of it needs a new [`LAYOUT_TEXT_VERSION`].
//!
//! The roles of fields (`role.rs`), and counters and histograms (`metric.rs`), came later. Readers
//! that do not know them still compute the same layout hash and compare it. So these parts have a
//! separate hash, which is used only in linker symbols, because linkers merge symbols with one
//! name.

use std::fmt::Write as _;

use crate::metric::{Metric, MetricShape};
use crate::role::{FIELD_KEYS, FRAME_KEYS};
use crate::schema::{Enum, Extra, Field, FieldType, Frame, IntervalEnd, Schema};

/// First line of the text that is hashed.
const LAYOUT_TEXT_VERSION: &str = "ppt layout 1";
/// First line of the text of the roles.
const ROLES_TEXT_VERSION: &str = "ppt roles 1";

impl Schema {
    /// The first 8 bytes of the SHA-256 of the layout text, read big-endian. `{:016x}` shows the
    /// first 16 digits of the digest.
    pub fn hash(&self) -> u64 {
        digest(&self.layout_text())
    }

    /// The hash of the roles of fields in spans, and of counters and histograms. `None` if all
    /// frames are plain and there are no metrics.
    pub fn roles_hash(&self) -> Option<u64> {
        self.roles_text().map(|text| digest(&text))
    }

    /// The prefix of this buffer's linker symbols: ABI version, buffer, and hashes.
    pub fn symbol_prefix(&self) -> String {
        let roles = self
            .roles_hash()
            .map_or(String::new(), |roles_hash| format!("_{:08x}", roles_hash >> 32));
        format!("ppt1_{}_{:08x}{roles}_", self.buffer, self.hash() >> 32)
    }

    /// The text that the hash of the roles covers, one fact per line.
    fn roles_text(&self) -> Option<String> {
        let mut text = String::new();
        for (index, frame) in self.frames.iter().enumerate() {
            role_text(&mut text, &format!("frame {index}"), &frame.extra, &FRAME_KEYS);
            for (field, it) in frame.fields.iter().enumerate() {
                let what = format!("field {index} {field}");
                role_text(&mut text, &what, &it.extra, &FIELD_KEYS);
            }
        }
        for metric in self.metrics() {
            metric_text(&mut text, &metric);
        }
        (!text.is_empty()).then(|| format!("{ROLES_TEXT_VERSION}\n{text}"))
    }

    /// The text that the hash covers, one fact per line. Names are identifiers. Free text is
    /// preceded by its length, so that a unit cannot imitate another line.
    fn layout_text(&self) -> String {
        let mut text = format!("{LAYOUT_TEXT_VERSION}\n");
        line(&mut text, format_args!("buffer {} {}", self.buffer, self.stride));
        for frame in &self.frames {
            frame_text(&mut text, frame);
        }
        for it in &self.enums {
            enum_text(&mut text, it);
        }
        text
    }
}

fn digest(text: &str) -> u64 {
    let digest = hmac_sha256::Hash::hash(text.as_bytes());
    digest.iter().take(8).fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}

/// The keys of one frame or field. JSON has no raw line break in strings or in this form.
fn role_text(text: &mut String, what: &str, extra: &Extra, keys: &[&str]) {
    for key in keys {
        if let Some(value) = extra.get(*key) {
            line(text, format_args!("{what} {key} {value}"));
        }
    }
}

/// A metric: the meaning of its cells.
fn metric_text(text: &mut String, metric: &Metric) {
    let Metric { name, shape, unit, .. } = metric;
    line(text, format_args!("{} {name} {}", shape.kind(), shape.ty()));
    if let MetricShape::Linear { from, to, buckets } = shape {
        line(text, format_args!("buckets {from} {to} {buckets}"));
    }
    if !unit.is_empty() {
        line(text, format_args!("unit {} {unit}", unit.len()));
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes every write");
}

fn frame_text(text: &mut String, frame: &Frame) {
    line(text, format_args!("frame {} {} {}", frame.name, frame.kind, frame.size));
    for field in &frame.fields {
        field_text(text, field);
    }
}

fn field_text(text: &mut String, field: &Field) {
    line(text, format_args!("field {} {} {}", field.name, field.ty.word(), field.offset));
    match &field.ty {
        FieldType::Ns { clock } | FieldType::Timespec { clock } => {
            line(text, format_args!("clock {}", clock.word()));
        }
        FieldType::Enum { name } => line(text, format_args!("of {name}")),
        FieldType::Char { len } | FieldType::Bytes { len } => line(text, format_args!("len {len}")),
        _ => {}
    }
    if let Some(count) = field.array {
        line(text, format_args!("array {count}"));
    }
    if let Some(interval) = &field.interval {
        let edge = match interval.edge {
            IntervalEnd::Start => "start",
            IntervalEnd::End => "end",
        };
        line(text, format_args!("{edge} {}", interval.name));
    }
    if field.at {
        line(text, format_args!("at"));
    }
    if !field.unit.is_empty() {
        line(text, format_args!("unit {} {}", field.unit.len(), field.unit));
    }
}

fn enum_text(text: &mut String, it: &Enum) {
    line(text, format_args!("enum {} {}", it.name, it.repr.word()));
    for (name, value) in &it.values {
        line(text, format_args!("value {name} {value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":32,"frames":[{"name":"f","kind":"plain","size":32,"fields":[{"name":"a","type":"ns","clock":"monotonic","offset":8,"interval":{"name":"h","edge":"end"},"at":true},{"name":"e","type":"enum","enum":"E","offset":28},{"name":"c","type":"u16","array":3,"offset":16,"unit":"B"}],"doc":"x","attributes":[{"name":"group","args":["net"]}]}],"enums":[{"name":"E","type":"u8","values":[["A",0]]}],"tags":[["k","v"]]}"#;

    fn schema(from: &str, to: &str) -> Schema {
        let text = TEXT.replacen(from, to, 1);
        assert!(from == to || text != TEXT, "`{from}` is not in the text");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_text_and_its_digest() {
        let schema = schema("", "");
        assert_eq!(
            schema.layout_text(),
            "ppt layout 1\nbuffer b 32\nframe f plain 32\nfield a ns 8\nclock monotonic\nend h\n\
             at\nfield e enum 28\nof E\nfield c u16 16\narray 3\nunit 1 B\nenum E u8\nvalue A 0\n"
        );
        // printf '…' | sha256sum
        assert_eq!(format!("{:016x}", schema.hash()), "6e4527f6e1f7ed2f");
    }

    #[test]
    fn roles_have_a_hash_of_their_own() {
        let plain = schema("", "");
        assert_eq!(plain.roles_hash(), None);
        assert_eq!(plain.symbol_prefix(), format!("ppt1_b_{:08x}_", plain.hash() >> 32));
        let span = |to: &str| schema(r#""doc":"x""#, to);
        let one = span(r#""across":"process""#);
        assert_eq!(one.roles_text().unwrap(), "ppt roles 1\nframe 0 across \"process\"\n");
        assert_eq!(one.hash(), plain.hash());
        let two = span(r#""across":"process","fifo":true"#);
        let key = schema(r#""offset":28"#, r#""offset":28,"key":true"#);
        let names = [&plain, &one, &two, &key].map(Schema::symbol_prefix);
        for (index, name) in names.iter().enumerate() {
            assert_eq!(names.iter().position(|other| other == name), Some(index), "{name}");
        }
        let other = span(r#""across":"process","later":true"#);
        assert_eq!(other.symbol_prefix(), one.symbol_prefix());
    }

    #[test]
    fn metrics_are_in_the_hash_of_the_roles() {
        let plain = schema("", "");
        let with =
            |metrics: &str| schema(r#""tags":[["k","v"]]"#, &format!(r#""metrics":[{metrics}]"#));
        let one = with(r#"{"name":"c","kind":"counter","type":"u64"}"#);
        assert_eq!(one.roles_text().unwrap(), "ppt roles 1\ncounter c u64\n");
        assert_eq!(one.hash(), plain.hash());
        let all = [
            with(""),
            one,
            with(r#"{"name":"c","kind":"counter","type":"i64"}"#),
            with(r#"{"name":"c","kind":"counter","type":"u64","unit":"B"}"#),
            with(r#"{"name":"c","kind":"histogram","type":"duration"}"#),
            with(r#"{"name":"c","kind":"histogram","type":"u32","from":0,"to":9,"buckets":3}"#),
            with(r#"{"name":"c","kind":"histogram","type":"u32","from":0,"to":9,"buckets":9}"#),
        ];
        let names: std::collections::BTreeSet<_> = all.iter().map(Schema::symbol_prefix).collect();
        assert_eq!(names.len(), all.len());
        let documented = with(r#"{"name":"c","kind":"counter","type":"u64","doc":"d"}"#);
        assert_eq!(documented.symbol_prefix(), all[1].symbol_prefix());
    }

    #[test]
    fn what_it_covers() {
        let hash = schema("", "").hash();
        for (from, to) in [
            (r#""slots":16"#, r#""slots":32"#),
            (r#""doc":"x""#, r#""doc":"y""#),
            (r#"["net"]"#, r#"["disk"]"#),
            (r#"[["k","v"]]"#, r#"[["k","w"]]"#),
        ] {
            assert_eq!(schema(from, to).hash(), hash, "{to}");
        }
        for (from, to) in [
            (r#""buffer":"b""#, r#""buffer":"c""#),
            (r#""name":"f""#, r#""name":"g""#),
            (r#""name":"a""#, r#""name":"d""#),
            (r#""clock":"monotonic""#, r#""clock":"boottime""#),
            (r#""edge":"end""#, r#""edge":"start""#),
            (r#""at":true"#, r#""at":false"#),
            (r#""array":3"#, r#""array":4"#),
            (r#""unit":"B""#, r#""unit":"kB""#),
            (r#""offset":28"#, r#""offset":29"#),
            (r#""type":"u8""#, r#""type":"i8""#),
            (r#"["A",0]"#, r#"["A",1]"#),
            (r#"["A",0]"#, r#"["B",0]"#),
        ] {
            assert_ne!(schema(from, to).hash(), hash, "{to}");
        }
    }
}
