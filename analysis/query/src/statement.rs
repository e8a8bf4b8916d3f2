//! Plans a text of SQL, statement by statement.

use std::fmt;

use datafusion::common::TableReference;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::DataFrame;
use datafusion::sql::parser::{CopyToSource, DFParser, Statement as Parsed};
use datafusion::sql::sqlparser::ast;

use ppt_tables::Directory;

use crate::engine::{BoxedAnswer, Engine};
use crate::error::QueryError;
use crate::limits::{parsed, prepared};
use crate::output::ResultFormat;

/// A statement.
#[derive(Debug)]
pub struct Statement(Parsed);

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The result of a statement.
#[derive(Debug)]
pub enum StatementResult {
    /// Rows. A statement that only changes the session has none.
    Rows(DataFrame),
    /// Rows for a file.
    Copy {
        /// The rows.
        rows: DataFrame,
        /// The file to write.
        to: String,
        /// The format of the file.
        format: ResultFormat,
    },
}

/// The statements of a text.
///
/// # Errors
/// The text is not valid SQL.
pub fn statements(text: &str) -> Result<Vec<Statement>, QueryError> {
    let text = prepared(text)?;
    Ok(parsed(&text)?.into_iter().map(Statement).collect())
}

impl Engine {
    /// Plans a statement.
    ///
    /// # Errors
    /// The statement names an unknown table or column, or is not supported ([`QueryError::NotHere`]).
    pub fn plan(&self, statement: Statement) -> BoxedAnswer<'_, StatementResult> {
        Box::pin(async move {
            match statement.0 {
                // DataFusion itself would overwrite existing files.
                Parsed::CopyTo(copy) => {
                    let not_here = |what: &str| Err(QueryError::NotHere(what.to_owned()));
                    if !copy.partitioned_by.is_empty() {
                        return not_here(
                            "COPY writes one file; `ppt export --partition-by` writes many",
                        );
                    }
                    if !copy.options.is_empty() {
                        return not_here("COPY takes no OPTIONS here");
                    }
                    let extension = copy.target.rsplit_once('.').map(|parts| parts.1.to_owned());
                    let word =
                        copy.stored_as.or(extension).unwrap_or_default().to_ascii_lowercase();
                    let Ok(format) = word.parse::<ResultFormat>() else {
                        return Err(QueryError::NotHere(format!(
                            "COPY knows no format `{word}`: STORED AS one of {}",
                            ResultFormat::ALL.map(|format| format.0).join(", ")
                        )));
                    };
                    let source = match copy.source {
                        CopyToSource::Query(query) => ast::Statement::Query(query),
                        CopyToSource::Relation(name) => {
                            let parsed = DFParser::parse_sql(&format!("SELECT * FROM {name}"))?;
                            match parsed.into_iter().next() {
                                Some(Parsed::Statement(query)) => *query,
                                _ => return not_here("COPY takes a table or a query"),
                            }
                        }
                    };
                    let rows = self.rows(Parsed::Statement(Box::new(source))).await?;
                    Ok(StatementResult::Copy { rows, to: copy.target, format })
                }
                other => Ok(StatementResult::Rows(self.rows(other).await?)),
            }
        })
    }

    async fn rows(&self, statement: Parsed) -> Result<DataFrame, QueryError> {
        let plan = self.logical_plan(statement).await?;
        if let Some(why) = self.refusal(&plan)? {
            return Err(QueryError::NotHere(why));
        }
        self.execute(plan).await
    }

    /// Why a statement is refused, if it is. A statement that writes may be inside another one: `EXPLAIN
    /// ANALYZE` and `PREPARE` run the statement that they contain.
    fn refusal(&self, plan: &LogicalPlan) -> Result<Option<String>, QueryError> {
        if plan.exists(|plan| Ok(matches!(plan, LogicalPlan::Copy(_))))? {
            return Ok(Some("there is no plan of COPY: explain its query".to_owned()));
        }
        if plan.exists(|plan| Ok(matches!(plan, LogicalPlan::Dml(_))))? {
            let why = "captures are not changed; COPY (SELECT …) TO 'file.parquet' writes a file";
            return Ok(Some(why.to_owned()));
        }
        let LogicalPlan::Ddl(statement) = plan else { return Ok(None) };
        let tables: Vec<String> = self.tables().into_iter().map(|table| table.0).collect();
        let is_part = |table: &TableReference| {
            let full = table.schema().map(|schema| format!("{schema}.{}", table.table()));
            tables.iter().any(|text| text == table.table() || Some(text) == full.as_ref())
        };
        let (name, is_part) = match statement {
            DdlStatement::DropTable(drop) => (drop.name.to_string(), is_part(&drop.name)),
            DdlStatement::DropView(drop) => (drop.name.to_string(), is_part(&drop.name)),
            DdlStatement::DropCatalogSchema(drop) => {
                let name = drop.name.schema_name();
                let is_buffer =
                    self.frames(None)?.iter().any(|frame| frame.name.schema() == Some(name));
                (name.to_owned(), is_buffer || name == Directory::PLAIN)
            }
            DdlStatement::CreateExternalTable(table) => {
                let elsewhere =
                    |text: &&String| text.contains("://") && !text.starts_with("file://");
                let found = table.locations.iter().find(elsewhere);
                return Ok(
                    found.map(|found| format!("LOCATION names files of this machine, not {found}"))
                );
            }
            _ => return Ok(None),
        };
        Ok(is_part.then(|| format!("`{name}` is part of a capture")))
    }
}
