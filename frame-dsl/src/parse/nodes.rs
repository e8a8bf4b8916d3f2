//! Nodes of the syntax tree from pairs of the grammar.

use pest::iterators::Pair;

use super::grammar::Rule;
use crate::ast::{
    Argument, Attribute, BufferDecl, EdgeDecl, EdgeEnd, EnumValueDecl, FieldDecl,
    MetricDeclaration, Setting, SourceWord,
};
use crate::diagnostic::SourceRange;
use crate::schema::MAX_NAME_BYTES;

pub(super) fn buffer(pair: Pair<'_, Rule>) -> Option<BufferDecl> {
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

pub(super) fn setting(pair: Pair<'_, Rule>) -> Option<Setting> {
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

pub(super) fn value(pair: Pair<'_, Rule>) -> Option<EnumValueDecl> {
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

pub(super) fn declarator(
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

pub(super) fn metric(pair: Pair<'_, Rule>, doc: String) -> Option<MetricDeclaration> {
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

pub(super) fn edge(pair: Pair<'_, Rule>) -> Option<EdgeDecl> {
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

pub(super) fn attribute(pair: Pair<'_, Rule>) -> Option<Attribute> {
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
pub(super) fn words_of_rule(pair: Pair<'_, Rule>, rule: Rule) -> Vec<SourceWord> {
    pair.into_inner().filter(|token| token.as_rule() == rule).map(|token| word(&token)).collect()
}

/// A word, cut if it is too long: the type of a line is copied for each of its fields, and a
/// hostile file has long words and many fields. Its span still shows its full length.
pub(super) fn word(pair: &Pair<'_, Rule>) -> SourceWord {
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

pub(super) fn span(pair: &Pair<'_, Rule>) -> SourceRange {
    pair.as_span().start()..pair.as_span().end()
}
