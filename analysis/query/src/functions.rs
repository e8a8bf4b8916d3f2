//! What is added to SQL: one file here, and one line in [`register`].

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{TableReference, plan_err};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use ppt_tables::CaptureSet;

mod bucket;
mod overlap;
mod paths;

/// Makes every function known to `context`.
pub(crate) fn register(context: &SessionContext, set: &Arc<CaptureSet>) {
    context.register_udf(bucket::function());
    context.register_udtf("overlap", overlap::function());
    context.register_udtf("paths", paths::paths(set));
    context.register_udtf("critical_path", paths::critical_path(set));
}

/// The table or view that is called so.
fn table(state: &SessionState, name: &str) -> Result<Arc<dyn TableProvider>> {
    let parts: Vec<&str> = name.split('.').collect();
    let reference = match parts[..] {
        [table] => TableReference::bare(table),
        [schema, table] => TableReference::partial(schema, table),
        _ => return plan_err!("`{name}` is no name of a table"),
    };
    let table = reference.table().to_owned();
    let schema = state.schema_for_ref(reference)?;
    // The tables of a session are in memory: this waits for nothing.
    match futures::executor::block_on(schema.table(&table))? {
        Some(provider) => Ok(provider),
        None => plan_err!("table '{name}' not found"),
    }
}
