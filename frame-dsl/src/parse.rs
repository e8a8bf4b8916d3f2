//! Parses text into a syntax tree, using the grammar of `frame.pest`. Only the files of this module
//! name its rules.

mod expected;
mod faults;
mod grammar;
mod nodes;

use pest::Parser as _;
use pest::iterators::Pair;

use self::grammar::{FrameGrammar, Rule};
use self::nodes::{
    attribute, buffer, declarator, edge, metric, setting, span, value, word, words_of_rule,
};
use crate::ast::{Enum, FieldDecl, FrameDecl, FrameFile, SourceWord};
use crate::diagnostic::DiagnosticSink;
use crate::mistake::{NameKind, SyntaxMistake};
use crate::text::DecodedText;

/// The tree of everything that could be parsed; the rest is reported.
pub(crate) fn parse(text: &DecodedText<'_>, sink: &mut DiagnosticSink) -> FrameFile {
    read(text, Rule::file, sink)
}

/// The same for a file with edge lines only.
pub(crate) fn parse_edges(text: &DecodedText<'_>, sink: &mut DiagnosticSink) -> FrameFile {
    read(text, Rule::edges, sink)
}

fn read(text: &DecodedText<'_>, whole: Rule, sink: &mut DiagnosticSink) -> FrameFile {
    let file = FrameFile { end: text.source.len(), ..FrameFile::default() };
    let mut reader = TreeReader { text, sink, whole, file };
    match FrameGrammar::parse(whole, text.source) {
        Ok(pairs) => pairs.flat_map(Pair::into_inner).for_each(|pair| reader.item(pair)),
        // `bad_item` takes everything that the other rules leave. If it does not, that is a normal
        // syntax error, not a panic.
        Err(error) => reader.expected(0..text.source.len(), whole, &error),
    }
    reader.file
}

struct TreeReader<'a> {
    text: &'a DecodedText<'a>,
    sink: &'a mut DiagnosticSink,
    /// The kind of file.
    whole: Rule,
    file: FrameFile,
}

impl TreeReader<'_> {
    fn item(&mut self, pair: Pair<'_, Rule>) {
        match pair.as_rule() {
            Rule::emit => self.file.emits.extend(words_of_rule(pair, Rule::language)),
            Rule::buffer => self.file.buffers.extend(buffer(pair)),
            Rule::setting => self.file.settings.extend(setting(pair)),
            Rule::enumeration => {
                let it = self.enumeration(pair);
                self.file.enums.extend(it);
            }
            Rule::frame => {
                let frame = self.frame(pair);
                self.file.frames.extend(frame);
            }
            Rule::counter | Rule::histogram => {
                let doc = self.text.doc_before(pair.as_span().start());
                self.file.metrics.extend(metric(pair, doc));
            }
            Rule::edge => self.file.edges.extend(edge(pair)),
            Rule::bad_item | Rule::bad_edge => self.bad_item(&pair),
            _ => {}
        }
    }

    fn enumeration(&mut self, pair: Pair<'_, Rule>) -> Option<Enum> {
        let doc = self.text.doc_before(pair.as_span().start());
        let mut name = None;
        let mut integer = None;
        let mut brace = 0..0;
        let mut values = Vec::new();
        let (mut damaged, mut closed) = (false, false);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::enum_head => {
                    for token in part.into_inner() {
                        match token.as_rule() {
                            Rule::name => name = Some(word(&token)),
                            Rule::integer => integer = Some(word(&token)),
                            Rule::open_brace => brace = span(&token),
                            _ => {}
                        }
                    }
                }
                Rule::value => values.extend(value(part)),
                Rule::bad_value => {
                    damaged = true;
                    self.bad_piece(span(&part), Rule::value);
                }
                Rule::close_brace => closed = true,
                _ => {}
            }
        }
        let name = name?;
        if !closed && !damaged {
            let mistake =
                SyntaxMistake::OpenBrace { kind: NameKind::Enum, name: name.text.clone() };
            self.sink.report(brace, mistake);
        }
        self.file.damaged |= damaged || !closed;
        Some(Enum { name, integer, values, doc, damaged })
    }

    fn frame(&mut self, pair: Pair<'_, Rule>) -> Option<FrameDecl> {
        let doc = self.text.doc_before(pair.as_span().start());
        let mut name = None;
        let mut attributes = Vec::new();
        let mut brace = 0..0;
        let mut fields = Vec::new();
        let (mut damaged, mut closed, mut last_is_bad) = (false, false, false);
        for part in pair.into_inner() {
            last_is_bad = part.as_rule() == Rule::bad_line;
            match part.as_rule() {
                Rule::frame_head => {
                    for token in part.into_inner() {
                        match token.as_rule() {
                            Rule::name => name = Some(word(&token)),
                            Rule::attribute => attributes.extend(attribute(token)),
                            Rule::open_brace => brace = span(&token),
                            _ => {}
                        }
                    }
                }
                Rule::line => self.line(part, &mut fields),
                Rule::bad_line => {
                    damaged = true;
                    self.bad_piece(span(&part), Rule::line);
                }
                Rule::close_brace => closed = true,
                _ => {}
            }
        }
        let name = name?;
        // The last line, which could not be parsed, has already reported what was expected there.
        if !closed && !last_is_bad {
            let mistake =
                SyntaxMistake::OpenBrace { kind: NameKind::Frame, name: name.text.clone() };
            self.sink.report(brace, mistake);
        }
        self.file.damaged |= damaged || !closed;
        Some(FrameDecl { name, attributes, fields, doc, damaged: damaged || !closed })
    }

    /// `interval time a @at, b;`: a field per declarator.
    fn line(&mut self, pair: Pair<'_, Rule>, fields: &mut Vec<FieldDecl>) {
        // The doc lines above a line belong to its first field.
        let mut line_doc = self.text.doc_before(pair.as_span().start());
        let mut interval = None;
        let mut ty = SourceWord::default();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::interval_word => interval = Some(span(&part)),
                Rule::type_word => ty = word(&part),
                Rule::declarator => {
                    let own = self.text.doc_before(part.as_span().start());
                    let line_doc = std::mem::take(&mut line_doc);
                    let doc = if own.is_empty() { line_doc } else { own };
                    fields.extend(declarator(part, interval.clone(), ty.clone(), doc));
                }
                _ => {}
            }
        }
    }
}
