//! The sink of `ppt attach` and `ppt run`: captures in one file, or in consecutive files.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ppt_capture::{Dropped, Drops, End, EndReason, Flip, FramesHead, Gap, Modules, Packed, Packer};

use crate::account::{Closing, FrameAccount, RunningRingAccount};
use crate::cadence::Cadence;
use crate::chunk::Frames;
use crate::filter::{SharedFilter, locked};
use crate::ledger::Ledger;
use crate::limit::{self, Room};
use crate::open::OpenFile;
use crate::origins::{Adds, DroppedByFeed, Origin, Origins};
use crate::progress::SinkCounters;
use crate::rotate::Rotation;
use crate::sink::{Ending, Introduction, Sink, SinkOutcome};
use crate::thread_names::NameChanges;
use ppt_now::Clocks;

mod files;
mod left_out;
mod masks;
mod modules;
mod readings;
mod thread_names;

/// Time between the two clock readings that a filter gets before the first frame. Tick conversion
/// needs two.
const APART: Duration = Duration::from_millis(5);

/// Options of the writer of a capture.
pub(crate) struct RecordingOptions<W> {
    pub packer: Packer,
    pub max_size: Option<u64>,
    pub rotation: Option<Rotation<W>>,
    /// Interval between readings of counters.
    pub counters_every: Duration,
}

/// The accounts that a capture states. The listener and its caller update them.
#[derive(Default)]
pub(crate) struct RecordedAccounts {
    pub ledger: Arc<Mutex<Ledger>>,
    pub dropped: Arc<DroppedByFeed>,
    pub adds: Arc<Adds>,
}

/// Writes captures.
pub(crate) struct Recording<W> {
    file: OpenFile<W>,
    packer: Packer,
    counters: Arc<SinkCounters>,
    ledger: Arc<Mutex<Ledger>>,
    origins: Origins,
    max_size: Option<u64>,
    rotation: Option<Rotation<W>>,
    /// All frames that were published before this time have arrived, ns of CLOCK_MONOTONIC; 0: unknown.
    complete: u64,
    /// Why an earlier file has no end, if so.
    trouble: Option<io::Error>,
    /// Frames captured before the file began.
    captured_before: u64,
    /// Whether the file states more than frames: adds to counters, or left out frames.
    states_more: bool,
    /// Time limit of the file, ns of CLOCK_MONOTONIC.
    deadline: u64,
    clocks: Clocks,
    cadence: Cadence,
    adds: Arc<Adds>,
    /// Interval between readings of counters, ns, and the time of the next one.
    counters_every: u64,
    counters_due: u64,
    filter: Option<SharedFilter>,
    /// The filter's decisions; kept to reuse the memory.
    wanted: Vec<bool>,
}

impl<W: Write> Recording<W> {
    /// Continues with `file`, which is new.
    pub fn new(
        file: OpenFile<W>,
        options: RecordingOptions<W>,
        counters: Arc<SinkCounters>,
        accounts: RecordedAccounts,
        clocks: Clocks,
    ) -> Self {
        let RecordingOptions { packer, max_size, rotation, counters_every } = options;
        let RecordedAccounts { ledger, dropped, adds } = accounts;
        Self {
            file,
            packer,
            counters,
            ledger,
            origins: Origins::new(dropped),
            max_size,
            captured_before: 0,
            states_more: false,
            deadline: rotation.as_ref().map_or(u64::MAX, Rotation::deadline),
            rotation,
            complete: 0,
            trouble: None,
            cadence: Cadence::new(&clocks),
            clocks,
            adds,
            counters_every: counters_every.as_nanos() as u64,
            counters_due: 0,
            filter: None,
            wanted: Vec::new(),
        }
    }

    /// Leaves out the frames that `filter` rejects.
    pub fn filter(&mut self, filter: SharedFilter) {
        self.filter = Some(filter);
        self.pass_clocks();
        std::thread::sleep(APART);
        self.pass_clocks();
    }

    /// Passes the clock readings to the filter.
    fn pass_clocks(&self) {
        if let Some(filter) = &self.filter {
            locked(filter).clocks(&self.clocks.readings());
        }
    }

    /// Introduces the first feeds and reads the clocks.
    pub fn begin(&mut self, feeds: &[Introduction]) -> io::Result<()>
    where
        W: Send,
    {
        self.introduce(feeds);
        self.file.begin(std::iter::empty(), &self.clocks)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn introduce_one(&mut self, new: &Introduction) {
        let Introduction { feed, segment_number, segment, source, stamps, gaps, attended, .. } =
            new;
        let (feed, segment_number) = (*feed, *segment_number);
        let is_new = !self.origins.has(feed);
        if is_new && self.file.has_all_sources() {
            // The next file omits the feeds that have ended.
            self.rotate();
        }
        // A capture without room for it is full: that segment, and those after it, are not
        // mentioned.
        if let Some(max) = self.max_size {
            let rings = self.ledger().rings_in_file();
            if self.file.written(rings).room(max) < limit::introduction(source, gaps.len()) {
                self.file.fill();
            }
        }
        let is_stated = self.written(|file| file.source(feed, source));
        let stride = segment.geometry().stride();
        let origin = self.origins.enter(feed, || Origin::new(stride, stamps, source));
        origin.tally.clone_from(&new.tally);
        if is_stated {
            origin.source = source.clone();
        }
        origin.segments.push((segment_number, segment.clone()));
        origin.count_in(segment, &new.cells);
        self.keep_for_cells();
        for gap in gaps.iter().filter(|_| is_stated) {
            self.written(|file| {
                let source = file.source_of(feed).unwrap_or(gap.source);
                file.write(|writer| writer.gap(&Gap { source, ..*gap }))
            });
        }
        // A later session must not find stated frames unattended. Frames that are not stated are left
        // to that session.
        if is_stated && !self.file.has_failed() {
            for (segment, ring, cursor) in attended {
                let ring = segment.ring(*ring);
                if ring.attended() != *cursor {
                    ring.set_attended(*cursor);
                }
            }
        }
    }

    /// Calls `write`, which writes into the current file. If that file was taken away and the
    /// capture continues in another one, calls it again. Returns whether the data is in a file.
    fn written(&mut self, write: impl Fn(&mut OpenFile<W>) -> bool) -> bool {
        loop {
            if write(&mut self.file) {
                return true;
            }
            if !self.went_on() {
                return false;
            }
        }
    }

    /// The source number of a ring in the file, if the file can mention the ring.
    fn source_of(&self, ring: &FrameAccount) -> Option<u16> {
        let id = self.file.source_of(ring.feed)?;
        let listed = &self.origins.get(ring.feed)?.source.segments;
        listed.iter().any(|segment| segment.nonce == ring.nonce).then_some(id)
    }

    /// The feed of frames, whether their ring is new to the file, and their head.
    fn head(&self, frames: &Frames) -> (usize, bool, FramesHead) {
        let chunk = &frames.chunk;
        let mut ledger = self.ledger();
        let read = |entry: &mut RunningRingAccount| {
            (entry.account, entry.is_in_file(), entry.lost_before(frames))
        };
        let (account, is_in_file, lost_before) =
            ledger.with(chunk.segment_number, chunk.ring, read);
        let head = FramesHead {
            source: self.file.source_of(account.feed).unwrap_or_default(),
            nonce: account.nonce,
            ring: account.ring,
            tid: chunk.tid,
            first_seq: chunk.first_seq,
            stride: self.origins.get(account.feed).map_or(0, |origin| origin.stride),
            lost_before,
            drained_mono_ns: chunk.drained_ns,
            drained_by_mono_ns: chunk.drained_by_ns,
            ..FramesHead::default()
        };
        (account.feed, !is_in_file, head)
    }

    /// Writes as many frames as fit into the file. Returns false if the capture has to continue in
    /// another file first.
    fn take_frames(&mut self, frames: &Frames) -> bool {
        let (feed, ring_is_new, head) = self.head(frames);
        let chunk = &frames.chunk;
        let stride = head.stride;
        let mut packer = std::mem::take(&mut self.packer);
        let open = self.file.is_open() && self.file.source_of(feed).is_some();
        let whole =
            if open { packer.pack_summed(chunk.bytes(), chunk.crc) } else { Packed::raw(&[]) };
        let rings = self.ledger().rings_in_file() + u64::from(ring_is_new);
        let written = self.file.written(rings);
        let size = self.rotation.as_ref().and_then(|rotation| rotation.size);
        if !written.fits(size, whole.stored_len()) && self.has_content() {
            self.packer = packer;
            self.rotate();
            return false;
        }
        let fitting = match open {
            true if written.fits(self.max_size, whole.stored_len()) => chunk.count,
            true => written.fitting(self.max_size, stride, chunk.count),
            false => 0,
        };
        let (packed, stamp) = match self.origins.get(feed) {
            Some(origin) if fitting < chunk.count => {
                let stride = stride as usize / 8;
                let words = &chunk.frames.words()[..fitting as usize * stride];
                (packer.pack(words.as_flattened()), origin.stamps.stamp(words, stride))
            }
            _ => (whole, chunk.found.stamp()),
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
        if !done && self.went_on() {
            return false;
        }
        let written = if done { fitting } else { 0 };
        if let Some(tally) = self.origins.get(feed).and_then(|origin| origin.tally.as_ref()) {
            let stride = stride as usize / 8;
            tally.take(&chunk.frames.words()[..written as usize * stride], stride);
        }

        let (account, stated) = self.ledger().with(chunk.segment_number, chunk.ring, |entry| {
            entry.take(frames, written);
            (entry.account, entry.stated())
        });
        self.attended(&account, stated);
        self.counters.captured(u64::from(written));
        self.counters.lost(u64::from(chunk.count - written));
        if fitting < chunk.count {
            self.file.fill();
        }
        true
    }

    /// Marks the frames up to `cursor` as stated, for later sessions. If `ppt` is killed before that,
    /// the next session finds the frames unattended, so the files together miss none.
    fn attended(&self, ring: &FrameAccount, cursor: u64) {
        if self.source_of(ring).is_none() || self.file.has_failed() {
            return;
        }
        let Some(origin) = self.origins.get(ring.feed) else { return };
        let mut segments = origin.segments.iter().map(|(_, segment)| segment);
        if let Some(segment) = segments.find(|segment| segment.nonce() == ring.nonce) {
            segment.ring(ring.ring).set_attended(cursor);
        }
    }

    /// Whether the file has frames, or states something in their place, and may get more.
    fn has_content(&self) -> bool {
        let has = self.states_more || self.ledger().captured() > self.captured_before;
        has && self.file.is_open()
    }

    fn drops(&mut self, mono_ns: u64) {
        let (file, max_size) = (&mut self.file, self.max_size);
        self.origins.state_drops(|feed, dropped| {
            let drops = Drops { source: file.source_of(feed)?, dropped, mono_ns };
            file.small(max_size, |writer| writer.drops(&drops));
            Some(!file.has_failed())
        });
    }

    /// States everything about the rings of segment `segment_number`, or of all, that no chunk has
    /// stated.
    fn gaps(&mut self, segment_number: Option<usize>) {
        loop {
            let gaps = self.ledger().gaps(segment_number, |ring| self.source_of(ring));
            for (segment_number, ring, gap) in &gaps {
                if self.file.write(|writer| writer.gap(gap)) {
                    self.ledger().with(*segment_number, ring.ring, |entry| entry.state(gap));
                    self.attended(ring, gap.first_seq - 1 + gap.count);
                }
            }
            // Another file has other source numbers.
            if !self.went_on() {
                return;
            }
        }
    }

    /// The file's own account.
    fn end_chunk(&self, reason: EndReason, message: String, dropped: &[Dropped]) -> End {
        let ledger = self.ledger();
        let entries = ledger.entries().filter(|entry| entry.is_in_file());
        let rings =
            entries.filter_map(|entry| Some(entry.ring_end(self.source_of(&entry.account)?)));
        let drops = self.origins.drops(dropped);
        let drops = drops.filter_map(|(feed, dropped)| Some((self.file.source_of(feed)?, dropped)));
        End {
            reason,
            message,
            rings: rings.collect(),
            drops: drops.collect(),
            realtime_ns: ppt_now::realtime(),
            mono_ns: ppt_now::monotonic(),
        }
    }
}

impl<W: Write + Send> Sink for Recording<W> {
    fn introduce(&mut self, new: &[Introduction]) {
        {
            // The accounts come first, so that each frame has one even if writing the file fails.
            let mut ledger = self.ledger();
            for Introduction { feed, segment_number, segment, first, tally, .. } in new {
                ledger.open(*segment_number, *feed, segment.nonce(), first.clone());
                if let Some(tally) = tally {
                    ledger.show(*feed, tally);
                }
            }
        }
        if let Some(filter) = &self.filter {
            let new: Vec<_> =
                new.iter().map(|introduction| (introduction.feed, &introduction.source)).collect();
            locked(filter).introduce(&new);
        }
        new.iter().for_each(|introduction| self.introduce_one(introduction));
    }

    fn frames(&mut self, frames: &Frames) {
        if let Some(filter) = self.filter.clone() {
            return self.take_wanted(frames, &filter);
        }
        // Retries in another file.
        while !self.take_frames(frames) {}
    }

    fn masks(&mut self, feed: usize, flip: &Arc<Flip>) {
        self.flipped(feed, flip);
    }

    fn thread_names(&mut self, feed: usize, changes: &Arc<NameChanges>) {
        self.renamed(feed, changes);
    }

    fn modules(&mut self, feed: usize, modules: &Modules) {
        self.mapped(feed, modules);
    }

    fn gone(&mut self, segment_number: usize, closings: &[Closing]) {
        let feed = self.ledger().close(segment_number, closings);
        self.gaps(Some(segment_number));
        self.cells_or_rotate(Some(feed));
        let Some(origin) = self.origins.get_mut(feed) else { return };
        let left = origin.segments.extract_if(.., |segment| segment.0 == segment_number);
        left.for_each(|(_, segment)| origin.disabled.forget(segment.nonce()));
        if !origin.segments.is_empty() {
            self.cells(Some(feed), Room::Of(self.max_size));
            return;
        }
        self.cells(Some(feed), Room::Last(self.max_size));
        self.origins.get_mut(feed).into_iter().for_each(|origin| origin.cells.clear());
        self.ledger().end(feed);
        self.keep_for_cells();
        self.counters.source_ended();
    }

    fn upto(&mut self, mono_ns: u64) {
        // `mono_ns` is 0 after the first look at a ring. The time must not go back.
        self.complete = self.complete.max(mono_ns);
    }

    fn due(&self) -> u64 {
        // A file without content continues without a time limit.
        let next = if self.has_content() {
            self.cadence.next().min(self.deadline)
        } else {
            self.cadence.next()
        };
        if self.origins.have_cells() { next.min(self.counters_due) } else { next }
    }

    /// Writes clocks about once a second and when realtime is stepped, and drops when they have
    /// changed.
    fn tick(&mut self) {
        let now = ppt_now::monotonic();
        if self.cadence.is_due(now, &self.clocks) {
            let readings = self.clocks.readings();
            let complete = self.complete;
            self.file.small(self.max_size, |writer| {
                writer.set_complete(complete);
                writer.clock(&readings)
            });
            if let Some(filter) = &self.filter {
                locked(filter).clocks(&readings);
            }
            self.drops(now);
            self.went_on();
        }
        if now >= self.counters_due && self.origins.have_cells() {
            self.counters_due = now.saturating_add(self.counters_every);
            self.cells_in_time();
        }
        if now >= self.deadline && self.has_content() {
            self.rotate();
        }
    }

    fn end(mut self: Box<Self>, ending: &Ending) -> SinkOutcome {
        self.gaps(None);
        self.cells_or_rotate(None);
        self.cells(None, Room::Last(self.max_size));
        let readings = self.clocks.readings();
        self.written(|file| file.write(|writer| writer.clock(&readings)));
        let complete = loop {
            let message = ending.message.clone();
            let end = self.end_chunk(ending.reason, message, &ending.dropped);
            if self.file.end(&end) {
                break true;
            }
            if !self.went_on() {
                break false;
            }
        };
        let Self { file, trouble, counters, .. } = *self;
        let error = file.into_error().or(trouble);
        if error.is_some() {
            counters.end(EndReason::Failed);
        }
        SinkOutcome { error, complete }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::eventfd::EventFd;
    use ppt_capture::FileHeader;

    use super::*;
    use crate::cadence::FIRST_NS;
    use crate::rotate::CaptureFiles;

    struct NoFiles;

    impl CaptureFiles<io::Sink> for NoFiles {
        fn next(&mut self) -> io::Result<(io::Sink, FileHeader)> {
            unreachable!("there are no frames")
        }
    }

    /// A file without frames whose time is over must not be due, because the sink would never sleep.
    #[test]
    fn a_file_without_frames_is_full_of_time_and_not_due() {
        let counters = Arc::new(SinkCounters::new(EventFd::new().unwrap()));
        let header = FileHeader::default();
        let file = OpenFile::create(io::sink(), &header, &counters).unwrap();
        let every = Some(Duration::from_nanos(1));
        let rotation = Some(Rotation { every, size: None, keep: None, files: Box::new(NoFiles) });
        let clocks = Clocks { ticks: ppt_now::ticks, distrusted: Arc::default() };
        let options = RecordingOptions {
            packer: Packer::new(None),
            max_size: None,
            rotation,
            counters_every: Duration::from_secs(1),
        };
        let accounts = RecordedAccounts::default();
        let mut recording = Recording::new(file, options, counters, accounts, clocks);
        recording.begin(&[]).unwrap();
        for _ in 0..3 {
            recording.tick();
            assert!(recording.deadline < ppt_now::monotonic());
            assert!(recording.due() > recording.deadline + FIRST_NS / 2);
        }
    }
}
