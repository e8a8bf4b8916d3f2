//! The disk thread: writes what comes out of the queue, and clocks and drops in between.

use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ppt_capture::{
    CaptureWriter, Cause, Dropped, Drops, End, EndReason, FileHeader, FramesHead, Gap, Lost,
    Packed, Packer, Source,
};
use ppt_segment::Segment;

use crate::account::{Entry, LossAccount};
use crate::chunk::Chunk;
use crate::clocks::{self, Clocks};
use crate::limit::Written;
use crate::output::Output;
use crate::progress::{Counters, Ended};
use crate::queue::{Next, Queue};
use crate::rotate::{Begin, Rotation};
use crate::stamps::Stamps;

/// The first clock chunks come sooner: stamps of a capture that is cut off soon need two.
const FIRST_NS: u64 = 10_000_000;
/// From one clock chunk to the next, and at least between two drops chunks of a source.
const SECOND_NS: u64 = 1_000_000_000;
/// A change of realtime against monotonic that is a step: a slewed clock changes by 0.5 ms a second.
const STEP_NS: u64 = 1_000_000;
/// Bytes of a clock or drops chunk, at most.
const SMALL: u64 = 512;
/// Bytes of a source chunk without its schema, more or less, and of a gap.
const INTRODUCTION: u64 = 8192;
const GAP: u64 = 192;

/// The account of every ring, feed by feed.
pub(crate) type Ledger = Mutex<Vec<Entry>>;

/// What the target refused, of each feed, as the caller last told.
pub(crate) type Told = Mutex<Vec<Dropped>>;

/// What the disk thread needs to know of a feed.
#[derive(Debug)]
struct Origin {
    stride: u32,
    stamps: Stamps,
    /// As the file has it, if it has it.
    source: Source,
    known: bool,
    /// Its segments and their numbers, each until its last chunk has been written.
    segments: Vec<(usize, Arc<Segment>)>,
}

/// What a capture says of a segment before its first frame.
#[derive(Debug)]
pub(crate) struct Introduction {
    /// A new one, or one that is known by another segment.
    pub feed: usize,
    /// The segment's number.
    pub part: usize,
    pub segment: Arc<Segment>,
    /// How many rings it has.
    pub rings: usize,
    /// With all segments of the feed.
    pub source: Source,
    pub stamps: Stamps,
    /// Frames of earlier times.
    pub gaps: Vec<Gap>,
    /// Up to which cursors all is accounted for, once those gaps are stated: segment, ring, cursor.
    pub attended: Vec<(Arc<Segment>, u32, u64)>,
}

/// How the capture is to end.
#[derive(Debug)]
pub(crate) struct Ending {
    pub reason: EndReason,
    pub message: String,
    pub dropped: Vec<Dropped>,
    /// What every ring lost after its last chunk.
    pub lost: Vec<Lost>,
}

/// How it did.
#[derive(Debug)]
pub(crate) struct Done {
    pub error: Option<io::Error>,
    pub complete: bool,
}

enum State {
    Open,
    /// Takes no more frames; an error says why, if it is not its size.
    Full(Option<io::Error>),
    Failed(io::Error),
}

/// All that the disk thread needs.
pub(crate) struct Disk<W> {
    writer: CaptureWriter<Output<W>>,
    packer: Packer,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    ledger: Arc<Ledger>,
    told: Arc<Told>,
    origins: Vec<Origin>,
    max_size: Option<u64>,
    rotation: Option<Rotation<W>>,
    begin: Begin,
    written: Written,
    state: State,
    clocks: Clocks,
    next_clock: u64,
    /// From the next clock chunk to the one after it.
    clock_every: u64,
    /// What the file says of ticks.
    distrusted: bool,
    realtime_offset: i64,
    /// What the file says was dropped, and when it was last said.
    stated: Vec<(Dropped, u64)>,
}

impl<W: Write> Disk<W> {
    /// Goes on with `writer`, which has written the file's header.
    pub fn new(
        (writer, packer): (CaptureWriter<Output<W>>, Packer),
        (max_size, rotation): (Option<u64>, Option<Rotation<W>>),
        (queue, counters): (Arc<Queue>, Arc<Counters>),
        (ledger, told): (Arc<Ledger>, Arc<Told>),
        clocks: Clocks,
    ) -> Self {
        let begin = Begin {
            rings: Vec::new(),
            dropped: Vec::new(),
            deadline: rotation.as_ref().map_or(u64::MAX, Rotation::deadline),
            captured: 0,
        };
        Self {
            written: Written { bytes: writer.bytes(), ..Written::default() },
            rotation,
            begin,
            stated: Vec::new(),
            writer,
            packer,
            queue,
            counters,
            ledger,
            told,
            origins: Vec::new(),
            max_size,
            state: State::Open,
            distrusted: clocks.distrusted.load(Relaxed),
            clocks,
            next_clock: clocks::monotonic() + FIRST_NS,
            clock_every: 10 * FIRST_NS,
            realtime_offset: clocks::realtime_offset(),
        }
    }

    /// Introduces the first feeds and reads the clocks.
    pub fn begin(&mut self, feeds: Vec<Introduction>) -> io::Result<()> {
        feeds.into_iter().for_each(|feed| self.introduce(feed));
        let readings = self.clocks.readings();
        self.write(|writer| writer.clock(&readings));
        match std::mem::replace(&mut self.state, State::Open) {
            State::Failed(error) => Err(error),
            state => {
                self.state = state;
                Ok(())
            }
        }
    }

    fn introduce(&mut self, new: Introduction) {
        let Introduction { feed, part, segment, rings, source, stamps, gaps, attended } = new;
        let known = matches!(self.state, State::Open)
            && self.write(|writer| writer.source(feed as u16, &source));
        for gap in gaps.iter().filter(|_| known) {
            self.write(|writer| writer.gap(gap));
        }
        // Stated once: a later session does not find the same frames unattended again. Not before:
        // what nobody stated is left to that session.
        if known && !matches!(self.state, State::Failed(_)) {
            for (segment, ring, cursor) in attended {
                let ring = segment.ring(ring);
                if ring.attended() != cursor {
                    ring.set_attended(cursor);
                }
            }
        }
        if feed == self.origins.len() {
            let stride = segment.geometry().stride();
            self.origins.push(Origin { stride, stamps, source, known, segments: Vec::new() });
            self.stated.push((Dropped::default(), 0));
            self.begin.dropped.push(Dropped::default());
            self.written.feeds += 1;
        } else if known {
            self.origins[feed].source = source;
        }
        self.origins[feed].segments.push((part, segment));
        let ledger = lock(&self.ledger);
        let rings = &ledger[self.begin.rings.len()..][..rings];
        self.begin.rings.extend(rings.iter().map(|entry| entry.account));
        self.written.rings += rings.iter().filter(|entry| entry.is_listed()).count() as u64;
    }

    /// The same while frames are coming in. A capture that has no room for it is full: that segment,
    /// and those after it, are not spoken of.
    fn introduce_later(&mut self, feed: Introduction) {
        let schema = feed.source.schema_json.len() as u64;
        let needed = INTRODUCTION + schema + feed.gaps.len() as u64 * GAP;
        if self.max_size.is_some_and(|max| self.written.room(max) < needed) {
            self.fill();
        }
        self.introduce(feed);
    }

    /// No more frames come into the file.
    fn fill(&mut self) {
        if matches!(self.state, State::Open) {
            self.state = State::Full(None);
            self.counters.end(Ended::MaxSize);
        }
    }

    fn is_known(&self, feed: usize) -> bool {
        self.origins.get(feed).is_some_and(|origin| origin.known)
    }

    /// Whether the file can speak of rings of segment `nonce`.
    fn is_listed(&self, feed: usize, nonce: u64) -> bool {
        let lists = |it: &Origin| it.source.segments.iter().any(|listed| listed.nonce == nonce);
        self.is_known(feed) && lists(&self.origins[feed])
    }

    /// Writes until the queue says that it is over.
    pub fn run(mut self) -> Done {
        loop {
            let patience =
                self.next_clock.min(self.begin.deadline).saturating_sub(clocks::monotonic());
            match self.queue.next(Duration::from_nanos(patience)) {
                Next::Chunk(chunk) => self.frames(chunk),
                Next::Sources(feeds) => {
                    feeds.into_iter().for_each(|feed| self.introduce_later(feed));
                }
                Next::Gone(gone) => {
                    for origin in &mut self.origins {
                        origin.segments.retain(|&(part, _)| part != gone);
                    }
                }
                Next::Nothing => {}
                Next::End(ending) => return self.end(ending),
                Next::Abandoned => return Done { error: None, complete: false },
            }
            self.tick();
        }
    }

    fn frames(&mut self, chunk: Chunk) {
        let (feed, ring_is_new, head) = self.head(&chunk);
        let stride = self.origins[feed].stride;
        let mut packer = std::mem::take(&mut self.packer);
        let open = matches!(self.state, State::Open);
        let whole = if open { packer.pack(chunk.bytes()) } else { Packed::raw(&[]) };
        let size = self.rotation.as_ref().and_then(|it| it.size);
        if !self.written.fits(size, whole.stored_len()) && self.has_frames() {
            self.packer = packer;
            self.rotate();
            return self.frames(chunk);
        }
        if ring_is_new {
            self.written.rings += 1;
        }
        let fitting = match open {
            true if self.written.fits(self.max_size, whole.stored_len()) => chunk.count,
            true => self.written.fitting(self.max_size, stride, chunk.count),
            false => 0,
        };
        let payload = &chunk.bytes()[..fitting as usize * stride as usize];
        let packed = if fitting == chunk.count { whole } else { packer.pack(payload) };
        let stamp = self.origins[feed].stamps.stamp(payload, stride as usize);
        let head = FramesHead {
            count: fitting,
            t_min: stamp.t_min,
            t_max: stamp.t_max,
            frame_mask: stamp.frame_mask,
            ..head
        };
        let done = fitting > 0 && self.write(|writer| writer.packed_frames(&head, &packed));
        self.packer = packer;
        let written = if done { fitting } else { 0 };

        {
            let entry = &mut lock(&self.ledger)[chunk.ring];
            entry.take(&chunk, written);
            self.attend(entry);
        }
        self.counters.captured(u64::from(written));
        self.counters.lost(Cause::Disk, u64::from(chunk.count - written));
        self.counters.unqueued(u64::from(chunk.count));
        if fitting < chunk.count {
            self.fill();
        }
        self.queue.recycle(chunk.words);
    }

    /// The feed of a chunk, whether its ring has not been heard of before, and the chunk's head.
    fn head(&self, chunk: &Chunk) -> (usize, bool, FramesHead) {
        let ledger = lock(&self.ledger);
        let entry = &ledger[chunk.ring];
        let feed = entry.account.feed;
        let head = FramesHead {
            source: feed as u16,
            nonce: entry.account.nonce,
            ring: entry.account.ring,
            tid: chunk.tid,
            first_seq: chunk.first_seq,
            stride: self.origins[feed].stride,
            lost_before: entry.lost_before(chunk),
            drained_mono_ns: chunk.drained_ns,
            ..FramesHead::default()
        };
        (feed, !entry.is_listed(), head)
    }

    /// Tells the sessions to come what the file states. A `ppt` that is killed before that leaves
    /// frames that the next one finds unattended: none is missing from the files together.
    fn attend(&self, entry: &Entry) {
        let LossAccount { feed, nonce, ring, .. } = entry.account;
        self.attended(feed, (nonce, ring), entry.stated());
    }

    fn attended(&self, feed: usize, (nonce, ring): (u64, u32), cursor: u64) {
        let states = self.is_listed(feed, nonce) && !matches!(self.state, State::Failed(_));
        let mut segments = self.origins[feed].segments.iter().map(|(_, segment)| segment);
        if let Some(segment) = segments.find(|it| it.nonce() == nonce).filter(|_| states) {
            segment.ring(ring).set_attended(cursor);
        }
    }

    /// One more chunk, while chunks can be written; says whether it is in the file.
    fn write(
        &mut self,
        chunk: impl FnOnce(&mut CaptureWriter<Output<W>>) -> io::Result<()>,
    ) -> bool {
        if matches!(self.state, State::Failed(_)) {
            return false;
        }
        match chunk(&mut self.writer) {
            Ok(()) => {
                self.written.bytes = self.writer.bytes();
                self.written.chunks += 1;
                true
            }
            Err(error) => {
                self.state = State::Failed(error);
                self.counters.end(Ended::DiskError);
                false
            }
        }
    }

    /// Clocks about each second and when realtime is stepped; drops when they have changed.
    fn tick(&mut self) {
        let now = clocks::monotonic();
        let offset = clocks::realtime_offset();
        let stepped = offset.abs_diff(self.realtime_offset) > STEP_NS;
        let distrusted = self.clocks.distrusted.load(Relaxed) != self.distrusted;
        if now >= self.next_clock || stepped || distrusted {
            self.realtime_offset = offset;
            self.distrusted |= distrusted;
            self.next_clock = now + self.clock_every;
            self.clock_every = (10 * self.clock_every).min(SECOND_NS);
            let readings = self.clocks.readings();
            self.small(|writer| writer.clock(&readings));
            self.drops(now);
        }
        if now >= self.begin.deadline && self.has_frames() {
            self.rotate();
        }
    }

    /// Whether the file has frames, and may have more.
    fn has_frames(&self) -> bool {
        let captured = |entry: &Entry| entry.account.captured;
        matches!(self.state, State::Open)
            && lock(&self.ledger).iter().map(captured).sum::<u64>() > self.begin.captured
    }

    /// Ends the file and goes on in the next.
    fn rotate(&mut self) {
        let Some(rotation) = &mut self.rotation else { return };
        let deadline = rotation.deadline();
        match (rotation.next)() {
            Ok((out, header)) => self.go_on(out, &header, deadline),
            Err(error) => {
                self.state = State::Full(Some(error));
                self.counters.end(Ended::DiskError);
            }
        }
    }

    fn go_on(&mut self, out: W, header: &FileHeader, deadline: u64) {
        let mut dropped = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Feeds that have been announced, but not to this thread, begin later.
        dropped.truncate(self.origins.len());
        self.gaps();
        let end = self.end_chunk(EndReason::Rotated, String::new(), &dropped);
        let readings = self.clocks.readings();
        self.write(|writer| writer.clock(&readings));
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        let output = Output::new(out, Arc::clone(&self.counters));
        let sources = self.origins.iter().map(|it| &it.source);
        let begun = begin(output, header, sources, &self.clocks).and_then(|writer| {
            std::mem::replace(&mut self.writer, writer).end(&end)?;
            Ok(())
        });
        if let Err(error) = begun {
            self.state = State::Failed(error);
            self.counters.end(Ended::DiskError);
            return;
        }
        let mut rings: Vec<_> = lock(&self.ledger).iter().map(|entry| entry.account).collect();
        rings.truncate(self.begin.rings.len());
        let captured = rings.iter().map(|ring| ring.captured).sum();
        self.begin = Begin { rings, dropped, deadline, captured };
        (self.next_clock, self.clock_every) = (clocks::monotonic() + FIRST_NS, 10 * FIRST_NS);
        self.stated.fill((Dropped::default(), 0));
        self.written.bytes = self.writer.bytes();
        self.written.chunks = 1 + self.origins.len() as u64;
    }

    fn drops(&mut self, mono_ns: u64) {
        for source in 0..self.stated.len() {
            if !self.origins[source].known {
                continue;
            }
            let told = self.told.lock().unwrap_or_else(PoisonError::into_inner)[source];
            let dropped = told - self.begin.dropped[source];
            if dropped != self.stated[source].0 {
                self.stated[source] = (dropped, mono_ns);
                let drops = Drops { source: source as u16, dropped, mono_ns };
                self.small(|writer| writer.drops(&drops));
            }
        }
    }

    /// A chunk that may as well not be there.
    fn small(&mut self, chunk: impl FnOnce(&mut CaptureWriter<Output<W>>) -> io::Result<()>) {
        let fits = self.max_size.is_none_or(|max| self.written.room(max) >= SMALL);
        if fits && matches!(self.state, State::Open) {
            self.write(chunk);
        }
    }

    fn end(mut self, ending: Ending) -> Done {
        for (entry, lost) in lock(&self.ledger).iter_mut().zip(&ending.lost) {
            entry.lose(*lost);
        }
        self.gaps();
        let readings = self.clocks.readings();
        self.write(|writer| writer.clock(&readings));
        let end = self.end_chunk(ending.reason, ending.message, &ending.dropped);
        let error = match self.state {
            State::Failed(error) => return Done { error: Some(error), complete: false },
            State::Full(error) => error,
            State::Open => None,
        };
        match self.writer.end(&end) {
            Ok(_) => Done { error, complete: true },
            Err(error) => {
                self.counters.end(Ended::DiskError);
                Done { error: Some(error), complete: false }
            }
        }
    }

    /// States what no chunk has stated.
    fn gaps(&mut self) {
        let mut gaps: Vec<_> = lock(&self.ledger).iter_mut().flat_map(Entry::gaps).collect();
        gaps.retain(|gap| self.is_listed(gap.source.into(), gap.nonce));
        for gap in &gaps {
            self.write(|writer| writer.gap(gap));
        }
        for gap in &gaps {
            let cursor = gap.first_seq - 1 + gap.count;
            self.attended(gap.source.into(), (gap.nonce, gap.ring), cursor);
        }
    }

    /// The file's own account.
    fn end_chunk(&self, reason: EndReason, message: String, dropped: &[Dropped]) -> End {
        let ledger = lock(&self.ledger);
        let is_told = |entry: &Entry| {
            entry.is_listed() && self.is_listed(entry.account.feed, entry.account.nonce)
        };
        let listed = ledger.iter().enumerate().filter(|(_, entry)| is_told(entry));
        let rings = listed.map(|(index, entry)| self.begin.ring_end(index, entry.account));
        let drops = dropped.iter().zip(&self.begin.dropped).map(|(&now, &before)| now - before);
        let drops = (0u16..).zip(drops).filter(|&(feed, _)| self.is_known(feed.into()));
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

/// Writes what comes before the first frame and needs no account.
pub(crate) fn begin<'a, W: Write>(
    out: Output<W>,
    header: &FileHeader,
    sources: impl Iterator<Item = &'a Source>,
    clocks: &Clocks,
) -> io::Result<CaptureWriter<Output<W>>> {
    let mut writer = CaptureWriter::create(out, header)?;
    for (id, source) in (0..).zip(sources) {
        writer.source(id, source)?;
    }
    writer.clock(&clocks.readings())?;
    Ok(writer)
}

pub(crate) fn lock(ledger: &Ledger) -> MutexGuard<'_, Vec<Entry>> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
