//! Asks captures. For now it knows one word, `sql`.

#![forbid(unsafe_code)]

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ppt_query::datafusion::physical_plan::execute_stream;
use ppt_query::{CaptureSet, Engine, Format, Options, Output, QueryError};

/// Asks captures.
#[derive(Debug, Parser)]
#[command(name = "ppt-analysis", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Word,
}

#[derive(Debug, Subcommand)]
enum Word {
    /// Answer SQL queries over captures.
    Sql(Sql),
}

/// What `sql` takes.
#[derive(Debug, clap::Args)]
struct Sql {
    /// Captures (files, patterns, `-`), and one query: the argument with white space in it.
    #[arg(required = true, value_name = "CAPTURE|QUERY")]
    arguments: Vec<String>,
    /// Read the statements from this file.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How rows are written: table, tsv, csv, jsonl, json, md [default: table on a terminal, else tsv].
    #[arg(long)]
    format: Option<Format>,
    /// Memory that sorts, joins and groups may take before they spill to disk, in MiB.
    #[arg(long, value_name = "MIB")]
    memory: Option<usize>,
    /// Read everything: plan without the heads of chunks.
    #[arg(long, hide = true)]
    no_pushdown: bool,
    /// Say how long each statement took.
    #[arg(long, hide = true)]
    timing: bool,
}

fn main() -> ExitCode {
    let Word::Sql(sql) = Arguments::parse().command;
    match sql.run() {
        Ok(code) => code,
        Err(QueryError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            anstream::eprintln!("ppt-analysis: error: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Sql {
    fn run(self) -> Result<ExitCode, QueryError> {
        let is_query = |text: &String| text.contains(char::is_whitespace);
        let (queries, names): (Vec<_>, Vec<_>) = self.arguments.into_iter().partition(is_query);
        let names: Vec<PathBuf> = names.into_iter().map(PathBuf::from).collect();
        let text = match (&self.file, &queries[..]) {
            (Some(file), []) => std::fs::read_to_string(file)?,
            (None, [query]) => query.clone(),
            (None, []) if !io::stdin().is_terminal() => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text)?;
                text
            }
            _ => {
                anstream::eprintln!("ppt-analysis: error: give one query, or a file of them (-f)");
                return Ok(ExitCode::from(2));
            }
        };
        let mut options = Options { pushdown: !self.no_pushdown, ..Options::default() };
        options.memory = self.memory.map(|mib| mib << 20);
        let on_terminal = io::stdout().is_terminal();
        let format = self.format.unwrap_or(match on_terminal {
            true => Format::Aligned,
            false => Format::Tsv,
        });
        let started = std::time::Instant::now();
        let engine = Engine::new(CaptureSet::open(&names)?, &options)?;
        if self.timing {
            anstream::eprintln!("opened in {:.3?}", started.elapsed());
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(options.threads).build()?;
        for statement in statements(&text) {
            let started = std::time::Instant::now();
            runtime.block_on(answer(&engine, statement, format))?;
            if self.timing {
                anstream::eprintln!("answered in {:.3?}", started.elapsed());
            }
        }
        let mut code = ExitCode::SUCCESS;
        for trouble in engine.set().troubles() {
            let path = trouble.path.display();
            if let Some(cut) = trouble.cut {
                anstream::eprintln!("ppt-analysis: {path} ends at byte {cut}, without an end");
            }
            if trouble.damages > 0 {
                code = ExitCode::FAILURE;
                anstream::eprintln!("ppt-analysis: {path}: {} places are damaged", trouble.damages);
            }
            for damage in trouble.damaged.iter().take(10) {
                anstream::eprintln!("ppt-analysis: {path}: {damage}");
            }
        }
        Ok(code)
    }
}

/// The statements of a text; one ends at a `;` that is in no quotes.
fn statements(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (None, '\'' | '"') => quote = Some(char),
            (Some(open), char) if open == char => quote = None,
            (None, ';') => {
                all.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&text[start..]);
    all.retain(|statement| !statement.trim().is_empty());
    all
}

async fn answer(engine: &Engine, statement: &str, format: Format) -> Result<(), QueryError> {
    use futures::StreamExt;
    let frame = engine.sql(statement).await?;
    let context = frame.task_ctx();
    let plan = frame.create_physical_plan().await?;
    let schema = plan.schema();
    let mut batches = execute_stream(plan, context.into())?;
    let out = io::BufWriter::new(io::stdout().lock());
    if schema.fields().is_empty() {
        return Ok(());
    }
    let mut output = Output::new(out, format, schema);
    while let Some(batch) = batches.next().await {
        output.write(&batch?)?;
    }
    output.finish()?.flush()?;
    Ok(())
}
