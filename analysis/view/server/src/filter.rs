//! `/v1/filter`: the rows with matches of a search, and the numbers of matches.

use serde::{Deserialize, Serialize};

use crate::error::HttpRefusal;
use crate::find::FindCondition;
use crate::session::ViewSession;
use crate::slices::{sql_command, within};
use crate::table::ask;
use crate::threads::thread_row;

/// The most threads that are listed.
const MAX_THREADS: usize = 20_000;

#[derive(Debug, Deserialize)]
pub(crate) struct FilterQuery {
    text: String,
    from: String,
    to: String,
}

/// `command` has the same answer in a terminal. The page adds the time to commands without SQL.
#[derive(Debug, Serialize)]
pub(crate) struct Filter {
    rows: Vec<FilterRow>,
    count: String,
    command: String,
}

/// The row of a thread, and its number of matches.
#[derive(Debug, Serialize)]
struct FilterRow {
    row: String,
    count: String,
}

/// The threads with matches, and the command for a terminal.
pub(crate) async fn filter(
    session: &ViewSession,
    asked: &FilterQuery,
) -> Result<Filter, HttpRefusal> {
    let condition = FindCondition::parse(&asked.text)?;
    let window = within(&asked.from, &asked.to)?;
    let about = session.view().1.about();
    let engine = session.engine()?;
    let found = condition.statement(&engine, "host, pid, tid", &window).await?;
    let sql = format!(
        "SELECT host, pid, tid, count(*) FROM ({found}) AS matches GROUP BY host, pid, tid"
    );
    let table = ask(&engine, &sql, MAX_THREADS).await?;
    let mut rows = Vec::new();
    let mut total = 0;
    for row in &table.rows {
        let [host, pid, tid, count] = &row[..] else { continue };
        let count: u64 = count.as_ref().and_then(|count| count.parse().ok()).unwrap_or(0);
        total += count;
        let number = |cell: &Option<String>| cell.as_ref().and_then(|cell| cell.parse().ok());
        if let Some(row) = thread_row(&about, host.as_deref(), number(pid), number(tid)) {
            rows.push(FilterRow { row: row.to_string(), count: count.to_string() });
        }
    }
    let command = match &condition {
        FindCondition::Name(_) => sql_command(
            &condition
                .statement(&engine, "name, count(*)", &window)
                .await
                .map(|sql| sql + " GROUP BY name")?,
        ),
        FindCondition::Where { frame, text } => {
            let frame = frame.as_ref().map_or_else(String::new, |frame| {
                format!(" --frame {}", crate::frame::quoted(frame))
            });
            format!("ppt stat CAPTURE{frame} --where {}", crate::frame::quoted(text))
        }
    };
    Ok(Filter { rows, count: total.to_string(), command })
}
