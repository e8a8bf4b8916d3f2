//! The columns of a frame. Only this module decides their names and types, for every output.

use std::collections::{HashMap, HashSet};

use crate::role::{PLAIN, SPAN, SpanHalf};
use crate::schema::{Clock, Field, FieldType, Frame, Int, IntervalEnd, Schema};
use crate::stored::Stored;

/// Columns that every table may have. No field may have one of these names.
pub const STANDARD_COLUMNS: [&str; 12] = [
    "seqno", "ring", "tid", "pid", "frame", "buffer", "segment", "source", "host", "capture",
    "time_lo", "time_hi",
];

/// The name of the additional table of whole spans or chains for a kind of frames: `request_spans`,
/// `encode_chains`. `None` for plain frames.
pub fn whole_table(frame: &Frame) -> Option<String> {
    (frame.kind != PLAIN).then(|| format!("{}_{}s", frame.name, frame.kind))
}

/// The columns of that table, in order, in addition to [`STANDARD_COLUMNS`].
pub fn whole_columns(schema: &Schema, frame: &Frame) -> Vec<WholeColumn> {
    let all = columns(schema, frame, Style::Sql);
    let (keys, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|column| !frame.fields[column.field].is_mark())
        .partition(|column| frame.fields[column.field].is_key());
    let mut whole = Vec::new();
    let mut add = |name: String, part: WholePart| whole.push(WholeColumn { name, part });
    keys.into_iter().for_each(|key| add(key.name.clone(), WholePart::Key(key)));
    if frame.kind == SPAN {
        add("dur".to_owned(), WholePart::Dur);
        for standard in ["segment", "ring", "seqno", "tid", "pid"] {
            add(format!("end_{standard}"), WholePart::Where(standard));
        }
        // A field that only one half sets is meaningless in frames of the other half.
        let sets = |half: SpanHalf, of: &Column| {
            frame.only_half(&frame.fields[of.field]).is_none_or(|only| only == half)
        };
        for of in others.iter().filter(|of| sets(SpanHalf::Begin, of)) {
            add(format!("begin_{}", of.name), WholePart::Begin(of.clone()));
        }
        for of in others.iter().filter(|of| sets(SpanHalf::End, of)) {
            add(format!("end_{}", of.name), WholePart::End(of.clone()));
        }
    } else {
        add("total".to_owned(), WholePart::Total);
        let steps = frame.steps(schema);
        for (n, (step, _)) in steps.iter().enumerate() {
            add(format!("{step}_ts"), WholePart::Step(n));
        }
        for (n, entries) in steps.windows(2).enumerate() {
            add(format!("{}_to_{}", entries[0].0, entries[1].0), WholePart::Between(n));
        }
    }
    add("state".to_owned(), WholePart::State);
    whole
}

/// A column of a table of whole spans or chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeColumn {
    /// The name of the column.
    pub name: String,
    /// The content of the column.
    pub part: WholePart,
}

/// The content of a column of a table of whole spans or chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WholePart {
    /// A key.
    Key(Column),
    /// The length of a span, ns.
    Dur,
    /// This standard column of the end of a span.
    Where(&'static str),
    /// A column of the begin.
    Begin(Column),
    /// A column of the end.
    End(Column),
    /// From the first step of a chain to its last, ns.
    Total,
    /// When this step was taken.
    Step(usize),
    /// From this step to the next, ns.
    Between(usize),
    /// Whether it is complete, and what is missing.
    State,
}

/// The kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text tables: a timeval is the paper's two columns, `sleep.tv_sec` and `sleep.tv_usec`.
    Text,
    /// Outputs with columns for SQL: a timeval is one column.
    Sql,
}

/// One cell of every row of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name of the column. The checker ensures that it is unique in the frame.
    pub name: String,
    /// Index in [`Frame::fields`]. For the length of an interval, the index of its end.
    pub field: usize,
    /// Bytes from the start of the frame to the value.
    pub offset: u32,
    /// How to read the value.
    pub ty: ColumnType,
}

/// How to read a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the plain numbers say what they are")]
pub enum ColumnType {
    Int(Int),
    F32,
    F64,
    /// One byte, 0 or 1. A faulty writer may have left another byte.
    Bool,
    /// A duration, i64 nanoseconds.
    Duration,
    /// u64, a code address of the process.
    Addr,
    /// A point in time. A time that was not recorded (0) is an empty cell.
    Time(TimeType),
    /// The seconds of the timeval at the offset. Here and below, the offset is that of the whole
    /// timeval: if seconds and microseconds are both 0, both cells are empty.
    TimevalSeconds,
    /// The microseconds of the timeval at the offset.
    TimevalMicroseconds,
    /// A value of `schema.enums[index]`, stored as `repr`. A value without a name is shown as its
    /// number.
    Enum {
        index: usize,
        repr: Int,
    },
    /// UTF-8 text in `len` bytes, zero-padded.
    Text {
        len: u32,
    },
    /// `len` bytes.
    Bytes {
        len: u32,
    },
    /// The length of an interval: the value at the offset `end` minus the value at the column's
    /// offset.
    Length {
        of: Measure,
        end: u32,
    },
}

/// How a point in time is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeType {
    /// u64 ticks of the CPU's counter. If bit 63 is set, CLOCK_MONOTONIC in ns.
    Ticks,
    /// i64 nanoseconds of the clock.
    Ns(Clock),
    /// i64 seconds, i64 nanoseconds of the clock.
    Timespec(Clock),
    /// i64 seconds, i64 microseconds since the epoch.
    Timeval,
}

/// The types with a length between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the plain numbers say what they are")]
pub enum Measure {
    Int(Int),
    F32,
    F64,
    Duration,
    /// i64 nanoseconds. Empty if one of the two times was not recorded.
    Time(TimeType),
}

/// Returns the columns of `frame`: those of the fields in declared order, with one per array
/// element, and for SQL the length of each interval that has one. A length has the name of its
/// interval, with the prefix `ppt_` if a field has that name.
pub fn columns(schema: &Schema, frame: &Frame, style: Style) -> Vec<Column> {
    let mut columns = Vec::with_capacity(frame.fields.len());
    for (index, field) in frame.fields.iter().enumerate() {
        let size = field.ty.size(schema);
        for element in 0..field.count() {
            let name = cell_name(field, element);
            let offset = field.offset + element * size;
            let column = |name, ty| Column { name, field: index, offset, ty };
            if field.ty == FieldType::Timeval && style == Style::Text {
                columns.push(column(format!("{name}.tv_sec"), ColumnType::TimevalSeconds));
                columns.push(column(format!("{name}.tv_usec"), ColumnType::TimevalMicroseconds));
            } else {
                columns.push(column(name, column_type(schema, &field.ty)));
            }
        }
    }
    if style == Style::Sql {
        lengths(schema, frame, &mut columns);
    }
    columns
}

fn lengths(schema: &Schema, frame: &Frame, columns: &mut Vec<Column>) {
    let halves = |wanted: IntervalEnd| {
        let named = move |field: &'_ Field| match &field.interval {
            Some(interval) if interval.edge == wanted && field.array.is_none() => {
                Some(interval.name.clone())
            }
            _ => None,
        };
        let fields = frame.fields.iter().enumerate();
        fields.filter_map(move |(index, field)| Some((named(field)?, index, field)))
    };
    let starts: HashMap<_, _> =
        halves(IntervalEnd::Start).map(|(name, _, field)| (name, field)).collect();
    let mut taken: HashSet<String> =
        columns.iter().map(|column| column.name.to_ascii_lowercase()).collect();
    for (name, index, end) in halves(IntervalEnd::End) {
        // A schema may come from any capture, and so need not follow the rules for frame files.
        let Some(start) = starts.get(&name).filter(|start| start.ty == end.ty) else { continue };
        let Some(of) = measure(column_type(schema, &end.ty)) else { continue };
        let name = free(&name, &taken);
        taken.insert(name.to_ascii_lowercase());
        let ty = ColumnType::Length { of, end: end.offset };
        columns.push(Column { name, field: index, offset: start.offset, ty });
    }
}

/// Returns `name` with as many `ppt_` prefixes as needed to be not in `taken`, which holds names in
/// lower case. Fields keep their names; other columns get the prefix.
pub fn free(name: &str, taken: &HashSet<String>) -> String {
    let mut name = name.to_owned();
    while taken.contains(&name.to_ascii_lowercase()) {
        name.insert_str(0, "ppt_");
    }
    name
}

/// The meaning of the difference of two values, if any.
fn measure(ty: ColumnType) -> Option<Measure> {
    match ty {
        ColumnType::Int(int) => Some(Measure::Int(int)),
        ColumnType::F32 => Some(Measure::F32),
        ColumnType::F64 => Some(Measure::F64),
        ColumnType::Duration => Some(Measure::Duration),
        ColumnType::Time(time) => Some(Measure::Time(time)),
        ColumnType::Bool
        | ColumnType::Addr
        | ColumnType::Enum { .. }
        | ColumnType::Text { .. }
        | ColumnType::Bytes { .. }
        | ColumnType::TimevalSeconds
        | ColumnType::TimevalMicroseconds
        | ColumnType::Length { .. } => None,
    }
}

fn cell_name(field: &Field, element: u32) -> String {
    match field.array {
        Some(_) => format!("{}_{element}", field.name),
        None => field.name.clone(),
    }
}

fn column_type(schema: &Schema, ty: &FieldType) -> ColumnType {
    if let Some(time) = TimeType::for_field_type(ty) {
        return ColumnType::Time(time);
    }
    match (ty, ty.stored(schema)) {
        (FieldType::Duration, _) => ColumnType::Duration,
        (FieldType::Addr, _) => ColumnType::Addr,
        (_, Some(Stored::Int(int))) => ColumnType::Int(int),
        (_, Some(Stored::F32)) => ColumnType::F32,
        (_, Some(Stored::F64)) => ColumnType::F64,
        (_, Some(Stored::Bool)) => ColumnType::Bool,
        (_, Some(Stored::Enum(it))) => {
            let index = schema.enums.iter().position(|other| other.name == it.name);
            ColumnType::Enum { index: index.expect("just found"), repr: it.repr }
        }
        (_, Some(Stored::Text { len })) => ColumnType::Text { len },
        (_, Some(Stored::Bytes { len })) => ColumnType::Bytes { len },
        // An enum that is missing, which a checked schema excludes: such a field has no bytes.
        (_, None | Some(Stored::Timeval | Stored::Timespec)) => ColumnType::Bytes { len: 0 },
    }
}

impl TimeType {
    /// How `ty` stores a point in time, if it is one.
    pub fn for_field_type(ty: &FieldType) -> Option<TimeType> {
        match ty {
            FieldType::Timeval => Some(TimeType::Timeval),
            FieldType::Timespec { clock } => Some(TimeType::Timespec(*clock)),
            FieldType::Ns { clock } => Some(TimeType::Ns(*clock)),
            FieldType::Tsc => Some(TimeType::Ticks),
            _ => None,
        }
    }

    /// The clock of the time. `None` for the CPU's counter.
    #[inline]
    pub fn clock(self) -> Option<Clock> {
        match self {
            TimeType::Ticks => None,
            TimeType::Ns(clock) | TimeType::Timespec(clock) => Some(clock),
            TimeType::Timeval => Some(Clock::Realtime),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Schema {
        let text = r#"{"v":1,"buffer":"b","slots":16,"stride":64,"frames":[{"name":"f","kind":"plain","size":64,"fields":[{"name":"e","type":"enum","enum":"E","offset":56},{"name":"t","type":"timeval","array":2,"offset":8},{"name":"sleep","type":"timeval","offset":40},{"name":"pos","type":"u8","array":2,"offset":57},{"name":"name","type":"char","len":3,"offset":59}]}],"enums":[{"name":"E","type":"u8","values":[["A",0]]}]}"#;
        Schema::from_json(text.as_bytes()).unwrap()
    }

    fn shown(style: Style) -> Vec<(String, u32)> {
        let schema = frame();
        columns(&schema, &schema.frames[0], style).into_iter().map(|c| (c.name, c.offset)).collect()
    }

    #[test]
    fn names_and_offsets() {
        let text = [
            ("e", 56),
            ("t_0.tv_sec", 8),
            ("t_0.tv_usec", 8),
            ("t_1.tv_sec", 24),
            ("t_1.tv_usec", 24),
            ("sleep.tv_sec", 40),
            ("sleep.tv_usec", 40),
            ("pos_0", 57),
            ("pos_1", 58),
            ("name", 59),
        ];
        assert_eq!(shown(Style::Text), text.map(|(name, at)| (name.to_owned(), at)));
        let sql = [
            ("e", 56),
            ("t_0", 8),
            ("t_1", 24),
            ("sleep", 40),
            ("pos_0", 57),
            ("pos_1", 58),
            ("name", 59),
        ];
        assert_eq!(shown(Style::Sql), sql.map(|(name, at)| (name.to_owned(), at)));
    }

    #[test]
    fn types() {
        let schema = frame();
        let columns = columns(&schema, &schema.frames[0], Style::Sql);
        assert_eq!(columns[0].ty, ColumnType::Enum { index: 0, repr: Int::U8 });
        assert_eq!(columns[1].ty, ColumnType::Time(TimeType::Timeval));
        assert_eq!(columns[6].ty, ColumnType::Text { len: 3 });
    }

    /// The lengths after the fields of a frame file.
    #[cfg(feature = "parser")]
    fn lengths(fields: &str) -> Vec<(String, ColumnType)> {
        let text = format!("option time tsc; enum E {{ A }} frame f {{ {fields} }}");
        let schema = crate::compile(text.as_bytes(), "f.frame").unwrap().schema;
        let columns = columns(&schema, &schema.frames[0], Style::Sql);
        let lengths = columns.into_iter().skip(schema.frames[0].fields.len());
        lengths.map(|column| (column.name, column.ty)).collect()
    }

    #[test]
    #[cfg(feature = "parser")]
    fn intervals_have_a_length() {
        let of = |of, end| ColumnType::Length { of, end };
        let ticks = Measure::Time(TimeType::Ticks);
        assert_eq!(
            lengths("interval time run; interval u8 level; int after;"),
            [("run".to_owned(), of(ticks, 8)), ("level".to_owned(), of(Measure::Int(Int::U8), 29))]
        );
        assert_eq!(lengths("interval bool b; interval E e; time x_start, x_end;"), []);
    }

    #[test]
    #[cfg(feature = "parser")]
    fn a_field_keeps_its_name_from_the_length_of_an_interval() {
        let names = |fields| lengths(fields).into_iter().map(|length| length.0).collect::<Vec<_>>();
        assert_eq!(names("interval time run; int Run;"), ["ppt_run"]);
        assert_eq!(names("interval time a_0; int a[1];"), ["ppt_a_0"]);
        assert_eq!(names("interval time seqno;"), ["seqno"], "the standard column gives way");
    }
}
