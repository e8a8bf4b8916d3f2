//! What a chunk's head says about its frames: when, and which kinds.

use ppt_capture::frame_dsl::Schema;
use ppt_capture::frame_dsl::schema::{Clock, FRAME_ID_OFFSET, Field, FieldType};

/// Where the frames of a buffer hold their time and their kind.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// The `@at` field of each frame, by frame id.
    at: Vec<Option<At>>,
    /// Frames carry their id.
    multi: bool,
}

/// What a chunk's head says; each is 0 = unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub t_min: u64,
    pub t_max: u64,
    pub frame_mask: u64,
}

/// One `@at` field.
#[derive(Debug, Clone, Copy)]
struct At {
    offset: usize,
    /// Nanoseconds of a unit of the word that follows; 0 = there is none, the field is one number.
    fraction: u64,
}

/// What numbers of two fields must have in common to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Ns(Clock),
    Ticks,
}

impl Stamps {
    /// Of frames with the schema `json`; one that cannot be read leaves everything unknown.
    pub fn of(json: &[u8]) -> Self {
        let Ok(schema) = Schema::from_json(json) else { return Self::default() };
        let fields: Vec<Option<&Field>> = schema.frames.iter().map(|frame| frame.at()).collect();
        let mut scales = fields.iter().flatten().filter_map(|field| scale(&field.ty));
        let first = scales.next();
        // Times of different clocks have no least one.
        let at = if scales.all(|scale| Some(scale) == first) {
            fields.into_iter().map(|field| field.and_then(At::of)).collect()
        } else {
            vec![None; schema.frames.len()]
        };
        Self { at, multi: schema.multi() }
    }

    /// Of the frames in `bytes`. Times of 0 were not taken, and do not count.
    pub fn stamp(&self, bytes: &[u8], stride: usize) -> Stamp {
        let mut stamp = Stamp::default();
        if self.at.is_empty() {
            return stamp;
        }
        if !self.multi {
            stamp.frame_mask = 1;
            if self.at[0].is_none() {
                return stamp;
            }
        }
        for frame in bytes.chunks_exact(stride) {
            let id = if self.multi { word(frame, FRAME_ID_OFFSET as usize) as u16 } else { 0 };
            stamp.frame_mask |= 1 << id.min(63);
            let at = self.at.get(usize::from(id)).copied().flatten();
            let time = at.map_or(0, |at| at.time(frame));
            if time != 0 {
                stamp.t_min = if stamp.t_min == 0 { time } else { stamp.t_min.min(time) };
                stamp.t_max = stamp.t_max.max(time);
            }
        }
        stamp
    }
}

impl At {
    fn of(field: &Field) -> Option<Self> {
        let fraction = match field.ty {
            FieldType::Timeval => 1000,
            FieldType::Timespec { .. } => 1,
            FieldType::Ns { .. } | FieldType::Tsc => 0,
            _ => return None,
        };
        Some(Self { offset: field.offset as usize, fraction })
    }

    /// Ticks, or nanoseconds of the field's clock; 0 for what cannot be a time.
    fn time(&self, frame: &[u8]) -> u64 {
        let first = word(frame, self.offset);
        let time = match self.fraction {
            0 => Some(first),
            unit => word(frame, self.offset + 8)
                .checked_mul(unit)
                .and_then(|rest| first.checked_mul(1_000_000_000)?.checked_add(rest)),
        };
        time.filter(|&time| time <= i64::MAX as u64).unwrap_or(0)
    }
}

fn scale(ty: &FieldType) -> Option<Scale> {
    match ty {
        FieldType::Tsc => Some(Scale::Ticks),
        FieldType::Timeval => Some(Scale::Ns(Clock::Realtime)),
        FieldType::Timespec { clock } | FieldType::Ns { clock } => Some(Scale::Ns(*clock)),
        _ => None,
    }
}

/// The little-endian word at `offset`; 0 outside the frame, whose schema the target chose.
fn word(frame: &[u8], offset: usize) -> u64 {
    let bytes = frame.get(offset..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |&bytes| u64::from_le_bytes(bytes))
}
