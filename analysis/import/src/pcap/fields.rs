//! The fields of frames that a packet fills.

use std::net::IpAddr;

use ppt_frame_dsl::schema::{Clock, FieldType, Frame, Schema};
use ppt_frame_dsl::{Column, ColumnType, Style, columns};
use ppt_text::{did_you_mean, nearest};

use super::packet::{NAMES, Packet, PacketLayers, PacketValue, Transport};
use crate::cell::CellParser;
use crate::error::ImportError;

/// The kinds of frames that take packets.
pub(crate) struct FilledFrames {
    udp: Option<FilledFrame>,
    tcp: Option<FilledFrame>,
    rest: Option<FilledFrame>,
}

/// A kind of frames with its fields.
pub(crate) struct FilledFrame {
    id: u16,
    fields: Vec<FilledField>,
}

struct FilledField {
    /// The value of the packet, one of [`NAMES`].
    value: &'static str,
    /// The name of the column.
    name: String,
    ty: ColumnType,
    cell: CellParser,
}

impl FilledFrames {
    pub fn from_schema(schema: &Schema) -> Result<FilledFrames, ImportError> {
        let kind = |name: &str| {
            let id = schema.frames.iter().position(|frame| frame.name == name);
            id.map(|id| FilledFrame::from_schema(schema, id)).transpose()
        };
        let mut kinds =
            FilledFrames { udp: kind("udp")?, tcp: kind("tcp")?, rest: kind("packet")? };
        let is_known = |frame: &Frame| ["udp", "tcp", "packet"].contains(&frame.name.as_str());
        match &schema.frames[..] {
            [only] if !is_known(only) => kinds.rest = Some(FilledFrame::from_schema(schema, 0)?),
            frames => {
                if let Some(other) = frames.iter().find(|frame| !is_known(frame)) {
                    return Err(ImportError::Frames(format!(
                        "no packet becomes a frame {}: of several frames, `udp`, `tcp` and `packet` \
                         take packets",
                        other.name
                    )));
                }
            }
        }
        Ok(kinds)
    }

    /// The kind of frames that takes `packet`.
    pub fn taking(&self, packet: &Packet<'_>) -> Option<&FilledFrame> {
        let by_layer = match PacketLayers::split(*packet).transport() {
            Transport::Udp => self.udp.as_ref(),
            Transport::Tcp => self.tcp.as_ref(),
            Transport::Other => None,
        };
        by_layer.or(self.rest.as_ref())
    }
}

impl FilledFrame {
    fn from_schema(schema: &Schema, id: usize) -> Result<FilledFrame, ImportError> {
        let frame = &schema.frames[id];
        let mut fields = Vec::new();
        for column in columns(schema, frame, Style::Sql) {
            if matches!(column.ty, ColumnType::Length { .. }) {
                continue;
            }
            fields.push(FilledField::from_column(schema, frame, column)?);
        }
        Ok(FilledFrame { id: id as u16, fields })
    }

    pub fn id(&self) -> u16 {
        self.id
    }

    /// Fills `frame` from `packet`. Fields without a value stay 0.
    ///
    /// # Errors
    /// The name of a field that cannot hold its value, and the reason.
    pub fn fill(&self, packet: &Packet<'_>, frame: &mut [u8]) -> Result<(), String> {
        let layers = PacketLayers::split(*packet);
        self.fields.iter().try_for_each(|field| field.fill(layers.value(field.value), frame))
    }
}

impl FilledField {
    fn from_column(
        schema: &Schema,
        frame: &Frame,
        column: Column,
    ) -> Result<FilledField, ImportError> {
        let field = &frame.fields[column.field];
        let place = format!("{}.{}", frame.name, column.name);
        let name = if field.at { "time" } else { field.name.as_str() };
        let Some((value, _)) = NAMES.iter().find(|entry| entry.0 == name) else {
            let near = did_you_mean(&nearest(name, NAMES.iter().map(|name| name.0)));
            let names = NAMES.map(|name| name.0).join(", ");
            return Err(ImportError::Frames(format!(
                "{place}: a packet has nothing of this name{near}. It has {names}"
            )));
        };
        let needs = |what: &str| ImportError::Frames(format!("{place} must be {what}"));
        let ty = column.ty;
        let holds = |bytes: u32| match ty {
            ColumnType::Int(int) | ColumnType::Enum { repr: int, .. } => {
                let max = match bytes {
                    1 => i128::from(u8::MAX),
                    2 => i128::from(u16::MAX),
                    _ => i128::from(u32::MAX),
                };
                int.range().1 >= max
            }
            _ => false,
        };
        let (fits, wanted) = match *value {
            "time" => {
                let is_wall = matches!(
                    field.ty,
                    FieldType::Timeval
                        | FieldType::Ns { clock: Clock::Realtime }
                        | FieldType::Timespec { clock: Clock::Realtime }
                );
                (is_wall, "a time of the clock `realtime`, as the kernel's time stamps are")
            }
            "src" | "dst" => (
                match ty {
                    ColumnType::Text { len } => len >= 39,
                    ColumnType::Bytes { len } => len == 16 || len == 4,
                    _ => holds(4),
                },
                "char[39], bytes[16], bytes[4] or u32",
            ),
            "src_mac" | "dst_mac" => (
                match ty {
                    ColumnType::Text { len } => len >= 17,
                    ColumnType::Bytes { len } => len == 6,
                    _ => false,
                },
                "char[17] or bytes[6]",
            ),
            "payload" => (matches!(ty, ColumnType::Bytes { .. }), "bytes[N]"),
            "proto" | "ttl" | "tcp_flags" => (holds(1), "an integer of 8 bits or more"),
            "len" | "caplen" | "payload_len" | "interface" | "tcp_seq" | "tcp_ack" => {
                (holds(4), "an integer of 32 bits or more, such as u32")
            }
            _ => (holds(2), "an integer of 16 bits or more, such as u16"),
        };
        if !fits || field.array.is_some() {
            return Err(needs(wanted));
        }
        let cell = CellParser::for_column(schema, &column, 1).ok_or_else(|| needs(wanted))?;
        Ok(FilledField { value, name: column.name, ty, cell })
    }

    fn fill(&self, value: PacketValue<'_>, frame: &mut [u8]) -> Result<(), String> {
        let number = |frame: &mut [u8], value: u64| match self.ty {
            ColumnType::Int(int) | ColumnType::Enum { repr: int, .. } => self
                .cell
                .number(frame, int, value.into())
                .map_err(|error| format!("{}: {error}", self.name)),
            _ => Ok(()),
        };
        match (value, self.ty) {
            (PacketValue::Nothing, _) => Ok(()),
            (PacketValue::Number(value), _) => number(frame, value),
            (PacketValue::Time(ns), ColumnType::Time(ty)) => {
                let ns = i64::try_from(ns);
                let ns = ns.map_err(|_| format!("{}: the time is after 2262", self.name))?;
                self.cell.time(frame, ty, ns);
                Ok(())
            }
            (PacketValue::Ip(address), ColumnType::Text { .. }) => {
                self.cell.bytes(frame, address.to_string().as_bytes());
                Ok(())
            }
            (PacketValue::Ip(IpAddr::V4(address)), ColumnType::Bytes { len: 4 }) => {
                self.cell.bytes(frame, &address.octets());
                Ok(())
            }
            (PacketValue::Ip(IpAddr::V4(address)), ColumnType::Bytes { .. }) => {
                self.cell.bytes(frame, &address.to_ipv6_mapped().octets());
                Ok(())
            }
            (PacketValue::Ip(IpAddr::V6(address)), ColumnType::Bytes { len: 16 }) => {
                self.cell.bytes(frame, &address.octets());
                Ok(())
            }
            (PacketValue::Ip(IpAddr::V4(address)), _) => number(frame, u32::from(address).into()),
            (PacketValue::Ip(IpAddr::V6(address)), _) => Err(format!(
                "{}: {address} is an IPv6 address; the field holds only IPv4. Make it char[39] or \
                 bytes[16]",
                self.name
            )),
            (PacketValue::Mac(mac), ColumnType::Text { .. }) => {
                let text = mac.map(|byte| format!("{byte:02x}")).join(":");
                self.cell.bytes(frame, text.as_bytes());
                Ok(())
            }
            (PacketValue::Mac(mac), _) => {
                self.cell.bytes(frame, &mac);
                Ok(())
            }
            (PacketValue::Bytes(bytes), ColumnType::Bytes { len }) => {
                self.cell.bytes(frame, &bytes[..bytes.len().min(len as usize)]);
                Ok(())
            }
            (PacketValue::Bytes(_) | PacketValue::Time(_), _) => Ok(()),
        }
    }
}
