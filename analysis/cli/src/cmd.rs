//! The commands.

pub(crate) mod compare;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod graph;
pub(crate) mod import;
mod input;
pub(crate) mod model;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod sql;
pub(crate) mod stat;
pub(crate) mod top;
pub(crate) mod view;
pub(crate) mod whatif;
pub(crate) mod why;
