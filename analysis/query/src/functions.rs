//! What is added to SQL: one file here, and one line in [`register`].

use datafusion::prelude::SessionContext;

mod bucket;
mod overlap;

/// Makes every function known to `context`.
pub(crate) fn register(context: &SessionContext) {
    context.register_udf(bucket::function());
    context.register_udtf("overlap", overlap::function());
}
