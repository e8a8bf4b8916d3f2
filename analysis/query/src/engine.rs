//! Answers SQL over a set of captures.

mod frame_names;

use std::num::NonZero;
use std::sync::Arc;

use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider,
};
use datafusion::common::TableReference;
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use futures::future::BoxFuture;
use ppt_tables::{CaptureLoss, CaptureSet, CaptureTable, Directory, Total};
use ppt_text::nearest;

use crate::error::{QueryError, external};
use crate::functions;
use crate::keep_apart::KeepApart;
use crate::limits::prepared;
use crate::sql_depth::RECURSION;
use crate::table_provider::ProvidedTable;
use crate::tracing;
use crate::window::Window;

pub use frame_names::KERNEL_BUFFER;

/// An answer to wait for. Each crate that waits for an `async fn` compiles it once more, with all that it waits for:
/// here, DataFusion's planner. A boxed one is compiled in this crate alone.
pub type BoxedAnswer<'a, T> = BoxFuture<'a, Result<T, QueryError>>;

/// The options of an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Bytes of memory for sorts, joins and groups before they spill; None for no limit.
    pub memory: Option<usize>,
    /// Number of parts that are processed in parallel.
    pub threads: usize,
    /// Whether scans skip columns and rows that are not wanted. Answers do not depend on it.
    pub pushdown: bool,
    /// The visible part of the captures.
    pub window: Window,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        EngineOptions { memory: None, threads, pushdown: true, window: Window::default() }
    }
}

/// Answers SQL over a set of captures.
pub struct Engine {
    context: SessionContext,
    set: Arc<CaptureSet>,
    directory: Directory,
    window: Window,
    pushdown: bool,
    memory: Option<usize>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("set", &self.set).finish_non_exhaustive()
    }
}

/// The name of the catalog.
const CATALOG: &str = "captures";

impl Engine {
    /// An engine for `set`.
    ///
    /// # Errors
    /// Frames of the same name do not fit into one table.
    pub fn new(set: CaptureSet, options: &EngineOptions) -> Result<Engine, QueryError> {
        let set = Arc::new(set);
        let directory = Directory::new(&set)?;
        options.window.check(&set)?;
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, Directory::PLAIN)
            .with_create_default_catalog_and_schema(false)
            .with_information_schema(true)
            .with_target_partitions(options.threads.max(1));
        // Names keep the case of frame files.
        let parser = &mut config.options_mut().sql_parser;
        parser.enable_ident_normalization = false;
        parser.recursion_limit = ConfigNonZeroUsize::try_new(RECURSION)?;
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(bytes) = options.memory {
            // The memory that each part of a sort reserves for merging spilled rows. The default would
            // exhaust a small memory.
            let parts = 8 * options.threads.max(1);
            let default = config.options().execution.sort_spill_reservation_bytes;
            config = config.with_sort_spill_reservation_bytes(default.min(bytes / parts));
            runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
        }
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        let catalog = Arc::new(MemoryCatalogProvider::new());
        let tables = directory.buffers().iter().map(|(name, tables)| (name.as_str(), tables));
        let visible = |name: &str, table: &Arc<dyn CaptureTable>| {
            let provided =
                ProvidedTable::new(name, table.clone(), options.pushdown, options.memory);
            options.window.applied(Arc::new(provided), table.as_ref(), &set)
        };
        for (name, tables) in tables.chain([(Directory::PLAIN, directory.plain())]) {
            let schema = MemorySchemaProvider::new();
            for (name, table) in tables {
                schema.register_table(name.clone(), visible(name, table)?)?;
            }
            catalog.register_schema(name, Arc::new(schema))?;
        }
        context.register_catalog(CATALOG, catalog);
        functions::register(&context, &set);
        let table_of_buffer = |buffer: &str, name: &str| {
            visible(name, directory.buffers().get(&Directory::schema_of(buffer))?.get(name)?).ok()
        };
        for (name, view) in tracing::views(&context, table_of_buffer)? {
            if !directory.plain().contains_key(name) {
                context.register_table(name, view)?;
            }
        }
        context.add_analyzer_rule(Arc::new(KeepApart::new()));
        let EngineOptions { memory, pushdown, ref window, .. } = *options;
        Ok(Engine { context, set, directory, window: window.clone(), pushdown, memory })
    }

    /// The captures.
    pub fn set(&self) -> &Arc<CaptureSet> {
        &self.set
    }

    /// Number of parts that are processed in parallel.
    pub fn threads(&self) -> usize {
        self.context.state().config().target_partitions()
    }

    /// DataFusion's own session.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// All tables with their names in SQL.
    pub fn tables(&self) -> Vec<(String, Arc<dyn CaptureTable>)> {
        let plain = self.directory.plain().iter();
        let plain = plain.map(|(name, table)| (name.clone(), table.clone()));
        let of_buffers = self.directory.buffers().iter().flat_map(|(buffer, tables)| {
            let named = |(name, table): (&String, &Arc<dyn CaptureTable>)| {
                (format!("{buffer}.{name}"), table.clone())
            };
            tables.iter().map(named).collect::<Vec<_>>()
        });
        plain.chain(of_buffers).collect()
    }

    /// All rows of a fixed table, also those outside of the window.
    pub(crate) fn unwindowed_table(&self, name: &str) -> Result<Option<DataFrame>, QueryError> {
        let Some(table) = self.directory.plain().get(name) else { return Ok(None) };
        let provided = ProvidedTable::new(name, table.clone(), self.pushdown, self.memory);
        Ok(Some(self.context.read_table(Arc::new(provided))?))
    }

    /// Whether the window has no bounds: all rows of the visible buffers are visible.
    pub fn is_unbounded(&self) -> bool {
        self.window.from.is_none() && self.window.to.is_none()
    }

    /// All rows of a kind of frames, also those outside of the window.
    pub(crate) fn unwindowed_frames(
        &self,
        buffer: &str,
        frame: &str,
    ) -> Result<Option<DataFrame>, QueryError> {
        let mut all = self.directory.frames().iter();
        let Some((_, _, table)) = all.find(|kind| kind.0 == buffer && kind.1 == frame) else {
            return Ok(None);
        };
        let provided = ProvidedTable::new(frame, table.clone(), self.pushdown, self.memory);
        Ok(Some(self.context.read_table(Arc::new(provided))?))
    }

    /// A filter for the visible rows of a table; None if all rows are visible.
    pub(crate) fn filter(&self, table: &dyn CaptureTable) -> Result<Option<Expr>, QueryError> {
        self.window.filter(table, &self.set)
    }

    /// The loss in the visible buffers.
    pub fn loss(&self) -> CaptureLoss {
        self.set.loss(|buffer| self.window.has_buffer(buffer))
    }

    /// The visible buffers with missing frames; empty if all visible buffers have some.
    pub fn buffers_with_loss(&self) -> Vec<&str> {
        let mut buffers: Vec<&str> =
            self.set.buffers().filter(|buffer| self.window.has_buffer(buffer)).collect();
        let all = buffers.len();
        buffers.retain(|name| self.set.loss(|buffer| buffer == *name).missing() > 0);
        if buffers.len() < all { buffers } else { Vec::new() }
    }

    /// The totals of counters and histograms of the visible buffers, over all times.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub fn totals(&self) -> Result<Vec<Total>, QueryError> {
        let totals = self.set.totals(|buffer| self.window.has_buffer(buffer));
        totals.map_err(|error| external(error).into())
    }

    /// Plans one statement.
    ///
    /// # Errors
    /// The statement is no SQL, names an unknown table or column, or exceeds the limits of expressions.
    pub fn sql<'a>(&'a self, statement: &'a str) -> BoxedAnswer<'a, DataFrame> {
        Box::pin(async move {
            let statement = prepared(statement)?;
            self.context.sql(&statement).await.map_err(|error| self.explain(error.into()))
        })
    }

    /// Plans a statement that was read.
    ///
    /// # Errors
    /// The statement names an unknown table or column.
    pub fn logical_plan(&self, statement: Statement) -> BoxedAnswer<'_, LogicalPlan> {
        Box::pin(async move {
            let planned = self.context.state().statement_to_plan(statement).await;
            planned.map_err(|error| self.explain(error.into()))
        })
    }

    /// The rows of a plan. A plan that changes the session does so at once, and has none.
    ///
    /// # Errors
    /// The session refuses the change.
    pub fn execute(&self, plan: LogicalPlan) -> BoxedAnswer<'_, DataFrame> {
        Box::pin(async move {
            let rows = self.context.execute_logical_plan(plan).await;
            rows.map_err(|error| self.explain(error.into()))
        })
    }

    /// Turns an error for an unknown table into one with suggestions.
    pub(crate) fn explain(&self, error: QueryError) -> QueryError {
        let QueryError::Query(query) = &error else { return error };
        let text = query.find_root().to_string();
        let Some((_, rest)) = text.split_once("table '") else { return error };
        let Some((full, rest)) = rest.split_once('\'') else { return error };
        if !rest.starts_with(" not found") {
            return error;
        }
        let name = full.strip_prefix(CATALOG).map_or(full, |text| text.trim_start_matches('.'));
        let name =
            name.strip_prefix(Directory::PLAIN).map_or(name, |text| text.trim_start_matches('.'));
        if let Some(buffers) = self.directory.ambiguous(name) {
            return QueryError::Ambiguous { name: name.to_owned(), buffers: buffers.to_vec() };
        }
        let available: Vec<String> = self.tables().into_iter().map(|(name, _)| name).collect();
        QueryError::NoTable {
            name: name.to_owned(),
            nearest: nearest(name, &available).cloned(),
            available,
        }
    }
}

/// The unit of a table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowUnit {
    /// A frame.
    Frame,
    /// A span: a begin, an end, or both.
    Span,
    /// A chain: all steps of one key.
    Chain,
}

/// A kind of frames, with its table in SQL.
#[derive(Debug, Clone)]
pub struct FrameTable {
    /// Name of the buffer; empty for a table of no buffer.
    pub buffer: String,
    /// Name of the frames, spans or chains, without the buffer.
    pub frame: String,
    /// Name of the table in SQL.
    pub name: TableReference,
    /// The source of the rows.
    pub table: Arc<dyn CaptureTable>,
}
