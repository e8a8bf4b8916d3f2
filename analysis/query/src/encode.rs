//! Encodes batches of rows in every format.

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::schema::types::ColumnPath;

use crate::output::{ResultFormat, TextWriter};

/// Rows of a row group.
const ROW_GROUP: usize = 1 << 20;
/// Values that Parquet encodes at a time.
const WRITE_BATCH: usize = 8192;

/// Options of Parquet files.
#[derive(Debug, Clone, Default)]
pub struct ParquetOptions {
    /// Key-value metadata of the file.
    pub metadata: Vec<(String, String)>,
}

/// An output of any type. The writers of Parquet are large, and are compiled for each type.
pub type AnyOutput<'a> = Box<dyn Write + Send + 'a>;

/// Writes batches of rows in a format.
pub struct Encoder<W: Write + Send> {
    writer: FormatWriter<W>,
}

enum FormatWriter<W: Write + Send> {
    Text(TextWriter<W>),
    Arrow(Box<StreamWriter<W>>),
    Parquet(Box<ArrowWriter<W>>),
}

impl<W: Write + Send> std::fmt::Debug for Encoder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Encoder<W> {
    /// An encoder for rows with these columns.
    ///
    /// # Errors
    /// The output fails.
    pub fn new(out: W, format: ResultFormat, schema: &SchemaRef) -> io::Result<Encoder<W>> {
        Encoder::with_options(out, format, schema, &ParquetOptions::default())
    }

    /// An encoder for rows with these columns, with options for Parquet.
    ///
    /// # Errors
    /// The output fails.
    pub fn with_options(
        out: W,
        format: ResultFormat,
        schema: &SchemaRef,
        parquet: &ParquetOptions,
    ) -> io::Result<Encoder<W>> {
        let writer = match format {
            ResultFormat::Arrow => {
                let options = IpcWriteOptions::default()
                    .try_with_compression(None::<CompressionType>)
                    .map_err(arrow_error)?;
                let writer = StreamWriter::try_new_with_options(out, schema, options);
                FormatWriter::Arrow(Box::new(writer.map_err(arrow_error)?))
            }
            ResultFormat::Parquet => {
                // Without Arrow's own schema: some readers fail on its dictionary types.
                let options = ArrowWriterOptions::new()
                    .with_skip_arrow_metadata(true)
                    .with_properties(properties(schema, parquet));
                let writer = ArrowWriter::try_new_with_options(out, schema.clone(), options);
                FormatWriter::Parquet(Box::new(writer.map_err(parquet_error)?))
            }
            text => FormatWriter::Text(TextWriter::new(out, text, schema.clone())),
        };
        Ok(Encoder { writer })
    }

    /// Writes rows.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match &mut self.writer {
            FormatWriter::Text(output) => output.write(batch),
            FormatWriter::Arrow(writer) => writer.write(batch).map_err(arrow_error),
            FormatWriter::Parquet(writer) => writer.write(batch).map_err(parquet_error),
        }
    }

    /// Writes remaining rows, and the end of the format.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(self) -> io::Result<W> {
        let mut out = match self.writer {
            FormatWriter::Text(output) => output.finish()?,
            FormatWriter::Arrow(mut writer) => {
                writer.finish().map_err(arrow_error)?;
                writer.into_inner().map_err(arrow_error)?
            }
            FormatWriter::Parquet(writer) => writer.into_inner().map_err(parquet_error)?,
        };
        // A buffer that is dropped ignores errors.
        out.flush()?;
        Ok(out)
    }
}

/// Dictionaries for words, delta encoding for times and integers, zstd for all.
fn properties(schema: &SchemaRef, parquet: &ParquetOptions) -> WriterProperties {
    let metadata = parquet.metadata.iter();
    let metadata = metadata.map(|(key, text)| KeyValue::new(key.clone(), text.clone()));
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("ppt ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_write_batch_size(WRITE_BATCH)
        .set_key_value_metadata(Some(metadata.collect()));
    for field in schema.fields() {
        let ty = field.data_type();
        if ty.is_integer() || matches!(ty, DataType::Timestamp(..)) {
            let column = ColumnPath::from(vec![field.name().clone()]);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

fn arrow_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

fn parquet_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufWriter;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array};

    use super::*;

    /// A full disk.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn buffered_bytes_are_written_or_an_error() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        for (word, format) in ResultFormat::ALL {
            let out = BufWriter::with_capacity(1 << 20, Full);
            let mut encoder = Encoder::new(out, format, &batch.schema()).unwrap();
            encoder.write(&batch).unwrap();
            let error = encoder.finish().map(drop).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{word}");
        }
    }
}
