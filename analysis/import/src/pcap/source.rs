//! Reads packets from the bytes of a file.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use super::packet::Packet;
use crate::error::ImportError;

/// The largest packet in bytes. Linux captures at most 256 KiB of each.
const MAX_PACKET: usize = 16 << 20;
/// The initial size of the buffer in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// The result of a step.
pub(crate) enum PacketStep {
    More,
    End,
    /// The input ends in the middle of a packet, at this byte.
    Cut(u64),
}

/// The packets of a file.
pub(crate) struct Packets<'a> {
    reader: Box<dyn PcapReaderIterator + Send + 'a>,
    /// The error of the input, which the parser does not pass on.
    failed: Arc<Mutex<Option<io::Error>>>,
    interfaces: Interfaces,
    /// The number of bytes in the blocks that were read.
    offset: u64,
    /// The size of the buffer in bytes.
    capacity: usize,
}

/// The interfaces of a file.
#[derive(Default)]
struct Interfaces {
    /// The interfaces of this section.
    section: Vec<Interface>,
    /// The number of interfaces in earlier sections.
    earlier: u32,
    /// Whether an older file has nanoseconds instead of microseconds.
    nanoseconds: bool,
}

/// An interface of a capture, or the whole of an older file.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: i32,
    /// The number of units in a second.
    resolution: u64,
    /// The offset of times in seconds.
    offset: i64,
    /// The most bytes that are recorded of a packet. 0 if there is no limit.
    snaplen: u32,
}

impl<'a> Packets<'a> {
    pub fn open(input: impl Read + Send + 'a) -> Result<Self, ImportError> {
        let failed = Arc::new(Mutex::new(None));
        let input = FullReader { input, failed: failed.clone() };
        let reader = create_reader(BUFFER_BYTES, input).map_err(|error| {
            let failed = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (failed, error) {
                (Some(error), _) => ImportError::Read(error),
                (None, PcapError::Eof) => ImportError::Format("the input is empty".to_owned()),
                (None, PcapError::Incomplete(_)) => {
                    ImportError::Format("the pcap file ends within its first header".to_owned())
                }
                (None, _) => ImportError::Format("the input is no pcap file".to_owned()),
            }
        })?;
        Ok(Packets {
            reader,
            failed,
            interfaces: Interfaces::default(),
            offset: 0,
            capacity: BUFFER_BYTES,
        })
    }

    /// Reads one block, and calls `take` if it is a packet.
    pub fn next(
        &mut self,
        take: impl FnOnce(Packet<'_>) -> Result<(), ImportError>,
    ) -> Result<PacketStep, ImportError> {
        match self.reader.next() {
            Ok((len, block)) => {
                if let Some(packet) = self.interfaces.packet(&block, self.offset)? {
                    take(packet)?;
                }
                self.offset += len as u64;
                self.reader.consume(len);
                Ok(PacketStep::More)
            }
            Err(PcapError::Eof) => Ok(PacketStep::End),
            Err(PcapError::Incomplete(_)) => self.read_more(),
            Err(PcapError::UnexpectedEof) => Ok(PacketStep::Cut(self.offset)),
            Err(PcapError::BufferTooSmall) => self.grow(),
            Err(PcapError::ReadError) => Err(self.read_error()),
            Err(_) => Err(ImportError::Format(format!(
                "byte {}: what stands here is no packet; the file is damaged",
                self.offset
            ))),
        }
    }

    fn read_more(&mut self) -> Result<PacketStep, ImportError> {
        if self.reader.reader_exhausted() {
            return Ok(PacketStep::Cut(self.offset));
        }
        match self.reader.refill() {
            Ok(()) => Ok(PacketStep::More),
            Err(PcapError::BufferTooSmall) => self.grow(),
            Err(PcapError::ReadError) => Err(self.read_error()),
            Err(_) => Ok(PacketStep::Cut(self.offset)),
        }
    }

    /// Enlarges the buffer for a large packet.
    ///
    /// # Errors
    /// The packet exceeds [`MAX_PACKET`].
    fn grow(&mut self) -> Result<PacketStep, ImportError> {
        self.capacity *= 2;
        if self.capacity > MAX_PACKET || !self.reader.grow(self.capacity) {
            return Err(ImportError::Format(format!(
                "byte {}: a packet of more than {} MiB; the file is damaged",
                self.offset,
                MAX_PACKET >> 20
            )));
        }
        Ok(PacketStep::More)
    }

    fn read_error(&self) -> ImportError {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        ImportError::Read(failed.unwrap_or_else(|| io::ErrorKind::Other.into()))
    }
}

impl Interfaces {
    /// The packet in a block that begins at byte `offset`. None for a block without a packet; an interface in
    /// it is added.
    fn packet<'b>(
        &mut self,
        block: &'b PcapBlockOwned<'_>,
        offset: u64,
    ) -> Result<Option<Packet<'b>>, ImportError> {
        let packet = match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.nanoseconds = header.is_nanosecond_precision();
                self.section.push(Interface {
                    link: header.network.0,
                    resolution: if self.nanoseconds { 1_000_000_000 } else { 1_000_000 },
                    offset: i64::from(header.thiszone),
                    snaplen: header.snaplen,
                });
                return Ok(None);
            }
            PcapBlockOwned::Legacy(packet) => {
                let ns_per_unit = if self.nanoseconds { 1 } else { 1000 };
                let rest = u64::from(packet.ts_usec) * ns_per_unit;
                Packet {
                    ns: i128::from(packet.ts_sec) * 1_000_000_000 + i128::from(rest),
                    interface: 0,
                    link: self.section.first().map_or(0, |interface| interface.link),
                    wire: packet.origlen,
                    bytes: packet.data,
                }
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.earlier += self.section.len() as u32;
                self.section.clear();
                return Ok(None);
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                self.section.push(Interface {
                    link: description.linktype.0,
                    resolution: description.ts_resolution().unwrap_or(1_000_000).max(1),
                    offset: description.ts_offset(),
                    snaplen: description.snaplen,
                });
                return Ok(None);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = self.section.get(packet.if_id as usize) else {
                    return Err(ImportError::Format(format!(
                        "byte {offset}: a packet of interface {}, which the file does not describe",
                        packet.if_id
                    )));
                };
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                Packet {
                    ns: interface.ns(units),
                    interface: self.earlier + packet.if_id,
                    link: interface.link,
                    wire: packet.origlen,
                    bytes: packet.packet_data(),
                }
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let Some(interface) = self.section.first() else {
                    let text = format!("byte {offset}: a packet of no interface");
                    return Err(ImportError::Format(text));
                };
                let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
                let len = (packet.origlen.min(limit) as usize).min(packet.data.len());
                Packet {
                    ns: 0,
                    interface: self.earlier,
                    link: interface.link,
                    wire: packet.origlen,
                    bytes: &packet.data[..len],
                }
            }
            PcapBlockOwned::NG(_) => return Ok(None),
        };
        Ok(Some(packet))
    }
}

impl Interface {
    /// Converts a time in units of the interface to nanoseconds since the epoch.
    fn ns(self, units: u64) -> i128 {
        let ns = i128::from(units) * 1_000_000_000 / i128::from(self.resolution);
        ns + i128::from(self.offset) * 1_000_000_000
    }
}

/// Reads until the buffer is full, because the parser determines the file type from a single read. Keeps
/// the error of the input.
struct FullReader<R> {
    input: R,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl<R: Read> Read for FullReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        while len < buffer.len() {
            match self.input.read(&mut buffer[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                    *failed = Some(error);
                    return Err(kind.into());
                }
            }
        }
        Ok(len)
    }
}
