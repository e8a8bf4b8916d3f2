//! Reports text that the grammar does not match.

use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use ppt_text::{alternatives, escaped};

use super::TreeReader;
use super::expected::{in_words, rank};
use super::grammar::{FrameGrammar, Rule};
use super::nodes::span;
use crate::diagnostic::SourceRange;
use crate::foreign_types;
use crate::mistake::SyntaxMistake;
use crate::reserved::RESERVED_FOR_LATER;
use crate::schema::MAX_NAME_BYTES;
use crate::type_words::is_type_word;

/// The first words of declarations.
const DECLARATIONS: [&str; 8] =
    ["frame", "enum", "emit", "buffer", "option", "counter", "histogram", "edge"];

impl TreeReader<'_> {
    /// Text between declarations that matches none of them.
    pub(super) fn bad_item(&mut self, pair: &Pair<'_, Rule>) {
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
                    self.sink.report(place.start..place.start + 1, SyntaxMistake::StrayBrace);
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
        self.sink.report(place.start..place.start + width, SyntaxMistake::NotAnEdge { found });
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
                return self.sink.report(place, SyntaxMistake::LaterDeclaration { word });
            }
            "struct" | "record" | "event" | "union" => Some("frame"),
            "gauge" => Some("counter"),
            _ => ppt_text::nearest(first, DECLARATIONS),
        };
        let suggestion = suggestion.map(str::to_owned);
        self.sink.report(place, SyntaxMistake::NotADeclaration { found, suggestion });
    }

    /// Parses text again with the intended rule, and reports what that rule expects.
    pub(super) fn bad_piece(&mut self, place: SourceRange, meant: Rule) {
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
                let mistake = SyntaxMistake::NotADeclaration { found, suggestion: None };
                self.sink.report(at..at + self.char_len(at), mistake);
            }
        }
    }

    pub(super) fn expected(
        &mut self,
        place: SourceRange,
        meant: Rule,
        error: &pest::error::Error<Rule>,
    ) {
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
        let expected = alternatives(&words, "something else");
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
        self.sink.report(span, SyntaxMistake::Expected { expected, label, found, help });
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

/// The word at the start of `text`, which may be empty.
fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}
