//! Converts expressions to standard SQL.

use ppt_frame_dsl::SourceRange;

use crate::ast::{ComparedValue, Expr, Literal, Operand};
use crate::{literal, parse};

/// Converts an expression to standard SQL: literals with units become numbers of ns or of bytes,
/// and the names of fields are quoted. In other SQL, only the literals with units change.
pub fn to_sql(text: &str) -> String {
    let mut edits = Vec::new();
    match parse::parse(text) {
        Ok(whole) => {
            edit(&whole, &mut edits);
            edits.sort_by_key(|edit| edit.0.start);
        }
        Err(_) => edits = units(text),
    }
    edited(text, edits)
}

/// Replaces units in SQL: `run > 50ms` compares with 50000000. Only numbers with a unit change;
/// text that is not SQL stays as it is.
pub fn without_units(text: &str) -> String {
    edited(text, units(text))
}

/// The replacements for numbers with units.
fn units(text: &str) -> Edits {
    let mut edits = Vec::new();
    for (span, digits) in parse::numbers(text) {
        if let Ok(value) = literal::number(digits, span.clone()) {
            edits.extend(number(&value).map(|number| (span, number)));
        }
    }
    edits
}

fn edited(text: &str, edits: Edits) -> String {
    let mut sql = String::with_capacity(text.len() + 8 * edits.len());
    let mut done = 0;
    for (SourceRange { start, end }, edit) in edits {
        sql.push_str(&text[done..start]);
        sql.push_str(&edit);
        done = end;
    }
    sql.push_str(&text[done..]);
    sql
}

type Edits = Vec<(SourceRange, String)>;

fn edit(expr: &Expr, edits: &mut Edits) {
    match expr {
        Expr::All(all) | Expr::Any(all) => all.iter().for_each(|expr| edit(expr, edits)),
        Expr::Not(inner) => edit(inner, edits),
        Expr::Comparison(left, _, right) => {
            [left, right].into_iter().for_each(|side| operand(side, edits));
        }
        Expr::Between { of, low, high, .. } => {
            [of, low, high].into_iter().for_each(|part| operand(part, edits));
        }
        Expr::In { of, list, .. } => {
            operand(of, edits);
            list.iter().for_each(|list| literal(list, edits));
        }
        Expr::Bare(of) | Expr::Like { of, .. } | Expr::IsNull { of, .. } => operand(of, edits),
    }
}

fn operand(operand: &Operand, edits: &mut Edits) {
    match operand {
        Operand::Literal(value) => literal(value, edits),
        Operand::Field(name) => {
            let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            edits.extend(name.parts.iter().map(|part| (part.span.clone(), quoted(&part.text))));
        }
    }
}

fn literal(literal: &Literal, edits: &mut Edits) {
    edits.extend(number(&literal.value).map(|number| (literal.span.clone(), number)));
}

/// The number that replaces a literal with a unit.
fn number(value: &ComparedValue) -> Option<String> {
    match value {
        ComparedValue::Duration(number) | ComparedValue::Size(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_numbers_and_names_are_quoted() {
        for (text, sql) in [
            ("handle > 10ms", "\"handle\" > 10000000"),
            ("a.b <= - 1.5us OR NOT x", "\"a\".\"b\" <= -1500 OR NOT \"x\""),
            ("\"we\"\"ird\" = '10ms'", "\"we\"\"ird\" = '10ms'"),
            (
                "n IN (4KiB, 7) AND m BETWEEN 1s AND 2s",
                "\"n\" IN (4096, 7) AND \"m\" BETWEEN 1000000000 AND 2000000000",
            ),
            // Not only predicates: numbers with units change in any SQL.
            ("abs(x) > 10ms", "abs(x) > 10000000"),
            ("f('10ms') > \"10ms\" -- 10ms", "f('10ms') > \"10ms\" -- 10ms"),
            ("a10ms + 1e3 > 10 /* 5s */ + 0x10", "a10ms + 1e3 > 10 /* 5s */ + 0x10"),
            ("abs(x) > 10msec", "abs(x) > 10msec"),
            ("abs(x) BETWEEN 1ms AND 2ms", "abs(x) BETWEEN 1000000 AND 2000000"),
        ] {
            assert_eq!(to_sql(text), sql);
        }
    }

    #[test]
    fn statements_lose_their_units() {
        for (text, sql) in [
            (
                "SELECT a, '5ms' FROM t1 WHERE run > 50ms LIMIT 10",
                "SELECT a, '5ms' FROM t1 WHERE run > 50000000 LIMIT 10",
            ),
            ("SELECT a-5us, x'0s', t5s.b -- 1s", "SELECT a-5000, x'0s', t5s.b -- 1s"),
            ("SELECT 1ms AS x, 10 y", "SELECT 1000000 AS x, 10 y"),
            ("bucket(ts, '100ms')", "bucket(ts, '100ms')"),
            ("no SQL at all 'x", "no SQL at all 'x"),
        ] {
            assert_eq!(without_units(text), sql);
        }
    }
}
