//! Sections that a user adds: a view or a SELECT each.

use ppt_query::datafusion::execution::context::SQLOptions;
use ppt_query::datafusion::logical_expr::{DdlStatement, LogicalPlan};
use ppt_query::{Engine, parsed, prepared};

use crate::error::ReportError;
use crate::text_rows::{self, TextRows};

/// Maximum number of rows of a section.
pub const MAX_ROWS: usize = 500;

/// The answer to a view or a SELECT.
#[derive(Debug)]
pub struct ReportView {
    pub name: String,
    pub columns: Vec<String>,
    /// Whether each column is numeric.
    pub numeric: Vec<bool>,
    pub rows: TextRows,
    /// Whether rows are missing.
    pub cut: bool,
}

/// Answers every statement of `text`: SELECTs, and views, which later statements may use.
pub async fn all(engine: &Engine, text: &str) -> Result<Vec<ReportView>, ReportError> {
    let mut views = Vec::new();
    for statement in parsed(&prepared(text)?)? {
        let shown = statement.to_string();
        let (name, plan) = match engine.logical_plan(statement).await? {
            LogicalPlan::Ddl(DdlStatement::CreateView(view)) => {
                read_only(&view.input, &shown)?;
                let name = view.name.table().to_owned();
                let input = view.input.as_ref().clone();
                let create = LogicalPlan::Ddl(DdlStatement::CreateView(view));
                engine.execute(create).await?;
                (name, input)
            }
            plan => (format!("Query {}", views.len() + 1), plan),
        };
        read_only(&plan, &shown)?;
        let rows = engine.execute(plan).await?;
        let schema = rows.schema().clone();
        let batches = rows.limit(0, Some(MAX_ROWS + 1))?.collect().await?;
        let mut texts = Vec::new();
        for batch in &batches {
            texts.extend(text_rows::from_batch(batch)?);
        }
        let cut = texts.len() > MAX_ROWS;
        texts.truncate(MAX_ROWS);
        let fields = schema.fields().iter();
        views.push(ReportView {
            name,
            columns: fields.clone().map(|field| field.name().clone()).collect(),
            numeric: fields.map(|field| field.data_type().is_numeric()).collect(),
            rows: texts,
            cut,
        });
    }
    Ok(views)
}

/// Rejects statements other than SELECT.
pub fn read_only(plan: &LogicalPlan, statement: &str) -> Result<(), ReportError> {
    let options =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let refused = options.verify_plan(plan).is_err();
    let is_query = !matches!(
        plan,
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_)
    );
    if refused || !is_query {
        let short: String = statement.chars().take(60).collect();
        let why =
            format!("only SELECT and CREATE VIEW are answered here, not `{short}`: use ppt sql");
        return Err(ReportError::SelectOnly(why));
    }
    Ok(())
}
