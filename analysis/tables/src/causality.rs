//! Points: the directory of a set, the identities of data that enters and leaves them, and matching.

mod causes;
mod compact;
mod endpoint;
mod in_memory;
mod matching;
mod point_directory;
mod shown;

pub(crate) use causes::Causes;
pub(crate) use endpoint::Endpoints;
pub(crate) use in_memory::matched_in_memory;
pub(crate) use matching::{HASH, KEY, Matching, WHEN, columns_read, needs_drained};
pub(crate) use point_directory::{DataIdentity, PointDirectory};
pub(crate) use shown::{EdgeColumn, EndColumn, MatchingTable, ShownEnd, edge_column};
