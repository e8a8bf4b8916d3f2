//! Statements that see each other's views.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use futures::StreamExt;
use ppt_output::Output;
use ppt_query::datafusion::physical_plan::execute_stream;
use ppt_query::datafusion::prelude::DataFrame;
use ppt_query::{Answer, Encoder, Engine, Format, QueryError, statements};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::{open, run};

/// Bytes that are written at once.
const BUFFER: usize = 1 << 16;

/// Statements that see each other's views.
pub(crate) struct Session {
    pub(crate) engine: Engine,
    pub(crate) runtime: Runtime,
    pub(crate) format: Format,
    /// Whether CSV is for spreadsheets.
    pub(crate) for_spreadsheet: bool,
    /// Where the statements come from, if that is a file.
    pub(crate) file: Option<PathBuf>,
    pub(crate) force: bool,
}

impl Session {
    /// Answers all statements of `text` into `to`.
    pub(crate) fn all(&self, text: &str, to: &Path) -> Result<(), Failure> {
        let all = statements(text)?;
        let mut output = self.beside(to)?;
        let name = output.name();
        let mut out = BufWriter::with_capacity(BUFFER, output.file());
        let mut answered = 0;
        for statement in all {
            if self.format.is_binary() && answered > 0 {
                let why = "a file of this format has one answer: end with one SELECT";
                return Err(Failure::Usage(why.to_owned()));
            }
            answered += usize::from(self.one(statement, &mut out, &name)?);
        }
        out.flush().map_err(Failure::writing(&name))?;
        drop(out);
        Ok(output.publish()?)
    }

    /// Answers a statement; says whether it has rows.
    pub(crate) fn one(
        &self,
        statement: ppt_query::Statement,
        out: &mut (impl Write + Send),
        name: &str,
    ) -> Result<bool, Failure> {
        let work = async {
            match self.engine.plan(statement).await? {
                Answer::Rows(rows) => {
                    let has_rows = !rows.schema().fields().is_empty();
                    if has_rows {
                        write(rows, self.format, out, name).await?;
                    }
                    Ok(has_rows)
                }
                Answer::Copy { rows, to, format } => {
                    let guarded = format.for_spreadsheet().filter(|_| self.for_spreadsheet);
                    let format = guarded.unwrap_or(format);
                    let mut output = self.output(&to)?;
                    let name = output.name();
                    let mut out = BufWriter::with_capacity(BUFFER, output.file());
                    write(rows, format, &mut out, &name).await?;
                    out.flush().map_err(Failure::writing(&name))?;
                    drop(out);
                    output.publish()?;
                    Ok(false)
                }
            }
        };
        self.runtime.block_on(run::question(self.engine.set().watch(), work))
    }

    fn output(&self, to: &str) -> Result<Output, Failure> {
        if to.contains("://") {
            let why = format!("COPY writes files, not {to}");
            return Err(QueryError::NotHere(why).into());
        }
        self.beside(Path::new(to))
    }

    fn beside(&self, to: &Path) -> Result<Output, Failure> {
        open::output_beside(to, self.force, &self.engine, self.file.as_deref())
    }
}

/// Writes rows as they come.
async fn write(
    rows: DataFrame,
    format: Format,
    out: &mut (impl Write + Send),
    name: &str,
) -> Result<(), Failure> {
    let context = rows.task_ctx();
    let plan = rows.create_physical_plan().await.map_err(QueryError::from)?;
    let schema = plan.schema();
    let mut batches = execute_stream(plan, context.into()).map_err(QueryError::from)?;
    let fail = Failure::writing(name);
    let mut encoder = Encoder::new(out, format, &schema).map_err(&fail)?;
    while let Some(batch) = batches.next().await {
        encoder.write(&batch.map_err(QueryError::from)?).map_err(&fail)?;
        run::pause().await;
    }
    encoder.finish().map_err(&fail)?;
    Ok(())
}
