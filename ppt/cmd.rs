//! The commands, one in each file.

pub(crate) mod attach;
pub(crate) mod choose;
pub(crate) mod completion;
pub(crate) mod demo;
pub(crate) mod detach;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod explain;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod other;
pub(crate) mod restore_weights;
pub(crate) mod run;
pub(crate) mod select;
pub(crate) mod serve_metrics;
pub(crate) mod top;
pub(crate) mod trigger;
pub(crate) mod view;
pub(crate) mod whatif;
pub(crate) mod with;
