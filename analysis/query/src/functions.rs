//! Functions that are added to SQL. Each has a file here and a line in [`register`].

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use ppt_tables::CaptureSet;

mod bucket;
mod field_of;
mod function_of;
mod named;
mod overlap;
mod paths;
mod tracing_fields;

pub(crate) use function_of::function_of;
pub(crate) use tracing_fields::tracing_fields;

/// Registers every function in `context`.
pub(crate) fn register(context: &SessionContext, set: &Arc<CaptureSet>) {
    context.register_udf(bucket::function());
    context.register_udf(field_of::function());
    context.register_udf(function_of::function());
    context.register_udf(tracing_fields::function());
    context.register_udtf("overlap", overlap::function());
    context.register_udtf("paths", paths::paths(set));
    context.register_udtf("critical_path", paths::critical_path(set));
}
