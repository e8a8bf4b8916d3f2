//! What a chunk's head says about its frames: when, and which kinds.

use ppt_capture::frame_dsl::Schema;
use ppt_capture::frame_dsl::schema::{
    Clock, FRAME_ID_OFFSET, Field, FieldType, STAMP_IS_MONOTONIC,
};

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
    /// The number is a stamp of type `tsc`, which may be no ticks.
    ticks: bool,
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
        // Ticks and times of the clock have no least one.
        if (stamp.t_min ^ stamp.t_max) & STAMP_IS_MONOTONIC != 0 {
            (stamp.t_min, stamp.t_max) = (0, 0);
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
        let ticks = field.ty == FieldType::Tsc;
        Some(Self { offset: field.offset as usize, fraction, ticks })
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
        time.filter(|&time| self.ticks || time <= i64::MAX as u64).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_capture::frame_dsl::schema::{Extra, Frame, JSON_VERSION};

    fn field(ty: FieldType, offset: u32, at: bool) -> Field {
        Field {
            name: format!("f{offset}"),
            ty,
            array: None,
            offset,
            interval: None,
            at,
            unit: String::new(),
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        }
    }

    /// One frame for each type of time, which stands at +16.
    fn stamps(types: &[FieldType]) -> Stamps {
        let frames = types.iter().enumerate().map(|(id, ty)| Frame {
            name: format!("frame{id}"),
            kind: "plain".to_owned(),
            size: 32,
            fields: vec![field(ty.clone(), 16, ty.is_time())],
            doc: String::new(),
            attributes: Vec::new(),
            extra: Extra::new(),
        });
        let schema = Schema {
            v: JSON_VERSION,
            buffer: "test".to_owned(),
            slots: 16,
            stride: 32,
            frames: frames.collect(),
            enums: Vec::new(),
            tags: Vec::new(),
            extra: Extra::new(),
        };
        let json = schema.to_json().into_bytes();
        assert!(Schema::from_json(&json).is_ok(), "{:?}", Schema::from_json(&json));
        Stamps::of(&json)
    }

    fn stamp(stamps: &Stamps, frames: &[[u64; 4]]) -> (u64, u64, u64) {
        let bytes: Vec<u8> = frames.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let Stamp { t_min, t_max, frame_mask } = stamps.stamp(&bytes, 32);
        (t_min, t_max, frame_mask)
    }

    #[test]
    fn times_are_numbers_of_their_clock() {
        let ticks = stamps(&[FieldType::Tsc]);
        assert_eq!(stamp(&ticks, &[[1, 0, 9, 0], [2, 0, 0, 0], [3, 0, 7, 0]]), (7, 9, 1));
        let fallback = [2, 0, STAMP_IS_MONOTONIC | 5, 0];
        assert_eq!(stamp(&ticks, &[[1, 0, 9, 0], fallback]), (0, 0, 1), "not all are ticks");
        let clock = |ns: u64| STAMP_IS_MONOTONIC | ns;
        assert_eq!(stamp(&ticks, &[[1, 0, clock(9), 0], fallback]), (clock(5), clock(9), 1));
        let timeval = stamps(&[FieldType::Timeval]);
        assert_eq!(stamp(&timeval, &[[1, 0, 2, 3]]), (2_000_003_000, 2_000_003_000, 1));
        assert_eq!(stamp(&timeval, &[[1, 0, u64::MAX, 3]]), (0, 0, 1), "cannot be");
        assert_eq!(stamp(&stamps(&[FieldType::U64]), &[[1, 0, 5, 0]]), (0, 0, 1));
    }

    #[test]
    fn frames_of_several_kinds_are_told_apart_by_their_id() {
        let ns = FieldType::Ns { clock: Clock::Realtime };
        let same = stamps(&[FieldType::Timeval, ns.clone(), FieldType::U64]);
        let frames = [[1, 1, 500, 0], [2, 0, 1, 0], [3, 2, 3, 0]];
        assert_eq!(stamp(&same, &frames), (500, 1_000_000_000, 0b111));
        assert_eq!(stamp(&same, &[[1, 900, 5, 0]]), (0, 0, 1 << 63), "an id nobody knows");
        let mixed = stamps(&[FieldType::Tsc, ns]);
        assert_eq!(stamp(&mixed, &frames[..2]), (0, 0, 0b11));
        assert_eq!(stamp(&Stamps::of(b"{"), &frames), (0, 0, 0));
    }
}
