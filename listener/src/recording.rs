//! The sink of `ppt attach` and `ppt run`: captures in one file, or in one after the other.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_capture::{
    Cause, Dropped, Drops, End, EndReason, FileHeader, FramesHead, Gap, Packed, Packer,
    REALTIME_STEP_NS, Source,
};
use ppt_segment::Segment;

use crate::account::{Closing, Entry, LossAccount};
use crate::chunk::Chunk;
use crate::clocks::{self, Clocks};
use crate::ledger::Ledger;
use crate::open::OpenFile;
use crate::progress::Counters;
use crate::rotate::Rotation;
use crate::sink::{Done, Ending, Introduction, Sink};
use crate::stamps::Stamps;

/// The first clock chunks come sooner: stamps of a capture that is cut off soon need two.
const FIRST_NS: u64 = 10_000_000;
/// From one clock chunk to the next, and at least between two drops chunks of a source.
const SECOND_NS: u64 = 1_000_000_000;
/// Bytes of a source chunk without its schema, more or less, and of a gap.
const INTRODUCTION: u64 = 8192;
const OF_A_GAP: u64 = 192;

/// What the targets refused, by feed, as the caller last told.
pub(crate) type Told = Mutex<Vec<Dropped>>;

/// A feed of which frames may come.
#[derive(Debug)]
struct Origin {
    stride: u32,
    stamps: Stamps,
    /// As the file has it, if it has it.
    source: Source,
    /// Its segments and their numbers, each until its last chunk has been written.
    segments: Vec<(usize, Arc<Segment>)>,
    /// What it had dropped when the file began.
    dropped_before: Dropped,
    /// What the file says that it dropped.
    dropped_stated: Dropped,
}

/// Writes captures.
pub(crate) struct Recording<W> {
    file: OpenFile<W>,
    packer: Packer,
    counters: Arc<Counters>,
    ledger: Arc<Mutex<Ledger>>,
    told: Arc<Told>,
    origins: BTreeMap<usize, Origin>,
    max_size: Option<u64>,
    rotation: Option<Rotation<W>>,
    /// Frames captured before the file began.
    captured_before: u64,
    /// When the file is full of time, ns of CLOCK_MONOTONIC.
    deadline: u64,
    clocks: Clocks,
    next_clock: u64,
    /// From the next clock chunk to the one after it.
    clock_every: u64,
    /// What the file says of ticks.
    distrusted: bool,
    realtime_offset: i64,
}

impl<W: Write> Recording<W> {
    /// Goes on with `file`, which is new.
    pub fn new(
        (file, packer): (OpenFile<W>, Packer),
        (max_size, rotation): (Option<u64>, Option<Rotation<W>>),
        counters: Arc<Counters>,
        (ledger, told): (Arc<Mutex<Ledger>>, Arc<Told>),
        clocks: Clocks,
    ) -> Self {
        Self {
            file,
            packer,
            counters,
            ledger,
            told,
            origins: BTreeMap::new(),
            max_size,
            captured_before: 0,
            deadline: rotation.as_ref().map_or(u64::MAX, Rotation::deadline),
            rotation,
            distrusted: clocks.distrusted.load(Relaxed),
            clocks,
            next_clock: clocks::monotonic() + FIRST_NS,
            clock_every: 10 * FIRST_NS,
            realtime_offset: clocks::realtime_offset(),
        }
    }

    /// Introduces the first feeds and reads the clocks.
    pub fn begin(&mut self, feeds: Vec<Introduction>) -> io::Result<()> {
        self.introduce(feeds);
        self.file.begin(std::iter::empty(), &self.clocks)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn introduce_one(&mut self, new: Introduction) {
        let Introduction { feed, part, segment, source, stamps, gaps, attended, .. } = new;
        let is_new = !self.origins.contains_key(&feed);
        if is_new && self.file.has_all_sources() {
            // The next file does without those that have ended.
            self.rotate();
        }
        // A capture that has no room for it is full: that segment, and those after it, are not
        // spoken of.
        let needed = INTRODUCTION + source.schema_json.len() as u64 + gaps.len() as u64 * OF_A_GAP;
        let told = self.ledger().told();
        if self.max_size.is_some_and(|max| self.file.written(told).room(max) < needed) {
            self.file.fill();
        }
        let known = self.file.source(feed, &source);
        for gap in gaps.iter().filter(|_| known) {
            let source = self.file.source_of(feed).unwrap_or(gap.source);
            self.file.write(|writer| writer.gap(&Gap { source, ..*gap }));
        }
        // Stated once: a later session does not find the same frames unattended again. Not before:
        // what nobody stated is left to that session.
        if known && !self.file.has_failed() {
            for (segment, ring, cursor) in attended {
                let ring = segment.ring(ring);
                if ring.attended() != cursor {
                    ring.set_attended(cursor);
                }
            }
        }
        let stride = segment.geometry().stride();
        let origin = self.origins.entry(feed).or_insert_with(|| Origin {
            stride,
            stamps,
            source: source.clone(),
            segments: Vec::new(),
            dropped_before: Dropped::default(),
            dropped_stated: Dropped::default(),
        });
        if known {
            origin.source = source;
        }
        origin.segments.push((part, segment));
    }

    /// What the file calls the source that a ring is of, if it can speak of the ring.
    fn source_of(&self, ring: &LossAccount) -> Option<u16> {
        let id = self.file.source_of(ring.feed)?;
        let listed = &self.origins.get(&ring.feed)?.source.segments;
        listed.iter().any(|it| it.nonce == ring.nonce).then_some(id)
    }

    /// The source of a chunk, whether the file has not heard of its ring before, and its head.
    fn head(&self, chunk: &Chunk) -> (usize, bool, FramesHead) {
        let mut ledger = self.ledger();
        let read = |entry: &mut Entry| (entry.account, entry.is_told(), entry.lost_before(chunk));
        let (account, told, lost_before) = ledger.with(chunk.part, chunk.ring, read);
        let head = FramesHead {
            source: self.file.source_of(account.feed).unwrap_or_default(),
            nonce: account.nonce,
            ring: account.ring,
            tid: chunk.tid,
            first_seq: chunk.first_seq,
            stride: self.origins.get(&account.feed).map_or(0, |it| it.stride),
            lost_before,
            drained_mono_ns: chunk.drained_ns,
            ..FramesHead::default()
        };
        (account.feed, !told, head)
    }

    /// Tells the sessions to come what the file states. A `ppt` that is killed before that leaves
    /// frames that the next one finds unattended: none is missing from the files together.
    fn attended(&self, ring: &LossAccount, cursor: u64) {
        if self.source_of(ring).is_none() || self.file.has_failed() {
            return;
        }
        let Some(origin) = self.origins.get(&ring.feed) else { return };
        let mut segments = origin.segments.iter().map(|(_, segment)| segment);
        if let Some(segment) = segments.find(|it| it.nonce() == ring.nonce) {
            segment.ring(ring.ring).set_attended(cursor);
        }
    }

    /// Whether the file has frames, and may have more.
    fn has_frames(&self) -> bool {
        self.file.is_open() && self.ledger().captured() > self.captured_before
    }

    /// Ends the file and goes on in the next.
    fn rotate(&mut self) {
        if !self.file.is_open() {
            return;
        }
        let Some(rotation) = &mut self.rotation else { return };
        let deadline = rotation.deadline();
        match (rotation.next)() {
            Ok((out, header)) => self.go_on(out, &header, deadline),
            Err(error) => self.file.refuse(error),
        }
    }

    fn go_on(&mut self, out: W, header: &FileHeader, deadline: u64) {
        self.gaps(None);
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let end = self.end_chunk(EndReason::Rotated, String::new(), &told);
        let readings = self.clocks.readings();
        self.file.write(|writer| writer.clock(&readings));
        if self.file.has_failed() {
            return;
        }
        // What has ended is stated by the file that ends here, and by no other.
        let stays = |it: &(&usize, &Origin)| !it.1.segments.is_empty();
        let staying = self.origins.iter().filter(stays).map(|(&feed, it)| (feed, &it.source));
        let begun = OpenFile::create(out, header, &self.counters).and_then(|mut file| {
            file.begin(staying, &self.clocks)?;
            Ok(file)
        });
        match begun {
            Ok(file) => {
                let former = std::mem::replace(&mut self.file, file);
                if let (Some(error), _) = former.end(&end) {
                    return self.file.fail(error);
                }
            }
            Err(error) => return self.file.fail(error),
        }
        self.origins.retain(|_, origin| !origin.segments.is_empty());
        for (&feed, origin) in &mut self.origins {
            origin.dropped_before = told.get(feed).copied().unwrap_or_default();
            origin.dropped_stated = Dropped::default();
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.begin_file();
        self.captured_before = ledger.captured();
        self.deadline = deadline;
        (self.next_clock, self.clock_every) = (clocks::monotonic() + FIRST_NS, 10 * FIRST_NS);
    }

    fn drops(&mut self, mono_ns: u64) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for (&feed, origin) in &mut self.origins {
            let Some(source) = self.file.source_of(feed) else { continue };
            let dropped = told.get(feed).copied().unwrap_or_default() - origin.dropped_before;
            if dropped != origin.dropped_stated {
                origin.dropped_stated = dropped;
                let drops = Drops { source, dropped, mono_ns };
                self.file.small(self.max_size, |writer| writer.drops(&drops));
            }
        }
    }

    /// States what no chunk has stated of the rings of segment `part`, or of all.
    fn gaps(&mut self, part: Option<usize>) {
        let gaps = self.ledger().gaps(part, |ring| self.source_of(ring));
        for (ring, gap) in &gaps {
            if self.file.write(|writer| writer.gap(gap)) {
                self.attended(ring, gap.first_seq - 1 + gap.count);
            }
        }
    }

    /// The file's own account.
    fn end_chunk(&self, reason: EndReason, message: String, dropped: &[Dropped]) -> End {
        let ledger = self.ledger();
        let told = ledger.entries().filter(|entry| entry.is_told());
        let rings = told.filter_map(|entry| Some(entry.ring_end(self.source_of(&entry.account)?)));
        let drops = self.origins.iter().filter_map(|(&feed, origin)| {
            let now = dropped.get(feed).copied().unwrap_or_default();
            Some((self.file.source_of(feed)?, now - origin.dropped_before))
        });
        End {
            reason,
            message,
            rings: rings.collect(),
            drops: drops.collect(),
            realtime_ns: clocks::realtime(),
            mono_ns: clocks::monotonic(),
        }
    }
}

impl<W: Write> Sink for Recording<W> {
    fn introduce(&mut self, new: Vec<Introduction>) {
        {
            // All of them first: whatever becomes of the file, each frame has an account.
            let mut ledger = self.ledger();
            for it in &new {
                ledger.open(it.part, (it.feed, it.segment.nonce()), it.first.clone());
            }
        }
        new.into_iter().for_each(|it| self.introduce_one(it));
    }

    fn frames(&mut self, chunk: &Chunk) {
        let (feed, ring_is_new, head) = self.head(chunk);
        let stride = head.stride;
        let mut packer = std::mem::take(&mut self.packer);
        let open = self.file.is_open() && self.file.source_of(feed).is_some();
        let whole = if open { packer.pack(chunk.bytes()) } else { Packed::raw(&[]) };
        let rings = self.ledger().told() + u64::from(ring_is_new);
        let written = self.file.written(rings);
        let size = self.rotation.as_ref().and_then(|it| it.size);
        if !written.fits(size, whole.stored_len()) && self.has_frames() {
            self.packer = packer;
            self.rotate();
            return self.frames(chunk);
        }
        let fitting = match open {
            true if written.fits(self.max_size, whole.stored_len()) => chunk.count,
            true => written.fitting(self.max_size, stride, chunk.count),
            false => 0,
        };
        let payload = &chunk.bytes()[..fitting as usize * stride as usize];
        let packed = if fitting == chunk.count { whole } else { packer.pack(payload) };
        let stamp = match self.origins.get(&feed) {
            Some(origin) => origin.stamps.stamp(payload, stride as usize),
            None => Default::default(),
        };
        let head = FramesHead {
            count: fitting,
            t_min: stamp.t_min,
            t_max: stamp.t_max,
            frame_mask: stamp.frame_mask,
            ..head
        };
        let done = fitting > 0 && self.file.write(|writer| writer.packed_frames(&head, &packed));
        self.packer = packer;
        let written = if done { fitting } else { 0 };

        let (account, stated) = self.ledger().with(chunk.part, chunk.ring, |entry| {
            entry.take(chunk, written);
            (entry.account, entry.stated())
        });
        self.attended(&account, stated);
        self.counters.captured(u64::from(written));
        self.counters.lost(Cause::Disk, u64::from(chunk.count - written));
        self.counters.unqueued(u64::from(chunk.count));
        if fitting < chunk.count {
            self.file.fill();
        }
    }

    fn gone(&mut self, part: usize, closings: &[Closing]) {
        let feed = self.ledger().close(part, closings);
        self.gaps(Some(part));
        let Some(origin) = self.origins.get_mut(&feed) else { return };
        origin.segments.retain(|&(it, _)| it != part);
        if origin.segments.is_empty() {
            self.counters.source_ended();
        }
    }

    fn due(&self) -> u64 {
        self.next_clock.min(self.deadline)
    }

    /// Clocks about each second and when realtime is stepped; drops when they have changed.
    fn tick(&mut self) {
        let now = clocks::monotonic();
        let offset = clocks::realtime_offset();
        let stepped = offset.abs_diff(self.realtime_offset) > REALTIME_STEP_NS;
        let distrusted = self.clocks.distrusted.load(Relaxed) != self.distrusted;
        if now >= self.next_clock || stepped || distrusted {
            self.realtime_offset = offset;
            self.distrusted |= distrusted;
            self.next_clock = now + self.clock_every;
            self.clock_every = (10 * self.clock_every).min(SECOND_NS);
            let readings = self.clocks.readings();
            self.file.small(self.max_size, |writer| writer.clock(&readings));
            self.drops(now);
        }
        if now >= self.deadline && self.has_frames() {
            self.rotate();
        }
    }

    fn end(mut self, ending: Ending) -> Done {
        self.gaps(None);
        let readings = self.clocks.readings();
        self.file.write(|writer| writer.clock(&readings));
        let end = self.end_chunk(ending.reason, ending.message, &ending.dropped);
        let (error, complete) = self.file.end(&end);
        Done { error, complete }
    }
}
