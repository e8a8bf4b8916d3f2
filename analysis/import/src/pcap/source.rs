//! Reads packets from the bytes of a file.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use super::packet::Packet;
use crate::error::ImportError;

/// Largest packet in bytes. Linux captures at most 256 KiB of each.
const LARGEST: usize = 16 << 20;
/// Initial size of the buffer in bytes.
const BUFFER: usize = 1 << 20;

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
    /// The input's own error; the parser reports only that there was one.
    failed: Arc<Mutex<Option<io::Error>>>,
    interfaces: Vec<Interface>,
    /// The number of interfaces in earlier sections.
    earlier: u32,
    nanoseconds: bool,
    offset: u64,
    capacity: usize,
}

/// An interface of a capture, or the whole of an older file.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: i32,
    /// Units per second.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
    snaplen: u32,
}

impl<'a> Packets<'a> {
    pub fn open(input: impl Read + Send + 'a) -> Result<Self, ImportError> {
        let failed = Arc::new(Mutex::new(None));
        let input = Remember { input, failed: failed.clone() };
        let reader = create_reader(BUFFER, input).map_err(|error| {
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
            interfaces: Vec::new(),
            earlier: 0,
            nanoseconds: false,
            offset: 0,
            capacity: BUFFER,
        })
    }

    /// Reads one block, and calls `take` if it is a packet.
    pub fn next(
        &mut self,
        take: impl FnOnce(Packet<'_>) -> Result<(), ImportError>,
    ) -> Result<PacketStep, ImportError> {
        let (interfaces, earlier) = (&mut self.interfaces, &mut self.earlier);
        match self.reader.next() {
            Ok((len, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        self.nanoseconds = header.is_nanosecond_precision();
                        let resolution = if self.nanoseconds { 1_000_000_000 } else { 1_000_000 };
                        let (link, offset) = (header.network.0, i64::from(header.thiszone));
                        let snaplen = header.snaplen;
                        interfaces.push(Interface { link, resolution, offset, snaplen });
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let resolution = if self.nanoseconds { 1 } else { 1000 };
                        let rest = u64::from(packet.ts_usec) * resolution;
                        let link = interfaces.first().map_or(0, |interface| interface.link);
                        take(Packet {
                            ns: i128::from(packet.ts_sec) * 1_000_000_000 + i128::from(rest),
                            interface: 0,
                            link,
                            wire: packet.origlen,
                            bytes: packet.data,
                        })?;
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                        *earlier += interfaces.len() as u32;
                        interfaces.clear();
                    }
                    PcapBlockOwned::NG(Block::InterfaceDescription(
                        interface_description_block,
                    )) => {
                        interfaces.push(Interface {
                            link: interface_description_block.linktype.0,
                            resolution: interface_description_block
                                .ts_resolution()
                                .unwrap_or(1_000_000)
                                .max(1),
                            offset: interface_description_block.ts_offset(),
                            snaplen: interface_description_block.snaplen,
                        });
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(enhanced_packet_block)) => {
                        let Some(interface) = interfaces.get(enhanced_packet_block.if_id as usize)
                        else {
                            return Err(ImportError::Format(format!(
                                "byte {}: a packet of interface {}, which the file does not \
                                 describe",
                                self.offset, enhanced_packet_block.if_id
                            )));
                        };
                        take(Packet {
                            ns: interface.ns(u64::from(enhanced_packet_block.ts_high) << 32
                                | u64::from(enhanced_packet_block.ts_low)),
                            interface: *earlier + enhanced_packet_block.if_id,
                            link: interface.link,
                            wire: enhanced_packet_block.origlen,
                            bytes: enhanced_packet_block.packet_data(),
                        })?;
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(simple_packet_block)) => {
                        let Some(interface) = interfaces.first() else {
                            let text = format!("byte {}: a packet of no interface", self.offset);
                            return Err(ImportError::Format(text));
                        };
                        // Its length is that of the wire, or what the interface keeps.
                        let most =
                            if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
                        let len = (simple_packet_block.origlen.min(most) as usize)
                            .min(simple_packet_block.data.len());
                        take(Packet {
                            ns: 0,
                            interface: *earlier,
                            link: interface.link,
                            wire: simple_packet_block.origlen,
                            bytes: &simple_packet_block.data[..len],
                        })?;
                    }
                    PcapBlockOwned::NG(_) => {}
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

    /// A packet exceeds the largest buffer.
    fn grow(&mut self) -> Result<PacketStep, ImportError> {
        self.capacity *= 2;
        if self.capacity > LARGEST || !self.reader.grow(self.capacity) {
            return Err(ImportError::Format(format!(
                "byte {}: a packet of more than {} MiB; the file is damaged",
                self.offset,
                LARGEST >> 20
            )));
        }
        Ok(PacketStep::More)
    }

    fn read_error(&self) -> ImportError {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        ImportError::Read(failed.unwrap_or_else(|| io::ErrorKind::Other.into()))
    }
}

impl Interface {
    /// Converts a time in units of the interface to nanoseconds since the epoch.
    fn ns(self, units: u64) -> i128 {
        let ns = i128::from(units) * 1_000_000_000 / i128::from(self.resolution);
        ns + i128::from(self.offset) * 1_000_000_000
    }
}

/// Reads until the buffer is full, and keeps the input's error. The parser determines the file type
/// from a single read.
struct Remember<R> {
    input: R,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl<R: Read> Read for Remember<R> {
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
