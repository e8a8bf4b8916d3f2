//! Counters and histograms: readings of the rows of cells of a feed's segments.
//!
//! A reading states the changes since the previous one, so the sums stay right if a reading does
//! not reach a file. Cells only grow. Their values at the start of the session are subtracted.

use std::collections::BTreeMap;
use std::sync::Arc;

use ppt_capture::frame_dsl::Schema;
use ppt_capture::{CellRows, CellsHead, Source};
use ppt_segment::abi::ring_state;
use ppt_segment::owner::OwnerWord;
use ppt_segment::{Segment, cells};

use crate::tally::FeedTally;

/// The cells of a segment at the start of the session, by row: 0 is the shared row, `r + 1` that of
/// ring `r`. Missing rows were 0.
pub type FoundCells = BTreeMap<u32, Box<[u64]>>;

/// Size in bytes after which the next chunk begins.
const CHUNK_BYTES: usize = 1 << 20;

/// The rows of one segment.
#[derive(Debug)]
pub(crate) struct SegmentCells {
    segment: Arc<Segment>,
    found: FoundCells,
    rows: BTreeMap<u32, CellRow>,
    /// Number of cells per row that are in use.
    cells: usize,
    /// Shows the sums while the capture runs.
    tally: Option<Arc<FeedTally>>,
}

/// The state of a row.
#[derive(Debug)]
struct CellRow {
    /// The sums that the files state since the session began.
    stated: Box<[u64]>,
    /// The ring's owner at the last reading.
    owner: OwnerWord,
}

/// A reading that no file states yet.
#[derive(Debug, Default)]
pub(crate) struct UnstatedReading {
    rows: CellRows,
    changes: Vec<CellChange>,
}

#[derive(Debug)]
struct CellChange {
    row: u32,
    owner: OwnerWord,
    /// The thread that added, if there was exactly one; otherwise 0.
    tid: u32,
    values: Vec<(u32, u64)>,
}

/// The part of a reading for one row: the sums added to its cells since the session began.
#[derive(Debug)]
pub(crate) struct Adds {
    pub ring: Option<u32>,
    pub tid: u32,
    pub values: Vec<(u32, u64)>,
}

/// Number of cells per row of a source. 0 if the source is invalid.
pub(crate) fn cells_of(source: &Source) -> u32 {
    Schema::from_json(&source.schema_json).map_or(0, |schema| schema.cells())
}

const NOBODY: OwnerWord = OwnerWord { epoch: 0, state: ring_state::FREE };

impl SegmentCells {
    /// The readings of a segment with rows of `cells` cells each. `None` if it has no rows.
    pub fn new(segment: Arc<Segment>, found: FoundCells, cells: u32) -> Option<Self> {
        let count = segment.geometry().rows().count();
        let cells = cells as usize;
        let fits = count > 0 && cells * 8 <= segment.geometry().rows().pitch() as usize;
        fits.then(|| Self { segment, found, rows: BTreeMap::new(), cells, tally: None })
    }

    /// Makes `tally` show the sums that a file states.
    pub fn shown_by(self, tally: Option<Arc<FeedTally>>) -> Self {
        Self { tally, ..self }
    }

    /// Nonce of the segment.
    pub fn nonce(&self) -> u64 {
        self.segment.nonce()
    }

    /// The numbers of rows that may contain adds. Other rows are not touched.
    fn used(&self) -> impl Iterator<Item = u32> {
        let geometry = self.segment.geometry();
        // A thread claims the lowest free ring, so all rings above a never claimed ring were never
        // claimed.
        let claimed = (0..geometry.rings())
            .take_while(|&ring| self.segment.ring(ring).owner().epoch > 0)
            .map(|ring| ring + 1);
        std::iter::once(0).chain(claimed).take_while(move |&row| row < geometry.rows().count())
    }

    /// The changes since the last reading that was passed to [`Self::stated`].
    pub fn read(&self) -> Vec<UnstatedReading> {
        let mut readings = Vec::new();
        let mut reading = UnstatedReading::default();
        for row in self.used() {
            if let Some(change) = self.change(row) {
                reading.push(&self.segment, change, self.rows.get(&row).map(|row| row.owner));
            }
            if reading.rows.bytes().len() >= CHUNK_BYTES {
                readings.push(std::mem::take(&mut reading));
            }
        }
        if !reading.rows.is_empty() {
            readings.push(reading);
        }
        readings
    }

    fn change(&self, row: u32) -> Option<CellChange> {
        let owner = match row.checked_sub(1) {
            Some(ring) => self.segment.ring(ring).owner(),
            None => NOBODY,
        };
        let found = self.found.get(&row);
        let stated = self.rows.get(&row);
        let at = |words: Option<&Box<[u64]>>, cell: usize| {
            words.and_then(|words| words.get(cell)).copied().unwrap_or(0)
        };
        let mut values = Vec::new();
        for (cell, word) in self.segment.row(row)[..self.cells].iter().enumerate() {
            let value = cells::read(word).wrapping_sub(at(found, cell));
            if value != at(stated.map(|stated| &stated.stated), cell) {
                values.push((cell as u32, value));
            }
        }
        // A truncated segment reads as zeros that no target wrote.
        let change = !values.is_empty() && !self.segment.truncated();
        change.then_some(CellChange { row, owner, tid: 0, values })
    }

    /// Records that a file states this reading.
    pub fn stated(&mut self, reading: UnstatedReading) {
        if let Some(tally) = &self.tally {
            tally.add(self.added(&reading));
        }
        for CellChange { row, owner, values, .. } in reading.changes {
            let cells = self.cells;
            let new = || CellRow { stated: vec![0; cells].into(), owner };
            let known = self.rows.entry(row).or_insert_with(new);
            known.owner = owner;
            for (cell, value) in values {
                known.stated[cell as usize] = value;
            }
        }
    }

    /// The sums that `reading` adds to the [stated](Self::stated) ones, by cell.
    pub fn added(&self, reading: &UnstatedReading) -> BTreeMap<u32, u64> {
        let mut added = BTreeMap::new();
        for CellChange { row, values, .. } in &reading.changes {
            let stated = self.rows.get(row).map(|row| &row.stated);
            for &(cell, value) in values {
                let add = value.wrapping_sub(stated.map_or(0, |stated| stated[cell as usize]));
                let sum: &mut u64 = added.entry(cell).or_default();
                *sum = sum.wrapping_add(add);
            }
        }
        added
    }

    /// Reads all cells as one row, if there is no room for more: the adds of all rings count towards
    /// the
    /// shared row. Their owners are then unknown.
    pub fn read_as_one(&mut self) -> Vec<UnstatedReading> {
        let adds = self.take_of(|row| row > 0);
        self.give(&adds);
        let mut reading = UnstatedReading::default();
        if let Some(change) = self.change(0) {
            reading.push(&self.segment, change, None);
        }
        if reading.rows.is_empty() { Vec::new() } else { vec![reading] }
    }

    /// Removes and returns the adds that no file states, by cell, to be [given](Self::give) to
    /// another segment of the feed.
    pub fn take(&mut self) -> Vec<(u32, u64)> {
        self.take_of(|_| true)
    }

    fn take_of(&mut self, of: impl Fn(u32) -> bool) -> Vec<(u32, u64)> {
        let mut adds = Vec::new();
        for row in self.used().filter(|&row| of(row)).collect::<Vec<_>>() {
            let Some(CellChange { values, .. }) = self.change(row) else { continue };
            let stated = self.rows.get(&row).map(|row| &row.stated);
            let found = self.found.entry(row).or_insert_with(|| vec![0; self.cells].into());
            for (cell, value) in values {
                let add = value.wrapping_sub(stated.map_or(0, |stated| stated[cell as usize]));
                found[cell as usize] = found[cell as usize].wrapping_add(add);
                adds.push((cell, add));
            }
        }
        adds
    }

    /// Counts these adds towards the shared row.
    pub fn give(&mut self, adds: &[(u32, u64)]) {
        let found = self.found.entry(0).or_insert_with(|| vec![0; self.cells].into());
        for &(cell, add) in adds {
            found[cell as usize] = found[cell as usize].wrapping_sub(add);
        }
    }

    /// The sums stated by earlier files, for a new file.
    pub fn base(&self) -> Vec<CellRows> {
        let mut all = vec![CellRows::default()];
        for (&row, CellRow { stated, .. }) in &self.rows {
            if all.last().is_some_and(|rows| rows.bytes().len() >= CHUNK_BYTES) {
                all.push(CellRows::default());
            }
            let values = (0..).zip(stated.iter().copied()).filter(|(_, value)| *value != 0);
            all.last_mut().expect("there is one").push(row.checked_sub(1), 0, values);
        }
        all.retain(|rows| !rows.is_empty());
        all
    }

    /// Restarts the sums at 0, for a file that cannot state those of earlier files.
    pub fn forget_stated(&mut self) {
        for (&row, CellRow { stated, .. }) in &mut self.rows {
            let found = self.found.entry(row).or_insert_with(|| vec![0; self.cells].into());
            for (found, stated) in found.iter_mut().zip(&mut *stated) {
                *found = found.wrapping_add(std::mem::take(stated));
            }
        }
    }
}

impl UnstatedReading {
    fn push(&mut self, segment: &Segment, mut change: CellChange, before: Option<OwnerWord>) {
        let ring = change.row.checked_sub(1);
        let before = before.unwrap_or(NOBODY);
        change.tid = ring.map_or(0, |ring| only_owner(segment, ring, before, change.owner));
        self.rows.push(ring, change.tid, change.values.iter().copied());
        self.changes.push(change);
    }

    /// Bytes of its rows.
    pub fn len(&self) -> usize {
        self.rows.bytes().len()
    }

    /// The adds, row by row.
    pub fn adds(&self) -> Vec<Adds> {
        let adds = self.changes.iter().map(|CellChange { row, tid, values, .. }| Adds {
            ring: row.checked_sub(1),
            tid: *tid,
            values: values.clone(),
        });
        adds.collect()
    }

    /// The rows, for a chunk.
    pub fn rows(&self) -> &CellRows {
        &self.rows
    }

    /// The head of their chunk.
    pub fn head(source: u16, nonce: u64, mono_ns: u64, not_mapped: u64) -> CellsHead {
        CellsHead { source, nonce, mono_ns, not_mapped, is_base: false }
    }
}

/// The thread that owned the ring between two looks, if there was exactly one; otherwise 0.
fn only_owner(segment: &Segment, ring: u32, before: OwnerWord, now: OwnerWord) -> u32 {
    let first = match before.state {
        ring_state::FREE => before.epoch.wrapping_add(1),
        _ => before.epoch,
    };
    let only = first == now.epoch;
    let tenure = only.then(|| segment.ring(ring).tenure(now.epoch)).flatten();
    tenure.map_or(0, |tenure| tenure.tid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_segment::{Created, Geometry, RowGeometry, SegmentIdentity};

    fn segment(nonce: u64) -> Arc<Segment> {
        let geometry = Geometry::new(64, 6, 4).unwrap();
        let geometry = geometry.with_rows(RowGeometry::new(3, 4).unwrap()).unwrap();
        let identity = SegmentIdentity { nonce, schema_hash: 0, geometry };
        let mut key = (std::process::id() as u16).wrapping_add(nonce as u16);
        let random = || {
            key = key.wrapping_add(7);
            key
        };
        Arc::new(Segment::create(identity, None, Created::default(), random).unwrap())
    }

    /// Ring, thread, cells and values of each row that changed.
    type ReadRows = Vec<(Option<u32>, u32, Vec<(u32, u64)>)>;

    fn read(readings: &mut SegmentCells) -> ReadRows {
        let mut rows = Vec::new();
        for reading in readings.read() {
            for change in &reading.changes {
                rows.push((change.row.checked_sub(1), 0, change.values.clone()));
            }
            let mut tids = Vec::new();
            let bytes = reading.rows().bytes().to_vec();
            let mut at = 0;
            while at < bytes.len() {
                let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                tids.push(word(at + 4));
                at += 16 + 16 * word(at + 8) as usize;
            }
            let first = rows.len() - tids.len();
            rows[first..].iter_mut().zip(tids).for_each(|(row, tid)| row.1 = tid);
            readings.stated(reading);
        }
        rows
    }

    #[test]
    fn only_changes_are_stated_and_what_was_found_is_subtracted() {
        let segment = segment(40);
        let ring = segment.ring(0);
        assert!(ring.claim(10));
        cells::add_own(&segment.row(1)[2], 100);
        cells::add_shared(&segment.row(0)[0], 7);
        let found = [0, 1].map(|row| (row, segment.row(row).iter().map(cells::read).collect()));
        let mut readings = SegmentCells::new(segment.clone(), found.into(), 3).unwrap();
        assert_eq!(read(&mut readings), []);
        cells::add_own(&segment.row(1)[2], 5);
        cells::add_shared(&segment.row(0)[1], 1);
        let expected = vec![(None, 0, vec![(1, 1)]), (Some(0), 10, vec![(2, 5)])];
        assert_eq!(read(&mut readings), expected);
        assert_eq!(read(&mut readings), []);
        let lost = readings.read();
        assert!(lost.is_empty());
        cells::add_own(&segment.row(1)[2], 1);
        drop(readings.read()); // This reading did not reach a file.
        cells::add_own(&segment.row(1)[2], 1);
        assert_eq!(read(&mut readings), [(Some(0), 10, vec![(2, 7)])]);
        assert_eq!(readings.base().len(), 1);
    }

    #[test]
    fn whose_adds_they_are_is_known_where_one_thread_added() {
        let segment = segment(41);
        let mut readings = SegmentCells::new(segment.clone(), FoundCells::new(), 3).unwrap();
        let mut add = || {
            cells::add_own(&segment.row(1)[0], 1);
            read(&mut readings)[0].1
        };
        let ring = segment.ring(0);
        assert!(ring.claim(10));
        assert_eq!(add(), 10);
        assert_eq!(add(), 10);
        assert!(ring.release(1) && ring.claim(11));
        assert_eq!(add(), 0, "either of the two");
        assert_eq!(add(), 11);
        assert!(ring.release(2));
        assert_eq!(add(), 11);
        assert!(ring.claim(12));
        assert_eq!(add(), 12);
    }

    #[test]
    fn rings_without_a_row_and_those_never_claimed_are_not_read() {
        let segment = segment(42);
        let readings = SegmentCells::new(segment.clone(), FoundCells::new(), 3).unwrap();
        assert_eq!(readings.used().collect::<Vec<_>>(), [0]);
        (0..4).for_each(|ring| assert!(segment.ring(ring).claim(10)));
        assert_eq!(readings.used().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(
            SegmentCells::new(segment, FoundCells::new(), 33).is_none(),
            "longer than its rows"
        );
    }
}
