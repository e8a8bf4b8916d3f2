//! `/v1/about`: captures, processes, rows and names.

use std::collections::BTreeSet;

use ppt_text::escaped;
use serde_json::{Value, json};

use crate::error::HttpRefusal;
use crate::layers;
use crate::row_bytes::causes;
use crate::session::{SessionState, ViewSession};

/// All that a page needs before its first window. `sets` is the number of sets of captures.
pub(crate) fn about(session: &ViewSession, sets: usize) -> Result<Value, HttpRefusal> {
    // The state is older than the rows: what it says is built is in them.
    let SessionState { view: latest, built, troubles, .. } = session.news().borrow().clone();
    let (number, view) = session.view();
    let built = built && latest == number;
    let about = view.about();
    let captures = about.captures.iter().map(|capture| {
        json!({
            "id": capture.id,
            "path": escaped(&capture.path.display().to_string()),
            "host": escaped(&capture.host),
            "ended": capture.has_ended,
            "captured": capture.captured.to_string(),
            "lost": capture.lost.to_string(),
            "dropped": capture.dropped.to_string(),
            "timeError": capture.time_error.to_string(),
        })
    });
    let processes = about.processes.iter().enumerate().map(|(number, process)| {
        json!({
            "number": number,
            "pid": process.pid,
            "exe": escaped(&process.exe),
            "host": escaped(&process.host),
        })
    });
    let engine = session.engine()?;
    let mut table_rows = layers::rows(&engine, &about);
    let mut rows = Vec::new();
    for row in &about.rows {
        rows.push(json!({
            "id": row.id.to_string(),
            "parent": row.parent.map(|parent| parent.to_string()),
            "label": escaped(&row.label),
            "unit": escaped(&row.unit),
            "count": row.count.to_string(),
            "lost": row.lost.to_string(),
            "from": time(row.from),
            "to": time(row.to),
        }));
        rows.extend(table_rows.remove(&row.id).into_iter().flatten());
    }
    let names = about
        .names
        .iter()
        .map(|name| json!({ "name": escaped(&name.name), "buffer": escaped(&name.buffer) }));
    let damage = view.troubles().into_iter().filter(|trouble| trouble.damages > 0).map(|trouble| {
        let path = escaped(&trouble.path.display().to_string());
        format!("{path}: damaged in {} places, whose frames are missing", trouble.damages)
    });
    let names = names.chain(layers::names(&engine));
    let tables = engine.exportable(None).unwrap_or_default();
    let tables: BTreeSet<String> = tables.iter().map(|table| escaped(&table.frame)).collect();
    Ok(json!({
        "version": 1,
        "view": number,
        "command": session.command,
        "sets": sets,
        "captures": captures.collect::<Vec<_>>(),
        "processes": processes.collect::<Vec<_>>(),
        "rows": rows,
        "names": names.collect::<Vec<_>>(),
        "tables": tables,
        "causes": causes(),
        "from": time(about.from),
        "to": time(about.to),
        "progress": { "done": about.progress.done, "total": about.progress.frames },
        "built": built,
        "live": session.is_live(&view),
        "troubles": damage.chain(troubles).collect::<Vec<_>>(),
    }))
}

fn time(ns: Option<i64>) -> Option<String> {
    ns.map(|ns| ns.to_string())
}
