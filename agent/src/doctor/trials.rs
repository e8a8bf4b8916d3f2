//! Harmless trials of the system calls that attaching needs, because no file shows the filters of
//! our own system calls.

use std::io;

use nix::errno::Errno;
use nix::sys::uio::process_vm_writev;
use nix::unistd::Pid;
use ppt_segment::abi::LOG2_SLOTS;
use ppt_segment::{Created, Geometry, Segment, SegmentIdentity};

use crate::confined::Confined;
use crate::random::{random, random_nonzero};
use crate::system::System;

/// The results of the calls.
#[derive(Debug, Default)]
pub(super) struct Trials {
    pub(super) ptrace: Option<Errno>,
    pub(super) landlock: u32,
    pub(super) writev: Option<Errno>,
    pub(super) segment: Option<io::Error>,
}

impl Trials {
    pub(super) fn run(system: &System) -> Self {
        let Confined { ptrace, landlock } = (system.confined)();
        let ptrace = ptrace.map(Errno::from_raw);
        let writev = process_vm_writev(Pid::this(), &[], &[]).err();
        Self { ptrace, landlock, writev, segment: segment().err() }
    }
}

/// Makes the smallest segment in the same way as `ppt attach`, and drops it.
fn segment() -> io::Result<()> {
    let geometry = Geometry::new(16, *LOG2_SLOTS.start(), 1).map_err(io::Error::other)?;
    let identity = SegmentIdentity { nonce: random_nonzero(), schema_hash: 0, geometry };
    Segment::create(identity, None, Created::default(), || random() as u16).map(drop)
}
