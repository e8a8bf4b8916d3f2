//! Which points a set has, what identifies the data that passes them, and what comes of them.

mod causes;
mod compact;
mod endpoint;
mod in_memory;
mod known;
mod matching;
mod shown;

pub(crate) use causes::Causes;
pub(crate) use endpoint::Endpoints;
pub(crate) use in_memory::matched_in_memory;
pub(crate) use known::{DataIdentity, PointDirectory};
pub(crate) use matching::{HASH, KEY, Matching, WHEN, asks_drained, reads};
pub(crate) use shown::{EdgeColumn, EndColumn, ShownEnd, Shows, edge_column};
