//! What identifies a request: keys, enums and texts of its frame.

use datafusion::arrow::datatypes::{DataType, Field};

use crate::engine::FrameTable;

/// Enums and texts that are shown where nobody chose.
const WORDS: usize = 3;
/// Numbers that are shown where there is no key.
const NUMBERS: usize = 2;
/// Characters of a value.
const LONGEST: usize = 60;

/// A field that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownField {
    /// As the frame file calls it.
    pub name: String,
    pub column: usize,
    /// Of a span: of its end. It is shown where the begin says something else.
    is_end: bool,
}

/// The fields that a kind of frames has beside the standard columns.
fn own_fields(of: &FrameTable) -> Vec<(usize, &Field)> {
    let fields = of.table.schema().fields().iter().enumerate();
    let own = fields.filter(|(at, field)| {
        let role = field.metadata().get("role").map_or("", String::as_str);
        let is_other = ["at", "start", "end", "where", "step", "state", "length", "dur"];
        of.table.bounded(*at).is_none() && !is_other.contains(&role) && !is_standard(field.name())
    });
    own.map(|(at, field)| (at, field.as_ref())).collect()
}

/// Whether a column names a row rather than describes it.
fn is_standard(name: &str) -> bool {
    let name = name.strip_prefix("ppt_").unwrap_or(name);
    ["capture", "buffer", "segment", "host", "drained"].contains(&name)
}

/// The name of a field of a span without the end that it is of.
fn short(name: &str) -> &str {
    name.strip_prefix("begin_").or_else(|| name.strip_prefix("end_")).unwrap_or(name)
}

/// What fields may be called.
pub(super) fn fields(of: &FrameTable) -> Vec<String> {
    own_fields(of)
        .iter()
        .flat_map(|entry| [entry.1.name().clone(), short(entry.1.name()).to_owned()])
        .collect()
}

/// The fields that are shown: those that were chosen, or else keys, enums and texts.
pub(super) fn shown(of: &FrameTable, is_span: bool, chosen: &[String]) -> Vec<ShownField> {
    let all = own_fields(of);
    let fields = of.table.schema().fields();
    let is_dur = |entry: &Field| entry.metadata().get("role").is_some_and(|entry| entry == "dur");
    // Keys stand before the length of a span.
    let keys = fields.iter().position(|entry| is_span && is_dur(entry)).unwrap_or(0);
    let is_word = |entry: &Field| {
        matches!(entry.data_type(), DataType::Dictionary(..) | DataType::Utf8 | DataType::Boolean)
    };
    let of_field = |&(column, field): &(usize, &Field)| {
        let name = if is_span { short(field.name()) } else { field.name() };
        let is_end = is_span && field.name().starts_with("end_");
        ShownField { name: name.to_owned(), column, is_end }
    };
    if !chosen.is_empty() {
        let named = |name: &String| {
            let is_it = |entry: &&(usize, &Field)| {
                entry.1.name() == name || is_span && short(entry.1.name()) == name
            };
            all.iter().filter(is_it).map(of_field).collect::<Vec<_>>()
        };
        return chosen.iter().flat_map(named).collect();
    }
    let mut shown: Vec<ShownField> =
        all.iter().filter(|entry| entry.0 < keys).map(of_field).collect();
    let has_key = !shown.is_empty();
    let mut names: Vec<String> = Vec::new();
    let mut rest = |is_it: &dyn Fn(&Field) -> bool, most: usize| {
        let own = all.iter().filter(|entry| entry.0 >= keys && is_it(entry.1)).map(of_field);
        for entry in own {
            let is_new = !names.contains(&entry.name);
            if is_new && names.len() >= most {
                continue;
            }
            if is_new {
                names.push(entry.name.clone());
            }
            shown.push(entry);
        }
    };
    rest(&is_word, WORDS);
    if !has_key {
        rest(&|entry| entry.data_type().is_integer(), NUMBERS);
    }
    shown
}

/// Values by the names of their fields, without those that say nothing.
pub(super) fn values(
    shown: &[ShownField],
    value: impl Fn(usize) -> String,
) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for (at, field) in shown.iter().enumerate() {
        let mut value = value(at);
        if let Some((cut, _)) = value.char_indices().nth(LONGEST) {
            value.truncate(cut);
            value.push('…');
        }
        let said = values.iter().find(|entry| entry.0 == field.name);
        match said {
            _ if value.is_empty() => {}
            None => values.push((field.name.clone(), value)),
            Some(said) if said.1 != value && field.is_end => {
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
        let is_plain = |entry: char| entry.is_alphanumeric() || "-_.:/+%".contains(entry);
        if value.chars().all(is_plain) {
            format!("{name}={value}")
        } else {
            format!("{name}='{value}'")
        }
    };
    values.iter().map(one).collect::<Vec<_>>().join(" ")
}
