//! The facts about its frames in the head of a chunk: times and kinds.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::STAMP_IS_MONOTONIC;

use crate::columns::{Time, frame_id};

/// A word of a slot, as in memory.
type SlotWord = [u8; 8];

/// The offsets of the time and of the kind in the frames of a buffer.
#[derive(Debug, Default)]
pub struct Stamps {
    /// The `@at` field of each frame, by frame id.
    at: Vec<Option<Time>>,
    /// Whether frames carry their id.
    multi: bool,
}

/// The facts in a chunk's head. 0 stands for unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// [`FramesHead::t_min`](crate::FramesHead::t_min).
    pub t_min: u64,
    /// [`FramesHead::t_max`](crate::FramesHead::t_max).
    pub t_max: u64,
    /// [`FramesHead::frame_mask`](crate::FramesHead::frame_mask).
    pub frame_mask: u64,
}

/// The times and kinds found in some frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampFindings {
    /// One less than the smallest time, wrapping: so 0, which is no time, counts as the largest.
    before_least: u64,
    most: u64,
    frame_mask: u64,
}

impl Stamps {
    /// For frames with the schema `json`. An invalid schema leaves everything unknown.
    pub fn from_json(json: &[u8]) -> Self {
        let Ok(schema) = Schema::from_json(json) else { return Self::default() };
        let times = schema.frames.iter().map(|frame| frame.at().and_then(Time::from_field));
        let mut at: Vec<Option<Time>> = times.collect();
        let mut scales = at.iter().flatten().map(|time| time.scale());
        let first = scales.next();
        // Times of different clocks have no minimum.
        if !scales.all(|scale| Some(scale) == first) {
            at.fill(None);
        }
        Self { at, multi: schema.multi() }
    }

    /// Evaluates `frames` of `stride` words. Times of 0 were not recorded and do not count.
    pub fn see(&self, frames: &[SlotWord], stride: usize, found: &mut StampFindings) {
        let Some(&first) = self.at.first() else { return };
        let frames = frames.chunks_exact(stride).map(<[SlotWord]>::as_flattened);
        if self.multi {
            for frame in frames {
                let id = frame_id(frame);
                found.frame_mask |= 1 << id.min(63);
                let at = self.at.get(usize::from(id)).copied().flatten();
                found.time(at.map_or(0, |at| at.word(frame)));
            }
            return;
        }
        found.frame_mask = 1;
        if let Some(at) = first {
            frames.for_each(|frame| found.time(at.word(frame)));
        }
    }

    /// The times and kinds of `frames` of `stride` words.
    pub fn stamp(&self, frames: &[SlotWord], stride: usize) -> Stamp {
        let mut found = StampFindings::default();
        self.see(frames, stride, &mut found);
        found.stamp()
    }
}

impl StampFindings {
    /// Adds a time; 0 is none.
    #[inline(always)]
    fn time(&mut self, time: u64) {
        self.before_least = self.before_least.min(time.wrapping_sub(1));
        self.most = self.most.max(time);
    }

    /// The result in the form of a chunk's head.
    pub fn stamp(&self) -> Stamp {
        let (t_min, t_max) = (self.before_least.wrapping_add(1), self.most);
        // Ticks and clock times have no common minimum.
        let mixed = (t_min ^ t_max) & STAMP_IS_MONOTONIC != 0;
        let (t_min, t_max) = if mixed { (0, 0) } else { (t_min, t_max) };
        Stamp { t_min, t_max, frame_mask: self.frame_mask }
    }
}

impl Default for StampFindings {
    fn default() -> Self {
        Self { before_least: u64::MAX, most: 0, frame_mask: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_frame_dsl::schema::{Clock, Extra, Field, FieldType, Frame, JSON_VERSION};

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

    /// One frame for each type of time, at offset 16.
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
        Stamps::from_json(&json)
    }

    fn stamp(stamps: &Stamps, frames: &[[u64; 4]]) -> (u64, u64, u64) {
        let words: Vec<SlotWord> = frames.iter().flatten().map(|word| word.to_le_bytes()).collect();
        let Stamp { t_min, t_max, frame_mask } = stamps.stamp(&words, 4);
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
        assert_eq!(stamp(&Stamps::from_json(b"{"), &frames), (0, 0, 0));
    }
}
