//! Requests and calls of unmodified programs (`--with net`), as intervals of the threads that worked.

use std::collections::{BTreeSet, HashMap};

use super::row::RowView;

/// A frame of the buffer `net` that is an interval.
pub(super) struct ServiceFrame {
    /// The table in SQL.
    pub table: &'static str,
    /// The name of the interval.
    pub interval: &'static str,
    /// The query for its rows.
    pub query: &'static str,
}

/// The frames that are intervals.
pub(super) const FRAMES: [ServiceFrame; 2] = [
    ServiceFrame {
        table: "net.served",
        interval: "served.request",
        query: "SELECT host, pid, tid, request_start, request_end, port FROM net.served \
                WHERE request_start IS NOT NULL AND request_end >= request_start",
    },
    ServiceFrame {
        table: "net.called",
        interval: "called.call",
        query: "SELECT host, pid, tid, call_start, call_end, port FROM net.called \
                WHERE call_start IS NOT NULL AND call_end >= call_start",
    },
];

/// An interval of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceInterval {
    pub host: String,
    pub pid: i64,
    pub tid: i64,
    pub begin: i64,
    pub end: i64,
    port: i64,
}

/// Collects intervals of services.
#[derive(Debug, Default)]
pub(super) struct ServiceRows {
    intervals: HashMap<&'static str, Vec<ServiceInterval>>,
}

impl ServiceRows {
    /// Adds a row of a frame's query.
    pub fn interval(&mut self, frame: &ServiceFrame, row: &RowView<'_>) -> Option<()> {
        let host = row.text(0).unwrap_or_default().to_owned();
        let (pid, tid, begin, end) = (row.long(1)?, row.long(2)?, row.long(3)?, row.long(4)?);
        let port = row.long(5).unwrap_or_default();
        let interval = ServiceInterval { host, pid, tid, begin, end, port };
        self.intervals.entry(frame.interval).or_default().push(interval);
        Some(())
    }

    /// All intervals with their names: `served.request`, or `served.request@5432` if there are several ports.
    pub fn finish(self) -> impl Iterator<Item = (String, ServiceInterval)> {
        self.intervals.into_iter().flat_map(|(name, intervals)| {
            let ports: BTreeSet<i64> = intervals.iter().map(|interval| interval.port).collect();
            let is_one = ports.len() <= 1;
            intervals.into_iter().map(move |interval| {
                let name =
                    if is_one { name.to_owned() } else { format!("{name}@{}", interval.port) };
                (name, interval)
            })
        })
    }
}
