//! The tables of an export: one for each kind of frame, over all hosts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::prelude::{SessionContext, ident, lit};

use crate::Failure;

/// Registers the kinds of frames in `folder/host=…/frame=…`.
pub async fn register(context: &SessionContext, folder: &str) -> Result<(), Failure> {
    let folder = fs::canonicalize(folder).map_err(|_| Failure::Folder(folder.to_owned()))?;
    let frames = frames(&folder)?;
    if frames.is_empty() {
        return Err(Failure::Folder(folder.display().to_string()));
    }
    let columns = ["host", "frame"].map(|name| (name.to_owned(), DataType::Utf8));
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_file_extension(".parquet")
        .with_table_partition_cols(columns.to_vec());
    for (frame, folders) in frames {
        // A table has the columns of this kind's files on all hosts.
        let mut schemas = Vec::new();
        for folder in &folders {
            let schema = options.infer_schema(&context.state(), &url(folder)?).await?;
            schemas.push(schema.as_ref().clone());
        }
        // A plan names one folder, so the table is the whole folder with one value of `frame`.
        let config = ListingTableConfig::new(url(&folder)?)
            .with_listing_options(options.clone())
            .with_schema(Arc::new(Schema::try_merge(schemas)?));
        let table = context.read_table(Arc::new(ListingTable::try_new(config)?))?;
        let table = table.filter(ident("frame").eq(lit(&frame)))?.drop_columns(&["frame"])?;
        context.register_table(format!("\"{frame}\""), table.into_view())?;
    }
    Ok(())
}

fn url(folder: &Path) -> Result<ListingTableUrl, Failure> {
    Ok(ListingTableUrl::parse(format!("{}/", folder.display()))?)
}

/// The kinds of frames, each with its folders.
fn frames(folder: &Path) -> io::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let named = |entry: &fs::DirEntry, prefix: &str| {
        entry.file_name().to_str().and_then(|name| name.strip_prefix(prefix)).map(str::to_owned)
    };
    for host in fs::read_dir(folder)? {
        let host = host?;
        if named(&host, "host=").is_none() {
            continue;
        }
        for frame in fs::read_dir(host.path())? {
            let frame = frame?;
            if let Some(name) = named(&frame, "frame=") {
                found.entry(name).or_default().push(frame.path());
            }
        }
    }
    Ok(found)
}
