use std::path::Path;

use anyhow::{Result, bail};

use crate::peer::{Attached, Peer, Place, cargo};
use crate::program::Program;

pub struct Tracy;

impl Peer for Tracy {
    fn name(&self) -> &'static str {
        "tracy"
    }

    fn about(&self) -> String {
        "on demand; a zone with a value".into()
    }

    fn build(&self, place: &Place) -> Result<String> {
        cargo(place, self.name(), "tracy-client")
    }

    fn collects(&self) -> Result<()> {
        bail!(
            "its events go to a viewer, which is in no registry here: only what is off is measured"
        )
    }

    fn attach<'a>(
        &'a self,
        _: &'a Place,
        _: &mut Program,
        _: &str,
        _: &'a Path,
        _: Option<u64>,
    ) -> Result<Attached<'a>> {
        bail!("no viewer")
    }
}
