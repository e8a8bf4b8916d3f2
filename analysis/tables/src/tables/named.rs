//! What a file of a table answers with.

use std::fmt::Debug;
use std::sync::Arc;

use crate::table::Table;

/// A table with its name; without a buffer it is a fixed one, which every set has.
#[derive(Debug)]
pub(crate) struct Named {
    pub buffer: Option<String>,
    pub name: String,
    pub table: Arc<dyn Table>,
}

impl Named {
    pub fn fixed(name: &str, table: impl Table + 'static) -> Named {
        Named { buffer: None, name: name.to_owned(), table: Arc::new(table) }
    }
}
