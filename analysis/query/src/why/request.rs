//! The identity of a request: keys, enums and texts of its frame.

use datafusion::arrow::datatypes::{DataType, Field};

use crate::engine::FrameTable;

/// The number of enums and texts that are shown by default.
const MAX_WORDS: usize = 3;
/// The number of numbers that are shown by default, if there is no key.
const MAX_NUMBERS: usize = 2;
/// The largest number of characters of a value that are shown.
const MAX_CHARACTERS: usize = 60;

/// A field that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownField {
    /// The name in the frame file, for a span without `begin_` or `end_`.
    pub name: String,
    pub column: usize,
    /// Whether the field belongs to the end frame of a span. Such a field is shown only if it differs
    /// from that of the begin frame.
    is_end: bool,
}

/// The fields of a kind of frames, without the standard columns.
fn own_fields(of: &FrameTable) -> Vec<(usize, &Field)> {
    let fields = of.table.schema().fields().iter().enumerate();
    let own = fields.filter(|(at, field)| {
        let role = field.metadata().get("role").map_or("", String::as_str);
        let is_other = ["at", "start", "end", "where", "step", "state", "length", "dur"];
        of.table.bounded(*at).is_none() && !is_other.contains(&role) && !is_standard(field.name())
    });
    own.map(|(at, field)| (at, field.as_ref())).collect()
}

/// Whether a column identifies a row rather than describing it.
fn is_standard(name: &str) -> bool {
    let name = name.strip_prefix("ppt_").unwrap_or(name);
    ["capture", "buffer", "segment", "host", "drained"].contains(&name)
}

/// The name of a field of a span without `begin_` or `end_`.
fn without_side(name: &str) -> &str {
    name.strip_prefix("begin_").or_else(|| name.strip_prefix("end_")).unwrap_or(name)
}

/// The names by which fields may be chosen.
pub(super) fn fields(of: &FrameTable) -> Vec<String> {
    own_fields(of)
        .iter()
        .flat_map(|numbered| {
            [numbered.1.name().clone(), without_side(numbered.1.name()).to_owned()]
        })
        .collect()
}

/// The fields to show: the chosen ones, or by default keys, enums and texts.
pub(super) fn shown(of: &FrameTable, is_span: bool, chosen: &[String]) -> Vec<ShownField> {
    let all = own_fields(of);
    let fields = of.table.schema().fields();
    let is_dur = |field: &Field| field.metadata().get("role").is_some_and(|role| role == "dur");
    // The keys of a span come before its length.
    let keys = fields.iter().position(|field| is_span && is_dur(field)).unwrap_or(0);
    let is_word = |field: &Field| {
        matches!(field.data_type(), DataType::Dictionary(..) | DataType::Utf8 | DataType::Boolean)
    };
    let of_field = |&(column, field): &(usize, &Field)| {
        let name = if is_span { without_side(field.name()) } else { field.name() };
        let is_end = is_span && field.name().starts_with("end_");
        ShownField { name: name.to_owned(), column, is_end }
    };
    if !chosen.is_empty() {
        let named = |name: &String| {
            let is_match = |numbered: &&(usize, &Field)| {
                numbered.1.name() == name || is_span && without_side(numbered.1.name()) == name
            };
            all.iter().filter(is_match).map(of_field).collect::<Vec<_>>()
        };
        return chosen.iter().flat_map(named).collect();
    }
    let mut shown: Vec<ShownField> =
        all.iter().filter(|numbered| numbered.0 < keys).map(of_field).collect();
    let has_key = !shown.is_empty();
    let mut names: Vec<String> = Vec::new();
    let mut rest = |is_match: &dyn Fn(&Field) -> bool, max: usize| {
        let own =
            all.iter().filter(|numbered| numbered.0 >= keys && is_match(numbered.1)).map(of_field);
        for field in own {
            let is_new = !names.contains(&field.name);
            if is_new && names.len() >= max {
                continue;
            }
            if is_new {
                names.push(field.name.clone());
            }
            shown.push(field);
        }
    };
    rest(&is_word, MAX_WORDS);
    if !has_key {
        rest(&|field| field.data_type().is_integer(), MAX_NUMBERS);
    }
    shown
}

/// The names of the fields and their values, without empty values.
pub(super) fn values(
    shown: &[ShownField],
    value: impl Fn(usize) -> String,
) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for (at, field) in shown.iter().enumerate() {
        let mut value = value(at);
        if let Some((cut, _)) = value.char_indices().nth(MAX_CHARACTERS) {
            value.truncate(cut);
            value.push('…');
        }
        let begin = values.iter().find(|value| value.0 == field.name);
        match begin {
            _ if value.is_empty() => {}
            None => values.push((field.name.clone(), value)),
            Some(begin) if begin.1 != value && field.is_end => {
                values.push((format!("end_{}", field.name), value));
            }
            Some(_) => {}
        }
    }
    values
}

/// In one line: `id=88 kind=UPDATE sql='UPDATE t SET …'`.
pub(super) fn label(values: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| {
        let is_plain =
            |character: char| character.is_alphanumeric() || "-_.:/+%".contains(character);
        if value.chars().all(is_plain) {
            format!("{name}={value}")
        } else {
            format!("{name}='{value}'")
        }
    };
    values.iter().map(one).collect::<Vec<_>>().join(" ")
}
