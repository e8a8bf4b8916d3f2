//! Locates the fields of the kernel's frames by the schema of a capture.

use ppt_capture::columns::{EnumNames, Time};
use ppt_capture::frame_dsl::schema::{self, FieldType};

use crate::builder::{Dictionary, EnumKeys};
use crate::kernel::{KernelFrameKind, KernelWord};

/// The reader of the frames of a source.
#[derive(Debug)]
pub(super) struct KernelForm {
    /// Frames carry their kind.
    pub multi: bool,
    /// By frame id.
    pub kinds: Vec<(u16, KernelFrameFields)>,
}

/// The fields of a kind of frames.
#[derive(Debug)]
pub(super) struct KernelFrameFields {
    pub kind: KernelFrameKind,
    pub at: Option<Time>,
    pub since: Option<Time>,
    pub thread: Option<FieldPlace>,
    pub cpu: Option<FieldPlace>,
    /// The first number of the kind's event, such as the call or the waker's kind.
    pub a: Option<NumberField>,
    /// The second number of the kind's event, such as the result or the waker.
    pub b: Option<NumberField>,
    pub name: Option<FieldPlace>,
}

/// System calls below this number are named by it if they have no name.
pub(super) const NUMBERED_CALLS: i128 = 1024;

/// A field with a number, or with a number that stands for a word.
#[derive(Debug)]
pub(super) struct NumberField {
    pub place: FieldPlace,
    /// The keys of the words.
    pub words: Option<EnumKeys>,
}

/// The position of a field in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldPlace {
    pub offset: usize,
    pub len: usize,
    pub signed: bool,
}

impl FieldPlace {
    pub fn bytes(self, frame: &[u8]) -> &[u8] {
        frame.get(self.offset..).map_or(&[], |frame| &frame[..self.len.min(frame.len())])
    }

    pub fn number(self, frame: &[u8]) -> i64 {
        let bytes = self.bytes(frame);
        let negative = self.signed && bytes.last().is_some_and(|byte| byte >> 7 == 1);
        let mut value = [if negative { 0xff } else { 0 }; 8];
        let len = bytes.len().min(8);
        value[..len].copy_from_slice(&bytes[..len]);
        i64::from_le_bytes(value)
    }
}

impl NumberField {
    pub fn read(&self, frame: &[u8]) -> i64 {
        let number = self.place.number(frame);
        match &self.words {
            Some(keys) => keys.get(number.into()).unwrap_or(KernelWord::Other.key()).into(),
            None => number,
        }
    }
}

impl KernelFrameFields {
    pub fn new(
        schema: &schema::Schema,
        frame: &schema::Frame,
        dictionary: &mut Dictionary,
    ) -> Option<KernelFrameFields> {
        let kind = KernelFrameKind::named(&frame.name)?;
        let field = |name: &str| frame.fields.iter().find(|field| field.name == name);
        let place = |field: &schema::Field| {
            let repr = match &field.ty {
                FieldType::Enum { name } => {
                    schema.enum_named(name).map(|declared| declared.repr.signed())
                }
                _ => None,
            };
            let signed = matches!(
                field.ty,
                FieldType::I8 | FieldType::I16 | FieldType::I32 | FieldType::I64
            );
            FieldPlace {
                offset: field.offset as usize,
                len: field.ty.size(schema) as usize,
                signed: repr.unwrap_or(signed),
            }
        };
        let mut value = |name: &str| {
            let field = field(name)?;
            let words = match &field.ty {
                FieldType::Enum { name } => {
                    let mut declared = schema.enum_named(name)?.clone();
                    if field.name == "call" {
                        // The kernel may have calls that are newer than the ppt that captured them.
                        let numbers =
                            (0..NUMBERED_CALLS).map(|number| (number.to_string(), number));
                        declared.values.extend(numbers);
                    }
                    Some(EnumKeys::new(&EnumNames::from_enum(&declared), dictionary))
                }
                _ => None,
            };
            Some(NumberField { place: place(field), words })
        };
        let (a, b) = match kind {
            KernelFrameKind::ThreadStart => ("parent", ""),
            KernelFrameKind::SwitchOut => ("preempted", ""),
            KernelFrameKind::Successor => ("next", ""),
            KernelFrameKind::Wakeup => ("by", "waker"),
            KernelFrameKind::SyscallEnter => ("call", ""),
            KernelFrameKind::SyscallExit => ("call", "result"),
            KernelFrameKind::PageFault => ("kind", "address"),
            KernelFrameKind::Lost => ("", "count"),
            KernelFrameKind::Watched
            | KernelFrameKind::ThreadEnd
            | KernelFrameKind::SwitchIn
            | KernelFrameKind::WatchEnd => ("", ""),
        };
        let (a, b) = (value(a), value(b));
        Some(KernelFrameFields {
            kind,
            at: frame.at().and_then(Time::from_field),
            since: field("since").and_then(Time::from_field),
            thread: field("thread").map(place),
            cpu: field("cpu").map(place),
            a,
            b,
            name: field("name").map(place),
        })
    }
}
