use std::path::Path;

use anyhow::Result;

use crate::peer::{Attached, Peer, Place, cargo, inside};
use crate::process::lines_in;
use crate::program::Program;

pub struct Fastrace;

impl Peer for Fastrace {
    fn name(&self) -> &'static str {
        "fastrace"
    }

    fn about(&self) -> String {
        "spans with properties, 100 to a trace, a reporter that writes lines".into()
    }

    fn build(&self, place: &Place) -> Result<String> {
        cargo(place, self.name(), "fastrace")
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
