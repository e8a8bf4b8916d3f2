//! A capture that begins: its file first, then its threads.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use nix::sys::eventfd::{EfdFlags, EventFd};
use ppt_capture::{FileHeader, Packer};
use ppt_now::Clocks;

use super::Listener;
use super::feeds::complete;
use crate::drain::{Drain, DrainedSegment};
use crate::error::ListenerError;
use crate::feed::{Feed, FeedChange};
use crate::flight::{
    Flight, FlightOptions, LEAST_MEMORY, Recorder, Surroundings, TriggerWatch, WindowFiles,
};
use crate::introductions::stamps;
use crate::keeper::{self, KeptSegment};
use crate::lanes::Lanes;
use crate::open::OpenFile;
use crate::options::ListenerOptions;
use crate::progress::Counters;
use crate::recording::{RecordedAccounts, Recording, RecordingOptions};
use crate::rotate::Rotation;
use crate::sink::{Introduction, Sink};
use crate::tally::Tallies;
use crate::threads::spawn;
use crate::worker::Worker;

impl Listener {
    /// Prepares a capture: when this returns, the capture can be read, but no thread runs yet. The
    /// rings are drained once it is [started](PreparedListener::start).
    ///
    /// # Errors
    /// The output fails, or there are more sources than a capture can hold.
    pub fn begin<W: Write + Send + 'static>(
        out: W,
        header: FileHeader,
        mut feeds: Vec<Feed>,
        options: ListenerOptions,
        rotation: Option<Rotation<W>>,
    ) -> Result<PreparedListener, ListenerError> {
        complete(&mut feeds, 0, 0)?;
        let (wake, undersized) = (event()?, event()?);
        let counters = Arc::new(Counters::new(undersized));
        let mut capture = Worker::new(wake, options.queue_bytes, options.behind.clone());
        capture.keeps_time = true;
        let clocks = Clocks {
            ticks: options.ticks,
            distrusted: Arc::new(AtomicBool::new(options.distrust_ticks)),
        };
        let file =
            OpenFile::create(out, &header, &capture.counters).map_err(ListenerError::Output)?;

        let (ledger, dropped) = Default::default();
        let (to_keeper, keeper_changes) = mpsc::channel();
        let (to_drain, drain_changes) = mpsc::channel();
        let tallies = || Arc::new(Tallies::new(counters.clone(), capture.counters.clone()));
        let tallies = options.tally.then(tallies);
        let mut listener = Self {
            feeds: Vec::new(),
            segments: 0,
            rotates: rotation.as_ref().is_some_and(Rotation::is_wanted),
            counters,
            capture,
            extra_workers: Vec::new(),
            pool: Arc::default(),
            ledger,
            dropped,
            adds: Arc::default(),
            tallies,
            clocks,
            stop: Arc::default(),
            keeper: None,
            to_keeper,
            drain: None,
            to_drain,
            started: Instant::now(),
            patience: options.patience,
        };

        let introductions = listener.enter(&feeds);
        let mut recording = Recording::new(
            file,
            RecordingOptions {
                packer: Packer::new(options.compress),
                max_size: options.max_size,
                rotation,
                counters_every: options.counters,
            },
            listener.capture.counters.clone(),
            RecordedAccounts {
                ledger: listener.ledger.clone(),
                dropped: listener.dropped.clone(),
                adds: listener.adds.clone(),
            },
            listener.clocks.clone(),
        );
        if let Some(filter) = &options.filter {
            recording.filter(filter.clone());
        }
        recording.begin(&introductions).map_err(ListenerError::Output)?;
        let sinks = vec![Box::new(recording) as _];
        Ok(PreparedListener {
            listener,
            sinks,
            feeds,
            introductions,
            keeper_changes,
            drain_changes,
            options,
        })
    }

    /// Starts the threads, which do nothing before `begin` is true: one for each of `sinks`, which
    /// are the capture and the further sinks.
    fn spawn(
        &mut self,
        begin: &Arc<OnceLock<bool>>,
        sinks: Vec<Box<dyn Sink>>,
        keeper_changes: Receiver<FeedChange<KeptSegment>>,
        drain_changes: Receiver<FeedChange<DrainedSegment>>,
        options: ListenerOptions,
    ) -> Result<(), ListenerError> {
        let mut lanes = Vec::new();
        let workers = [&mut self.capture].into_iter().chain(&mut self.extra_workers);
        for (worker, sink) in workers.zip(sinks) {
            lanes.push(worker.lane());
            let (job, when) = (worker.job(self.pool.clone(), sink), begin.clone());
            let name = if lanes.len() == 1 { "ppt-disk" } else { "ppt-sink" };
            // Not joined: it may be stuck in a write for a long time.
            spawn(name, move || _ = when.wait().then(job))?;
        }
        let (counters, stop, when) = (self.counters.clone(), self.stop.clone(), begin.clone());
        let keeper =
            move || _ = when.wait().then(|| keeper::run(&keeper_changes, &counters, &stop));
        let keeper = spawn("ppt-keeper", keeper)?;
        let keeper_thread = keeper.thread().clone();
        self.keeper = Some(keeper);
        let lanes = Lanes::new(lanes, self.pool.clone());
        let (counters, stop) = (self.counters.clone(), self.stop.clone());
        let drain =
            Drain { changes: drain_changes, lanes, counters, stop, keeper: keeper_thread, options };
        let when = begin.clone();
        self.drain = Some(spawn("ppt-drain", move || _ = when.wait().then(|| drain.run()))?);
        Ok(())
    }
}

/// A capture that describes its sources; nothing is drained yet.
pub struct PreparedListener {
    listener: Listener,
    /// The capture, and the further sinks.
    sinks: Vec<Box<dyn Sink>>,
    feeds: Vec<Feed>,
    introductions: Arc<[Introduction]>,
    keeper_changes: Receiver<FeedChange<KeptSegment>>,
    drain_changes: Receiver<FeedChange<DrainedSegment>>,
    options: ListenerOptions,
}

impl PreparedListener {
    /// Makes `sink` take all frames, too, with its own thread. Up to `queue_bytes` of them wait for
    /// it. Frames beyond that are lost to this sink only:
    /// [`CaptureSummary::extra_sinks`](crate::CaptureSummary::extra_sinks) holds their number.
    ///
    /// # Errors
    /// No thread can be started for it.
    pub fn add_sink(
        &mut self,
        sink: impl Sink + 'static,
        queue_bytes: usize,
    ) -> Result<(), ListenerError> {
        let worker = Worker::new(event()?, queue_bytes, Arc::default());
        worker.queue.introduce(self.introductions.clone());
        self.listener.extra_workers.push(worker);
        self.sinks.push(Box::new(sink));
        Ok(())
    }

    /// Makes a flight recorder take all frames, too: it keeps them in memory, and writes those
    /// around a trigger as a capture into one of `files`.
    ///
    /// # Panics
    /// If its memory limit is below [`LEAST_MEMORY`](crate::LEAST_MEMORY).
    ///
    /// # Errors
    /// No thread can be started for it.
    pub fn flight(
        &mut self,
        options: FlightOptions,
        watch: Box<dyn TriggerWatch>,
        files: Box<dyn WindowFiles>,
    ) -> Result<Flight, ListenerError> {
        assert!(options.memory >= LEAST_MEMORY);
        let Listener { pool, clocks, dropped, adds, .. } = &self.listener;
        let around = Surroundings {
            pool: pool.clone(),
            clocks: clocks.clone(),
            dropped: dropped.clone(),
            adds: adds.clone(),
        };
        let queue_bytes = options.queue_bytes();
        let (recorder, shared) = Recorder::new(options, (watch, files), around)?;
        self.add_sink(recorder, queue_bytes)?;
        let worker = self.listener.extra_workers.last_mut().expect("it has just been added");
        worker.keeps_time = true;
        Ok(Flight::new(shared, worker.queue.clone()))
    }

    /// Starts to drain. The threads have the privileges that the caller has now.
    ///
    /// # Errors
    /// The output fails, or no thread can be started.
    pub fn start(self) -> Result<Listener, ListenerError> {
        self.start_when(|| Ok(()))
    }

    /// Starts to drain. Calls `ready` after everything else that can fail and before the first frame
    /// is taken.
    ///
    /// # Errors
    /// `ready` fails, or no thread can be started.
    pub fn start_when(
        self,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> Result<Listener, ListenerError> {
        let Self {
            mut listener,
            sinks,
            feeds,
            introductions,
            keeper_changes,
            drain_changes,
            options,
        } = self;
        listener.hand_over_all(feeds, stamps(&introductions));
        let begin = Arc::new(OnceLock::new());
        let started = listener.spawn(&begin, sinks, keeper_changes, drain_changes, options);
        let started = started.and_then(|()| ready().map_err(ListenerError::Output));
        // Set even after an error, because a dropped listener waits for its threads.
        let _ = begin.set(started.is_ok());
        started.map(|()| listener)
    }
}

fn event() -> Result<EventFd, ListenerError> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    EventFd::from_flags(flags).map_err(ListenerError::Wake)
}
