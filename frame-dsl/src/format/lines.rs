//! The lines of a formatted file, with the comments at their ends aligned.

/// Width up to which a line is not broken, in characters.
pub(super) const WIDTH: usize = 100;
/// Lines whose widths differ by more do not align their comments.
const UNLIKE: usize = 24;
const BLANK: [char; 3] = [' ', '\t', '\r'];

/// Lines under construction; the last one is unfinished.
#[derive(Default)]
pub(super) struct FormattedLines {
    lines: Vec<FormattedLine>,
    /// Whether a space goes before the next token.
    space: bool,
    /// Characters of the unfinished line.
    column: usize,
}

#[derive(Default)]
struct FormattedLine {
    empty_before: bool,
    indent: usize,
    /// The line without its indentation; a comment of several lines counts as one line.
    text: String,
    /// The comment at its end so far.
    trailing: Option<String>,
}

/// Width of a text in characters.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

impl FormattedLines {
    pub fn begin(&mut self, indent: usize, empty_before: bool) {
        self.lines.push(FormattedLine { empty_before, indent, ..FormattedLine::default() });
        self.space = false;
        self.column = indent;
    }

    pub fn space(&mut self) {
        self.space = true;
    }

    pub fn code(&mut self, text: &str) {
        let space = std::mem::take(&mut self.space);
        self.advance(space, text);
        self.last().push(space, text);
    }

    /// Adds a comment. If all lines of a comment begin with `*`, the further lines are aligned to
    /// its own `*`.
    pub fn comment(&mut self, text: &str) {
        let column = self.column() + usize::from(self.space);
        let mut lines = text.split('\n').map(|line| line.trim_end_matches(BLANK));
        let mut text = lines.next().unwrap_or_default().to_owned();
        let stars = lines.clone().all(|line| line.trim_start_matches([' ', '\t']).starts_with('*'));
        for line in lines {
            text.push('\n');
            if stars {
                text.extend(std::iter::repeat_n(' ', column + 1));
                text.push_str(line.trim_start_matches([' ', '\t']));
            } else {
                text.push_str(line);
            }
        }
        if self.last().text.is_empty() {
            return self.code(&text);
        }
        self.space = false;
        self.advance(true, &text);
        let line = self.last();
        line.settle();
        line.trailing = Some(text);
    }

    /// Characters of the unfinished line.
    pub fn column(&self) -> usize {
        self.column
    }

    pub fn finish(mut self) -> String {
        let mut from = 0;
        while from < self.lines.len() {
            let indent = self.lines[from].indent;
            let run = &mut self.lines[from..];
            let alike = |(number, line): &(usize, &FormattedLine)| {
                line.indent == indent && line.is_aligned() && (*number == 0 || !line.empty_before)
            };
            let length = run.iter().enumerate().take_while(|entry| alike(entry)).count();
            align(&mut run[..length]);
            from += length.max(1);
        }
        let mut text = String::new();
        for line in &mut self.lines {
            line.settle();
            if line.empty_before {
                text.push('\n');
            }
            text.extend(std::iter::repeat_n(' ', line.indent));
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    fn advance(&mut self, space: bool, text: &str) {
        self.column = match text.rsplit_once('\n') {
            Some((_, last)) => width(last),
            None => self.column + usize::from(space) + width(text),
        };
    }

    fn last(&mut self) -> &mut FormattedLine {
        if self.lines.is_empty() {
            self.lines.push(FormattedLine::default());
        }
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }
}

/// Pads the lines of a run to the longest, unless they differ too much.
fn align(run: &mut [FormattedLine]) {
    let widths = || run.iter().map(|line| width(&line.text));
    let (Some(least), Some(most)) = (widths().min(), widths().max()) else { return };
    if most - least <= UNLIKE {
        for line in run {
            let missing = most - width(&line.text);
            line.text.extend(std::iter::repeat_n(' ', missing));
        }
    }
}

impl FormattedLine {
    fn push(&mut self, space: bool, text: &str) {
        self.settle();
        if space {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Treats the comment as a part of the line, like any other word.
    fn settle(&mut self) {
        if let Some(comment) = self.trailing.take() {
            self.text.push(' ');
            self.text.push_str(&comment);
        }
    }

    /// Whether the comment of this line is aligned: lines with braces are not part of a list.
    fn is_aligned(&self) -> bool {
        let brace = self.text.ends_with('{') || self.text.starts_with('}');
        let single = |text: &str| !text.contains('\n');
        !brace && single(&self.text) && self.trailing.as_deref().is_some_and(single)
    }
}
