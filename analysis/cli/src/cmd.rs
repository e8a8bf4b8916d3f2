//! The commands.

pub(crate) mod export;
pub(crate) mod sql;
pub(crate) mod stat;
