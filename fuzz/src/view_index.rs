//! Indexes of views, which lie in a folder of their user: as they are, and as a block with the right checksum.

use ppt_view::{read_index, sealed_index};

/// An index is refused, or its blocks make rows.
pub(crate) fn view_index(input: &[u8]) {
    read_index(input, 1000, 3);
    read_index(&sealed_index(input), 1000, 3);
}
