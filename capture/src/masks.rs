//! Masks chunks: what was enabled and disabled during the capture.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::MAX_FRAMES;

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::error::DamageKind;
use crate::format::masks::{self, change, ring};

/// The number of a frame, counter or histogram in masks: first one number for each frame, its id,
/// then, from [`Self::FIRST_METRIC`] on, one for each counter or histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chosen(pub u32);

impl Chosen {
    /// The number of the first counter or histogram.
    pub const FIRST_METRIC: u32 = MAX_FRAMES as u32;

    /// Whether it is a frame.
    pub fn is_frame(self) -> bool {
        self.0 < Self::FIRST_METRIC
    }

    /// The name in a schema, without the name of the buffer.
    pub fn name(self, schema: &Schema) -> Option<String> {
        match self.0.checked_sub(Self::FIRST_METRIC) {
            None => schema.frames.get(self.0 as usize).map(|frame| frame.name.clone()),
            Some(index) => {
                schema.metrics().into_iter().nth(index as usize).map(|metric| metric.name)
            }
        }
    }
}

/// A change of the masks of a segment, and its effect on the rings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flip {
    /// The source; a source chunk of this number comes first.
    pub source: u16,
    /// Nonce of the segment.
    pub nonce: u64,
    /// CLOCK_MONOTONIC in ns, before the flip.
    pub mono_ns: u64,
    /// Whether an earlier file states it, too.
    pub is_base: bool,
    /// The changes in the order of their numbers, and whether each is enabled from here on.
    pub changes: Vec<(Chosen, bool)>,
    /// The claimed rings. In any other, no frame came before the flip.
    pub rings: Vec<FlipRing>,
}

/// The effect of a flip on a ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlipRing {
    /// The ring.
    pub ring: u32,
    /// No enabled frame comes before this sequence number.
    pub first_enabled: u64,
    /// No disabled frame has this sequence number or a later one, until it is enabled again.
    pub first_disabled: u64,
}

impl Flip {
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u64(bytes, masks::NONCE, self.nonce);
        put_u64(bytes, masks::MONOTONIC, self.mono_ns);
        put_u32(bytes, masks::CHANGES, self.changes.len() as u32);
        put_u32(bytes, masks::RINGS, self.rings.len() as u32);
        put_u32(bytes, masks::FLAGS, if self.is_base { masks::BASE } else { 0 });
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.changes.len() * change::LEN + self.rings.len() * ring::LEN];
        let (changes, rings) = bytes.split_at_mut(self.changes.len() * change::LEN);
        for (to, (chosen, enabled)) in changes.chunks_exact_mut(change::LEN).zip(&self.changes) {
            put_u32(to, change::CHOSEN, chosen.0);
            put_u32(to, change::ENABLED, u32::from(*enabled));
        }
        for (to, flip_ring) in rings.chunks_exact_mut(ring::LEN).zip(&self.rings) {
            put_u32(to, ring::RING, flip_ring.ring);
            put_u64(to, ring::FIRST_ENABLED, flip_ring.first_enabled);
            put_u64(to, ring::FIRST_DISABLED, flip_ring.first_disabled);
        }
        bytes
    }

    /// A chunk of `source` with this schema, for a segment with this number of rings.
    pub(crate) fn decode(
        (source, header): (u16, &[u8]),
        payload: &[u8],
        (schema, rings): (&Schema, u32),
    ) -> Result<Self, DamageKind> {
        let (count, of_rings) = (u32_at(header, masks::CHANGES), u32_at(header, masks::RINGS));
        let length = u64::from(count) * change::LEN as u64 + u64::from(of_rings) * ring::LEN as u64;
        if length != payload.len() as u64 {
            return Err(DamageKind::Length);
        }
        let (changes, states) = payload.split_at(count as usize * change::LEN);
        let changes = changes.chunks_exact(change::LEN).map(|chunk| {
            (Chosen(u32_at(chunk, change::CHOSEN)), u32_at(chunk, change::ENABLED) != 0)
        });
        let states = states.chunks_exact(ring::LEN).map(|chunk| FlipRing {
            ring: u32_at(chunk, ring::RING),
            first_enabled: u64_at(chunk, ring::FIRST_ENABLED),
            first_disabled: u64_at(chunk, ring::FIRST_DISABLED),
        });
        let flip = Self {
            source,
            nonce: u64_at(header, masks::NONCE),
            mono_ns: u64_at(header, masks::MONOTONIC),
            is_base: u32_at(header, masks::FLAGS) & masks::BASE != 0,
            changes: changes.collect(),
            rings: states.collect(),
        };
        let damage = |what| Err(DamageKind::Content(what));
        let metrics = Chosen::FIRST_METRIC + schema.metrics().len() as u32;
        let known = |chosen: Chosen| {
            if chosen.is_frame() {
                (chosen.0 as usize) < schema.frames.len()
            } else {
                chosen.0 < metrics
            }
        };
        if !flip.changes.iter().all(|change| known(change.0))
            || !flip.changes.is_sorted_by(|a, b| a.0 < b.0)
        {
            return damage("masks of what its source does not have");
        }
        if flip.rings.iter().any(|ring| ring.ring >= rings) {
            return damage("masks of a ring that its segment does not have");
        }
        if !flip.rings.is_sorted_by(|a, b| a.ring < b.ring) {
            return damage("masks of a ring twice");
        }
        Ok(flip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"v":1,"buffer":"b","slots":2,"stride":16,"frames":[
        {"name":"one","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}]},
        {"name":"two","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}]}],
        "metrics":[{"kind":"counter","name":"seen","type":"u64"}]}"#;

    fn flip() -> Flip {
        Flip {
            source: 3,
            nonce: 77,
            mono_ns: 5,
            is_base: true,
            changes: vec![(Chosen(1), false), (Chosen(256), true)],
            rings: [(0, 11, 12), (2, 1, 2)]
                .map(|(ring, first_enabled, first_disabled)| FlipRing {
                    ring,
                    first_enabled,
                    first_disabled,
                })
                .into(),
        }
    }

    fn decoded(flip: &Flip, rings: u32) -> Result<Flip, DamageKind> {
        let schema = Schema::from_json(JSON.as_bytes()).unwrap();
        let mut header = vec![0; masks::LEN];
        flip.encode(&mut header);
        Flip::decode((3, &header), &flip.payload(), (&schema, rings))
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(decoded(&flip(), 3), Ok(flip()));
        let schema = Schema::from_json(JSON.as_bytes()).unwrap();
        let names =
            [0, 1, 2, 256, 257].map(|number| Chosen(number).name(&schema).unwrap_or_default());
        assert_eq!(names, ["one", "two", "", "seen", ""]);
    }

    #[test]
    fn what_the_source_does_not_have_is_damage() {
        assert!(matches!(decoded(&flip(), 2), Err(DamageKind::Content(_))));
        for chosen in [2, 255, 257, u32::MAX] {
            let flip = Flip { changes: vec![(Chosen(chosen), true)], ..flip() };
            assert!(matches!(decoded(&flip, 3), Err(DamageKind::Content(_))), "{chosen}");
        }
        let twice = Flip { rings: vec![FlipRing::default(); 2], ..flip() };
        assert!(matches!(decoded(&twice, 3), Err(DamageKind::Content(_))));
        let schema = Schema::from_json(JSON.as_bytes()).unwrap();
        let mut header = vec![0; masks::LEN];
        flip().encode(&mut header);
        let payload = flip().payload();
        for len in 0..payload.len() {
            let cut = Flip::decode((3, &header), &payload[..len], (&schema, 3));
            assert_eq!(cut, Err(DamageKind::Length), "{len}");
        }
    }
}
