//! Draws the slots of a buffer: `pptc --print layout`.
//!
//! A number in the column `word` begins an 8-byte word; rows without a number share it. A rule
//! crosses the table where a cache line begins.

use std::fmt::{self, Display, Write as _};

use anstyle::{AnsiColor, Style};

use crate::layout::Layout;
use crate::metric::{Metric, MetricShape};
use crate::names::is_identifier;
use crate::role::{HALF, Hash, IN, OUT, SpanHalf};
use crate::schema::{Field, FieldType, Frame, Schema};

const WORD: u32 = 8;
const CACHE_LINE: u32 = 64;

/// The purpose of a run of bytes.
#[derive(Clone, Copy)]
enum Role {
    /// The sequence number, the frame id.
    Header,
    Field,
    Padding,
    /// Room that only larger frames of the buffer use.
    Unused,
}

/// One row of a table.
struct LayoutRow {
    offset: u32,
    bytes: u32,
    role: Role,
    what: String,
    ty: String,
}

/// Draws the slots of a buffer, one for each frame. `color` adds ANSI escapes.
pub fn draw(schema: &Schema, color: bool) -> String {
    let ring = u64::from(schema.stride) * u64::from(schema.slots);
    let mut text = format!(
        "buffer {}: slots of {} bytes (the stride), {} of them for each thread: {}\n",
        schema.buffer,
        schema.stride,
        schema.slots,
        in_units(ring),
    );
    if schema.stride > CACHE_LINE && !schema.stride.is_multiple_of(CACHE_LINE) {
        text.push_str("cache lines as they are in the first slot\n");
    }
    for frame in schema.frames.iter().filter(|frame| !frame.is_hidden()) {
        text.push('\n');
        text.push_str(&LayoutTable::for_frame(schema, frame).draw(color));
    }
    text.push_str(&cells(schema, color));
    text
}

/// The size of one row of cells, if the buffer has counters or histograms.
fn cells(schema: &Schema, color: bool) -> String {
    let metrics = schema.metrics();
    let Some(last) = metrics.last() else { return String::new() };
    let paint = |style: Style, text: String| {
        if color { format!("{style}{text}{style:#}") } else { text }
    };
    let bytes = u64::from(last.cells.end) * 8;
    let head = format!("cells: {} for each thread: {}", last.cells.end, in_units(bytes));
    let names = metrics.iter().map(|metric| metric.name.len()).max().unwrap_or(0).max("name".len());
    let columns = format!("  first  cells  {:names$}  type", "name");
    let rows = metrics.iter().map(|metric| {
        let Metric { name, shape, cells, .. } = metric;
        let range = match shape {
            MetricShape::Linear { from, to, buckets } => format!(" ({from}, {to}, {buckets})"),
            _ => String::new(),
        };
        let (first, count) = (cells.start, cells.len());
        format!("  {first:>5}  {count:>5}  {name:names$}  {} {}{range}", shape.kind(), shape.ty())
    });
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let lines = [paint(bold, head), paint(dim, columns)].into_iter().chain(rows);
    "\n".to_owned() + &lines.map(|line| line + "\n").collect::<String>()
}

struct LayoutTable<'a> {
    schema: &'a Schema,
    frame: &'a Frame,
    layout: Layout,
    runs: Vec<LayoutRow>,
}

impl<'a> LayoutTable<'a> {
    fn for_frame(schema: &'a Schema, frame: &'a Frame) -> LayoutTable<'a> {
        let layout = Layout::for_frame(schema, frame);
        let runs = runs(schema, frame, &layout);
        LayoutTable { schema, frame, layout, runs }
    }

    fn draw(&self, color: bool) -> String {
        let paint = |style: Style, text: String| {
            if color { format!("{style}{text}{style:#}") } else { text }
        };
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let names = self.runs.iter().map(|run| run.what.len()).max().unwrap_or(0);
        let Frame { name, size, .. } = self.frame;
        let mut lines = vec![
            paint(bold, format!("frame {name}{}: {size} bytes", kind(self.frame))),
            paint(dim, format!("  word  offset  size  {:names$}  type", "field")),
        ];
        for run in &self.runs {
            if run.offset > 0 && run.offset.is_multiple_of(CACHE_LINE) {
                lines.push(paint(dim, format!("  ---- cache line {}", run.offset / CACHE_LINE)));
            }
            lines.push(paint(run.role.style(), run.row(names)));
            lines.extend(run.borders().map(|text| paint(dim, text)));
        }
        lines.push(format!("  {}", self.balance()));
        lines.join("\n") + "\n"
    }

    /// The number of bytes that the order of the fields saves, in words.
    fn balance(&self) -> String {
        let Layout { size, saved, ref placed, ref padding } = self.layout;
        let padding: u32 = padding.iter().map(|run| run.bytes).sum();
        let declared = size + saved;
        let fields: u32 = placed.iter().map(|field| field.bytes).sum();
        let declared_padding = declared - fields - self.schema.header_bytes();
        format!(
            "declared order: {declared} bytes, {declared_padding} of them padding; \
             placed: {size}, {padding} padding; saved {saved}"
        )
    }
}

impl Role {
    fn style(self) -> Style {
        match self {
            Role::Header => Style::new().dimmed(),
            Role::Field => Style::new(),
            Role::Padding | Role::Unused => AnsiColor::Yellow.on_default(),
        }
    }
}

impl LayoutRow {
    fn new(offset: u32, bytes: u32, role: Role, what: &str) -> LayoutRow {
        LayoutRow { offset, bytes, role, what: what.to_owned(), ty: String::new() }
    }

    fn row(&self, names: usize) -> String {
        let word = if self.offset.is_multiple_of(WORD) {
            (self.offset / WORD).to_string()
        } else {
            String::new()
        };
        let LayoutRow { offset, bytes, what, ty, .. } = self;
        let row = format!("  {word:>4}  {offset:>6}  {bytes:>4}  {what:names$}  {ty}");
        row.trim_end().to_owned()
    }

    /// The cache line boundaries inside the run.
    fn borders(&self) -> Option<String> {
        let first = self.offset / CACHE_LINE + 1;
        if matches!(self.role, Role::Unused) {
            return None;
        }
        let last = (self.offset + self.bytes).saturating_sub(1) / CACHE_LINE;
        let what = &self.what;
        match last.checked_sub(first)? {
            0 => Some(format!("  ---- cache line {first} begins inside {what}")),
            _ => Some(format!("  ---- cache lines {first} to {last} begin inside {what}")),
        }
    }
}

fn runs(schema: &Schema, frame: &Frame, layout: &Layout) -> Vec<LayoutRow> {
    let mut runs = vec![LayoutRow::new(0, 8, Role::Header, "(sequence number)")];
    if schema.multi() {
        runs.push(LayoutRow::new(8, 2, Role::Header, "(frame id)"));
    }
    runs.extend(layout.placed.iter().map(|placed| {
        let field = &frame.fields[placed.index];
        let run = LayoutRow::new(placed.offset, placed.bytes, Role::Field, &field.name);
        LayoutRow { ty: type_of(field), ..run }
    }));
    let padding = layout.padding.iter();
    runs.extend(
        padding.map(|run| LayoutRow::new(run.offset, run.bytes, Role::Padding, "(padding)")),
    );
    runs.sort_by_key(|run| run.offset);
    if frame.size < schema.stride {
        let rest = schema.stride - frame.size;
        runs.push(LayoutRow::new(frame.size, rest, Role::Unused, "(rest of the slot)"));
    }
    runs
}

/// The kind of the frame, unless it is plain.
fn kind(frame: &Frame) -> String {
    if frame.chain().is_some() {
        return " @chain".to_owned();
    }
    if frame.point().is_some() {
        return " @point".to_owned();
    }
    let Some(span) = frame.span() else { return String::new() };
    let fifo = if span.fifo { ", fifo" } else { "" };
    format!(" @span({}{fifo})", span.across.word())
}

fn type_of(field: &Field) -> String {
    let mut text = match field.hash() {
        Some(hash) => {
            let wide = if field.ty == FieldType::U64 { "" } else { "128" };
            let raw = if hash == Hash::Raw { " @raw" } else { "" };
            format!("hash{wide}{raw}")
        }
        None => field.ty.to_string(),
    };
    if let Some(count) = field.array {
        write!(text, "[{count}]").expect("a String takes every write");
    }
    for key in [IN, OUT] {
        let ty = field.extra.get(key).and_then(|extra| extra.as_str());
        if let Some(ty) = ty.filter(|text| is_identifier(text)) {
            write!(text, " @{key}({ty})").expect("a String takes every write");
        }
    }
    let half = |half: SpanHalf| field.extra.get(HALF).is_some_and(|said| *said == half.word());
    for (word, is) in [
        (" @at", field.at),
        (" @key", field.is_key()),
        (" @begin", half(SpanHalf::Begin)),
        (" @end", half(SpanHalf::End)),
        (" (added)", field.is_own()),
    ] {
        if is {
            text.push_str(word);
        }
    }
    text
}

/// Bytes in the largest unit that leaves at least 1.
fn in_units(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0x4000_0000.. => (0x4000_0000, "GiB"),
        0x10_0000.. => (0x10_0000, "MiB"),
        0x400.. => (0x400, "KiB"),
        _ => return format!("{bytes} bytes"),
    };
    let tenths = (bytes * 10 + unit / 2) / unit;
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        tenth => format!("{}.{tenth} {name}", tenths / 10),
    }
}

impl Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldType::Ns { clock } | FieldType::Timespec { clock } => {
                write!(f, "{} {}", self.word(), clock.word())
            }
            FieldType::Enum { name } => write!(f, "enum {name}"),
            FieldType::Char { len } | FieldType::Bytes { len } => {
                write!(f, "{}[{len}]", self.word())
            }
            other => f.write_str(other.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(source: &str) -> Schema {
        crate::compile(source.as_bytes(), "b.frame").unwrap().schema
    }

    #[test]
    fn drawn() {
        let source = "buffer b 16; option time ns monotonic;\n\
             frame f { bool flag; time when; float pos[2]; } frame g { int x; }";
        assert_eq!(
            draw(&schema(source), false),
            "\
buffer b: slots of 32 bytes (the stride), 16 of them for each thread: 512 bytes

frame f: 32 bytes
  word  offset  size  field              type
     0       0     8  (sequence number)
     1       8     2  (frame id)
            10     1  flag               bool
            11     5  (padding)
     2      16     8  when               ns monotonic @at
     3      24     8  pos                f32[2]
  declared order: 32 bytes, 5 of them padding; placed: 32, 5 padding; saved 0

frame g: 16 bytes
  word  offset  size  field               type
     0       0     8  (sequence number)
     1       8     2  (frame id)
            10     2  (padding)
            12     4  x                   i32
     2      16    16  (rest of the slot)
  declared order: 16 bytes, 2 of them padding; placed: 16, 2 padding; saved 0
"
        );
    }

    #[test]
    fn cache_lines() {
        let text = draw(&schema("frame f { u64 a[7]; char b[200]; }"), false);
        let rules: Vec<&str> = text.lines().filter(|line| line.contains("----")).collect();
        let expected = ["  ---- cache line 1", "  ---- cache lines 2 to 4 begin inside b"];
        assert_eq!(rules, expected, "{text}");
    }

    #[test]
    fn colour_adds_escapes_alone() {
        let schema = schema("frame f { u64 a[9]; char b[200]; } frame g { u8 x; }");
        let (plain, styled) = (draw(&schema, false), draw(&schema, true));
        assert!(!plain.contains('\x1b') && styled.contains('\x1b'));
        let mut rest = styled.split('\x1b');
        let mut stripped = rest.next().unwrap().to_owned();
        stripped.extend(rest.map(|part| part.split_once('m').unwrap().1));
        assert_eq!(stripped, plain);
    }

    #[test]
    fn units() {
        for (bytes, text) in [
            (1023, "1023 bytes"),
            (393_216, "384 KiB"),
            (1 << 20, "1 MiB"),
            (13_762_560, "13.1 MiB"),
            (275_000_000_000, "256.1 GiB"),
        ] {
            assert_eq!(in_units(bytes), text);
        }
    }
}
