//! Queries an export of ppt with a cluster of Ballista.

mod tables;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use ballista::prelude::{SessionConfigExt as _, SessionContextExt as _};
use clap::{Parser, ValueEnum};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::{csv, json};
use datafusion::error::DataFusionError;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use tokio::net::TcpStream;
use tokio::time::{error::Elapsed, timeout};

/// The longest time for a connection to the scheduler.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Functions of `ppt sql` that no other engine has, each with a replacement.
const PPT_FUNCTIONS: [(&str, &str); 2] = [
    ("bucket", "for bucket(ts, '100ms'), write ts_ns - ts_ns % 100000000"),
    ("overlap", "join the two tables by their times"),
];

/// Asks an export by a cluster of Ballista.
///
/// FOLDER is what `ppt export --format parquet --partition-by host,frame -o FOLDER` wrote. Each kind of
/// frame is a table. Each machine of the cluster has the folder under the same path.
#[derive(Parser)]
struct Args {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    scheduler: String,
    /// How long the cluster may take to give us an executor
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    #[arg(long, value_enum, default_value_t = Format::Tsv)]
    format: Format,
    folder: String,
    query: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Tsv,
    Jsonl,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0} does not answer ({1}): docs/cluster.md says how to start a scheduler")]
    Scheduler(String, String),
    #[error(
        "the cluster gives us no executor in {0} s: docs/cluster.md says how to start executors"
    )]
    Executors(u64),
    #[error("{0} is a function of ppt sql, which Ballista does not have: {1}")]
    Ours(&'static str, &'static str),
    #[error("{0} has no folders host=…/frame=…: ppt export --partition-by host,frame")]
    Folder(String),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    #[error("{}", .0.strip_backtrace())]
    Query(#[from] DataFusionError),
}

#[tokio::main]
async fn main() -> ExitCode {
    match ask(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Ballista adds many lines about one cause.
            let text = failure.to_string();
            eprintln!("cluster: {}", text.lines().next().unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

async fn ask(args: &Args) -> Result<(), Failure> {
    let scheduler = &args.scheduler;
    let no_answer = |why: String| Failure::Scheduler(scheduler.clone(), why);
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(scheduler)).await;
    connected
        .map_err(|late: Elapsed| no_answer(late.to_string()))?
        .map_err(|why| no_answer(why.to_string()))?;
    let context = SessionContext::remote_with_state(&format!("df://{scheduler}"), state())
        .await
        .map_err(|why| no_answer(why.strip_backtrace()))?;
    tables::register(&context, &args.folder).await?;
    let queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false);
    let frame = context
        .sql_with_options(&args.query, queries.with_allow_statements(false))
        .await
        .map_err(|why| ppt_function(&why).unwrap_or(Failure::Query(why)))?;
    wait_for_executor(&context, args.wait).await?;
    let schema = frame.schema().inner().clone();
    let rows = frame.collect().await?;
    let mut out = io::stdout().lock();
    match args.format {
        Format::Tsv => {
            // A result without rows has names, too.
            let head = [RecordBatch::new_empty(schema)];
            let mut writer = csv::WriterBuilder::new().with_delimiter(b'\t').build(&mut out);
            head.iter().chain(&rows).try_for_each(|rows| writer.write(rows))?;
        }
        Format::Jsonl => {
            let nulls = json::WriterBuilder::new().with_explicit_nulls(true);
            let mut writer = nulls.build::<_, json::writer::LineDelimited>(&mut out);
            rows.iter().try_for_each(|rows| writer.write(rows))?;
            writer.finish()?;
        }
    }
    Ok(out.flush()?)
}

/// The state of a session. Ballista 55 loses rows of `ORDER BY … LIMIT` if files are sorted.
fn state() -> SessionState {
    let config = SessionConfig::new_with_ballista()
        .set_bool("datafusion.optimizer.enable_sort_pushdown", false);
    SessionStateBuilder::new().with_config(config).with_default_features().build()
}

/// Waits for an executor. Without one, a query would wait forever.
async fn wait_for_executor(context: &SessionContext, seconds: u64) -> Result<(), Failure> {
    let probe = context.sql("SELECT 1").await?;
    match timeout(Duration::from_secs(seconds), probe.collect()).await {
        Ok(answer) => Ok(answer.map(drop)?),
        Err(_) => Err(Failure::Executors(seconds)),
    }
}

/// The failure for a function that only ppt has. None for other errors.
fn ppt_function(error: &DataFusionError) -> Option<Failure> {
    let text = error.to_string().to_ascii_lowercase();
    let named = |name: &str| {
        text.contains(&format!("function '{name}'"))
            || text.contains(&format!("'{name}' not found"))
    };
    PPT_FUNCTIONS.iter().find(|(name, _)| named(name)).map(|(name, instead)| Failure::Ours(name, instead))
}
