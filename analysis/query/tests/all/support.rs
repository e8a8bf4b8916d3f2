//! Engines over captures in memory, and their answers as text.

use std::path::PathBuf;
use std::sync::OnceLock;

use ppt_query::arrow::array::{Array, ArrayRef, RecordBatch};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::DataType;
use ppt_query::arrow::util::display::{ArrayFormatter, FormatOptions};
use ppt_query::{CaptureSet, Engine, EngineOptions, QueryError};
use tokio::runtime::Runtime;

pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

/// Captures as files, for as long as this is kept.
pub struct Files {
    folder: tempfile::TempDir,
    pub paths: Vec<PathBuf>,
}

impl Files {
    pub fn new(captures: &[Vec<u8>]) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let write = |(n, bytes): (usize, &Vec<u8>)| {
            let path = folder.path().join(format!("{n}.bin"));
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let paths = captures.iter().enumerate().map(write).collect();
        Files { folder, paths }
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn engine(&self, options: &EngineOptions) -> Engine {
        Engine::new(CaptureSet::open(&self.paths).unwrap(), options).unwrap()
    }
}

/// An engine that reads everything and plans without heads.
pub fn without_pushdown() -> EngineOptions {
    EngineOptions { pushdown: false, threads: 2, ..EngineOptions::default() }
}

pub fn with_pushdown() -> EngineOptions {
    EngineOptions { pushdown: true, threads: 2, ..EngineOptions::default() }
}

pub type Row = Vec<Option<String>>;

pub fn batches(engine: &Engine, sql: &str) -> Result<Vec<RecordBatch>, QueryError> {
    runtime().block_on(async { Ok(engine.sql(sql).await?.collect().await?) })
}

/// The answer: times as ns since the epoch, bytes as hex, bools as 0 and 1.
pub fn rows(engine: &Engine, sql: &str) -> Vec<Row> {
    let answer = batches(engine, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    answer.iter().flat_map(of_batch).collect()
}

/// The same, sorted.
pub fn sorted(engine: &Engine, sql: &str) -> Vec<Row> {
    let mut rows = rows(engine, sql);
    rows.sort();
    rows
}

/// The single number of an answer.
pub fn number(engine: &Engine, sql: &str) -> i64 {
    let rows = rows(engine, sql);
    let [row] = &rows[..] else { panic!("{sql}: {rows:?}") };
    row[0].as_ref().map_or(0, |text| text.parse().unwrap())
}

fn plain(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Timestamp(..) => cast(column, &DataType::Int64).unwrap(),
        DataType::Boolean => cast(column, &DataType::Int8).unwrap(),
        DataType::Dictionary(_, value) => cast(column, value).unwrap(),
        _ => column.clone(),
    }
}

fn of_batch(batch: &RecordBatch) -> Vec<Row> {
    let options = FormatOptions::new();
    let columns: Vec<ArrayRef> = batch.columns().iter().map(plain).collect();
    let texts: Vec<_> = columns
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
        .collect();
    let cell = |row: usize, column: usize| {
        (!columns[column].is_null(row)).then(|| texts[column].value(row).to_string())
    };
    (0..batch.num_rows())
        .map(|row| (0..columns.len()).map(|column| cell(row, column)).collect())
        .collect()
}

/// The physical plan of a query.
pub fn explained(engine: &Engine, sql: &str) -> String {
    let rows = rows(engine, &format!("EXPLAIN {sql}"));
    rows.into_iter().filter_map(|row| row.into_iter().nth(1).flatten()).collect()
}
