//! Statements that share views.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use ppt_output::Output;
use ppt_query::datafusion::physical_plan::execute_stream;
use ppt_query::datafusion::prelude::DataFrame;
use ppt_query::{
    AnyOutput, Encoder, Engine, QueryError, ResultFormat, StatementResult, statements,
};
use tokio::runtime::Runtime;

use super::tables;
use crate::error::AnswerError;
use crate::{open, run};

/// Bytes of a write.
const BUFFER: usize = 1 << 16;

/// Statements that share views.
pub(crate) struct SqlSession {
    pub(crate) engine: Engine,
    pub(crate) runtime: Runtime,
    pub(crate) format: ResultFormat,
    /// Whether CSV is for spreadsheets.
    pub(crate) for_spreadsheet: bool,
    /// The file of statements, if there is one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) force: bool,
}

impl SqlSession {
    /// Answers all statements of `text` into `to`.
    pub(crate) fn all(&self, text: &str, to: &Path) -> Result<(), AnswerError> {
        let steps = steps(text)?;
        let mut output = self.open_output(to)?;
        let name = output.name();
        let mut out = BufWriter::with_capacity(BUFFER, output.file());
        let mut answered = 0;
        for step in steps {
            if self.format.is_binary() && answered > 0 {
                let why = "a file of this format has one answer: end with one SELECT";
                return Err(AnswerError::Usage(why.to_owned()));
            }
            answered += match step {
                SqlStep::Statement(statement) => {
                    usize::from(self.one(*statement, &mut out, &name)?)
                }
                SqlStep::Tables(_) if self.format.is_binary() => {
                    let why = "this format is for rows: \\d writes text";
                    return Err(AnswerError::Usage(why.to_owned()));
                }
                SqlStep::Tables(line) => {
                    let done = tables::answer(&self.engine, &line, &mut out);
                    done.map_err(AnswerError::writing(&name))?;
                    1
                }
                SqlStep::End => break,
            };
        }
        out.flush().map_err(AnswerError::writing(&name))?;
        drop(out);
        Ok(output.publish()?)
    }

    /// Answers a statement, and returns whether it has rows.
    pub(crate) fn one(
        &self,
        statement: ppt_query::Statement,
        out: &mut (impl Write + Send),
        name: &str,
    ) -> Result<bool, AnswerError> {
        let work = async {
            match self.engine.plan(statement).await? {
                StatementResult::Rows(rows) => {
                    let has_rows = !rows.schema().fields().is_empty();
                    if has_rows {
                        write(rows, self.format, out, name).await?;
                    }
                    Ok(has_rows)
                }
                StatementResult::Copy { rows, to, format } => {
                    let guarded = format.for_spreadsheet().filter(|_| self.for_spreadsheet);
                    let format = guarded.unwrap_or(format);
                    let mut output = self.output(&to)?;
                    let name = output.name();
                    let mut out = BufWriter::with_capacity(BUFFER, output.file());
                    write(rows, format, &mut out, &name).await?;
                    out.flush().map_err(AnswerError::writing(&name))?;
                    drop(out);
                    output.publish()?;
                    Ok(false)
                }
            }
        };
        self.runtime.block_on(run::question(self.engine.set().watch(), work))
    }

    /// Waits until no part of a cancelled question runs any more.
    pub(crate) fn wait_for_rest(&self) {
        const POLL_INTERVAL: Duration = Duration::from_millis(5);
        while self.runtime.metrics().num_alive_tasks() > 0 {
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn output(&self, to: &str) -> Result<Output, AnswerError> {
        if to.contains("://") {
            let why = format!("COPY writes files, not {to}");
            return Err(QueryError::NotHere(why).into());
        }
        self.open_output(Path::new(to))
    }

    fn open_output(&self, to: &Path) -> Result<Output, AnswerError> {
        open::output_distinct_from(to, self.force, &self.engine, self.file.as_deref())
    }
}

/// A step of a text.
enum SqlStep {
    Statement(Box<ppt_query::Statement>),
    /// A line such as `\d`.
    Tables(String),
    End,
}

/// The steps of a text: lines that begin with a backslash may stand before, between and after
/// statements.
fn steps(text: &str) -> Result<Vec<SqlStep>, AnswerError> {
    fn take(sql: &mut String, steps: &mut Vec<SqlStep>) -> Result<(), AnswerError> {
        let all = statements(&std::mem::take(sql))?;
        steps.extend(all.into_iter().map(|statement| SqlStep::Statement(Box::new(statement))));
        Ok(())
    }
    let (mut steps, mut sql) = (Vec::new(), String::new());
    for line in text.lines() {
        let is_between = sql.trim().is_empty() || sql.trim_end().ends_with(';');
        if is_between && tables::is_request(line) {
            take(&mut sql, &mut steps)?;
            steps.push(match line.trim() {
                "\\q" => SqlStep::End,
                line => SqlStep::Tables(line.to_owned()),
            });
        } else {
            sql.push_str(line);
            sql.push('\n');
        }
    }
    take(&mut sql, &mut steps)?;
    Ok(steps)
}

/// Writes rows as they arrive.
async fn write(
    rows: DataFrame,
    format: ResultFormat,
    out: &mut (impl Write + Send),
    name: &str,
) -> Result<(), AnswerError> {
    let context = rows.task_ctx();
    let plan = rows.create_physical_plan().await.map_err(QueryError::from)?;
    let schema = plan.schema();
    let mut batches = execute_stream(plan, context.into()).map_err(QueryError::from)?;
    let fail = AnswerError::writing(name);
    let out: AnyOutput<'_> = Box::new(out);
    let mut encoder = Encoder::new(out, format, &schema).map_err(&fail)?;
    while let Some(batch) = batches.next().await {
        encoder.write(&batch.map_err(QueryError::from)?).map_err(&fail)?;
        run::pause().await;
    }
    encoder.finish().map_err(&fail)?;
    Ok(())
}
