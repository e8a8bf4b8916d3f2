//! `ppt sql CAPTURE… 'SELECT …'`.

use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use futures::StreamExt;
use ppt_output::Output;
use ppt_query::datafusion::physical_plan::execute_stream;
use ppt_query::datafusion::prelude::DataFrame;
use ppt_query::{Answer, Encoder, Engine, Format, QueryError, statements};
use tokio::runtime::Runtime;

use crate::args;
use crate::failure::Failure;
use crate::{open, run};

/// Bytes that are written at once.
const BUFFER: usize = 1 << 16;

pub(crate) fn run(args: &args::Sql) -> Result<ExitCode, Failure> {
    let is_query = |word: &std::path::PathBuf| word.to_string_lossy().contains(char::is_whitespace);
    // What is there is a capture, whatever it is called.
    let is_query = |word: &std::path::PathBuf| is_query(word) && !word.exists();
    let words = args.captures.captures.iter().cloned();
    let (queries, captures): (Vec<_>, Vec<_>) = words.partition(is_query);
    if captures.is_empty() {
        return Err(Failure::Usage(
            "name a capture beside the query: ppt sql out.bin 'SELECT …'".into(),
        ));
    }
    let text = match (&args.file, &queries[..]) {
        (Some(file), []) => Some(read(file)?),
        (None, [query]) => Some(query.to_string_lossy().into_owned()),
        (None, []) if !io::stdin().is_terminal() => Some(read(Path::new("-"))?),
        (None, []) => None,
        _ => return Err(Failure::Usage("give one query, or a file of them (-f)".into())),
    };
    let format = match &args.format {
        Some(word) => word.parse().map_err(Failure::Usage)?,
        None if args.to.output.as_os_str() == "-" && io::stdout().is_terminal() => Format::Aligned,
        None => by_extension(&args.to.output).unwrap_or(Format::Tsv),
    };
    let asked = args::Captures { captures, ..clone(&args.captures) };
    let engine = open::engine(&asked)?;
    let runtime = run::runtime(engine.threads())?;
    let mut session = Session { engine, runtime, format, force: args.to.force };
    match text {
        Some(text) => session.all(&text, &args.to.output)?,
        None => super::prompt::run(&mut session)?,
    }
    open::tell_loss(session.engine.loss());
    Ok(open::tell_troubles(&session.engine))
}

fn clone(captures: &args::Captures) -> args::Captures {
    args::Captures {
        captures: captures.captures.clone(),
        buffers: captures.buffers.clone(),
        ..*captures
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let fail = |error| Failure::Read(file.display().to_string(), error);
    if file.as_os_str() != "-" {
        return std::fs::read_to_string(file).map_err(fail);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}

pub(crate) fn by_extension(path: &Path) -> Option<Format> {
    path.extension()?.to_str()?.parse().ok()
}

/// Statements that see each other's views.
pub(crate) struct Session {
    pub(crate) engine: Engine,
    pub(crate) runtime: Runtime,
    pub(crate) format: Format,
    pub(crate) force: bool,
}

impl Session {
    /// Answers all statements of `text` into `to`.
    fn all(&mut self, text: &str, to: &Path) -> Result<(), Failure> {
        let all = statements(text)?;
        let mut output = open::output(to, self.force, &self.engine)?;
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
        open::output(Path::new(to), self.force, &self.engine)
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
    }
    encoder.finish().map_err(&fail)?;
    Ok(())
}
