//! Triggers of the flight recorder.

use ppt_query::Engine;

use crate::error::ReportError;
use crate::text_rows;

/// Maximum number of triggers on a page.
const MAX_TRIGGERS: usize = 200;

/// A trigger of the flight recorder.
#[derive(Debug)]
pub struct Trigger {
    /// ns since the epoch.
    pub ts: i64,
    pub why: String,
    pub expression: String,
    pub buffer: String,
    pub seqno: String,
    pub note: String,
}

pub(super) async fn gather(engine: &Engine) -> Result<Vec<Trigger>, ReportError> {
    let sql = format!(
        "SELECT CAST(ts AS BIGINT) AS t, why, expression, buffer, seqno, note FROM triggers \
         WHERE ts IS NOT NULL ORDER BY t LIMIT {MAX_TRIGGERS}"
    );
    let trigger = |row: Vec<String>| {
        let [ts, why, expression, buffer, seqno, note] =
            <[String; 6]>::try_from(row).unwrap_or_default();
        Some(Trigger { ts: ts.parse().ok()?, why, expression, buffer, seqno, note })
    };
    Ok(text_rows::query(engine, &sql).await?.into_iter().filter_map(trigger).collect())
}
