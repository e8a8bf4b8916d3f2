//! What enters and leaves points, in few bytes: gathered in buckets of equal identities, and sorted there.

use std::thread;

use super::endpoint::{DataDirection, Endpoints, KEY_BYTES, key_of};
use super::known::{PointDirectory, WIDEST};
use crate::error::TableError;
use crate::of_chunks::ChunkScan;
use crate::standard::ChunkRows;
use crate::table::Scan;

/// Bits of the number of a frame in its ring; the others hold its owner, the point, the type and the way.
const SEQNO_BITS: u32 = 40;
/// Endpoints of a block, the unit in which buckets grow.
const BLOCK: usize = 512;
/// Endpoints of a bucket, about: they are sorted in a cache.
const BUCKET: u64 = 1 << 16;
/// Buckets at most, as bits of their number.
const BUCKET_BITS: u32 = 9;

/// An identity in few bytes.
pub(super) trait CompactIdentity: Copy + Ord + Send + Sync + 'static {
    fn from_bytes(bytes: [u8; WIDEST]) -> Self;
    fn bytes(self) -> [u8; WIDEST];
    /// Bits that differ as identities do.
    fn mixed(self) -> u64;
}

/// Spreads the bits of a number over the highest ones.
fn mix(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The first 8 bytes; the others are 0.
impl CompactIdentity for u64 {
    fn from_bytes(bytes: [u8; WIDEST]) -> u64 {
        bytes.first_chunk().map_or(0, |&first| u64::from_be_bytes(first))
    }

    fn bytes(self) -> [u8; WIDEST] {
        u128::from(self).wrapping_shl(64).to_be_bytes()
    }

    fn mixed(self) -> u64 {
        mix(self)
    }
}

impl CompactIdentity for [u64; 2] {
    fn from_bytes(bytes: [u8; WIDEST]) -> [u64; 2] {
        let whole = u128::from_be_bytes(bytes);
        [(whole >> 64) as u64, whole as u64]
    }

    fn bytes(self) -> [u8; WIDEST] {
        (u128::from(self[0]) << 64 | u128::from(self[1])).to_be_bytes()
    }

    fn mixed(self) -> u64 {
        mix(self[0] ^ mix(self[1]))
    }
}

/// What enters or leaves a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint<I> {
    identity: I,
    /// ns since the epoch; the least number without a time.
    when: i64,
    /// See [`SpotNumbers`].
    place: u64,
}

impl<I: CompactIdentity> Endpoint<I> {
    /// Its place behind the identity, in the order in which a matcher wants those of a key.
    fn order(&self, places: SpotNumbers) -> (u32, i64) {
        (places.type_number(self.place), self.when)
    }

    /// Where it was.
    pub fn spot(&self, places: SpotNumbers) -> Spot {
        places.spot(self.place)
    }

    /// The key that it shares with those that it may be matched with.
    pub fn key(&self, spot: &Spot) -> CompactKey<I> {
        CompactKey { of: spot.of, identity: self.identity }
    }

    /// When it was; None: nobody knows.
    pub fn when(&self, spot: &Spot) -> Option<i64> {
        spot.is_timed.then_some(self.when)
    }
}

/// A key in few bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CompactKey<I> {
    /// Number of the hash type.
    of: u32,
    identity: I,
}

impl<I: CompactIdentity> CompactKey<I> {
    pub fn bytes(self) -> [u8; KEY_BYTES] {
        key_of(self.of as usize, self.identity.bytes())
    }
}

/// Where something enters or leaves, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    /// Number of the owner of its ring.
    pub owner: u32,
    pub point: u32,
    /// Number of the hash type.
    pub of: u32,
    pub way: DataDirection,
    pub is_timed: bool,
    pub seqno: u64,
}

/// How spots become numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpotNumbers {
    points: u32,
    types: u32,
}

/// Ways, with and without a time.
const WAYS: u32 = 8;

impl SpotNumbers {
    /// Those of `known`, whose frames have numbers below `end`; None: there are too many.
    pub fn new(known: &PointDirectory, end: u64) -> Option<SpotNumbers> {
        let number = |count: usize| u32::try_from(count).ok();
        let (points, types) = (number(known.points.len())?, number(known.types.len())?);
        let all = number(known.owners.len())?.checked_mul(points)?.checked_mul(types)?;
        let fits = all.checked_mul(WAYS)? <= 1 << (u64::BITS - SEQNO_BITS);
        (fits && end <= 1 << SEQNO_BITS).then_some(SpotNumbers { points, types })
    }

    fn number(self, spot: &Spot) -> u64 {
        let kind = (spot.owner * self.points + spot.point) * self.types + spot.of;
        let way = spot.way as u32 | u32::from(spot.is_timed) << 2;
        u64::from(kind * WAYS + way) << SEQNO_BITS | spot.seqno
    }

    /// The number of the hash type alone.
    fn type_number(self, number: u64) -> u32 {
        let kind = (number >> SEQNO_BITS) as u32 / WAYS;
        if self.types > 1 { kind % self.types } else { 0 }
    }

    fn spot(self, number: u64) -> Spot {
        let kind = (number >> SEQNO_BITS) as u32;
        let (kind, way) = (kind / WAYS, kind % WAYS);
        let (kind, of) = (kind / self.types, kind % self.types);
        Spot {
            owner: kind / self.points,
            point: kind % self.points,
            of,
            way: DataDirection::numbered((way & 3) as i32),
            is_timed: way & 4 != 0,
            seqno: number & ((1 << SEQNO_BITS) - 1),
        }
    }
}

/// Endpoints in blocks.
type Blocks<I> = Vec<Vec<Endpoint<I>>>;

/// Endpoints in buckets: those of one identity are in one.
#[derive(Debug)]
pub(super) struct Buckets<I> {
    of: Vec<Blocks<I>>,
}

impl<I: CompactIdentity> Buckets<I> {
    /// The number of buckets for at most this many endpoints, as bits.
    pub fn bits(endpoints: u64) -> u32 {
        (endpoints / BUCKET).max(1).ilog2().min(BUCKET_BITS)
    }

    /// Reads all parts of a scan side by side.
    pub fn read(
        scan: &ChunkScan<Endpoints>,
        known: &PointDirectory,
        places: SpotNumbers,
        bits: u32,
    ) -> Result<Buckets<I>, TableError> {
        let part = |part| {
            let mut buckets = Buckets::new(bits);
            let mut chunks = scan.chunks(part);
            while chunks.next().is_some() {
                chunks.read(|chunk| buckets.chunk(chunk, known, places))?;
            }
            Ok(buckets)
        };
        let parts: Vec<Result<Buckets<I>, TableError>> = thread::scope(|scope| {
            let part = &part;
            let threads: Vec<_> =
                (1..scan.parts()).map(|number| scope.spawn(move || part(number))).collect();
            let first = part(0);
            // A thread that panicked takes this one with it.
            let others = threads.into_iter().map(|thread| match thread.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(first).chain(others).collect()
        });
        let mut all = Buckets::new(bits);
        for part in parts {
            let blocks = all.of.iter_mut().zip(part?.of);
            blocks.for_each(|(all, mut own)| all.append(&mut own));
        }
        Ok(all)
    }

    fn new(bits: u32) -> Buckets<I> {
        Buckets { of: (0..1 << bits).map(|_| Vec::new()).collect() }
    }

    fn chunk(&mut self, chunk: &ChunkRows<'_>, known: &PointDirectory, places: SpotNumbers) {
        let from = chunk.from(chunk.rows);
        let owner = known.owner(chunk) as u32;
        let shift = u64::BITS - self.of.len().ilog2();
        known.each(chunk, |row, frame, form| {
            let ts = form.at.and_then(|at| from.epoch(at, frame));
            let when = ts.and_then(|ts| Some(known.clocks.around(chunk.capture, ts)?.0));
            form.ways(true, |identity, way| {
                let Some(bytes) = identity.bytes(frame) else { return };
                let spot = Spot {
                    owner,
                    point: form.point as u32,
                    of: identity.of as u32,
                    way,
                    is_timed: when.is_some(),
                    seqno: chunk.at.first_seq + u64::from(row),
                };
                let identity = I::from_bytes(bytes);
                let bucket = identity.mixed().checked_shr(shift).unwrap_or(0);
                let (when, place) = (when.unwrap_or(i64::MIN), places.number(&spot));
                push(&mut self.of[bucket as usize], Endpoint { identity, when, place });
            });
        });
    }

    /// Takes a bucket out.
    pub fn take(&mut self, bucket: usize) -> Bucket<I> {
        Bucket(std::mem::take(&mut self.of[bucket]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.of.len()
    }
}

/// Endpoints of some identities.
pub(super) struct Bucket<I>(Blocks<I>);

impl<I: CompactIdentity> Bucket<I> {
    /// Sorts them into `to`: those of one key stand together, in the order of time.
    pub fn sorted(self, places: SpotNumbers, to: &mut Vec<Endpoint<I>>) {
        to.clear();
        to.reserve(self.0.iter().map(Vec::len).sum());
        self.0.into_iter().for_each(|block| to.extend(block));
        // Most identities are those of a few: what is compared most is one number.
        to.sort_unstable_by_key(|endpoint| endpoint.identity);
        let same = to.chunk_by_mut(|one, other| one.identity == other.identity);
        same.for_each(|same| same.sort_unstable_by_key(|endpoint| endpoint.order(places)));
    }
}

fn push<I>(blocks: &mut Blocks<I>, endpoint: Endpoint<I>) {
    match blocks.last_mut() {
        Some(block) if block.len() < BLOCK => block.push(endpoint),
        _ => {
            let mut block = Vec::with_capacity(BLOCK);
            block.push(endpoint);
            blocks.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots_are_numbers_and_back() {
        let places = SpotNumbers { points: 3, types: 5 };
        for (owner, point, of) in [(0, 0, 0), (7, 2, 4), (1000, 1, 0), (1, 2, 3)] {
            for way in [
                DataDirection::Out,
                DataDirection::In,
                DataDirection::ImpliedOut,
                DataDirection::Through,
            ] {
                for (is_timed, seqno) in [(false, 0), (true, (1 << SEQNO_BITS) - 1)] {
                    let spot = Spot { owner, point, of, way, is_timed, seqno };
                    assert_eq!(places.spot(places.number(&spot)), spot);
                }
            }
        }
    }

    #[test]
    fn identities_are_bytes_and_back() {
        let wide: [u8; WIDEST] = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(<[u64; 2]>::from_bytes(wide).bytes(), wide);
        let mut narrow = wide;
        narrow[8..].fill(0);
        assert_eq!(u64::from_bytes(narrow).bytes(), narrow);
        assert!(u64::from_bytes(narrow) == 0x0102_0304_0506_0708);
    }
}
