//! Finds the row of a thread.

use ppt_view::{About, RowId};

/// The row of a thread. A host or pid of None matches all. A tid of None matches rows of unknown threads.
pub(crate) fn thread_row(
    about: &About,
    host: Option<&str>,
    pid: Option<i64>,
    tid: Option<i64>,
) -> Option<RowId> {
    let mut rows = about.rows.iter();
    let found = rows.find(|row| {
        let (RowId::Thread(_), Some(RowId::Process(process))) = (row.id, row.parent) else {
            return false;
        };
        let Some(process) = about.processes.get(process as usize) else { return false };
        row.tid.map(i64::from) == tid
            && pid.is_none_or(|pid| pid == i64::from(process.pid))
            && host.is_none_or(|host| host == process.host)
    });
    found.map(|row| row.id)
}
