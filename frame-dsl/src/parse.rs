//! Parses text into a syntax tree, using the grammar of `frame.pest`. Only this file names its
//! rules.

use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use pest_derive::Parser;
use ppt_text::escaped;

use crate::ast::{
    Argument, Attribute, BufferDecl, EdgeDecl, EdgeEnd, Enum, EnumValueDecl, FieldDecl, FrameDecl,
    FrameFile, MetricDeclaration, Setting, SourceWord,
};
use crate::diagnostic::{DiagnosticSink, SourceRange};
use crate::foreign_types;
use crate::mistake::{Mistake, NameKind};
use crate::reserved::RESERVED_FOR_LATER;
use crate::schema::MAX_NAME_BYTES;
use crate::text::DecodedText;
use crate::type_words::is_type_word;

#[derive(Parser)]
#[grammar = "frame.pest"]
struct FrameGrammar;

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

/// The first words of declarations.
const DECLARATIONS: [&str; 8] =
    ["frame", "enum", "emit", "buffer", "option", "counter", "histogram", "edge"];

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
            let mistake = Mistake::OpenBrace { kind: NameKind::Enum, name: name.text.clone() };
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
            let mistake = Mistake::OpenBrace { kind: NameKind::Frame, name: name.text.clone() };
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

    /// Text between declarations that matches none of them.
    fn bad_item(&mut self, pair: &Pair<'_, Rule>) {
        let place = span(pair);
        let text = pair.as_str();
        let first = first_word(text);
        let was_damaged = std::mem::replace(&mut self.file.damaged, true);
        let meant = match first {
            "edge" => Rule::edge,
            _ if self.whole == Rule::edges => return self.not_an_edge(place),
            "emit" => Rule::emit,
            "buffer" => Rule::buffer,
            "option" => Rule::setting,
            "enum" => {
                let name = first_word(text["enum".len()..].trim_start());
                self.file.lost.push(name.chars().take(MAX_NAME_BYTES).collect());
                Rule::enum_head
            }
            "frame" => Rule::frame_head,
            "counter" => Rule::counter,
            "histogram" => Rule::histogram,
            _ if text.starts_with('}') => {
                // After damage, this is the rest of the damaged part.
                if !was_damaged {
                    self.sink.report(place.start..place.start + 1, Mistake::StrayBrace);
                }
                return;
            }
            _ => return self.not_a_declaration(place, first),
        };
        self.bad_piece(place, meant);
    }

    fn not_an_edge(&mut self, place: SourceRange) {
        let found = self.found(place.start);
        let width = self.token_len(place.start);
        self.sink.report(place.start..place.start + width, Mistake::NotAnEdge { found });
    }

    fn not_a_declaration(&mut self, place: SourceRange, first: &str) {
        let width = if first.is_empty() { self.char_len(place.start) } else { first.len() };
        let place = place.start..place.start + width;
        let found = self.found(place.start);
        let suggestion = match first {
            "span" => Some("frame NAME @span { … }"),
            "chain" => Some("frame NAME @chain(first, second) { … }"),
            "point" => Some("frame NAME @point { … }"),
            word if RESERVED_FOR_LATER.contains(&word) => {
                let word = word.to_owned();
                return self.sink.report(place, Mistake::LaterDeclaration { word });
            }
            "struct" | "record" | "event" | "union" => Some("frame"),
            "gauge" => Some("counter"),
            _ => ppt_text::nearest(first, DECLARATIONS),
        };
        let suggestion = suggestion.map(str::to_owned);
        self.sink.report(place, Mistake::NotADeclaration { found, suggestion });
    }

    /// Parses text again with the intended rule, and reports what that rule expects.
    fn bad_piece(&mut self, place: SourceRange, meant: Rule) {
        if self.sink.is_full() {
            return self.sink.pass_over();
        }
        match FrameGrammar::parse(meant, &self.text.source[place.clone()]) {
            Err(error) => self.expected(place, meant, &error),
            // The rule matches the text and only its continuation is wrong, such as an additional
            // brace.
            Ok(pairs) => {
                let end = pairs.last().map_or(0, |pair| pair.as_span().end());
                let at = place.start + end;
                let found = self.found(at);
                let mistake = Mistake::NotADeclaration { found, suggestion: None };
                self.sink.report(at..at + self.char_len(at), mistake);
            }
        }
    }

    fn expected(&mut self, place: SourceRange, meant: Rule, error: &pest::error::Error<Rule>) {
        let at = match error.location {
            InputLocation::Pos(at) | InputLocation::Span((at, _)) => place.start + at,
        };
        let mut rules = match &error.variant {
            ErrorVariant::ParsingError { positives, .. } => positives.clone(),
            ErrorVariant::CustomError { .. } => Vec::new(),
        };
        rules.sort_unstable_by_key(|rule| rank(*rule));
        rules.dedup();
        let words: Vec<&str> = rules.iter().filter_map(|rule| in_words(*rule)).collect();
        let expected = one_of(&words);
        let found = self.found(at);
        let help = self.advice(&place, meant, at);
        let first = words.first().copied().unwrap_or("something else");
        // A missing word is shown after the last word, not at the start of the next one.
        let end = self.text.end_before(at);
        let (span, label) = if first.starts_with('`') && end > place.start && end < at {
            (end - self.last_char_len(end)..end, format!("{first} after this"))
        } else {
            (at..at + self.token_len(at), first.to_owned())
        };
        self.sink.report(span, Mistake::Expected { expected, label, found, help });
    }

    /// Advice on common mistakes.
    fn advice(&self, place: &SourceRange, meant: Rule, at: usize) -> Option<String> {
        let source = self.text.source;
        let first = first_word(&source[place.clone()]);
        if let Some(c) = source[at..].chars().next()
            && !c.is_ascii()
        {
            return Some("outside comments and strings only ASCII is used".to_owned());
        }
        if meant == Rule::edge && first_word(source[at..].trim_start()) == "within" {
            return Some("`within …` goes before the policy".to_owned());
        }
        if meant != Rule::line {
            return None;
        }
        if first == "edge" {
            return Some("edges are declared outside of frames".to_owned());
        }
        if RESERVED_FOR_LATER.contains(&first) {
            return Some(format!(
                "`{first}` is reserved for a later version of the frame language"
            ));
        }
        if let Some(ours) = foreign_types::from_elsewhere(first) {
            return Some(format!("`{first}` is not a type here; did you mean `{ours}`?"));
        }
        let words: Vec<&str> = source[place.start..at].split_whitespace().collect();
        if let ["interval", name] = words[..]
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Some(if is_type_word(name) {
                format!("an interval has a name, too: `interval {name} handle;`")
            } else {
                format!("an interval has a type, too: `interval time {name};`")
            });
        }
        if source[..at].ends_with(first) && source[at..].starts_with('[') {
            return Some(format!("the length goes after the name: `{first} name[16]`"));
        }
        if source[place.start..at].contains(']') && source[at..].starts_with('[') {
            return Some("arrays have one dimension".to_owned());
        }
        None
    }

    /// A description of the word or character at `at`.
    fn found(&self, at: usize) -> String {
        let rest = &self.text.source[at..];
        if rest.starts_with(['\r', '\n']) {
            return "the end of the line".to_owned();
        }
        let rest = rest.trim_start();
        match (first_word(rest), rest.chars().next()) {
            (_, None) => "the end of the file".to_owned(),
            ("", Some(c)) => format!("`{}`", escaped(&c.to_string())),
            (word, _) => format!("`{}`", word.get(..64).unwrap_or(word)),
        }
    }

    fn token_len(&self, at: usize) -> usize {
        match first_word(&self.text.source[at..]).len() {
            0 if self.text.source[at..].starts_with(['\r', '\n']) => 0,
            0 => self.char_len(at),
            length => length,
        }
    }

    fn char_len(&self, at: usize) -> usize {
        self.text.source[at..].chars().next().map_or(0, char::len_utf8)
    }

    fn last_char_len(&self, end: usize) -> usize {
        self.text.source[..end].chars().next_back().map_or(0, char::len_utf8)
    }
}

fn buffer(pair: Pair<'_, Rule>) -> Option<BufferDecl> {
    let place = span(&pair);
    let (mut name, mut slots) = (None, None);
    for token in pair.into_inner() {
        match token.as_rule() {
            Rule::name => name = Some(word(&token)),
            Rule::number => slots = Some(word(&token)),
            _ => {}
        }
    }
    Some(BufferDecl { name: name?, slots, span: place })
}

fn setting(pair: Pair<'_, Rule>) -> Option<Setting> {
    let place = span(&pair);
    let mut key = None;
    let mut arguments = Vec::new();
    for token in pair.into_inner() {
        match token.as_rule() {
            Rule::key => key = Some(word(&token)),
            Rule::argument => arguments.extend(argument(token)),
            _ => {}
        }
    }
    Some(Setting { key: key?, arguments, span: place })
}

fn value(pair: Pair<'_, Rule>) -> Option<EnumValueDecl> {
    let (mut name, mut number) = (None, None);
    for token in pair.into_inner() {
        match token.as_rule() {
            Rule::name => name = Some(word(&token)),
            Rule::number => number = Some(word(&token)),
            _ => {}
        }
    }
    Some(EnumValueDecl { name: name?, number })
}

fn declarator(
    pair: Pair<'_, Rule>,
    interval: Option<SourceRange>,
    ty: SourceWord,
    doc: String,
) -> Option<FieldDecl> {
    let (mut name, mut length) = (None, None);
    let mut attributes = Vec::new();
    for token in pair.into_inner() {
        match token.as_rule() {
            Rule::name => name = Some(word(&token)),
            Rule::length => length = words_of_rule(token, Rule::number).pop(),
            Rule::attribute => attributes.extend(attribute(token)),
            _ => {}
        }
    }
    Some(FieldDecl { interval, ty, name: name?, length, attributes, doc })
}

fn metric(pair: Pair<'_, Rule>, doc: String) -> Option<MetricDeclaration> {
    let is_histogram = pair.as_rule() == Rule::histogram;
    let (mut name, mut ty, mut range) = (None, None, None);
    let mut attributes = Vec::new();
    for token in pair.into_inner() {
        match token.as_rule() {
            Rule::name => name = Some(word(&token)),
            Rule::cell_type => ty = Some(word(&token)),
            Rule::range => {
                // The rule's span may end with white space.
                let place = token.as_span();
                let end = place.start() + place.as_str().trim_end().len();
                let place = place.start()..end;
                range = Some((words_of_rule(token, Rule::number), place));
            }
            Rule::attribute => attributes.extend(attribute(token)),
            _ => {}
        }
    }
    Some(MetricDeclaration { is_histogram, name: name?, ty, range, attributes, doc })
}

fn edge(pair: Pair<'_, Rule>) -> Option<EdgeDecl> {
    let start = pair.as_span().start();
    let (mut ends, mut within, mut policy) = (Vec::new(), None, None);
    let mut last = start;
    for token in pair.into_inner() {
        if token.as_rule() != Rule::semicolon {
            last = token.as_span().end();
        }
        match token.as_rule() {
            Rule::end => ends.extend(end(token)),
            Rule::duration => within = Some(word(&token)),
            Rule::policy => policy = Some(word(&token)),
            _ => {}
        }
    }
    let mut ends = ends.into_iter();
    Some(EdgeDecl { from: ends.next()?, to: ends.next()?, within, policy, span: start..last })
}

fn end(pair: Pair<'_, Rule>) -> Option<EdgeEnd> {
    let place = span(&pair);
    let mut names = words_of_rule(pair, Rule::name);
    let frame = names.pop()?;
    Some(EdgeEnd { buffer: names.pop(), frame, span: place })
}

fn attribute(pair: Pair<'_, Rule>) -> Option<Attribute> {
    let place = pair.as_span();
    // The rule's span may end with white space that it skipped in search of a bracket.
    let place = place.start()..place.start() + place.as_str().trim_end().len();
    let mut name = None;
    let mut arguments = Vec::new();
    for token in pair.into_inner() {
        match token.as_rule() {
            Rule::attribute_name => name = Some(word(&token)),
            Rule::argument => arguments.extend(argument(token)),
            _ => {}
        }
    }
    Some(Attribute { name: name?, arguments, span: place })
}

fn argument(pair: Pair<'_, Rule>) -> Option<Argument> {
    let place = span(&pair);
    let inner = pair.into_inner().next()?;
    let quoted = inner.as_rule() == Rule::string;
    let text = if quoted { inside(inner)? } else { word(&inner).text };
    Some(Argument { word: SourceWord { text, span: place }, quoted })
}

/// The direct children of one rule, as words.
fn words_of_rule(pair: Pair<'_, Rule>, rule: Rule) -> Vec<SourceWord> {
    pair.into_inner().filter(|token| token.as_rule() == rule).map(|token| word(&token)).collect()
}

/// A word, cut if it is too long: the type of a line is copied for each of its fields, and a
/// hostile file has long words and many fields. Its span still shows its full length.
fn word(pair: &Pair<'_, Rule>) -> SourceWord {
    let text = pair.as_str();
    // All words are ASCII: every byte is a character.
    let text = text.get(..=MAX_NAME_BYTES).unwrap_or(text);
    SourceWord { text: text.to_owned(), span: span(pair) }
}

/// The text of a string, of any length.
fn inside(pair: Pair<'_, Rule>) -> Option<String> {
    let inside = pair.into_inner().find(|token| token.as_rule() == Rule::inside)?;
    Some(inside.as_str().to_owned())
}

fn span(pair: &Pair<'_, Rule>) -> SourceRange {
    pair.as_span().start()..pair.as_span().end()
}

/// The word at the start of `text`, which may be empty.
fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

fn one_of(words: &[&str]) -> String {
    match words {
        [] => "something else".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The order in which expected items are listed: the most common ones first.
fn rank(rule: Rule) -> (u8, Rule) {
    let rank = match rule {
        Rule::semicolon | Rule::open_brace | Rule::arrow => 0,
        Rule::comma => 1,
        Rule::close_brace | Rule::close_bracket | Rule::close_paren => 2,
        Rule::attribute | Rule::at_sign => 4,
        _ => 3,
    };
    (rank, rule)
}

/// A description of a rule for people. `None` if it needs no mention.
fn in_words(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::emit | Rule::emit_word => "`emit`",
        Rule::buffer | Rule::buffer_word => "`buffer`",
        Rule::setting | Rule::option_word => "`option`",
        Rule::enumeration | Rule::enum_head | Rule::enum_word => "`enum`",
        Rule::frame | Rule::frame_head | Rule::frame_word => "`frame`",
        Rule::counter | Rule::counter_word => "`counter`",
        Rule::histogram | Rule::histogram_word => "`histogram`",
        Rule::cell_type => "a type",
        Rule::edge | Rule::edge_word => "`edge`",
        Rule::end => "the name of a point",
        Rule::arrow => "`->`",
        Rule::within_word => "`within`",
        Rule::duration => "a length of time, such as `500ms`",
        Rule::policy => "a policy",
        Rule::language => "a language (`C`, `C++`, `Rust`, `Python`, `Java`, `Node` or `Go`)",
        Rule::key => "an option (`time`, `tag` or `allow`)",
        Rule::integer => "an integer type (`i8` … `u64`)",
        Rule::name | Rule::declarator | Rule::value => "a name",
        Rule::attribute_name => "the name of an attribute",
        Rule::line | Rule::type_word => "a type",
        Rule::number => "a number",
        Rule::argument | Rule::plain => "a word, a number or a string",
        Rule::string | Rule::quote => "a string",
        Rule::inside | Rule::close_quote => "`\"` at the end of the string",
        Rule::attribute | Rule::at_sign => "an attribute",
        Rule::semicolon => "`;`",
        Rule::comma => "`,`",
        Rule::colon => "`:`",
        Rule::equals => "`=`",
        Rule::open_brace => "`{`",
        Rule::close_brace => "`}`",
        Rule::length | Rule::open_bracket => "`[`",
        Rule::close_bracket => "`]`",
        Rule::range | Rule::open_paren => "`(`",
        Rule::close_paren => "`)`",
        Rule::EOI => "the end of the file",
        Rule::interval_word
        | Rule::dot
        | Rule::edges
        | Rule::file
        | Rule::bad_item
        | Rule::bad_edge
        | Rule::bad_line
        | Rule::bad_value
        | Rule::head
        | Rule::chunk
        | Rule::block
        | Rule::gap
        | Rule::word
        | Rule::more
        | Rule::WHITESPACE
        | Rule::COMMENT => return None,
    })
}
