//! The contents of a packet.

use std::net::IpAddr;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, LinkSlice, TransportSlice, ether_type};

/// Link types of libpcap (pcap-linktype(7)).
mod link {
    pub const NULL: i32 = 0;
    pub const ETHERNET: i32 = 1;
    /// The number that some systems write for raw IP.
    pub const RAW_OLD: i32 = 12;
    pub const RAW: i32 = 101;
    pub const LOOP: i32 = 108;
    pub const SLL: i32 = 113;
    pub const IPV4: i32 = 228;
    pub const IPV6: i32 = 229;
    pub const SLL2: i32 = 276;
}

/// A packet as it was recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet<'a> {
    /// The time in ns since the epoch; 0 if it is unknown.
    pub ns: i128,
    /// The number of the interface that recorded it, from 0.
    pub interface: u32,
    /// The link type.
    pub link: i32,
    /// The length on the wire in bytes.
    pub wire: u32,
    /// The recorded bytes.
    pub bytes: &'a [u8],
}

/// The names that fields may have, and their meanings.
pub const NAMES: [(&str, &str); 21] = [
    ("time", "when the kernel saw the packet"),
    ("interface", "number of the interface in the file, from 0"),
    ("link", "link type, as in pcap-linktype(7)"),
    ("len", "bytes on the wire"),
    ("caplen", "bytes in the file"),
    ("ethertype", "protocol above the link: 2048 is IPv4"),
    ("vlan", "outermost VLAN id; 0 = none"),
    ("src_mac", "sender's address on the link: bytes[6] or char[17]"),
    ("dst_mac", "receiver's address on the link"),
    ("src", "sender's IP address: char[39], bytes[16], bytes[4] or u32"),
    ("dst", "receiver's IP address"),
    ("proto", "protocol above IP: 6 is TCP, 17 is UDP"),
    ("ttl", "time to live, hop limit"),
    ("src_port", "sender's port"),
    ("dst_port", "receiver's port"),
    ("tcp_seq", "sequence number"),
    ("tcp_ack", "acknowledgement number"),
    ("tcp_flags", "flags: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR"),
    ("tcp_window", "window, not scaled"),
    ("payload_len", "bytes above UDP or TCP, on the wire"),
    ("payload", "the first of them: bytes[N], followed by zeros"),
];

/// A packet's value for a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PacketValue<'a> {
    /// A number.
    Number(u64),
    /// A time, ns since the epoch.
    Time(i128),
    Mac([u8; 6]),
    Ip(IpAddr),
    Bytes(&'a [u8]),
    /// The packet has no such value.
    Nothing,
}

/// The layers of a packet.
pub(crate) struct PacketLayers<'a> {
    packet: Packet<'a>,
    layers: Option<LaxSlicedPacket<'a>>,
}

/// The protocol above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Udp,
    Tcp,
    Other,
}

impl<'a> PacketLayers<'a> {
    pub fn split(packet: Packet<'a>) -> PacketLayers<'a> {
        let bytes = packet.bytes;
        let with_ether_type = |at: usize, rest: usize| {
            let ty = bytes.get(at..at + 2)?;
            let ty = EtherType(u16::from_be_bytes([ty[0], ty[1]]));
            Some(LaxSlicedPacket::from_ether_type(ty, bytes.get(rest..)?))
        };
        let layers = match packet.link {
            link::ETHERNET => LaxSlicedPacket::from_ethernet(bytes).ok(),
            // The byte order is that of the recording host; IP follows in either case.
            link::NULL | link::LOOP => {
                bytes.get(4..).and_then(|byte| LaxSlicedPacket::from_ip(byte).ok())
            }
            link::RAW | link::RAW_OLD | link::IPV4 | link::IPV6 => {
                LaxSlicedPacket::from_ip(bytes).ok()
            }
            link::SLL => with_ether_type(14, 16),
            link::SLL2 => with_ether_type(0, 20),
            _ => None,
        };
        PacketLayers { packet, layers }
    }

    /// The protocol above IP. Only the first fragment has its header.
    pub fn transport(&self) -> Transport {
        match self.transport_slice() {
            Some(TransportSlice::Udp(_)) => Transport::Udp,
            Some(TransportSlice::Tcp(_)) => Transport::Tcp,
            _ => Transport::Other,
        }
    }

    /// The value with the name `name`, one of [`NAMES`].
    pub fn value(&self, name: &str) -> PacketValue<'a> {
        let number = |value: Option<u64>| value.map_or(PacketValue::Nothing, PacketValue::Number);
        let packet = &self.packet;
        match name {
            "time" => PacketValue::Time(packet.ns),
            "interface" => PacketValue::Number(packet.interface.into()),
            "link" => PacketValue::Number(packet.link as u32 as u64),
            "len" => PacketValue::Number(packet.wire.into()),
            "caplen" => PacketValue::Number(packet.bytes.len() as u64),
            "ethertype" => number(self.ether_type()),
            "vlan" => number(self.vlan()),
            "src_mac" => self.mac(6),
            "dst_mac" => self.mac(0),
            "src" => {
                self.addresses().map_or(PacketValue::Nothing, |address| PacketValue::Ip(address.0))
            }
            "dst" => {
                self.addresses().map_or(PacketValue::Nothing, |address| PacketValue::Ip(address.1))
            }
            "proto" => number(self.protocol()),
            "ttl" => number(self.ttl()),
            "src_port" => number(self.ports().map(|port| port.0.into())),
            "dst_port" => number(self.ports().map(|port| port.1.into())),
            "payload_len" => number(self.payload_len()),
            "payload" => self.payload().map_or(PacketValue::Nothing, PacketValue::Bytes),
            _ => match (name, self.transport_slice()) {
                ("tcp_seq", Some(TransportSlice::Tcp(slice))) => {
                    PacketValue::Number(slice.sequence_number().into())
                }
                ("tcp_ack", Some(TransportSlice::Tcp(slice))) => {
                    PacketValue::Number(slice.acknowledgment_number().into())
                }
                ("tcp_flags", Some(TransportSlice::Tcp(slice))) => {
                    PacketValue::Number(slice.header_slice()[13].into())
                }
                ("tcp_window", Some(TransportSlice::Tcp(slice))) => {
                    PacketValue::Number(slice.window_size().into())
                }
                _ => PacketValue::Nothing,
            },
        }
    }

    fn transport_slice(&self) -> Option<&TransportSlice<'a>> {
        self.layers.as_ref()?.transport.as_ref()
    }

    fn net(&self) -> Option<&LaxNetSlice<'a>> {
        self.layers.as_ref()?.net.as_ref()
    }

    fn ether_type(&self) -> Option<u64> {
        let layers = self.layers.as_ref()?;
        let of_net = self.net().map(|net| match net {
            LaxNetSlice::Ipv4(_) => ether_type::IPV4,
            LaxNetSlice::Ipv6(_) => ether_type::IPV6,
            LaxNetSlice::Arp(_) => ether_type::ARP,
        });
        let of_link = || match &layers.link {
            Some(LinkSlice::Ethernet2(slice)) => Some(slice.ether_type()),
            Some(LinkSlice::EtherPayload(slice)) => Some(slice.ether_type),
            _ => None,
        };
        of_net.or_else(of_link).map(|ether_type| ether_type.0.into())
    }

    fn vlan(&self) -> Option<u64> {
        let tags = self.layers.as_ref()?.vlan_ids();
        tags.first().map(|tag| tag.value().into())
    }

    fn mac(&self, at: usize) -> PacketValue<'a> {
        let is_ethernet = self.packet.link == link::ETHERNET;
        let bytes = self.packet.bytes.get(at..at + 6).filter(|_| is_ethernet);
        match bytes.and_then(|byte| byte.try_into().ok()) {
            Some(mac) => PacketValue::Mac(mac),
            None => PacketValue::Nothing,
        }
    }

    /// The source and the destination address.
    fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match self.net()? {
            LaxNetSlice::Ipv4(slice) => {
                let header = slice.header();
                Some((header.source_addr().into(), header.destination_addr().into()))
            }
            LaxNetSlice::Ipv6(slice) => {
                let header = slice.header();
                Some((header.source_addr().into(), header.destination_addr().into()))
            }
            LaxNetSlice::Arp(_) => None,
        }
    }

    fn protocol(&self) -> Option<u64> {
        let payload = self.net()?.ip_payload_ref()?;
        Some(payload.ip_number.0.into())
    }

    fn ttl(&self) -> Option<u64> {
        match self.net()? {
            LaxNetSlice::Ipv4(slice) => Some(slice.header().ttl().into()),
            LaxNetSlice::Ipv6(slice) => Some(slice.header().hop_limit().into()),
            LaxNetSlice::Arp(_) => None,
        }
    }

    /// The source and the destination port.
    fn ports(&self) -> Option<(u16, u16)> {
        match self.transport_slice()? {
            TransportSlice::Udp(slice) => Some((slice.source_port(), slice.destination_port())),
            TransportSlice::Tcp(slice) => Some((slice.source_port(), slice.destination_port())),
            _ => None,
        }
    }

    fn payload(&self) -> Option<&'a [u8]> {
        match self.transport_slice()? {
            TransportSlice::Udp(slice) => Some(slice.payload()),
            TransportSlice::Tcp(slice) => Some(slice.payload()),
            _ => None,
        }
    }

    /// The length of the payload of UDP or TCP on the wire, from the headers. Fewer bytes may have been
    /// recorded.
    fn payload_len(&self) -> Option<u64> {
        let recorded = self.payload()?.len() as u64;
        if self.packet.bytes.len() as u64 >= u64::from(self.packet.wire) {
            return Some(recorded);
        }
        let header = match self.transport_slice()? {
            TransportSlice::Udp(slice) => match slice.length() {
                0 => return Some(recorded),
                len => return Some(u64::from(len).saturating_sub(8)),
            },
            TransportSlice::Tcp(slice) => slice.header_slice(),
            _ => return None,
        };
        let start = |bytes: &[u8]| bytes.as_ptr() as u64;
        let above = start(header) + header.len() as u64;
        let (ip, total) = match self.net()? {
            LaxNetSlice::Ipv4(slice) => {
                (start(slice.header().slice()), u64::from(slice.header().total_len()))
            }
            LaxNetSlice::Ipv6(slice) => {
                (start(slice.header().slice()), 40 + u64::from(slice.header().payload_length()))
            }
            LaxNetSlice::Arp(_) => return None,
        };
        // The header has no length yet if the kernel will send the packet in pieces.
        Some(total.saturating_sub(above - ip).max(recorded))
    }
}
