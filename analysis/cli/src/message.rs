//! Messages on stderr, as `ppt` has them.

pub(crate) use ppt_text::message::*;
