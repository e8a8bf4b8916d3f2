//! A file being written: lines, blocks and single blank lines.

/// Text of one generated file.
pub(crate) struct GeneratedText {
    text: String,
    indent: usize,
}

impl GeneratedText {
    pub(crate) fn new() -> Self {
        Self { text: String::new(), indent: 0 }
    }

    /// Writes an indented line.
    pub(crate) fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n(' ', self.indent));
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes indented lines.
    pub(crate) fn lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        for line in lines {
            self.line(line);
        }
    }

    /// Writes a blank line, unless the text ends in one.
    pub(crate) fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Writes a text of several lines without indenting it.
    pub(crate) fn block(&mut self, block: &str) {
        self.blank();
        self.text.push_str(block.trim_end());
        self.text.push('\n');
    }

    /// Writes a line, and indents the lines after it by four more spaces, until [`GeneratedText::close`].
    pub(crate) fn open(&mut self, line: &str) {
        self.line(line);
        self.indent += 4;
    }

    /// Indents the lines after one that ended a block, and begins another.
    pub(crate) fn open_again(&mut self) {
        self.indent += 4;
    }

    /// Ends the block that [`GeneratedText::open`] began, with this line.
    pub(crate) fn close(&mut self, line: &str) {
        self.indent -= 4;
        self.line(line);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}
