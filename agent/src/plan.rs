//! Chooses the geometry of a segment from the schema and the limits only. So the next attach
//! chooses the same geometry and finds the same segment.

use ppt_frame_dsl::Schema;
use ppt_segment::abi::PAGE;
use ppt_segment::{FIRST_BYTES, Geometry, RowGeometry};

use crate::error::{AgentError, Result};

/// Rings in addition to the target's threads, for new threads.
const SPARE_RINGS: u32 = 2;
/// Fewest slots that `--memory` may leave.
const FEWEST_LOG2_SLOTS: u32 = 6;

/// Number of slots that cost writers nothing, as a power of two. With more, a slot is no longer in
/// any cache when it is reused (`docs/performance.md`).
const LOG2_AMPLE: u32 = 16;
/// Rings larger than the default may use this fraction (1/`SPARE_PART`) of the available memory
/// once they are all in use.
const SPARE_PART: u64 = 32;

/// Rows of cells use at most this fraction (1/`ROWS_PART`) of the memory limit. Threads without a
/// row share one.
const ROWS_PART: u64 = 4;

/// Approximate number of bytes of all rings that are allocated before a frame is written.
const FIRST_TOTAL: u64 = 16 << 20;

/// Growth of rings per step, as a power of two.
const LOG2_GROWTH: u32 = 2;

/// The limits that the user requested.
#[derive(Debug, Clone, Copy, Default)]
pub struct UserLimits {
    /// Slots per ring. The schema's default, if None.
    pub slots: Option<u32>,
    /// Whether rings that overflow grow.
    pub grow: bool,
    /// The limit of rings × slots × stride, and of rows of cells, of all buffers of a process, in bytes.
    /// `None`: 256 MiB, and at most what does not harm the process.
    pub memory: Option<u64>,
}

/// The limits of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingLimits {
    /// As in [`UserLimits`].
    pub(crate) slots: Option<u32>,
    /// As in [`UserLimits`].
    pub(crate) grow: bool,
    /// The limit of rings × slots × stride, and of rows of cells, in bytes.
    pub(crate) memory: u64,
    /// Rings, unless the target has more threads.
    pub(crate) rings: u32,
    /// Whether all rings are allocated before a frame is written.
    pub(crate) is_populated: bool,
    /// Whether `memory` differs from session to session. Then slots are reduced in steps of four, because
    /// a target maps segments of few geometries.
    pub(crate) varies: bool,
}

/// Bytes that rings larger than the default may take of `available` bytes.
pub(crate) fn spare(available: Option<u64>) -> u64 {
    available.unwrap_or(0) / SPARE_PART
}

/// A chosen geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeometryPlan {
    /// The geometry.
    pub geometry: Geometry,
    /// Rings to allocate before the gate is opened.
    pub populate: u32,
    /// Whether slots or rings are fewer than requested, because of the memory limit.
    pub reduced: bool,
}

impl GeometryPlan {
    /// Geometries for a target of `threads` threads, the best first; each of them works. The last
    /// is the one that the frame file and `limits` state. If the frame file states no slots, larger
    /// rings come before it, as far as `limits` and `spare` (bytes) allow: they absorb longer
    /// bursts and need to be read less often.
    ///
    /// # Errors
    /// Not even the smallest geometry fits the limits.
    pub(crate) fn choices(
        schema: &Schema,
        threads: u32,
        limits: RingLimits,
        spare: u64,
    ) -> Result<Vec<Self>> {
        let least = Self::new(schema, threads, limits)?;
        let now = least.geometry;
        let larger = |log2| {
            let geometry = now.with_slots(log2).ok()?;
            let plan = Self { geometry, ..least };
            (bytes(&geometry) <= limits.memory.min(spare)).then_some(plan)
        };
        let is_stated = limits.slots.is_some() || schema.states_slots() || least.reduced;
        let most = if is_stated { now.log2_slots() } else { LOG2_AMPLE };
        let ample = (now.log2_slots() + 1..=most).rev().filter_map(larger);
        Ok(ample.chain([least]).collect())
    }

    /// Bytes of a ring that are allocated before a frame is written. The more rings, the fewer
    /// bytes.
    pub fn first_bytes(&self) -> u64 {
        (FIRST_TOTAL / u64::from(self.populate)).clamp(PAGE, FIRST_BYTES)
    }

    /// Bytes that are allocated before a frame is written.
    pub fn populated(&self) -> u64 {
        self.geometry.ring_bytes().min(self.first_bytes()) * u64::from(self.populate)
    }

    /// Chooses a geometry for a target of `threads` threads.
    fn new(schema: &Schema, threads: u32, limits: RingLimits) -> Result<Self> {
        let wanted = threads.saturating_add(SPARE_RINGS);
        let mut rings =
            limits.rings.max(wanted.next_power_of_two()).min(ppt_segment::abi::MAX_RINGS);
        let mut log2_slots = limits.slots.unwrap_or(schema.slots).ilog2();
        let asked = (rings, log2_slots);
        let cells = schema.cells();
        let bytes = |rings: u32, log2: u32| (u64::from(rings) * u64::from(schema.stride)) << log2;
        let fits = |rings, log2| {
            let rows = rows(cells, rings, limits.memory / ROWS_PART);
            let own = rows.map_or(0, |rows| own_rows(&rows));
            bytes(rings, log2).saturating_add(own) <= limits.memory
        };
        match limits.slots {
            // The user requested slots, so the number of rings is reduced.
            Some(_) => {
                while !fits(rings, log2_slots) && rings > wanted {
                    rings = (rings / 2).max(wanted);
                }
            }
            None => {
                while !fits(rings, log2_slots) && log2_slots > FEWEST_LOG2_SLOTS {
                    log2_slots -= 1;
                }
                if limits.varies && log2_slots < asked.1 {
                    log2_slots -= (log2_slots - FEWEST_LOG2_SLOTS) % 2;
                }
            }
        }
        // Threads can work without rows of their own, but not without rings.
        let Some(left) = limits.memory.checked_sub(bytes(rings, log2_slots)) else {
            return Err(AgentError::MemoryTooSmall {
                buffer: schema.buffer.clone(),
                limit: limits.memory,
                rings,
                needed: bytes(rings, log2_slots),
            });
        };
        let rows = rows(cells, rings, left.min(limits.memory / ROWS_PART))?;
        Ok(Self {
            geometry: Geometry::new(schema.stride, log2_slots, rings)?.with_rows(rows)?,
            populate: if limits.is_populated { rings } else { wanted.min(rings) },
            reduced: asked != (rings, log2_slots),
        })
    }

    /// The next larger geometry: four times the slots, or twice as many if `memory` allows no more.
    /// `None` if it does not allow that either.
    fn next(&self, memory: u64) -> Option<Self> {
        let now = self.geometry;
        let mut larger =
            (1..=LOG2_GROWTH).rev().filter_map(|by| now.with_slots(now.log2_slots() + by).ok());
        let geometry = larger.find(|geometry| bytes(geometry) <= memory)?;
        Some(Self { geometry, ..*self })
    }

    /// The geometry to grow to, if rings with `enough` slots would have sufficed: as many steps as
    /// needed and as `memory` allows. `None` if it allows none.
    pub(crate) fn grown(&self, enough: u64, memory: u64) -> Option<Self> {
        let mut grown = self.next(memory)?;
        while grown.geometry.slots() < enough
            && let Some(next) = grown.next(memory)
        {
            grown = next;
        }
        Some(grown)
    }

    /// This plan and all plans that it can grow to, the largest first.
    pub(crate) fn growths(self, limits: RingLimits) -> Vec<Self> {
        let next = |plan: &Self| plan.next(limits.memory).filter(|_| limits.grow);
        let mut plans: Vec<_> = std::iter::successors(Some(self), next).collect();
        plans.reverse();
        plans
    }
}

/// Bytes of slots and rows of cells.
fn bytes(geometry: &Geometry) -> u64 {
    let slots = geometry.ring_bytes().saturating_mul(geometry.rings().into());
    slots.saturating_add(own_rows(&geometry.rows()))
}

/// Bytes of the rows that belong to single threads.
fn own_rows(rows: &RowGeometry) -> u64 {
    rows.bytes().saturating_sub(rows.pitch().into())
}

/// The rows of a buffer with `cells` cells: the shared row, and one for each ring as far as
/// `memory` allows.
fn rows(cells: u32, rings: u32, memory: u64) -> Result<RowGeometry> {
    let one = u64::from(RowGeometry::bytes_of(cells)).max(1);
    let own = (memory / one).min(rings.into());
    Ok(RowGeometry::new(cells, 1 + own as u32)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(stride: u32, slots: u32) -> Schema {
        Schema {
            v: 1,
            buffer: "b".into(),
            slots,
            stride,
            frames: Vec::new(),
            enums: Vec::new(),
            tags: Vec::new(),
            extra: Default::default(),
        }
    }

    fn shape(plan: &GeometryPlan) -> (u32, u64) {
        (plan.geometry.rings(), plan.geometry.slots())
    }

    const MEMORY: u64 = 256 << 20;
    const LIMITS: RingLimits = RingLimits {
        slots: None,
        grow: false,
        memory: MEMORY,
        rings: 64,
        is_populated: false,
        varies: false,
    };

    #[test]
    fn few_rings_are_allocated_at_once_if_asked() {
        let limits = RingLimits { memory: 2 << 20, rings: 8, is_populated: true, ..LIMITS };
        let plan = GeometryPlan::new(&schema(64, 16384), 3, limits).unwrap();
        assert_eq!((shape(&plan), plan.populate, plan.populated()), ((8, 4096), 8, 2 << 20));
        let plan = GeometryPlan::new(&schema(64, 16384), 100, limits).unwrap();
        assert_eq!((shape(&plan), plan.populate), ((128, 256), 128), "a ring for each thread");
    }

    #[test]
    fn rows_count_as_memory() {
        let json = r#"{"v":1,"buffer":"b","slots":16384,"stride":64,"frames":[{"name":"f",
            "kind":"plain","size":64,"fields":[{"name":"x","type":"u64","offset":8}]}],
            "metrics":[{"name":"h","kind":"histogram","type":"duration"}]}"#;
        let counting = Schema::from_json(json.as_bytes()).unwrap();
        let of = |threads, memory| {
            let limits = RingLimits { memory, ..LIMITS };
            GeometryPlan::new(&counting, threads, limits).unwrap().geometry
        };
        let plan = of(3, MEMORY);
        assert_eq!((plan.rings(), plan.rows().count(), plan.rows().pitch()), (64, 65, 7808));
        // Slots are reduced first, then rows, because threads can share one row.
        let slots = 64 << 20;
        assert_eq!(of(3, slots + 64 * 7808).slots(), 16384);
        assert_eq!(of(3, slots + 64 * 7808 - 1).slots(), 8192);
        let many = of(60_000, MEMORY);
        assert_eq!((many.rings(), many.slots(), many.rows().count()), (65_536, 64, 1));
        let some = of(30_000, MEMORY);
        assert_eq!(u64::from(some.rows().count()), 1 + MEMORY / 4 / 7808);
        assert_eq!(of(3, (64 * 64 * 64) + 2 * 7808).rows().count(), 3);
    }

    #[test]
    fn few_threads_get_the_default() {
        let plan = GeometryPlan::new(&schema(64, 16384), 3, LIMITS).unwrap();
        assert_eq!((shape(&plan), plan.populate, plan.reduced), ((64, 16384), 5, false));
        let plan = GeometryPlan::new(&schema(64, 16384), 100, LIMITS).unwrap();
        assert_eq!(shape(&plan), (128, 16384));
    }

    #[test]
    fn rings_are_ample_where_nobody_states_their_slots_and_memory_allows() {
        let slots_of = |schema: &Schema, threads, limits, spare| {
            let plans = GeometryPlan::choices(schema, threads, limits, spare).unwrap();
            plans.iter().map(|plan| plan.geometry.slots()).collect::<Vec<_>>()
        };
        let slots = |schema: &Schema, threads, limits| slots_of(schema, threads, limits, 1 << 30);
        let (limits, unstated) = (LIMITS, schema(48, 16384));
        assert_eq!(slots(&unstated, 3, limits), [65536, 32768, 16384]);
        let stated = ["slots_stated"].map(|key| (key.to_owned(), true.into())).into();
        let stated = Schema { extra: stated, ..schema(48, 16384) };
        assert_eq!(slots(&stated, 3, limits), [16384]);
        assert_eq!(slots(&schema(48, 4096), 3, limits), [4096]);
        assert_eq!(slots(&unstated, 3, RingLimits { slots: Some(16384), ..limits }), [16384]);
        assert_eq!(slots(&schema(128, 16384), 3, limits), [32768, 16384], "--memory");
        assert_eq!(slots(&unstated, 100, limits), [32768, 16384], "a ring for each thread");
        assert_eq!(slots(&unstated, 200, limits), [16384]);
        assert_eq!(slots_of(&unstated, 3, limits, spare(Some(4 << 30))), [32768, 16384]);
        assert_eq!(slots_of(&unstated, 3, limits, spare(None)), [16384]);
        assert_eq!(slots(&unstated, 300, limits), [8192], "as much as fits");
    }

    #[test]
    fn slots_shrink_first() {
        let limits = RingLimits { memory: 1 << 20, ..LIMITS };
        let plan = GeometryPlan::new(&schema(64, 16384), 3, limits).unwrap();
        assert_eq!((shape(&plan), plan.reduced), ((64, 256), true));
    }

    #[test]
    fn limits_that_vary_make_few_geometries() {
        let slots_of = |kib: u64| {
            let limits = RingLimits { memory: kib << 10, varies: true, ..LIMITS };
            GeometryPlan::new(&schema(64, 16384), 3, limits).unwrap().geometry.slots()
        };
        let mut all: Vec<u64> =
            (8..=18).flat_map(|log2| [1 << log2, 3 << (log2 - 1)]).map(slots_of).collect();
        all.dedup();
        assert_eq!(all, [64, 256, 1024, 4096, 16384]);
    }

    #[test]
    fn rings_shrink_where_slots_were_asked_for() {
        let limits = RingLimits { slots: Some(1 << 20), memory: 600 << 20, ..LIMITS };
        let plan = GeometryPlan::new(&schema(64, 16384), 3, limits).unwrap();
        assert_eq!((shape(&plan), plan.reduced), ((8, 1 << 20), true));
        let limits = RingLimits { slots: Some(1 << 20), memory: 1 << 20, ..LIMITS };
        let error = GeometryPlan::new(&schema(64, 16384), 3, limits).unwrap_err();
        assert!(matches!(error, AgentError::MemoryTooSmall { rings: 5, .. }), "{error}");
    }

    #[test]
    fn rings_grow_as_far_as_memory_goes() {
        let limits = RingLimits { grow: true, memory: 16 << 20, ..LIMITS };
        let plan = GeometryPlan::new(&schema(64, 64), 3, limits).unwrap();
        let slots: Vec<_> =
            plan.growths(limits).iter().map(|growth| growth.geometry.slots()).collect();
        // 64 rings of 4,096 slots of 64 bytes are 16 MiB.
        assert_eq!(slots, [4096, 1024, 256, 64]);
        let limits = RingLimits { memory: 8 << 20, ..limits };
        let slots: Vec<_> =
            plan.growths(limits).iter().map(|growth| growth.geometry.slots()).collect();
        assert_eq!(slots, [2048, 1024, 256, 64], "the last step is a small one");
        let grown = |enough| plan.grown(enough, 8 << 20).unwrap().geometry.slots();
        assert_eq!([1, 256, 257, 1 << 20].map(grown), [256, 256, 1024, 2048]);
        let plan = GeometryPlan::new(&schema(64, 16384), 3, limits).unwrap();
        assert!(plan.reduced && plan.grown(1, limits.memory).is_none());
        assert_eq!(plan.growths(RingLimits { grow: false, ..limits }), [plan]);
        let most =
            GeometryPlan::new(&schema(16, 1 << 26), 3, RingLimits { memory: 1 << 40, ..limits });
        assert!(most.unwrap().grown(1, u64::MAX).is_none(), "rings have at most 2^26 slots");
    }
}
