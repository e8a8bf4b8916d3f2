//! The names of the grammar's rules in messages.

use super::grammar::Rule;

/// The order in which expected items are listed: the most common ones first.
pub(super) fn rank(rule: Rule) -> (u8, Rule) {
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
pub(super) fn in_words(rule: Rule) -> Option<&'static str> {
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
