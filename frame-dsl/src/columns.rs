//! The columns of a frame: the one place that decides their names and types, for every output.

use crate::schema::{Clock, Field, FieldType, Frame, Int, Schema};

/// Columns that every table may have; no field may be called so.
pub const STANDARD_COLUMNS: [&str; 12] = [
    "seqno", "ring", "tid", "pid", "frame", "buffer", "segment", "source", "host", "capture",
    "time_lo", "time_hi",
];

/// What the table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text tables: a timeval is the paper's two columns, `sleep.tv_sec` and `sleep.tv_usec`.
    Text,
    /// Everything that names columns in SQL: a timeval is one column.
    Sql,
}

/// One cell of every row of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, unique in the frame (the checker sees to that).
    pub name: String,
    /// Index in [`Frame::fields`].
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
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Bool,
    /// i64 nanoseconds, a length of time.
    Duration,
    /// i64 nanoseconds of `clock`; 0 is an empty cell.
    Ns {
        clock: Clock,
    },
    /// i64 seconds, i64 nanoseconds of `clock`, shown as one number of nanoseconds; 0 is an empty
    /// cell.
    Timespec {
        clock: Clock,
    },
    /// u64 ticks of the CPU's counter, or with bit 63 CLOCK_MONOTONIC in ns; shown as nanoseconds
    /// since the epoch; 0 is an empty cell.
    Tick,
    /// The seconds of the timeval at the offset. The offset is that of the whole timeval, here and
    /// below: if seconds and microseconds are both 0, both cells are empty.
    TimevalSeconds,
    /// The microseconds of the timeval at the offset.
    TimevalMicroseconds,
    /// i64 seconds, i64 microseconds since the epoch in one column; 0 is an empty cell.
    Timeval,
    /// A value of `schema.enums[index]`, stored as `repr`; unknown values are shown as the number.
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
}

/// The columns of `frame` in declared order, one per cell: an array has one per element.
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
    columns
}

fn cell_name(field: &Field, element: u32) -> String {
    match field.array {
        Some(_) => format!("{}_{element}", field.name),
        None => field.name.clone(),
    }
}

fn column_type(schema: &Schema, ty: &FieldType) -> ColumnType {
    match ty {
        FieldType::I8 => ColumnType::I8,
        FieldType::I16 => ColumnType::I16,
        FieldType::I32 => ColumnType::I32,
        FieldType::I64 => ColumnType::I64,
        FieldType::U8 => ColumnType::U8,
        FieldType::U16 => ColumnType::U16,
        FieldType::U32 => ColumnType::U32,
        FieldType::U64 => ColumnType::U64,
        FieldType::F32 => ColumnType::F32,
        FieldType::F64 => ColumnType::F64,
        FieldType::Bool => ColumnType::Bool,
        FieldType::Duration => ColumnType::Duration,
        FieldType::Timeval => ColumnType::Timeval,
        FieldType::Timespec { clock } => ColumnType::Timespec { clock: *clock },
        FieldType::Ns { clock } => ColumnType::Ns { clock: *clock },
        FieldType::Tsc => ColumnType::Tick,
        FieldType::Enum { name } => match schema.enums.iter().position(|it| it.name == *name) {
            Some(index) => ColumnType::Enum { index, repr: schema.enums[index].repr },
            // Not in a checked schema: such a field has no bytes.
            None => ColumnType::Bytes { len: 0 },
        },
        FieldType::Char { len } => ColumnType::Text { len: *len },
        FieldType::Bytes { len } => ColumnType::Bytes { len: *len },
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
        assert_eq!(columns[1].ty, ColumnType::Timeval);
        assert_eq!(columns[6].ty, ColumnType::Text { len: 3 });
    }
}
