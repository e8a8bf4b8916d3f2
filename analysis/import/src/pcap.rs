//! Packets recorded by tcpdump, Wireshark or another tool: pcap and pcapng.
//!
//! Fields are filled by their names ([`NAMES`]). The `@at` field, with any name, is the time of the packet
//! by CLOCK_REALTIME of the kernel. A frame `udp` takes the UDP datagrams, a frame `tcp` the TCP segments,
//! a frame `packet` all others. A single frame with another name takes all packets.

mod fields;
mod packet;
mod source;

use std::io::{Read, Write};

use ppt_frame_dsl::Schema;

use crate::error::ImportError;
use crate::recording::Recording;
use fields::FilledFrames;
pub use packet::NAMES;
use source::{PacketStep, Packets};

/// The counts of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The number of packets in the input.
    pub packets: u64,
    /// The number of packets that no frame takes.
    pub untaken: u64,
    /// The byte offset at which the input ends in the middle of a packet.
    pub cut: Option<u64>,
}

/// Whether `head` is the beginning of a pcap or pcapng file.
pub fn is_pcap(head: &[u8]) -> bool {
    const MAGICS: [[u8; 4]; 6] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xcd, 0x34],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    MAGICS.iter().any(|magic| head.starts_with(magic))
}

/// Reads packets, and adds a frame to `recording` for each one that a frame of `schema` takes.
///
/// Each interface of the input is a thread of the capture. Their numbers are 1, 2, ….
///
/// # Errors
/// A field that no packet can fill, a value that its field cannot hold, or bytes that are not
/// packets. Frames added before remain. A truncated input is not an error.
pub fn import<W: Write>(
    input: impl Read + Send,
    schema: &Schema,
    recording: &mut Recording<W>,
) -> Result<Imported, ImportError> {
    let kinds = FilledFrames::from_schema(schema)?;
    let mut packets = Packets::open(input)?;
    let mut imported = Imported::default();
    let mut frame = vec![0; recording.stride()];
    loop {
        let step = packets.next(|packet| {
            imported.packets += 1;
            let number = imported.packets;
            let Some(kind) = kinds.taking(&packet) else {
                imported.untaken += 1;
                return Ok(());
            };
            frame.fill(0);
            kind.fill(&packet, &mut frame).map_err(|what| ImportError::Packet { number, what })?;
            let thread = packet.interface.saturating_add(1);
            recording.push(thread, kind.id(), &mut frame).map_err(ImportError::Write)
        })?;
        match step {
            PacketStep::More => {}
            PacketStep::End => return Ok(imported),
            PacketStep::Cut(at) => return Ok(Imported { cut: Some(at), ..imported }),
        }
    }
}
