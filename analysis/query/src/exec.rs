//! Execution plans of tables in DataFusion: scans, and passes over their sorted rows.

mod pass;
mod scan;

pub(crate) use pass::PassExec;
pub(crate) use scan::ScanExec;
