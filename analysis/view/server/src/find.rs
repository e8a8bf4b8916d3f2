//! `/v1/find`: frames by name, or by what a field holds.

use ppt_query::{Engine, QueryError};
use serde::{Deserialize, Serialize};

use crate::error::HttpRefusal;
use crate::frame::FrameKey;
use crate::session::ViewSession;
use crate::table::{ROWS, ask};
use crate::times::time;

#[derive(Debug, Deserialize)]
pub(crate) struct FindAsked {
    text: String,
    from: String,
    to: String,
}

/// Frames, in the order of their times.
#[derive(Debug, Serialize)]
pub(crate) struct FindHits {
    hits: Vec<FindHit>,
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct FindHit {
    key: FrameKey,
    name: String,
    from: String,
    to: String,
}

/// What is looked for.
#[derive(Debug, PartialEq, Eq)]
enum FindCondition {
    /// Intervals and frames that are called so, or in part.
    Name(String),
    /// `[FRAME.]FIELD OPERATOR VALUE`.
    Field { frame: Option<String>, field: String, operator: &'static str, value: String },
}

/// Longer ones first: `<=` begins with `<`.
const OPERATORS: [(&str, &str); 8] = [
    ("<=", "<="),
    (">=", ">="),
    ("!=", "<>"),
    ("<>", "<>"),
    ("==", "="),
    ("=", "="),
    ("<", "<"),
    (">", ">"),
];

/// What names a frame.
pub(crate) const KEY: &str = "capture, buffer, segment, ring, seqno";

/// A text of SQL.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl FindCondition {
    fn parse(text: &str) -> Result<FindCondition, HttpRefusal> {
        let text = text.trim();
        let found = OPERATORS
            .iter()
            .filter_map(|(typed, sql)| text.find(typed).map(|at| (at, typed, *sql)))
            .min_by_key(|(at, typed, _)| (*at, usize::MAX - typed.len()));
        let Some((at, typed, operator)) = found else {
            return match text {
                "" => Err(HttpRefusal::bad("type a name, or `field > 10ms`")),
                name => Ok(FindCondition::Name(name.to_owned())),
            };
        };
        let (left, value) = (text[..at].trim(), text[at + typed.len()..].trim());
        if left.is_empty() || value.is_empty() {
            return Err(HttpRefusal::bad("a field, an operator, a value: `field > 10ms`"));
        }
        let (frame, field) = match left.split_once('.') {
            Some((frame, field)) => (Some(frame.to_owned()), field.to_owned()),
            None => (None, left.to_owned()),
        };
        Ok(FindCondition::Field { frame, field, operator, value: value_of(value) })
    }

    /// The statement that finds it, in what `window` allows.
    async fn statement(&self, engine: &Engine, window: &str) -> Result<String, HttpRefusal> {
        match self {
            FindCondition::Name(name) => {
                let part = literal(name);
                Ok(format!(
                    "SELECT name, ts, dur, {KEY} FROM slices \
                     WHERE strpos(name, {part}) > 0 AND {window} ORDER BY ts"
                ))
            }
            FindCondition::Field { frame, field, operator, value } => {
                let mut parts = Vec::new();
                for table in engine.frames(frame.as_deref())? {
                    let known = engine.context().table(table.name.clone()).await;
                    let known = known.map_err(QueryError::from)?;
                    let has = |name: &str| known.schema().has_column_with_unqualified_name(name);
                    if !has(field) {
                        continue;
                    }
                    // An interval is the time between two fields that are called after it.
                    let ends = [format!("{field}_start"), format!("{field}_end")];
                    let is_interval = ends.iter().all(|end| has(end));
                    let length = if is_interval { identifier(field) } else { "0".into() };
                    let (name, from) = (literal(&table.frame), table.name.to_quoted_string());
                    let at = if is_interval { identifier(&ends[0]) } else { "ts".into() };
                    let field = identifier(field);
                    parts.push(format!(
                        "SELECT {name} AS name, {at} AS ts, CAST({length} AS BIGINT) AS dur, {KEY} \
                         FROM {from} WHERE {field} {operator} {value} AND {window}"
                    ));
                }
                if parts.is_empty() {
                    let of = frame.as_ref().map_or("no frame", |_| "the frame does not");
                    let has = if frame.is_some() { "have" } else { "has" };
                    return Err(HttpRefusal::bad(format!("{of} {has} a field `{field}`")));
                }
                Ok(format!("SELECT * FROM ({}) AS found ORDER BY ts", parts.join(" UNION ALL ")))
            }
        }
    }
}

/// A value as SQL has it: a number, with a unit if it is a time, or a text.
fn value_of(typed: &str) -> String {
    let digits = typed.trim_start_matches('-');
    let end = digits.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = digits.split_at(end.unwrap_or(digits.len()));
    let is_number = number.starts_with(|letter: char| letter.is_ascii_digit())
        && number.matches('.').count() <= 1
        && typed.len() - digits.len() <= 1;
    let is_unit = ["", "ns", "us", "µs", "ms", "s"].contains(&unit);
    let is_quoted = typed.len() >= 2 && typed.starts_with('\'') && typed.ends_with('\'');
    match (is_number && is_unit, is_quoted) {
        (true, _) => typed.to_owned(),
        (_, true) => literal(&typed[1..typed.len() - 1]),
        _ if ["true", "false"].contains(&typed) => typed.to_owned(),
        _ => literal(typed),
    }
}

/// Finds frames in a stretch of time, the first 500.
pub(crate) async fn find(
    session: &ViewSession,
    asked: &FindAsked,
) -> Result<FindHits, HttpRefusal> {
    let wanted = FindCondition::parse(&asked.text)?;
    let (from, to) = (time(&asked.from)?, time(&asked.to)?);
    let window = format!("ts >= to_timestamp_nanos({from}) AND ts < to_timestamp_nanos({to})");
    let engine = session.engine()?;
    let statement = wanted.statement(&engine, &window).await?;
    let table = ask(&engine, &statement, ROWS).await?;
    let hits = table.rows.into_iter().filter_map(hit).collect();
    Ok(FindHits { hits, truncated: table.truncated })
}

/// A row of name, time, length and key.
fn hit(row: Vec<Option<String>>) -> Option<FindHit> {
    let [name, at, length, key @ ..] = &row[..] else { return None };
    let from: i64 = at.as_ref()?.parse().ok()?;
    let length: i64 = length.as_ref().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let to = from.saturating_add(length.max(0));
    let name = name.clone()?;
    Some(FindHit {
        key: FrameKey::of_cells(key)?,
        name,
        from: from.to_string(),
        to: to.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(
        frame: Option<&str>,
        field: &str,
        operator: &'static str,
        value: &str,
    ) -> FindCondition {
        let frame = frame.map(str::to_owned);
        FindCondition::Field { frame, field: field.into(), operator, value: value.into() }
    }

    #[test]
    fn texts_become_conditions() {
        let parse = |text| FindCondition::parse(text).unwrap();
        assert_eq!(parse(" job.handle "), FindCondition::Name("job.handle".into()));
        assert_eq!(parse("handle > 10ms"), field(None, "handle", ">", "10ms"));
        assert_eq!(parse("job.bytes<=-5"), field(Some("job"), "bytes", "<=", "-5"));
        assert_eq!(parse("user = Ann's"), field(None, "user", "=", "'Ann''s'"));
        assert_eq!(parse("user != 'a b'"), field(None, "user", "<>", "'a b'"));
        assert_eq!(parse("ok == true"), field(None, "ok", "=", "true"));
        // What is no number is a text, whatever it says.
        assert_eq!(parse("a = 1 OR 1"), field(None, "a", "=", "'1 OR 1'"));
        assert_eq!(parse("a = 1.2.3"), field(None, "a", "=", "'1.2.3'"));
        for bad in ["", "  ", "> 5", "a <", "="] {
            assert!(FindCondition::parse(bad).is_err(), "{bad}");
        }
    }
}
