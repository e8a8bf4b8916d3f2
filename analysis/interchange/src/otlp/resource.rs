//! The resources of a trace: processes, with their programs and losses.

use std::collections::BTreeMap;

use ppt_query::arrow::array::{Array, AsArray};
use ppt_query::arrow::datatypes::Int64Type;
use ppt_query::{Engine, Processes, QueryError, dropped_causes};

use super::attributes::{int, text};
use super::message::{KeyValue, Resource};
use crate::event::is_loss;

/// Programs and losses of processes, by [number](Processes::find).
#[derive(Debug, Clone, Default)]
pub struct Resources {
    build_ids: BTreeMap<usize, String>,
    /// Frames that were captured, lost and dropped.
    accounts: BTreeMap<usize, [i64; 3]>,
}

impl Resources {
    /// Reads them from the captures of an engine.
    ///
    /// # Errors
    /// A capture cannot be read, or the query is cancelled or exceeds its memory.
    pub async fn new(engine: &Engine, processes: &Processes) -> Result<Resources, QueryError> {
        let mut all = Resources::default();
        let account = "SELECT arrow_cast(capture, 'Utf8'), arrow_cast(pid, 'Int64'), \
                       arrow_cast(cause, 'Utf8'), arrow_cast(sum(count), 'Int64') \
                       FROM account GROUP BY 1, 2, 3";
        for batch in engine.sql(account).await?.collect().await? {
            let (captures, causes) = (batch.column(0).as_string::<i32>(), batch.column(2));
            let (pids, counts) = (batch.column(1), batch.column(3));
            let long = |row: usize, of: &dyn Array| of.as_primitive::<Int64Type>().value(row);
            for row in 0..batch.num_rows() {
                let pid = i32::try_from(long(row, pids)).ok();
                let process = processes.find(captures.value(row), None, pid);
                let account = all.accounts.entry(process).or_default();
                let at = match causes.as_string::<i32>().value(row) {
                    "captured" => 0,
                    cause if dropped_causes().contains(&cause) => 2,
                    cause if is_loss(cause) => 1,
                    _ => continue,
                };
                account[at] = account[at].saturating_add(long(row, counts));
            }
        }
        let modules = "SELECT DISTINCT arrow_cast(capture, 'Utf8'), arrow_cast(pid, 'Int64'), \
                       arrow_cast(path, 'Utf8'), build_id FROM modules \
                       WHERE build_id IS NOT NULL AND build_id <> '' ORDER BY 1, 2, 3, 4";
        for batch in engine.sql(modules).await?.collect().await? {
            let text = |at: usize| batch.column(at).as_string::<i32>();
            let pids = batch.column(1).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let pid = i32::try_from(pids.value(row)).ok();
                let process = processes.find(text(0).value(row), None, pid);
                if processes.get(process).exe == text(2).value(row) {
                    all.build_ids.entry(process).or_insert(text(3).value(row).to_owned());
                }
            }
        }
        Ok(all)
    }

    /// The same without losses, which are known once a capture has ended.
    pub(super) fn of_growing(self) -> Resources {
        Resources { accounts: BTreeMap::new(), ..self }
    }

    /// The resource of a process.
    pub(super) fn resource(&self, processes: &Processes, number: usize) -> Resource {
        let process = processes.get(number);
        let name = process.exe.rsplit('/').next().unwrap_or_default();
        // Backends show this name for a service without one.
        let service = if name.is_empty() { "unknown_service" } else { name };
        let mut all = vec![text("service.name", service)];
        let mut add = |key: &str, word: &str| {
            if !word.is_empty() {
                all.push(text(key, word));
            }
        };
        add("host.name", &process.host);
        add("process.executable.name", name);
        add("process.executable.path", &process.exe);
        if let Some(build_id) = self.build_ids.get(&number) {
            add("process.executable.build_id.gnu", build_id);
        }
        add("ppt.boot_id", &process.boot);
        if process.pid != 0 {
            all.push(int("process.pid", process.pid.into()));
        }
        all.extend(self.account(number));
        Resource { attributes: all }
    }

    fn account(&self, number: usize) -> Vec<KeyValue> {
        let Some(&[captured, lost, dropped]) = self.accounts.get(&number) else {
            return Vec::new();
        };
        let written = captured.saturating_add(lost).saturating_add(dropped);
        vec![
            int("ppt.frames.written", written),
            int("ppt.frames.captured", captured),
            int("ppt.frames.lost", lost),
            int("ppt.frames.dropped", dropped),
        ]
    }
}
