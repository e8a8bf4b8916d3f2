//! The files that a capture goes to.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ppt_listener::{DirectFile, Rotation};

use super::TOOL;
use crate::args;
use crate::code::Code;
use crate::failure::Failure;
use crate::output::Output;
use crate::parts::Parts;

/// The file that frames go to first, and how they go on.
pub(crate) struct Outputs {
    pub(super) first: Output,
    pub(super) rotation: Option<Rotation<File>>,
}

impl Outputs {
    /// Opens what the command line asks for.
    pub(crate) fn open(args: &args::Capture) -> Result<Self, Failure> {
        let Some(every) = args.rotate else {
            let first = Output::open(&args.output, args.force)?;
            return Ok(Self { first, rotation: None });
        };
        if args.to_stdout() {
            return Err(Failure::usage(Code::StdoutTaken, "--rotate makes files; stdout is one"));
        }
        let (parts, mut first) = Parts::open(&args.output, args.force, args.keep)?;
        first.rename(parts.name());
        Ok(Self { first, rotation: Some(parts.rotation(every, TOOL)) })
    }

    /// Whether more files will be made on the way.
    pub(crate) fn are_many(&self) -> bool {
        self.rotation.is_some()
    }

    /// Removes it again: nothing was captured.
    pub(crate) fn discard(self) {
        self.first.discard();
    }
}

/// How each of them is written. Others may have our stdout, too.
pub(super) fn direct(
    args: &args::Capture,
    behind: &Arc<AtomicBool>,
) -> impl Fn(File) -> DirectFile + use<> {
    let (to_stdout, behind) = (args.to_stdout(), behind.clone());
    move |file| match to_stdout {
        true => DirectFile::plain(file),
        false => DirectFile::new(file, behind.clone()),
    }
}
