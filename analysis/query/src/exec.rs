//! How tables are read inside DataFusion: a scan, and a pass over its sorted rows.

mod pass;
mod scan;

pub(crate) use pass::PassExec;
pub(crate) use scan::ScanExec;
