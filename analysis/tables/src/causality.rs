//! Which points a set has, what identifies the data that passes them, and what comes of them.

mod causes;
mod endpoint;
mod known;
mod matching;
mod shown;

pub(crate) use causes::Causes;
pub(crate) use endpoint::{Endpoints, hex};
pub(crate) use known::{Identity, Known};
pub(crate) use matching::{HASH, KEY, Matching, WHEN, reads};
pub(crate) use shown::{EdgeColumn, End, EndColumn, Shows, edge_column};
