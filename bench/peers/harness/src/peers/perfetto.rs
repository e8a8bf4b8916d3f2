use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::peer::{Attached, Collected, Peer, Place, Said, cargo, inside};
use crate::program::Program;

pub struct Perfetto;

/// Fields of TracePacket.
const TRACK_EVENT: u64 = 11;
const PREVIOUS_PACKET_DROPPED: u64 = 42;

/// A protobuf varint.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The next field of a protobuf message: its number, and its bytes if it has a length.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let tag = varint(bytes)?;
    let length = match tag & 7 {
        0 => {
            varint(bytes)?;
            0
        }
        1 => 8,
        2 => usize::try_from(varint(bytes)?).ok()?,
        5 => 4,
        _ => return None,
    };
    let (value, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some((tag >> 3, value))
}

/// Packets with an event in a trace, and packets that say that some before them are missing.
fn count(mut trace: &[u8]) -> Option<(u64, u64)> {
    let (mut events, mut gaps) = (0, 0);
    while !trace.is_empty() {
        let (_, mut packet) = field(&mut trace)?;
        while !packet.is_empty() {
            let (number, _) = field(&mut packet)?;
            events += u64::from(number == TRACK_EVENT);
            gaps += u64::from(number == PREVIOUS_PACKET_DROPPED);
        }
    }
    Some((events, gaps))
}

impl Peer for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }

    fn about(&self) -> String {
        "in-process session, 64 MiB read at the end; instants with debug arguments".into()
    }

    fn build(&self, place: &Place) -> Result<String> {
        cargo(place, self.name(), "perfetto-sdk")
    }

    fn idle(&self, place: &Place) -> Result<Program> {
        // It says when sessions begin and end.
        let mut command = Command::new(place.built(self.name()));
        command.stderr(Stdio::null());
        Program::start(command)
    }

    fn attach<'a>(
        &'a self,
        _: &'a Place,
        program: &mut Program,
        way: &str,
        folder: &'a Path,
        _: Option<u64>,
    ) -> Result<Attached<'a>> {
        let mut attached = inside(program, way, folder, |_| Ok(0))?;
        let (file, inside) = (folder.join("collected"), attached.stop);
        attached.stop = Box::new(move |program: &mut Program| {
            let collected = inside(program)?;
            let (events, gaps) = count(&std::fs::read(&file)?).context("not a trace")?;
            Ok(Collected { events, said: Said::Somewhere(gaps), ..collected })
        });
        Ok(attached)
    }
}
