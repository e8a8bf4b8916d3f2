//! The drawing of a layout for people: `pptc --print layout`.

use std::fmt::{self, Display, Write as _};

use crate::layout::Layout;
use crate::schema::{Field, FieldType, Frame, Schema};

/// One line of the drawing.
struct Run {
    offset: u32,
    bytes: u32,
    what: String,
}

impl Layout {
    /// Offset, size and content of every run of bytes, for the frame and schema it was made of.
    pub fn draw(&self, schema: &Schema, frame: &Frame) -> String {
        let padding: u32 = self.padding.iter().map(|run| run.bytes).sum();
        let mut text = format!(
            "frame {}: {} bytes, {padding} of them padding, {} saved against the declared order\n",
            frame.name, self.size, self.saved
        );
        text.push_str("  offset   size  field\n");
        for Run { offset, bytes, what } in self.runs(schema, frame) {
            writeln!(text, "  {offset:>6}  {bytes:>5}  {what}")
                .expect("a String takes every write");
        }
        text
    }

    fn runs(&self, schema: &Schema, frame: &Frame) -> Vec<Run> {
        let mut runs = vec![Run { offset: 0, bytes: 8, what: "(sequence number)".to_owned() }];
        if schema.multi() {
            runs.push(Run { offset: 8, bytes: 2, what: "(frame id)".to_owned() });
        }
        runs.extend(self.placed.iter().map(|placed| Run {
            offset: placed.offset,
            bytes: placed.bytes,
            what: frame.fields.get(placed.index).map(describe).unwrap_or_default(),
        }));
        runs.extend(self.padding.iter().map(|padding| Run {
            offset: padding.offset,
            bytes: padding.bytes,
            what: "(padding)".to_owned(),
        }));
        runs.sort_by_key(|run| run.offset);
        runs
    }
}

fn describe(field: &Field) -> String {
    let mut text = format!("{}: {}", field.name, field.ty);
    if let Some(count) = field.array {
        write!(text, "[{count}]").expect("a String takes every write");
    }
    if field.at {
        text.push_str(" @at");
    }
    text
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

    #[test]
    fn drawn() {
        let text = r#"{"v":1,"buffer":"b","slots":16,"stride":32,"frames":[{"name":"f","kind":"plain","size":32,"fields":[{"name":"flag","type":"bool","offset":10},{"name":"at","type":"ns","clock":"monotonic","offset":16,"at":true},{"name":"pos","type":"f32","array":2,"offset":24}]},{"name":"g","kind":"plain","size":16,"fields":[{"name":"x","type":"i32","offset":12}]}]}"#;
        let schema = Schema::from_json(text.as_bytes()).unwrap();
        let frame = &schema.frames[0];
        assert_eq!(
            Layout::of(&schema, frame).draw(&schema, frame),
            "\
frame f: 32 bytes, 5 of them padding, 0 saved against the declared order
  offset   size  field
       0      8  (sequence number)
       8      2  (frame id)
      10      1  flag: bool
      11      5  (padding)
      16      8  at: ns monotonic @at
      24      8  pos: f32[2]
"
        );
    }
}
