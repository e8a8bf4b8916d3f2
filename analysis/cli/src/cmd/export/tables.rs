//! Exports of tables: Parquet, Arrow, CSV, JSON lines. One kind of frames becomes a file, several
//! become a folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use ppt_query::arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use ppt_query::arrow::compute::{cast, take_record_batch};
use ppt_query::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use ppt_query::datafusion::physical_plan::{ExecutionPlanProperties, execute_stream_partitioned};
use ppt_query::datafusion::prelude::{DataFrame, cast as cast_expr, ident};
use ppt_query::{AnyOutput, Encoder, Engine, FrameTable, ParquetOptions, QueryError, ResultFormat};
use serde_json::{Value, json};

use super::folder::ExportFolder;
use crate::args::{self, Time};
use crate::error::AnswerError;
use crate::{open, run};

/// Bytes of a write.
const BUFFER: usize = 1 << 20;
/// Maximum number of open files of partitions.
const MANY_FILES: usize = 1000;

/// Writes files with this `extension`.
pub(super) async fn export(
    format: ResultFormat,
    extension: &str,
    args: &args::Export,
    engine: &Engine,
) -> Result<(), AnswerError> {
    let mut frames = engine.exportable(args.frame.as_deref())?;
    let to = &args.to.output;
    let partitioned = !args.partition_by.is_empty();
    if let ([frame], false) = (&frames[..], partitioned) {
        if format.is_binary() {
            open::not_on_terminal(to, "this format")?;
        }
        let mut output = open::output(to, args.to.force, engine)?;
        let name = output.name();
        let mut file = FrameExport { engine, frame, format, time: args.time, name: &name };
        file.write(Box::new(BufWriter::with_capacity(BUFFER, output.file()))).await?;
        return Ok(output.publish()?);
    }
    if to.as_os_str() == "-" {
        let why =
            "several kinds of frames are a folder: name it with -o, or choose one with --frame";
        return Err(AnswerError::Usage(why.to_owned()));
    }
    // Spans and chains belong to no buffer, so they may lack the column.
    let has_all = |table: &FrameTable| {
        let schema = table.table.schema();
        args.partition_by.iter().all(|by| by == "frame" || schema.index_of(by).is_ok())
    };
    frames.retain(|frame| !frame.buffer.is_empty() || args.frame.is_some() || has_all(frame));
    let folder = ExportFolder::new(to)?;
    for frame in &frames {
        let name = to.display().to_string();
        let mut file = FrameExport { engine, frame, format, time: args.time, name: &name };
        if partitioned {
            file.write_partitions(folder.inside(), &args.partition_by, extension).await?;
        } else {
            let namesakes = frames.iter().filter(|table| table.frame == frame.frame).count();
            let stem = match namesakes {
                _ if frame.buffer.is_empty() => frame.frame.clone(),
                1 => frame.frame.clone(),
                _ => format!("{}.{}", frame.buffer, frame.frame),
            };
            let path = folder.inside().join(format!("{}.{extension}", path_component(&stem)));
            let created = File::create_new(&path).map_err(AnswerError::writing(&name))?;
            file.write(Box::new(BufWriter::with_capacity(BUFFER, created))).await?;
        }
    }
    folder.publish()
}

/// Encodes a kind of frames as a Parquet file, with its number of rows; None if it has none.
pub(super) async fn parquet_file(
    engine: &Engine,
    frame: &FrameTable,
    time: Time,
) -> Result<Option<(Vec<u8>, u64)>, AnswerError> {
    let file =
        FrameExport { engine, frame, format: ResultFormat::Parquet, time, name: &frame.frame };
    let fail = AnswerError::writing(&frame.frame);
    let mut rows = OrderedRows::collect(file.rows().await?).await?;
    let mut encoder: Option<Encoder<Vec<u8>>> = None;
    let mut count = 0;
    while let Some(batch) = rows.next().await? {
        if batch.num_rows() == 0 {
            continue;
        }
        count += batch.num_rows() as u64;
        let begun = match encoder.take() {
            Some(begun) => begun,
            None => Encoder::with_options(
                Vec::new(),
                file.format,
                &rows.schema,
                &file.parquet_options(),
            )
            .map_err(&fail)?,
        };
        encoder.insert(begun).write(&batch).map_err(&fail)?;
    }
    let Some(encoder) = encoder else { return Ok(None) };
    Ok(Some((encoder.finish().map_err(&fail)?, count)))
}

/// Encodes rows in memory as a Parquet file, with their number; None if there are none.
pub(super) fn parquet_file_of_rows(
    rows: &[RecordBatch],
    (buffer, frame): (&str, &str),
    time: Time,
) -> Result<Option<(Vec<u8>, u64)>, AnswerError> {
    let Some(first) = rows.iter().find(|batch| batch.num_rows() > 0) else { return Ok(None) };
    let fail = AnswerError::writing(frame);
    let schema = first.schema();
    let text = schema_json((Some(buffer), frame), &schema).to_string();
    let options = ParquetOptions { metadata: vec![("ppt.schema".to_owned(), text)] };
    let columns = time_columns(&schema, time);
    let fields = columns.iter().map(|column| {
        let field = schema.field(column.source);
        Field::new(&column.name, column.ty.clone(), true).with_metadata(field.metadata().clone())
    });
    let shown = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut encoder = Encoder::with_options(Vec::new(), ResultFormat::Parquet, &shown, &options)
        .map_err(&fail)?;
    for batch in rows {
        let values = columns.iter().map(|column| cast(batch.column(column.source), &column.ty));
        let values =
            values.collect::<Result<Vec<_>, _>>().map_err(io::Error::other).map_err(&fail)?;
        let batch = RecordBatch::try_new(shown.clone(), values);
        let batch = batch.map_err(io::Error::other).map_err(&fail)?;
        encoder.write(&batch).map_err(&fail)?;
    }
    let count = rows.iter().map(|batch| batch.num_rows() as u64).sum();
    Ok(Some((encoder.finish().map_err(&fail)?, count)))
}

/// A column of a Parquet file.
struct ParquetColumn {
    /// Index of the source column.
    source: usize,
    name: String,
    ty: DataType,
}

/// The columns of a Parquet file: with [`Time::Both`], times have two.
fn time_columns(schema: &SchemaRef, time: Time) -> Vec<ParquetColumn> {
    let mut columns = Vec::new();
    for (source, field) in schema.fields().iter().enumerate() {
        let mut column = |name: &str, ty: DataType| {
            columns.push(ParquetColumn { source, name: name.to_owned(), ty });
        };
        match field.data_type() {
            DataType::Timestamp(_, zone) if time == Time::Both => {
                // Some readers do not support ns.
                column(field.name(), DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
                let mut name = format!("{}_ns", field.name());
                while schema.index_of(&name).is_ok() {
                    name.insert_str(0, "ppt_");
                }
                column(&name, DataType::Int64);
            }
            ty => column(field.name(), ty.clone()),
        }
    }
    columns
}

/// Names, types and metadata of columns as JSON.
fn schema_json((buffer, frame): (Option<&str>, &str), schema: &SchemaRef) -> Value {
    let fields = schema.fields().iter().map(|field| {
        let mut column = json!({"name": field.name(), "type": field.data_type().to_string()});
        for (key, text) in field.metadata() {
            column[key] = json!(text);
        }
        column
    });
    json!({"buffer": buffer, "frame": frame, "columns": fields.collect::<Vec<Value>>()})
}

/// A name as one component of a path, safe for any name in a capture.
pub(super) fn path_component(name: &str) -> String {
    let keep = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
    let one = |char: char| match char {
        char if keep(char) => char.to_string(),
        char => char.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
    };
    let text: String = name.chars().map(one).collect();
    match text.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => text,
    }
}

/// One kind of frames that is being exported.
struct FrameExport<'a> {
    engine: &'a Engine,
    frame: &'a FrameTable,
    format: ResultFormat,
    time: Time,
    /// Name of the output in messages.
    name: &'a str,
}

impl FrameExport<'_> {
    async fn write(&mut self, out: AnyOutput<'_>) -> Result<(), AnswerError> {
        let fail = AnswerError::writing(self.name);
        let mut rows = OrderedRows::collect(self.rows().await?).await?;
        let parquet = self.parquet_options();
        let mut encoder =
            Encoder::with_options(out, self.format, &rows.schema, &parquet).map_err(&fail)?;
        while let Some(batch) = rows.next().await? {
            encoder.write(&batch).map_err(&fail)?;
        }
        encoder.finish().map_err(&fail)?;
        Ok(())
    }

    /// The rows with the columns of this format.
    async fn rows(&self) -> Result<DataFrame, QueryError> {
        let rows = self.engine.context().table(self.frame.name.clone()).await?;
        if self.format != ResultFormat::Parquet || self.time == Time::Ns {
            return Ok(rows);
        }
        let schema = self.frame.table.schema();
        let columns = time_columns(schema, self.time).into_iter().map(|column| {
            let field = schema.field(column.source);
            let own = ident(field.name().as_str());
            match column.ty == *field.data_type() {
                true => own,
                false => cast_expr(own, column.ty).alias(column.name),
            }
        });
        Ok(rows.select(columns.collect::<Vec<_>>())?)
    }

    /// The options of a Parquet file.
    fn parquet_options(&self) -> ParquetOptions {
        let of_all = self.frame.buffer.is_empty();
        let buffer = (!of_all).then_some(self.frame.buffer.as_str());
        let schema = schema_json((buffer, &self.frame.frame), self.frame.table.schema());
        let loss = self.engine.set().loss(|buffer| of_all || buffer == self.frame.buffer);
        let lost = json!({
            "captured": loss.captured,
            "lost": loss.lost,
            "dropped": loss.dropped,
            "gaps": loss.gaps,
            "absent": loss.absent,
        });
        let texts = [("ppt.schema", schema), ("ppt.lost", lost)];
        ParquetOptions {
            metadata: texts.map(|(key, value)| (key.to_owned(), value.to_string())).to_vec(),
        }
    }

    /// The folder of a partition. `values`: those of the columns of rows in `by`.
    fn partition_path(&self, folder: &Path, by: &[String], values: &[Option<String>]) -> PathBuf {
        let mut values = values.iter();
        let mut path = folder.to_owned();
        for column in by {
            let value = match column.as_str() {
                "frame" => Some(self.frame.frame.as_str()),
                _ => values.next().and_then(Option::as_deref),
            };
            let value = value.map_or("__HIVE_DEFAULT_PARTITION__".to_owned(), path_component);
            path.push(format!("{}={value}", path_component(column)));
        }
        path
    }

    /// Writes `host=a/frame=job/part-0.parquet` and so on, without the partition columns: engines read
    /// them from the names of folders.
    async fn write_partitions(
        &mut self,
        folder: &Path,
        by: &[String],
        extension: &str,
    ) -> Result<(), AnswerError> {
        let fail = AnswerError::writing(self.name);
        let mut rows = OrderedRows::collect(self.rows().await?).await?;
        let columns = partition_columns(&rows.schema, by)?;
        let kept: Vec<usize> =
            (0..rows.schema.fields().len()).filter(|index| !columns.contains(index)).collect();
        let project = |batch: &RecordBatch| batch.project(&kept).map_err(io::Error::other);
        let mut files: BTreeMap<PathBuf, Encoder<AnyOutput<'_>>> = BTreeMap::new();
        while let Some(batch) = rows.next().await? {
            for partition in split(&batch, &columns).map_err(&fail)? {
                let path = self.partition_path(folder, by, &partition.values);
                let rows = project(&partition.rows).map_err(&fail)?;
                if !files.contains_key(&path) {
                    if files.len() == MANY_FILES {
                        let why = format!("more than {MANY_FILES} partitions by {}", by.join(", "));
                        return Err(AnswerError::Usage(why));
                    }
                    fs::create_dir_all(&path).map_err(&fail)?;
                    let name = if by.iter().any(|text| text == "frame") {
                        format!("part-0.{extension}")
                    } else {
                        format!("{}.{extension}", path_component(&self.frame.frame))
                    };
                    let file = File::create_new(path.join(name)).map_err(&fail)?;
                    let (schema, parquet) = (rows.schema(), self.parquet_options());
                    let out: AnyOutput<'_> = Box::new(BufWriter::new(file));
                    let encoder = Encoder::with_options(out, self.format, &schema, &parquet);
                    files.insert(path.clone(), encoder.map_err(&fail)?);
                }
                if let Some(encoder) = files.get_mut(&path) {
                    encoder.write(&rows).map_err(&fail)?;
                }
            }
        }
        for encoder in files.into_values() {
            encoder.finish().map_err(&fail)?;
        }
        Ok(())
    }
}

/// The columns of rows among those of `--partition-by`.
fn partition_columns(schema: &SchemaRef, by: &[String]) -> Result<Vec<usize>, AnswerError> {
    let column = |name: &String| {
        schema.index_of(name).map_err(|_| {
            let available = schema.fields().iter().map(|field| field.name().clone()).collect();
            AnswerError::from(QueryError::NoColumn { name: name.clone(), nearest: None, available })
        })
    };
    by.iter().filter(|name| *name != "frame").map(column).collect()
}

/// Rows of a batch with equal values in the partition columns.
struct Partition {
    values: Vec<Option<String>>,
    rows: RecordBatch,
}

/// Divides the rows of a batch by the values of some columns.
fn split(batch: &RecordBatch, by: &[usize]) -> io::Result<Vec<Partition>> {
    let texts = by.iter().map(|&index| cast(batch.column(index), &DataType::Utf8));
    let texts: Vec<_> = texts.collect::<Result<_, _>>().map_err(io::Error::other)?;
    let mut parts: BTreeMap<Vec<Option<&str>>, Vec<u32>> = BTreeMap::new();
    for row in 0..batch.num_rows() {
        let values = texts.iter().map(|column| {
            let column = column.as_string::<i32>();
            column.is_valid(row).then(|| column.value(row))
        });
        parts.entry(values.collect()).or_default().push(row as u32);
    }
    let part = |(values, rows): (Vec<Option<&str>>, Vec<u32>)| {
        let values = values.into_iter().map(|value| value.map(str::to_owned)).collect();
        let rows = if rows.len() == batch.num_rows() {
            batch.clone()
        } else {
            take_record_batch(batch, &UInt32Array::from(rows)).map_err(io::Error::other)?
        };
        Ok(Partition { values, rows })
    };
    parts.into_iter().map(part).collect()
}

/// Rows in the order of the files: one partition after the other.
struct OrderedRows {
    schema: SchemaRef,
    parts: std::collections::VecDeque<ppt_query::datafusion::execution::SendableRecordBatchStream>,
}

impl OrderedRows {
    async fn collect(rows: DataFrame) -> Result<OrderedRows, QueryError> {
        let context = rows.task_ctx();
        let plan = rows.create_physical_plan().await?;
        let schema = plan.schema();
        let parts = match plan.output_partitioning().partition_count() {
            0 => Vec::new(),
            _ => execute_stream_partitioned(plan, context.into())?,
        };
        Ok(OrderedRows { schema, parts: parts.into() })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        run::pause().await;
        while let Some(part) = self.parts.front_mut() {
            match part.next().await {
                Some(batch) => return Ok(Some(batch?)),
                None => _ = self.parts.pop_front(),
            }
        }
        Ok(None)
    }
}
