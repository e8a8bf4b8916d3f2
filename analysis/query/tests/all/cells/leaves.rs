//! What cells must be, by what SQL says of slices, and by what is known of leaves: 256 slices of a chunk and
//! a depth that follow each other.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ppt_capture::{Capture, CaptureItem, Chunk};
use ppt_view::{About, Phase, RowId, WIDE, WindowRow, begins_within};

use crate::support::{Files, rows, with_pushdown};

/// Count, sum and greatest length, by thread (`?`: no thread) and depth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeafSums(BTreeMap<(String, u32), (u64, u64, u64)>);

impl LeafSums {
    fn take(&mut self, key: (String, u32), (count, busy, longest): (u64, u64, u64)) {
        let sum = self.0.entry(key).or_default();
        // A garbage length may be large.
        *sum = (sum.0 + count, sum.1.saturating_add(busy), sum.2.max(longest));
    }

    pub fn add(&mut self, other: &LeafSums) {
        for (key, sums) in &other.0 {
            self.take(key.clone(), *sums);
        }
    }
}

/// The sums of rows, without rows that begin before the window.
pub fn sums(about: &About, rows: &[WindowRow]) -> LeafSums {
    let labels: HashMap<RowId, &str> =
        about.rows.iter().map(|row| (row.id, row.label.as_str())).collect();
    let mut sums = LeafSums::default();
    for row in rows {
        let RowId::Depth { thread, depth } = row.row else { continue };
        let thread = labels[&RowId::Thread(thread)].to_owned();
        for cell in row.cells.iter().filter(|cell| begins_within(cell)) {
            sums.take((thread.clone(), depth), (cell.count, cell.busy, cell.longest));
        }
    }
    sums
}

#[derive(Debug, Clone)]
struct Slice {
    start: i64,
    /// As the table has it.
    dur: i64,
    seqno: u64,
    name: String,
}

impl Slice {
    fn length(&self) -> u64 {
        self.dur.max(0) as u64
    }

    fn end(&self) -> i64 {
        self.start.saturating_add(self.dur.max(0))
    }
}

pub struct Oracle {
    /// Thread and depth, and the slices of a leaf.
    leaves: Vec<((String, u32), Vec<Slice>)>,
}

/// Capture, segment, ring.
type LeafRing = (String, String, u32);

impl Oracle {
    pub fn of(files: &Files) -> Oracle {
        let engine = files.engine(&with_pushdown());
        let mut chunks: HashMap<LeafRing, Vec<(u64, u64)>> = HashMap::new();
        files.paths.iter().for_each(|path| chunks_of(path, &mut chunks));
        // By capture, segment, ring, chunk, thread and depth.
        let mut groups: BTreeMap<(LeafRing, u64, String, u32), Vec<Slice>> = BTreeMap::new();
        let sql = "SELECT capture, segment, ring, seqno, tid, name, ts, dur, depth FROM slices";
        for row in rows(&engine, sql) {
            let text = |at: usize| row[at].clone().unwrap();
            let ring = (text(0), text(1), text(2).parse().unwrap());
            let seqno: u64 = text(3).parse().unwrap();
            let chunk =
                chunks[&ring].iter().find(|chunk| chunk.0 <= seqno && seqno < chunk.0 + chunk.1);
            let thread = row[4].clone().unwrap_or_else(|| "?".to_owned());
            let slice = Slice {
                start: text(6).parse().unwrap(),
                dur: text(7).parse().unwrap(),
                seqno,
                name: text(5),
            };
            let depth = text(8).parse().unwrap();
            groups.entry((ring, chunk.unwrap().0, thread, depth)).or_default().push(slice);
        }
        let mut leaves = Vec::new();
        for ((_, _, thread, depth), mut slices) in groups {
            slices.sort_by(|a, b| {
                let key =
                    |slice: &Slice| (slice.start, std::cmp::Reverse(slice.dur), slice.name.clone());
                (key(a).0, key(a).1, b.seqno).cmp(&(key(b).0, key(b).1, a.seqno))
            });
            for leaf in slices.chunks(256) {
                leaves.push(((thread.clone(), depth), leaf.to_vec()));
            }
        }
        Oracle { leaves }
    }

    pub fn range(&self) -> Option<(i64, i64)> {
        let all = || self.leaves.iter().flat_map(|leave| &leave.1);
        Some((all().map(|slice| slice.start).min()?, all().map(Slice::end).max()?))
    }

    pub fn all(&self) -> LeafSums {
        let mut sums = LeafSums::default();
        for (key, leaf) in &self.leaves {
            leaf.iter()
                .for_each(|slice| sums.take(key.clone(), (1, slice.length(), slice.length())));
        }
        sums
    }

    /// The sums of slices that begin within a window.
    pub fn window(&self, (from, to): (i64, i64), pixels: u32, phase: Phase) -> LeafSums {
        let width = (i128::from(to) - i128::from(from)) as u64;
        let pixel = width.div_ceil(u64::from(pixels)).max(1);
        let mut sums = LeafSums::default();
        let mut take = |key: &(String, u32), slice: &Slice| {
            sums.take(key.clone(), (1, slice.length(), slice.length()));
        };
        for (key, leaf) in &self.leaves {
            let end = leaf.iter().map(Slice::end).max().unwrap();
            let wide = (i128::from(end) - i128::from(leaf[0].start)) as u64;
            let is_open = phase == Phase::Frames && leaf.len() > 1 && wide > WIDE * pixel;
            if is_open {
                let within = leaf.iter().filter(|slice| (from..to).contains(&slice.start));
                within.for_each(|slice| take(key, slice));
            } else if (from..to).contains(&leaf[0].start) {
                leaf.iter().for_each(|slice| take(key, slice));
            }
        }
        sums
    }
}

/// The first number of each chunk, and how many frames it has.
fn chunks_of(path: &Path, chunks: &mut HashMap<LeafRing, Vec<(u64, u64)>>) {
    let mut capture = Capture::open(path).unwrap();
    let id: String = capture.short_id().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(Chunk::Frames(frames)) = item {
            let head = frames.head;
            let ring = (id.clone(), format!("{:016x}", head.nonce), head.ring);
            chunks.entry(ring).or_default().push((head.first_seq, head.count.into()));
        }
    }
}
