//! JSON for scripts: one document, with each element of the outermost list on its own line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// The JSON text of `value`. It ends in a line feed.
pub(crate) fn lines(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let written =
        value.serialize(&mut Serializer::with_formatter(&mut text, LineBreaker::default()));
    // This could fail only for maps whose keys are not strings, or for a writer that fails.
    written.expect("structs have a JSON text");
    text.push(b'\n');
    ppt_text::escaped_json(&String::from_utf8(text).expect("JSON is UTF-8"))
}

/// Puts line feeds into the outermost list.
#[derive(Default)]
struct LineBreaker {
    depth: usize,
}

impl Formatter for LineBreaker {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(if self.depth == 0 { b"\n]" } else { b"]" })
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(match (self.depth, first) {
            (1, true) => b"\n",
            (1, false) => b",\n",
            (_, true) => b"",
            (_, false) => b",",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_has_a_line() {
        assert_eq!(lines(&[vec![1, 2], vec![]]), "[\n[1,2],\n[]\n]\n");
        assert_eq!(lines(&[0u8; 0]), "[\n]\n");
    }
}
