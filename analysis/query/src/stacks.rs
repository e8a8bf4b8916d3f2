//! Reads the stacks of threads.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::{Expr, cast as cast_to, lit};
use datafusion::prelude::{DataFrame, ident};
use ppt_tables::function_part;

use crate::engine::Engine;
use crate::error::QueryError;

/// The name of the frames that have stacks.
const FRAME: &str = "stack";
/// The largest number of functions of a stack: as many as its frame has room for.
const MAX_FUNCTIONS: usize = 30;
/// The number of columns before the functions: `host pid thread ts why depth`.
const OWNER_COLUMNS: usize = 6;

/// The activity of a thread when its stack was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackState {
    Ran,
    Waited,
}

/// Rows of stacks.
pub(crate) struct StackBatch {
    hosts: ArrayRef,
    numbers: [ArrayRef; 4],
    whys: ArrayRef,
    functions: Vec<ArrayRef>,
}

/// The stack of a thread.
pub(crate) struct StackRow<'a> {
    pub host: &'a str,
    pub pid: i64,
    pub thread: i64,
    /// ns since the epoch.
    pub ts: i64,
    pub state: StackState,
    batch: &'a StackBatch,
    row: usize,
    depth: usize,
}

impl Engine {
    /// The innermost functions of these processes' threads, in the order of time, whatever part of the
    /// captures the engine shows.
    pub(crate) fn innermost_of(&self, pids: Vec<i32>) -> Result<Option<DataFrame>, QueryError> {
        let Some(buffer) = self.set().stacks_buffer() else { return Ok(None) };
        let Some(rows) = self.unwindowed_frames(buffer, FRAME)? else { return Ok(None) };
        let rows = rows.filter(ident("pid").in_list(pids.into_iter().map(lit).collect(), false))?;
        let rows = selected(rows, 1)?;
        Ok(Some(rows.sort(vec![ident("c3").sort(true, false)])?))
    }

    /// All functions of all stacks in the part of the captures that the engine shows. A choice of buffers
    /// does not leave them out.
    pub(crate) async fn stacks(&self) -> Result<Option<DataFrame>, QueryError> {
        let Some(buffer) = self.set().stacks_buffer() else { return Ok(None) };
        let shown = self.frames(Some(FRAME)).unwrap_or_default();
        let rows = match shown.into_iter().find(|table| table.buffer == buffer) {
            Some(table) => Some(self.context().table(table.name).await?),
            None => self.unwindowed_frames(buffer, FRAME)?,
        };
        rows.map(|rows| selected(rows, MAX_FUNCTIONS)).transpose()
    }
}

/// Selects the columns that [`StackBatch`] reads, with `functions` functions.
fn selected(rows: DataFrame, functions: usize) -> Result<DataFrame, QueryError> {
    let number = |name: &str| cast_to(ident(name), DataType::Int64);
    let word = |name: &str| cast_to(ident(name), DataType::Utf8);
    let owner =
        [word("host"), number("pid"), number("thread"), number("ts"), word("why"), number("depth")];
    let functions = (0..functions).map(|place| word(&format!("frames_{place}_symbol")));
    let select = owner.into_iter().chain(functions).zip(0..);
    let select: Vec<Expr> =
        select.map(|(column, number)| column.alias(format!("c{number}"))).collect();
    Ok(rows.select(select)?)
}

impl StackBatch {
    pub fn new(batch: &RecordBatch) -> datafusion::error::Result<Self> {
        let text = |at: usize| cast(batch.column(at), &DataType::Utf8);
        let number = |at: usize| cast(batch.column(at), &DataType::Int64);
        let functions = (OWNER_COLUMNS..batch.num_columns()).map(text);
        Ok(Self {
            hosts: text(0)?,
            numbers: [number(1)?, number(2)?, number(3)?, number(5)?],
            whys: text(4)?,
            functions: functions.collect::<Result<_, _>>()?,
        })
    }

    /// The rows, without those that have no thread or no time.
    pub fn rows(&self) -> impl Iterator<Item = StackRow<'_>> {
        (0..self.hosts.len()).filter_map(|row| self.row(row))
    }

    fn row<'a>(&'a self, row: usize) -> Option<StackRow<'a>> {
        let number = |at: usize| {
            let column = self.numbers[at].as_primitive::<Int64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        let text = |column: &'a ArrayRef| {
            if column.is_valid(row) { column.as_string::<i32>().value(row) } else { "" }
        };
        let (host, why) = (text(&self.hosts), text(&self.whys));
        let state = if why == "WAITING" { StackState::Waited } else { StackState::Ran };
        let depth = usize::try_from(number(3)?).ok()?;
        let (pid, thread, ts) = (number(0)?, number(1)?, number(2)?);
        Some(StackRow { host, pid, thread, ts, state, batch: self, row, depth })
    }
}

impl<'a> StackRow<'a> {
    /// The functions of the stack, the innermost first.
    pub fn functions(&self) -> impl Iterator<Item = std::borrow::Cow<'a, str>> + use<'a> {
        let (batch, row) = (self.batch, self.row);
        batch.functions.iter().take(self.depth).map(move |column| {
            if column.is_valid(row) {
                function_part(column.as_string::<i32>().value(row))
            } else {
                "unknown".into()
            }
        })
    }

    /// Whether the stack may have more callers than the frame had room for.
    pub fn is_cut(&self) -> bool {
        self.depth >= MAX_FUNCTIONS
    }
}
