use std::path::Path;

use anyhow::Result;

use crate::peer::{Attached, Peer, Place, cargo, inside};
use crate::process::lines_in;
use crate::program::Program;

pub struct Tracing;

impl Peer for Tracing {
    fn name(&self) -> &'static str {
        "tracing"
    }

    fn about(&self) -> String {
        "tracing-appender, non-blocking: lines of text, its own queue of 128,000".into()
    }

    fn build(&self, place: &Place) -> Result<String> {
        cargo(place, self.name(), "tracing-appender")
    }

    fn ways(&self) -> &'static [&'static str] {
        &["stamped", "bare"]
    }

    fn attach<'a>(
        &'a self,
        _: &'a Place,
        program: &mut Program,
        way: &str,
        folder: &'a Path,
        _: Option<u64>,
    ) -> Result<Attached<'a>> {
        inside(program, way, folder, lines_in)
    }
}
