//! The commands.

pub(crate) mod export;
mod prompt;
pub(crate) mod sql;
pub(crate) mod stat;
