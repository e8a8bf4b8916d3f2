//! `/v1/find`: frames by name, or by an expression.

use ppt_predicate::{Predicate, to_sql};
use ppt_query::datafusion::common::DFSchema;
use ppt_query::{Engine, QueryError, sql_identifier, sql_literal};
use ppt_view::WantedSlices;
use serde::{Deserialize, Serialize};

use crate::error::HttpRefusal;
use crate::frame::FrameKey;
use crate::session::ViewSession;
use crate::table::{MAX_ROWS, ask};
use crate::times::time;

#[derive(Debug, Deserialize)]
pub(crate) struct FindQuery {
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

/// The condition of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FindCondition {
    /// Intervals whose name contains this text.
    Name(String),
    /// Frames, perhaps of one kind, for which an expression of `--where` is true.
    Where { frame: Option<String>, text: String },
}

/// The operators and their SQL. Longer ones come first, because `<=` begins with `<`.
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

/// The columns that identify a frame.
pub(crate) const KEY: &str = "capture, buffer, segment, ring, seqno";

/// Words that make a text without operators an expression.
const WORDS: [&str; 4] = [" between ", " in ", " like ", " is "];

impl FindCondition {
    pub(crate) fn parse(text: &str) -> Result<FindCondition, HttpRefusal> {
        let text = text.trim();
        let found = OPERATORS
            .iter()
            .filter_map(|(typed, sql)| text.find(typed).map(|at| (at, typed, *sql)))
            .min_by_key(|(at, typed, _)| (*at, usize::MAX - typed.len()));
        let lower = text.to_ascii_lowercase();
        let has_word = WORDS.iter().any(|word| lower.contains(word));
        let (frame, rest) = without_frame(text);
        let is_expression = || Predicate::parse(rest).is_ok();
        let as_typed = || FindCondition::Where { frame: frame.clone(), text: rest.to_owned() };
        let Some((at, typed, operator)) = found else {
            return match text {
                "" => Err(HttpRefusal::bad("type a name, or `field > 10ms`")),
                _ if has_word && is_expression() => Ok(as_typed()),
                name => Ok(FindCondition::Name(name.to_owned())),
            };
        };
        let value = text[at + typed.len()..].trim();
        // A value of several words may be the rest of an expression.
        if (value.contains(' ') || has_word) && is_expression() {
            return Ok(as_typed());
        }
        let field = rest[..rest.len() - (text.len() - at)].trim();
        if field.is_empty() || value.is_empty() {
            return Err(HttpRefusal::bad("a field, an operator, a value: `field > 10ms`"));
        }
        let text = format!("{field} {operator} {}", value_of(value));
        Ok(FindCondition::Where { frame, text })
    }

    /// The condition as a filter of slices.
    pub(crate) fn slices(&self) -> Result<WantedSlices, HttpRefusal> {
        Ok(match self {
            FindCondition::Name(part) => WantedSlices::Named(part.clone()),
            FindCondition::Where { frame, text } => {
                WantedSlices::OfFrames { frame: frame.clone(), expression: expression(text)? }
            }
        })
    }

    /// The statement that selects columns of all matches for which `window` is true. Possible columns are
    /// `name`, `ts`, `dur`, and those of all frames.
    pub(crate) async fn statement(
        &self,
        engine: &Engine,
        columns: &str,
        window: &str,
    ) -> Result<String, HttpRefusal> {
        let (frame, text) = match self {
            FindCondition::Name(name) => {
                let part = sql_literal(name);
                let found = format!("strpos(name, {part}) > 0 AND {window}");
                return Ok(format!("SELECT {columns} FROM slices WHERE {found}"));
            }
            FindCondition::Where { frame, text } => (frame, text),
        };
        expression(text)?;
        let condition = to_sql(text);
        let mut parts = Vec::new();
        let mut refusal = None;
        for table in engine.frames(frame.as_deref())? {
            let rows = engine.context().table(table.name.clone()).await;
            let rows = rows.map_err(QueryError::from)?;
            let schema = rows.schema();
            if let Err(error) = engine.context().parse_sql_expr(&condition, schema) {
                refusal = Some(error);
                continue;
            }
            let interval = interval(schema, text);
            let length = interval.as_deref().map_or_else(|| "0".into(), sql_identifier);
            let at = interval.map_or_else(
                || "ts".into(),
                |interval| sql_identifier(&format!("{interval}_start")),
            );
            let (name, from) = (sql_literal(&table.frame), table.name.to_quoted_string());
            let others = "capture, buffer, segment, ring, seqno, host, pid, tid";
            parts.push(format!(
                "SELECT {name} AS name, {at} AS ts, CAST({length} AS BIGINT) AS dur, {others} \
                 FROM {from} WHERE ({condition}) AND {window}"
            ));
        }
        match refusal {
            Some(error) if parts.is_empty() => Err(QueryError::from(error).into()),
            _ => Ok(format!("SELECT {columns} FROM ({}) AS found", parts.join(" UNION ALL "))),
        }
    }
}

fn expression(text: &str) -> Result<Predicate, HttpRefusal> {
    Predicate::parse(text).map_err(|error| HttpRefusal::bad(error.to_string()))
}

/// Divides a text into the frame at its beginning and the rest: `job` and `bytes > 5` of `job.bytes > 5`.
fn without_frame(text: &str) -> (Option<String>, &str) {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    match text.split_once('.') {
        Some((frame, rest)) if is_word(frame) => (Some(frame.to_owned()), rest.trim_start()),
        _ => (None, text),
    }
}

/// The interval in an expression. An interval `x` has the fields `x_start` and `x_end`.
fn interval(schema: &DFSchema, text: &str) -> Option<String> {
    let has = |name: &str| schema.has_column_with_unqualified_name(name);
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut words = words.filter(|word| {
        has(word) && ["start", "end"].iter().all(|end| has(&format!("{word}_{end}")))
    });
    words.next().map(str::to_owned)
}

/// A value in SQL: a number, with a unit for times, or a text.
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
        (_, true) => sql_literal(&typed[1..typed.len() - 1]),
        _ if ["true", "false"].contains(&typed) => typed.to_owned(),
        _ => sql_literal(typed),
    }
}

/// The first 500 matches in a range of time.
pub(crate) async fn find(
    session: &ViewSession,
    asked: &FindQuery,
) -> Result<FindHits, HttpRefusal> {
    let condition = FindCondition::parse(&asked.text)?;
    let (from, to) = (time(&asked.from)?, time(&asked.to)?);
    let window = format!("ts >= to_timestamp_nanos({from}) AND ts < to_timestamp_nanos({to})");
    let engine = session.engine()?;
    let columns = format!("name, ts, dur, {KEY}");
    let statement = condition.statement(&engine, &columns, &window).await? + " ORDER BY ts";
    let table = ask(&engine, &statement, MAX_ROWS).await?;
    let hits = table.rows.into_iter().filter_map(hit).collect();
    Ok(FindHits { hits, truncated: table.truncated })
}

/// The match in a row of name, time, length and key.
fn hit(row: Vec<Option<String>>) -> Option<FindHit> {
    let [name, at, length, key @ ..] = &row[..] else { return None };
    let from: i64 = at.as_ref()?.parse().ok()?;
    let length: i64 = length.as_ref().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let to = from.saturating_add(length.max(0));
    let name = name.clone()?;
    Some(FindHit {
        key: FrameKey::from_cells(key)?,
        name,
        from: from.to_string(),
        to: to.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(frame: Option<&str>, text: &str) -> FindCondition {
        FindCondition::Where { frame: frame.map(str::to_owned), text: text.into() }
    }

    #[test]
    fn texts_become_conditions() {
        let parse = |text: &str| FindCondition::parse(text).unwrap();
        assert_eq!(parse(" job.handle "), FindCondition::Name("job.handle".into()));
        assert_eq!(parse("waits in line"), FindCondition::Name("waits in line".into()));
        assert_eq!(parse("handle > 10ms"), condition(None, "handle > 10ms"));
        assert_eq!(parse("job.bytes<=-5"), condition(Some("job"), "bytes <= -5"));
        assert_eq!(parse("user = Ann's"), condition(None, "user = 'Ann''s'"));
        assert_eq!(parse("user != 'a b'"), condition(None, "user != 'a b'"));
        assert_eq!(parse("ok == true"), condition(None, "ok = true"));
        // Whole expressions are expressions of `--where`.
        let between = "handle BETWEEN 1ms AND 2ms";
        assert_eq!(parse(between), condition(None, between));
        assert_eq!(parse(&format!("job.{between}")), condition(Some("job"), between));
        let both = "op = 'PUT' AND handle > 10ms";
        assert_eq!(parse(both), condition(None, both));
        // A value that is not a number is a text.
        assert_eq!(parse("a = 1 b"), condition(None, "a = '1 b'"));
        assert_eq!(parse("a = 1.2.3"), condition(None, "a = '1.2.3'"));
        for bad in ["", "  ", "> 5", "a <", "="] {
            assert!(FindCondition::parse(bad).is_err(), "{bad}");
        }
    }
}
