//! Views of the frames that the crate `ppt-tracing` wrote: spans and events with their place in the
//! program and the names of their fields.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::last_value;
use datafusion::logical_expr::{JoinType, SortExpr};
use datafusion::prelude::{DataFrame, Expr, SessionContext, cast, ident};

use crate::functions::tracing_fields;

/// The table of callsites: buffer and frame. Two of its columns are renamed, so that their names differ
/// from those in the tables that it is joined to.
const SITES: (&str, &str) = ("callsites", "callsite");
const SITE_ID: &str = "callsite_id";
const SITE_FIELDS: &str = "callsite_fields";

/// Views: name, table in the buffer `tracing`, and prefix of that table's columns.
const VIEWS: [(&str, &str, &str); 3] = [
    ("tracing_events", "event", ""),
    ("tracing_spans", "task_spans", "begin_"),
    ("tracing_recorded", "recorded", ""),
];

/// The views whose tables exist. `table` finds a table by its buffer and its name.
pub(crate) fn views(
    context: &SessionContext,
    table: impl Fn(&str, &str) -> Option<Arc<dyn TableProvider>>,
) -> Result<Vec<(&'static str, Arc<dyn TableProvider>)>> {
    let Some(sites) = table(SITES.0, SITES.1) else { return Ok(Vec::new()) };
    let mut views = Vec::new();
    for (view, name, prefix) in VIEWS {
        let Some(shown) = table("tracing", name) else { continue };
        let Some(sites) = described(context.read_table(sites.clone())?)? else { continue };
        if let Some(frames) = joined(context.read_table(shown)?, sites, prefix)? {
            views.push((view, frames.into_view()));
        }
    }
    Ok(views)
}

/// One row for each callsite. Its frame is written once for each session and process, so the latest one
/// is taken.
fn described(sites: DataFrame) -> Result<Option<DataFrame>> {
    let wanted = ["id", "file", "line", "fields", "ts"];
    if !has(&sites, &wanted) {
        return Ok(None); // frames of the same name from another source
    }
    let latest = || vec![SortExpr::new(ident("ts"), true, true)];
    let texts = ["file", "fields"].map(|name| last_value(text(name), latest()).alias(name));
    let line = last_value(ident("line"), latest()).alias("line");
    let sites = sites.aggregate(vec![ident("id")], texts.into_iter().chain([line]).collect())?;
    let renamed = sites.select(vec![
        ident("id").alias(SITE_ID),
        ident("file"),
        ident("line"),
        ident("fields").alias(SITE_FIELDS),
    ])?;
    Ok(Some(renamed))
}

/// The rows of `frames`, each with the data of its callsite, and with its numbers by name in the column
/// `fields`.
fn joined(frames: DataFrame, sites: DataFrame, prefix: &str) -> Result<Option<DataFrame>> {
    let numbers = ["types", "a", "b", "c", "d", "x", "y"].map(|name| format!("{prefix}{name}"));
    let callsite = format!("{prefix}callsite");
    let wanted: Vec<&str> = numbers.iter().chain([&callsite]).map(String::as_str).collect();
    if !has(&frames, &wanted) {
        return Ok(None);
    }
    let hidden = |name: &str| wanted.contains(&name);
    let mut columns: Vec<Expr> = frames
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .filter(|name| !hidden(name))
        .map(ident)
        .collect();
    let mut arguments = vec![text(SITE_FIELDS)];
    arguments.push(cast(ident(&numbers[0]), DataType::Binary));
    arguments.extend(numbers[1..].iter().map(ident));
    columns.extend([tracing_fields(arguments).alias("fields"), ident("file"), ident("line")]);
    let both = frames.join(sites, JoinType::Left, &[&callsite], &[SITE_ID], None)?;
    Ok(Some(both.select(columns)?))
}

fn text(column: &str) -> Expr {
    cast(ident(column), DataType::Utf8)
}

fn has(frame: &DataFrame, columns: &[&str]) -> bool {
    columns.iter().all(|name| frame.schema().field_with_unqualified_name(name).is_ok())
}
