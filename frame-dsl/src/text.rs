//! Decodes bytes to text, and finds what the grammar skips: documentation comments and unclosed
//! comments.

use crate::diagnostic::{DiagnosticSink, SourceRange};
use crate::mistake::SyntaxMistake;

/// A frame file, decoded.
pub(crate) struct DecodedText<'a> {
    pub source: &'a str,
    /// The spans of all comments.
    comments: Vec<SourceRange>,
    /// The spans of `///` lines that are alone on their line.
    docs: Vec<SourceRange>,
}

impl<'a> DecodedText<'a> {
    /// Finds the comments. An unclosed one is reported.
    pub fn new(source: &'a str, sink: &mut DiagnosticSink) -> DecodedText<'a> {
        let mut text = DecodedText { source, comments: Vec::new(), docs: Vec::new() };
        let bytes = source.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            at = match &bytes[at..] {
                [b'/', b'/', ..] => text.line_comment(at),
                [b'/', b'*', ..] => text.block_comment(at, sink),
                [b'"', ..] => after_string(source, at),
                _ => at + 1,
            };
        }
        text
    }

    /// The spans of the comments, in order; none overlaps another.
    pub fn comments(&self) -> &[SourceRange] {
        &self.comments
    }

    fn line_comment(&mut self, at: usize) -> usize {
        let end = find(self.source, at, "\n").unwrap_or(self.source.len());
        let comment = &self.source[at..end];
        if comment.starts_with("///") && !comment.starts_with("////") && self.begins_line(at) {
            self.docs.push(at..end);
        }
        self.comments.push(at..end);
        end
    }

    fn block_comment(&mut self, at: usize, sink: &mut DiagnosticSink) -> usize {
        let end = match find(self.source, at + 2, "*/") {
            Some(close) => close + 2,
            None => {
                sink.report(at..at + 2, SyntaxMistake::OpenComment);
                self.source.len()
            }
        };
        self.comments.push(at..end);
        end
    }

    fn begins_line(&self, at: usize) -> bool {
        let before = self.source[..at].bytes().rev();
        before.take_while(|&byte| byte != b'\n').all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
    }

    /// The `///` lines directly before `at`, without their slashes, joined by newlines.
    pub fn doc_before(&self, at: usize) -> String {
        let mut next = at;
        let mut lines = Vec::new();
        let before = self.docs.partition_point(|doc| doc.end <= at);
        for doc in self.docs[..before].iter().rev() {
            if !self.source[doc.end..next].bytes().all(|byte| byte.is_ascii_whitespace()) {
                break;
            }
            let line = self.source[doc.start + "///".len()..doc.end].trim_end();
            lines.push(line.strip_prefix(' ').unwrap_or(line));
            next = doc.start;
        }
        lines.reverse();
        lines.join("\n")
    }

    /// The end of the last token before `at` that is neither white space nor a comment.
    pub fn end_before(&self, at: usize) -> usize {
        let mut end = at;
        let mut comments = self.comments.partition_point(|comment| comment.end <= at);
        loop {
            end = self.source[..end].trim_end_matches([' ', '\t', '\r', '\n']).len();
            match comments.checked_sub(1).map(|last| &self.comments[last]) {
                // A line comment's trailing spaces have just been cut off with the others.
                Some(comment) if comment.end >= end && comment.start < end => {
                    end = comment.start;
                    comments -= 1;
                }
                _ => return end,
            }
        }
    }
}

/// The end of the string that begins at `at`, or of its quote if the string is not closed on its
/// line.
fn after_string(source: &str, at: usize) -> usize {
    let inside = source[at + 1..].find(['"', '\n']);
    match inside.map(|length| at + 1 + length) {
        Some(end) if source.as_bytes()[end] == b'"' => end + 1,
        _ => at + 1,
    }
}

fn find(source: &str, from: usize, what: &str) -> Option<usize> {
    source.get(from..)?.find(what).map(|found| from + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> DecodedText<'_> {
        DecodedText::new(source, &mut DiagnosticSink::default())
    }

    #[test]
    fn docs_stand_on_lines_of_their_own() {
        let source = "int a; /// not this\r\n  /// one\r\n  ///\r\n  ///  two\r\n\r\n  frame";
        assert_eq!(text(source).doc_before(source.find("frame").unwrap()), "one\n\n two");
        let source = "/// one\n// between\nframe";
        assert_eq!(text(source).doc_before(source.len() - 5), "");
        let source = "/* \n/// inside */\n//// ruler\n\"/// text\nframe";
        assert_eq!(text(source).doc_before(source.len() - 5), "");
    }

    #[test]
    fn the_end_before() {
        for source in ["int x // one  \n /* two */\n ;", "int x;", "int x /* // */ ;"] {
            assert_eq!(text(source).end_before(source.len() - 1), 5, "{source}");
        }
        assert_eq!(text(" // only").end_before(8), 0);
    }

    #[test]
    fn open_comments_are_reported() {
        let mut sink = DiagnosticSink::default();
        DecodedText::new("a /* b \"*", &mut sink);
        assert_eq!(sink.finish().len(), 1);
    }
}
