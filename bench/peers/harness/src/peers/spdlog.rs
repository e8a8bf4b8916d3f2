use std::path::Path;

use anyhow::Result;

use crate::peer::{Attached, Peer, Place, compile, inside};
use crate::process::{line, lines_in};
use crate::program::Program;

pub struct Spdlog;

impl Peer for Spdlog {
    fn name(&self) -> &'static str {
        "spdlog"
    }

    fn about(&self) -> String {
        "asynchronous, a queue of 8,192 that loses its oldest; lines of text".into()
    }

    fn build(&self, place: &Place) -> Result<String> {
        let main = place.of("spdlog").join("main.cpp").display().to_string();
        let output = place.built(self.name()).display().to_string();
        let linked = ["-lspdlog", "-lfmt"].map(String::from);
        compile("g++", [main, "-o".into(), output].into_iter().chain(linked))?;
        Ok(format!("spdlog {}", line("pkg-config", &["--modversion", "spdlog"])?))
    }

    fn packages(&self) -> &'static [&'static str] {
        &["libspdlog-dev", "pkg-config"]
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
