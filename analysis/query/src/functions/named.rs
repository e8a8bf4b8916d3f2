//! Finds tables by names that are given as arguments.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{TableReference, plan_err};
use datafusion::error::Result;
use datafusion::execution::SessionState;

/// The table or view with this name.
pub(super) fn table(state: &SessionState, name: &str) -> Result<Arc<dyn TableProvider>> {
    let parts: Vec<&str> = name.split('.').collect();
    let reference = match parts[..] {
        [table] => TableReference::bare(table),
        [schema, table] => TableReference::partial(schema, table),
        _ => return plan_err!("`{name}` is no name of a table"),
    };
    let table = reference.table().to_owned();
    let schema = state.schema_for_ref(reference)?;
    // The tables of a session are in memory: this does not block.
    match futures::executor::block_on(schema.table(&table))? {
        Some(provider) => Ok(provider),
        None => plan_err!("table '{name}' not found"),
    }
}
