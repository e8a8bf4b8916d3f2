//! Chunks of cells: the values of counters and histograms at one time.

use std::collections::BTreeMap;

use ppt_frame_dsl::metric::Metric;

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::error::DamageKind;
use crate::format::cells::{self, entry, row};

/// The head of a cells chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CellsHead {
    /// The source; a source chunk of this number comes first.
    pub source: u16,
    /// Nonce of the segment.
    pub nonce: u64,
    /// CLOCK_MONOTONIC when the reading began, ns.
    pub mono_ns: u64,
    /// Adds and observations of the source that were lost because the target could not map its
    /// segment, since the start of the capture. The last chunk counts.
    pub not_mapped: u64,
    /// Whether these are the values at the start of the file, at which the previous file ended.
    pub is_base: bool,
}

/// The changes in one row since the previous reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRow<'a> {
    /// The ring whose owners added. `None`: the shared row.
    pub ring: Option<u32>,
    /// Kernel id of the thread that added. 0: several threads did, or it is unknown.
    pub tid: u32,
    entries: &'a [u8],
}

impl<'a> CellRow<'a> {
    /// The cells, by their numbers in a row, with the sum added to each since the session began,
    /// modulo 2^64.
    pub fn values(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let entries = self.entries.chunks_exact(entry::LEN);
        entries.map(|bytes| (u32_at(bytes, entry::CELL), u64_at(bytes, entry::VALUE)))
    }
}

/// A chunk of cells that has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cells<'a> {
    /// The facts about all rows.
    pub head: CellsHead,
    payload: &'a [u8],
}

impl<'a> Cells<'a> {
    /// A chunk of `source`. Its rings and cells must be below these numbers.
    pub(crate) fn decode(
        (source, header): (u16, &[u8]),
        payload: &'a [u8],
        (rings, cells): (u32, u32),
    ) -> Result<Self, DamageKind> {
        let head = CellsHead {
            source,
            nonce: u64_at(header, cells::NONCE),
            mono_ns: u64_at(header, cells::MONOTONIC),
            not_mapped: u64_at(header, cells::NOT_MAPPED),
            is_base: u32_at(header, cells::FLAGS) & cells::BASE != 0,
        };
        let chunk = Self { head, payload };
        let damage = |what| Err(DamageKind::Content(what));
        let mut bytes = 0;
        for row in chunk.rows() {
            bytes += row::LEN + row.entries.len();
            if row.ring.is_some_and(|ring| ring >= rings) {
                return damage("cells of a ring that its segment does not have");
            }
            let mut next = 0;
            for (cell, _) in row.values() {
                if cell < next || cell >= cells {
                    return damage("cells that its source does not have");
                }
                next = cell + 1;
            }
        }
        if bytes == payload.len() { Ok(chunk) } else { damage("rows of cells that end inside") }
    }

    /// The rows with changes.
    pub fn rows(&self) -> impl Iterator<Item = CellRow<'a>> + use<'a> {
        let mut rest = self.payload;
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_at_checked(row::LEN)?;
            let length = u32_at(head, row::COUNT) as usize * entry::LEN;
            let (entries, next) = behind.split_at_checked(length)?;
            rest = next;
            let ring = Some(u32_at(head, row::RING)).filter(|&ring| ring != row::SHARED);
            Some(CellRow { ring, tid: u32_at(head, row::TID), entries })
        })
    }
}

impl CellsHead {
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u64(bytes, cells::NONCE, self.nonce);
        put_u64(bytes, cells::MONOTONIC, self.mono_ns);
        put_u64(bytes, cells::NOT_MAPPED, self.not_mapped);
        put_u32(bytes, cells::FLAGS, if self.is_base { cells::BASE } else { 0 });
    }
}

/// The payload of a cells chunk under construction.
#[derive(Debug, Clone, Default)]
pub struct CellRows(Vec<u8>);

impl CellRows {
    /// Adds a row with these cells and values, in the order of the cells. Adds nothing if there are
    /// none.
    pub fn push(
        &mut self,
        ring: Option<u32>,
        tid: u32,
        values: impl IntoIterator<Item = (u32, u64)>,
    ) {
        let start = self.0.len();
        self.0.resize(start + row::LEN, 0);
        let mut count = 0;
        for (cell, value) in values {
            let at = self.0.len();
            self.0.resize(at + entry::LEN, 0);
            put_u32(&mut self.0, at + entry::CELL, cell);
            put_u64(&mut self.0, at + entry::VALUE, value);
            count += 1;
        }
        if count == 0 {
            self.0.truncate(start);
            return;
        }
        put_u32(&mut self.0, start + row::RING, ring.unwrap_or(row::SHARED));
        put_u32(&mut self.0, start + row::TID, tid);
        put_u32(&mut self.0, start + row::COUNT, count);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Source, segment, row and cell.
type CellAddress = (u16, u64, Option<u32>, u32);

/// The sums of counters and histograms over the chunks of a capture.
#[derive(Debug, Clone, Default)]
pub struct CellTotals {
    /// The value at the start of the file, and the last value.
    values: BTreeMap<CellAddress, (u64, u64)>,
    not_mapped: BTreeMap<u16, u64>,
}

impl CellTotals {
    /// Adds a chunk.
    pub fn add(&mut self, chunk: &Cells<'_>) {
        let CellsHead { source, nonce, not_mapped, is_base, .. } = chunk.head;
        if !is_base {
            self.not_mapped.insert(source, not_mapped);
        }
        for row in chunk.rows() {
            for (cell, value) in row.values() {
                let known = self.values.entry((source, nonce, row.ring, cell)).or_default();
                *known = if is_base { (value, value) } else { (known.0, value) };
            }
        }
    }

    /// The sum of each cell of `source`, over all rows and segments: only what was added while the
    /// file was written.
    pub fn sums(&self, source: u16) -> BTreeMap<u32, u64> {
        let first = (source, 0, None, 0);
        let last = (source, u64::MAX, Some(u32::MAX), u32::MAX);
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for (&(.., cell), (base, value)) in self.values.range(first..=last) {
            let sum = sums.entry(cell).or_default();
            *sum = sum.wrapping_add(value.wrapping_sub(*base));
        }
        sums
    }

    /// Adds and observations of `source` that were lost.
    pub fn not_mapped(&self, source: u16) -> u64 {
        self.not_mapped.get(&source).copied().unwrap_or_default()
    }
}

/// The content of a histogram.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistogramCells {
    /// The number of values.
    pub count: u64,
    /// Their sum, modulo 2^64: an i64 for durations.
    pub sum: u64,
    /// The buckets that hold values: `lo ≤ value < hi`, and their count. `lo` is `None` below all
    /// buckets, `hi` is `None` above them.
    pub buckets: Vec<(Option<i128>, Option<i128>, u64)>,
}

impl HistogramCells {
    /// The histogram of a metric, from the sums of cells.
    pub fn from_sums(metric: &Metric, sums: &BTreeMap<u32, u64>) -> Self {
        let mut histogram = Self::default();
        for (&cell, &value) in sums.range(metric.cells.clone()) {
            match metric.shape.bucket(cell - metric.cells.start) {
                None => histogram.sum = value,
                Some(_) if value == 0 => {}
                Some((lo, hi)) => {
                    histogram.count = histogram.count.wrapping_add(value);
                    histogram.buckets.push((lo, hi, value));
                }
            }
        }
        histogram
    }

    /// The bucket that holds the quantile `part` (0.5: the median).
    pub fn quantile(&self, part: f64) -> Option<(Option<i128>, Option<i128>)> {
        let rank = ((self.count as f64 * part).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0u64;
        let found = self.buckets.iter().find(|(_, _, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        found.or(self.buckets.last()).map(|&(lo, hi, _)| (lo, hi))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::chunk;

    fn header(head: &CellsHead) -> Vec<u8> {
        let mut bytes = vec![0; cells::LEN];
        head.encode(&mut bytes);
        bytes
    }

    fn decode<'a>(head: &CellsHead, rows: &'a [u8]) -> Result<Cells<'a>, DamageKind> {
        Cells::decode((head.source, &header(head)), rows, (4, 10))
    }

    #[test]
    fn a_chunk_survives_a_round_trip() {
        let head = CellsHead { source: 3, nonce: 9, mono_ns: 77, not_mapped: 5, is_base: true };
        assert_eq!(chunk::LEN, cells::NONCE);
        let mut rows = CellRows::default();
        rows.push(None, 0, [(0, 5), (9, u64::MAX)]);
        rows.push(Some(1), 7, []);
        rows.push(Some(3), 8, [(2, 1)]);
        let chunk = decode(&head, rows.bytes()).unwrap();
        assert_eq!(chunk.head, head);
        let read: Vec<_> =
            chunk.rows().map(|row| (row.ring, row.tid, row.values().collect::<Vec<_>>())).collect();
        assert_eq!(read, [(None, 0, vec![(0, 5), (9, u64::MAX)]), (Some(3), 8, vec![(2, 1)])]);
    }

    #[test]
    fn what_a_source_does_not_have_is_damage() {
        let head = CellsHead::default();
        let of = |ring, values: &[(u32, u64)]| {
            let mut rows = CellRows::default();
            rows.push(ring, 0, values.iter().copied());
            rows.0
        };
        assert!(decode(&head, &of(Some(4), &[(0, 1)])).is_err());
        assert!(decode(&head, &of(None, &[(10, 1)])).is_err());
        assert!(decode(&head, &of(None, &[(2, 1), (2, 1)])).is_err());
        let mut long = of(None, &[(2, 1)]);
        long.push(0);
        assert!(decode(&head, &long).is_err());
        assert!(decode(&head, &long[..20]).is_err());
        put_u32(&mut long, row::COUNT, u32::MAX);
        assert!(decode(&head, &long).is_err());
        assert!(decode(&head, &[]).is_ok());
    }

    #[test]
    fn totals_are_what_was_added_in_the_file() {
        let mut totals = CellTotals::default();
        let mut add = |nonce, is_base, ring, value| {
            let head = CellsHead { source: 1, nonce, is_base, not_mapped: 2, ..Default::default() };
            let mut rows = CellRows::default();
            rows.push(ring, 0, [(4, value)]);
            totals.add(&decode(&head, rows.bytes()).unwrap());
        };
        add(1, true, Some(0), 10);
        add(1, false, Some(0), 15);
        add(1, false, Some(0), 17);
        add(1, false, None, 100);
        add(2, false, Some(0), 0u64.wrapping_sub(7));
        assert_eq!(totals.sums(1), [(4, 100)].into());
        assert_eq!((totals.sums(0), totals.not_mapped(1)), (BTreeMap::new(), 2));
    }
}
