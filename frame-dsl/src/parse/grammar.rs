//! The grammar of `frame.pest`.

use pest_derive::Parser;

#[derive(Parser)]
#[grammar = "frame.pest"]
pub(super) struct FrameGrammar;
