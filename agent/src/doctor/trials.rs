//! System calls that attaching needs, tried where they do no harm: filters of our own system calls
//! show in no file.

use std::io;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::uio::process_vm_writev;
use nix::unistd::Pid;
use ppt_segment::abi::LOG2_SLOTS;
use ppt_segment::{Geometry, Identity, Segment};

use crate::random::{random, random_nonzero};

/// How the calls ended.
#[derive(Debug, Default)]
pub(super) struct Trials {
    pub(super) ptrace: Option<Errno>,
    pub(super) writev: Option<Errno>,
    pub(super) segment: Option<io::Error>,
}

impl Trials {
    pub(super) fn run() -> Self {
        // No pid is that high: a ptrace(2) that gets through finds no process.
        let nobody = Pid::from_raw(i32::MAX);
        let ptrace = ptrace::seize(nobody, ptrace::Options::empty()).err();
        let writev = process_vm_writev(Pid::this(), &[], &[]).err();
        Self { ptrace: ptrace.filter(|&it| it != Errno::ESRCH), writev, segment: segment().err() }
    }
}

/// Makes the smallest segment as `ppt attach` makes its own, and drops it.
fn segment() -> io::Result<()> {
    let geometry = Geometry::new(16, *LOG2_SLOTS.start(), 1).map_err(io::Error::other)?;
    let identity = Identity { nonce: random_nonzero(), schema_hash: 0, geometry };
    Segment::create(identity, None, (0, 0), || random() as u16).map(drop)
}
