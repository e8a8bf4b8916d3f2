//! Starts the threads, and puts the pieces together when they have ended.

use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering::Release};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, SigmaskHow};
use ppt_capture::{CaptureWriter, Cause, Dropped, EndReason, FileHeader, Gap, Lost};
use ppt_segment::Segment;
use ppt_segment::abi::ring_state;

use crate::account::Entry;
use crate::disk::{self, Disk, Done, Ending, Ledger, Origin, Told};
use crate::drain::Drain;
use crate::error::ListenerError;
use crate::feed::Feed;
use crate::keeper::{self, Kept};
use crate::options::Options;
use crate::output::Output;
use crate::progress::{Counters, Progress, high_water};
use crate::queue::Queue;
use crate::ring::Closing;
use crate::rotate::Rotation;
use crate::stamps::Stamps;
use crate::summary::{BrokenRing, FeedSummary, Summary, enough_slots};

/// A capture that is being written.
///
/// [`Listener::finish`] ends it. A listener that is dropped instead leaves a capture without an
/// end, as if it had been killed.
pub struct Listener {
    segments: Vec<Arc<Segment>>,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    ledger: Arc<Ledger>,
    told: Arc<Told>,
    stop: Arc<AtomicBool>,
    done: Receiver<Done>,
    keeper: Option<JoinHandle<()>>,
    drain: Option<JoinHandle<Vec<Closing>>>,
    started: Instant,
    patience: Duration,
}

impl Listener {
    /// Begins a capture of `feeds` in `out`, which should not buffer.
    ///
    /// When this returns, the capture says where the frames come from, and whatever the rings hold
    /// after the starting cursors is being drained: the gates can be opened.
    pub fn start<W: Write + Send + 'static>(
        out: W,
        header: FileHeader,
        feeds: Vec<Feed>,
        options: Options,
    ) -> Result<Self, ListenerError> {
        Self::rotating(out, header, feeds, options, None)
    }

    /// The same, where the capture may go on in other files.
    pub fn rotating<W: Write + Send + 'static>(
        out: W,
        header: FileHeader,
        mut feeds: Vec<Feed>,
        options: Options,
        rotation: Option<Rotation<W>>,
    ) -> Result<Self, ListenerError> {
        for (index, feed) in feeds.iter_mut().enumerate() {
            feed.complete(index)?;
        }
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = EventFd::from_flags(flags).map_err(ListenerError::Wake)?;
        let counters = Arc::new(Counters::new(feeds.len(), wake));
        let output = Output::new(out, counters.clone());
        let (writer, chunks) = begin(output, &header, &feeds).map_err(ListenerError::Output)?;

        let queue = Arc::new(Queue::new(options.queue_bytes));
        let ledger: Arc<Ledger> = Arc::new(Mutex::new(entries(&feeds)));
        let told: Arc<Told> = Arc::new(Mutex::new(vec![Dropped::default(); feeds.len()]));
        let origins = feeds.iter().map(|feed| Origin {
            stride: feed.segment.geometry().stride(),
            stamps: Stamps::of(&feed.source.schema_json),
            source: feed.source.clone(),
            segment: feed.segment.clone(),
        });
        let disk = Disk::new(
            writer,
            chunks,
            origins.collect(),
            (options.max_size, rotation),
            (queue.clone(), counters.clone()),
            (ledger.clone(), told.clone()),
        );
        let (send, done) = mpsc::channel();
        let mut listener = Self {
            segments: feeds.iter().map(|feed| feed.segment.clone()).collect(),
            queue: queue.clone(),
            counters: counters.clone(),
            ledger,
            told,
            stop: Arc::default(),
            done,
            keeper: None,
            drain: None,
            started: Instant::now(),
            patience: options.patience,
        };

        // Not joined: it may be stuck in a write for longer than anybody wants to wait.
        spawn("ppt-disk", move || _ = send.send(disk.run()))?;
        let (kept, feeds) = feeds.into_iter().map(split).unzip();
        let (counting, stop) = (counters.clone(), listener.stop.clone());
        let keeper = spawn("ppt-keeper", move || keeper::run(kept, &counting, &stop))?;
        let keeper_thread = keeper.thread().clone();
        listener.keeper = Some(keeper);
        let stop = listener.stop.clone();
        let drain = Drain { feeds, queue, counters, stop, keeper: keeper_thread, options };
        listener.drain = Some(spawn("ppt-drain", move || drain.run())?);
        Ok(listener)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let active = |segment: &Arc<Segment>| {
            let rings = 0..segment.geometry().rings();
            let owned =
                rings.filter(|&ring| segment.ring(ring).owner().state == ring_state::ACTIVE);
            owned.count() as u32
        };
        let rings = self.segments.iter().map(active).sum();
        let capacities = self.segments.iter().map(|segment| segment.geometry().capacity());
        self.counters.progress(capacities, rings)
    }

    /// A descriptor that becomes readable, and stays so, when the capture has ended by itself:
    /// the file cannot be written, or is as large as it may be. Then close the gates and
    /// [`Self::finish`]; until then all frames are drained and counted as lost by `disk`.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.counters.wake().as_fd()
    }

    /// Tells what the target of `feed` refused since the session began. The capture states it
    /// within about a second, if it is news.
    ///
    /// # Panics
    /// If there is no such feed.
    pub fn dropped(&self, feed: usize, dropped: Dropped) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)[feed] = dropped;
    }

    /// Ends the capture: drains up to the cursors of this moment, writes what waits, and the end.
    ///
    /// To be called when the gates are closed or the targets gone; if they are not, frames written
    /// from now on may or may not be in the capture, and in neither case in its account as lost.
    /// `dropped` is what each target refused since the session began; where it is missing, what
    /// was last told counts. Takes up to [`Options::longest`], and as long as the disk does, but no
    /// longer than [`Options::patience`].
    pub fn finish(mut self, reason: EndReason, message: String, dropped: Vec<Dropped>) -> Summary {
        let duration = self.started.elapsed();
        let closings = match self.halt() {
            Ok(closings) => closings,
            Err(panic) => panic::resume_unwind(panic),
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        told.iter_mut().zip(dropped).for_each(|(told, dropped)| *told = dropped);
        let lost = closings.iter().map(|closing| closing.lost).collect();
        self.queue.end(Ending { reason, message, dropped: told.clone(), lost });
        let done = self.done.recv_timeout(self.patience).unwrap_or_else(|_| Done {
            error: Some(io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer")),
            complete: false,
        });
        let entries = self.entries(&closings);
        self.summary(duration, done, &entries, &closings, &told)
    }

    /// Stops the keeper, and the drain after a last pass.
    fn halt(&mut self) -> thread::Result<Vec<Closing>> {
        self.stop.store(true, Release);
        if let Some(keeper) = self.keeper.take() {
            keeper.thread().unpark();
            keeper.join()?;
        }
        self.drain.take().map_or_else(|| Ok(Vec::new()), JoinHandle::join)
    }

    /// The final accounts. What the disk thread has not dealt with never comes into the file.
    fn entries(&self, closings: &[Closing]) -> Vec<Entry> {
        self.queue.abandon();
        let mut entries = disk::lock(&self.ledger).clone();
        for (entry, closing) in entries.iter_mut().zip(closings) {
            let missing = closing.next_seq.saturating_sub(entry.account.next_seq);
            if missing > 0 {
                let disk = missing.saturating_sub(closing.lost.total());
                entry.lose(Lost { disk, ..Lost::default() });
                entry.lose(closing.lost);
            }
            debug_assert_eq!(entry.account.next_seq, closing.next_seq);
        }
        entries
    }

    fn summary(
        &self,
        duration: Duration,
        done: Done,
        entries: &[Entry],
        closings: &[Closing],
        dropped: &[Dropped],
    ) -> Summary {
        let progress = self.progress();
        let mut feeds: Vec<FeedSummary> = dropped
            .iter()
            .map(|&dropped| FeedSummary { dropped, ..FeedSummary::default() })
            .collect();
        for (entry, closing) in entries.iter().zip(closings) {
            let account = entry.account;
            let feed = &mut feeds[account.feed];
            feed.captured += account.captured;
            feed.lost += account.lost;
            if let Some(cursor) = closing.broken {
                feed.broken.push(BrokenRing { ring: account.ring, cursor });
            }
            if entry.is_listed() {
                feed.rings.push(account);
            }
        }
        for (index, (feed, segment)) in feeds.iter_mut().zip(&self.segments).enumerate() {
            let (peak, geometry) = (self.counters.peak(index), segment.geometry());
            feed.high_water = high_water(peak, geometry.capacity());
            feed.enough_slots = enough_slots(peak, geometry.slots(), feed.lost.overrun);
        }
        Summary {
            feeds,
            bytes: progress.bytes,
            duration,
            ended: progress.ended,
            error: done.error,
            complete: done.complete,
            freed: progress.freed,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Nothing is left to do after a finish; without one, nobody asks what became of it.
        self.queue.abandon();
        let _ = self.halt();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

/// Writes what comes before the first frame; returns the number of chunks, too.
fn begin<W: Write>(
    out: Output<W>,
    header: &FileHeader,
    feeds: &[Feed],
) -> io::Result<(CaptureWriter<Output<W>>, u64)> {
    let mut chunks = 1 + feeds.len() as u64;
    let mut writer = disk::begin(out, header, feeds.iter().map(|feed| &feed.source))?;
    for (source, feed) in (0..).zip(feeds) {
        let nonce = feed.segment.nonce();
        for one in feed.unattended.iter().filter(|one| one.count > 0) {
            let (ring, first_seq, count) = (one.ring, one.first_seq, one.count);
            let cause = Cause::Unattended;
            writer.gap(&Gap { source, nonce, ring, first_seq, count, cause })?;
            chunks += 1;
        }
        for (ring, &cursor) in (0..).zip(&feed.first) {
            // Stated once: a later session does not find the same frames unattended again.
            let ring = feed.segment.ring(ring);
            if ring.attended() != cursor {
                ring.set_attended(cursor);
            }
        }
    }
    Ok((writer, chunks))
}

fn entries(feeds: &[Feed]) -> Vec<Entry> {
    let rings = feeds.iter().enumerate().flat_map(|(index, feed)| {
        let nonce = feed.segment.nonce();
        (0..).zip(&feed.first).map(move |(ring, &first)| Entry::new(index, nonce, ring, first))
    });
    rings.collect()
}

/// What the keeper takes of a feed, and what the drain does.
fn split(feed: Feed) -> (Kept, (Arc<Segment>, Vec<u64>)) {
    let kept = Kept::new(feed.segment.clone(), feed.populated, feed.alive);
    (kept, (feed.segment, feed.first))
}

/// Starts a thread that no signal is delivered to: they are the caller's.
fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ListenerError> {
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    if let Ok(mask) = mask {
        // It was the mask a moment ago, so it is a valid one.
        let _ = mask.thread_set_mask();
    }
    thread.map_err(ListenerError::Thread)
}
