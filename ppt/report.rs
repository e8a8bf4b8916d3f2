//! Messages on stderr.

pub(crate) use ppt_text::message::*;
