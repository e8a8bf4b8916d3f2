//! `/v1/sql`: queries in SQL, which read only captures.

use ppt_query::datafusion::sql::parser::Statement;
use ppt_query::datafusion::sql::sqlparser::ast;
use ppt_query::{parsed, prepared};
use serde::Deserialize;

use crate::error::HttpRefusal;
use crate::session::ViewSession;
use crate::table::{MAX_ROWS, QueryTable, ask};

#[derive(Debug, Deserialize)]
pub(crate) struct SqlQuery {
    sql: String,
}

/// The first 500 rows of one statement.
pub(crate) async fn sql(
    session: &ViewSession,
    asked: &SqlQuery,
) -> Result<QueryTable, HttpRefusal> {
    check(&asked.sql)?;
    let engine = session.engine()?;
    ask(&engine, &asked.sql, MAX_ROWS).await
}

/// Refuses statements that read or write files, such as COPY or CREATE EXTERNAL TABLE.
fn check(text: &str) -> Result<(), HttpRefusal> {
    let statements = parsed(&prepared(text)?)?;
    let [statement] = statements.iter().collect::<Vec<_>>()[..] else {
        return Err(HttpRefusal::bad("one statement at a time"));
    };
    let reads = match statement {
        Statement::Statement(statement) => is_question(statement),
        Statement::Explain(explain) => match &*explain.statement {
            Statement::Statement(statement) => is_query(statement),
            _ => false,
        },
        _ => false,
    };
    let refusal =
        "here, SQL asks: SELECT, EXPLAIN and CREATE VIEW; `ppt sql` in a terminal does the rest";
    if reads { Ok(()) } else { Err(HttpRefusal::bad(refusal)) }
}

fn is_question(statement: &ast::Statement) -> bool {
    match statement {
        // Panels and other pages use existing views.
        ast::Statement::CreateView(view) => !view.or_replace,
        ast::Statement::Explain { statement, .. } => is_query(statement),
        other => is_query(other),
    }
}

fn is_query(statement: &ast::Statement) -> bool {
    matches!(statement, ast::Statement::Query(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_are_asked() {
        for good in [
            "SELECT 1",
            "select * from slices where dur > 10ms;",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "VALUES (1)",
            "EXPLAIN SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
            "CREATE VIEW v AS SELECT 1",
        ] {
            check(good).unwrap_or_else(|refusal| panic!("{good}: {refusal:?}"));
        }
        for bad in [
            "COPY (SELECT 1) TO 'x.csv'",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
            "CREATE TABLE t AS SELECT 1",
            "CREATE OR REPLACE VIEW slices AS SELECT 1",
            "EXPLAIN COPY (SELECT 1) TO 'x.csv'",
            "EXPLAIN CREATE TABLE t AS SELECT 1",
            "DROP TABLE slices",
            "DROP VIEW slices",
            "INSERT INTO slices VALUES (1)",
            "DELETE FROM slices",
            "SET datafusion.execution.batch_size = 1",
            "SHOW TABLES",
            "SELECT 1; SELECT 2",
            "SELECT 1; COPY (SELECT 1) TO 'x.csv'",
            "PREPARE p AS SELECT 1",
            "BEGIN",
            "",
            "SELEC 1",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
