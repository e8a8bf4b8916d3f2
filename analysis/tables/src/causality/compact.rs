//! Compact endpoints (data that enters or leaves points), in buckets by identity, which are sorted one by
//! one.

use std::thread;

use super::endpoint::{DataDirection, Endpoints, KEY_BYTES, key_of};
use super::point_directory::{PointDirectory, WIDEST};
use crate::chunk_scan::ChunkScan;
use crate::error::TableError;
use crate::standard::ChunkRows;
use crate::table::Scan;

/// Bits of a sequence number. The others hold owner, point, hash type and direction.
const SEQNO_BITS: u32 = 40;
/// Endpoints in a block. Buckets grow by blocks.
const BLOCK: usize = 512;
/// Approximate number of endpoints in a bucket, which fits into a CPU cache while it is sorted.
const BUCKET_ENDPOINTS: u64 = 1 << 16;
/// Binary logarithm of the largest number of buckets.
const MAX_BUCKET_BITS: u32 = 9;

/// A compact identity.
pub(super) trait CompactIdentity: Copy + Ord + Send + Sync + 'static {
    fn from_bytes(bytes: [u8; WIDEST]) -> Self;
    fn bytes(self) -> [u8; WIDEST];
    /// A hash of the identity; its highest bits select the bucket.
    fn mixed(self) -> u64;
}

/// Multiplies by 2^64 / golden ratio, which spreads all bits to the highest ones.
fn mix(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// An identity of 8 bytes; the other bytes are 0.
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

/// Data that enters or leaves a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint<I> {
    identity: I,
    /// ns since the epoch; `i64::MIN` without a time.
    when: i64,
    /// The encoded [`Spot`].
    spot: u64,
}

impl<I: CompactIdentity> Endpoint<I> {
    /// Sort key among equal identities, in the order that a matcher needs.
    fn order(&self, codec: SpotCodec) -> (u32, i64) {
        (codec.hash_type(self.spot), self.when)
    }

    /// The decoded spot.
    pub fn spot(&self, codec: SpotCodec) -> Spot {
        codec.decode(self.spot)
    }

    /// The key by which endpoints are matched.
    pub fn key(&self, spot: &Spot) -> CompactKey<I> {
        CompactKey { hash_type: spot.hash_type, identity: self.identity }
    }

    /// The time; None if the frame has no time.
    pub fn when(&self, spot: &Spot) -> Option<i64> {
        spot.is_timed.then_some(self.when)
    }
}

/// A compact key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CompactKey<I> {
    /// Number of the hash type.
    hash_type: u32,
    identity: I,
}

impl<I: CompactIdentity> CompactKey<I> {
    pub fn bytes(self) -> [u8; KEY_BYTES] {
        key_of(self.hash_type as usize, self.identity.bytes())
    }
}

/// The frame and the direction of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    /// Number of the owner of its ring.
    pub owner: u32,
    pub point: u32,
    /// Number of the hash type.
    pub hash_type: u32,
    pub direction: DataDirection,
    pub is_timed: bool,
    pub seqno: u64,
}

/// Encodes spots as numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpotCodec {
    points: u32,
    types: u32,
}

/// Number of directions, with and without a time.
const DIRECTIONS: u32 = 8;

impl SpotCodec {
    /// A codec for `directory`, whose sequence numbers are below `end_seq`; None if spots do not fit into
    /// 64 bits.
    pub fn new(directory: &PointDirectory, end_seq: u64) -> Option<SpotCodec> {
        let number = |count: usize| u32::try_from(count).ok();
        let (points, types) = (number(directory.points.len())?, number(directory.types.len())?);
        let all = number(directory.owners.len())?.checked_mul(points)?.checked_mul(types)?;
        let fits = all.checked_mul(DIRECTIONS)? <= 1 << (u64::BITS - SEQNO_BITS);
        (fits && end_seq <= 1 << SEQNO_BITS).then_some(SpotCodec { points, types })
    }

    fn encode(self, spot: &Spot) -> u64 {
        let kind = (spot.owner * self.points + spot.point) * self.types + spot.hash_type;
        let direction = spot.direction as u32 | u32::from(spot.is_timed) << 2;
        u64::from(kind * DIRECTIONS + direction) << SEQNO_BITS | spot.seqno
    }

    /// Decodes the hash type only.
    fn hash_type(self, number: u64) -> u32 {
        let kind = (number >> SEQNO_BITS) as u32 / DIRECTIONS;
        if self.types > 1 { kind % self.types } else { 0 }
    }

    fn decode(self, number: u64) -> Spot {
        let kind = (number >> SEQNO_BITS) as u32;
        let (kind, direction) = (kind / DIRECTIONS, kind % DIRECTIONS);
        let (kind, hash_type) = (kind / self.types, kind % self.types);
        Spot {
            owner: kind / self.points,
            point: kind % self.points,
            hash_type,
            direction: DataDirection::numbered((direction & 3) as i32),
            is_timed: direction & 4 != 0,
            seqno: number & ((1 << SEQNO_BITS) - 1),
        }
    }
}

/// Endpoints in blocks.
type Blocks<I> = Vec<Vec<Endpoint<I>>>;

/// Endpoints in buckets. All endpoints of an identity are in the same bucket.
#[derive(Debug)]
pub(super) struct Buckets<I> {
    buckets: Vec<Blocks<I>>,
}

impl<I: CompactIdentity> Buckets<I> {
    /// Binary logarithm of the number of buckets for at most this many endpoints.
    pub fn bits(endpoints: u64) -> u32 {
        (endpoints / BUCKET_ENDPOINTS).max(1).ilog2().min(MAX_BUCKET_BITS)
    }

    /// Reads all parts of a scan in parallel.
    pub fn read(
        scan: &ChunkScan<Endpoints>,
        directory: &PointDirectory,
        codec: SpotCodec,
        bits: u32,
    ) -> Result<Buckets<I>, TableError> {
        let part = |part| {
            let mut buckets = Buckets::new(bits);
            let mut chunks = scan.chunks(part);
            while chunks.next().is_some() {
                chunks.read(|chunk| buckets.add_chunk(chunk, directory, codec))?;
            }
            Ok(buckets)
        };
        let parts: Vec<Result<Buckets<I>, TableError>> = thread::scope(|scope| {
            let part = &part;
            let threads: Vec<_> =
                (1..scan.parts()).map(|number| scope.spawn(move || part(number))).collect();
            let first = part(0);
            // A panic of a thread continues in this one.
            let others = threads.into_iter().map(|thread| match thread.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(first).chain(others).collect()
        });
        let mut all = Buckets::new(bits);
        for part in parts {
            let blocks = all.buckets.iter_mut().zip(part?.buckets);
            blocks.for_each(|(all, mut part)| all.append(&mut part));
        }
        Ok(all)
    }

    fn new(bits: u32) -> Buckets<I> {
        Buckets { buckets: (0..1 << bits).map(|_| Vec::new()).collect() }
    }

    /// Adds the endpoints of a chunk.
    fn add_chunk(&mut self, chunk: &ChunkRows<'_>, directory: &PointDirectory, codec: SpotCodec) {
        let values = chunk.values(chunk.rows);
        let owner = directory.owner(chunk) as u32;
        let shift = u64::BITS - self.buckets.len().ilog2();
        directory.each(chunk, |row, frame, form| {
            let ts = form.at.and_then(|at| values.epoch(at, frame));
            let when = ts.and_then(|ts| Some(directory.clocks.around(chunk.capture, ts)?.0));
            form.each_endpoint(true, |identity, direction| {
                let Some(bytes) = identity.bytes(frame) else { return };
                let spot = Spot {
                    owner,
                    point: form.point as u32,
                    hash_type: identity.hash_type as u32,
                    direction,
                    is_timed: when.is_some(),
                    seqno: chunk.at.first_seq + u64::from(row),
                };
                let identity = I::from_bytes(bytes);
                let bucket = identity.mixed().checked_shr(shift).unwrap_or(0);
                let (when, spot) = (when.unwrap_or(i64::MIN), codec.encode(&spot));
                push(&mut self.buckets[bucket as usize], Endpoint { identity, when, spot });
            });
        });
    }

    /// Removes the content of a bucket.
    pub fn take(&mut self, bucket: usize) -> Bucket<I> {
        Bucket(std::mem::take(&mut self.buckets[bucket]))
    }

    /// The number of buckets.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }
}

/// The endpoints of a bucket.
pub(super) struct Bucket<I>(Blocks<I>);

impl<I: CompactIdentity> Bucket<I> {
    /// Moves the endpoints to `to`, sorted by key and time.
    pub fn sort_into(self, codec: SpotCodec, to: &mut Vec<Endpoint<I>>) {
        to.clear();
        to.reserve(self.0.iter().map(Vec::len).sum());
        self.0.into_iter().for_each(|block| to.extend(block));
        // Few endpoints share an identity, so sorting by identity first is fastest.
        to.sort_unstable_by_key(|endpoint| endpoint.identity);
        let same = to.chunk_by_mut(|one, other| one.identity == other.identity);
        same.for_each(|same| same.sort_unstable_by_key(|endpoint| endpoint.order(codec)));
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
    fn spots_survive_encoding() {
        let codec = SpotCodec { points: 3, types: 5 };
        for (owner, point, hash_type) in [(0, 0, 0), (7, 2, 4), (1000, 1, 0), (1, 2, 3)] {
            for direction in [
                DataDirection::Out,
                DataDirection::In,
                DataDirection::ImpliedOut,
                DataDirection::Through,
            ] {
                for (is_timed, seqno) in [(false, 0), (true, (1 << SEQNO_BITS) - 1)] {
                    let spot = Spot { owner, point, hash_type, direction, is_timed, seqno };
                    assert_eq!(codec.decode(codec.encode(&spot)), spot);
                }
            }
        }
    }

    #[test]
    fn identities_survive_encoding() {
        let wide: [u8; WIDEST] = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(<[u64; 2]>::from_bytes(wide).bytes(), wide);
        let mut narrow = wide;
        narrow[8..].fill(0);
        assert_eq!(u64::from_bytes(narrow).bytes(), narrow);
        assert!(u64::from_bytes(narrow) == 0x0102_0304_0506_0708);
    }
}
