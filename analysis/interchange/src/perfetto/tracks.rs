//! The tracks of processes, threads, lanes and counters.

use std::io::{self, Write};

use super::message::{
    CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor,
};
use super::{FRAMES, Perfetto};
use crate::threads::TraceThread;

impl<W: Write> Perfetto<W> {
    fn describe(&mut self, machine: usize, descriptor: TrackDescriptor) -> io::Result<u64> {
        let uuid = self.tracks.number();
        let descriptor = TrackDescriptor { uuid: Some(uuid), ..descriptor };
        self.write(
            machine,
            TracePacket {
                trusted_packet_sequence_id: Some(FRAMES),
                track_descriptor: Some(descriptor),
                ..TracePacket::default()
            },
        )?;
        Ok(uuid)
    }

    /// The track of a thread; describes it first.
    pub(super) fn thread(&mut self, thread: usize) -> io::Result<u64> {
        match self.tracks.threads.get(thread) {
            Some(&track) if track != 0 => Ok(track),
            _ => self.new_thread(thread),
        }
    }

    /// Describes the track of a thread. Pids identify the processes of a machine, so a process with a
    /// reused pid is identified by its name.
    fn new_thread(&mut self, thread: usize) -> io::Result<u64> {
        let (process, who) = self.threads.get(thread);
        let (who, machine) = (who.clone(), self.threads.machine(thread));
        let (label, thread_name) =
            (self.threads.label(thread), self.threads.name(thread).map(str::to_owned));
        let is_first = self.threads.is_first_of_its_pid(process);
        let pid = i32::try_from(self.threads.process(process).pid).ok().filter(|_| is_first);
        let parent = match self.tracks.processes.get(&process) {
            Some(&track) => track,
            None => {
                let name = self.threads.title(process);
                let descriptor = match pid {
                    Some(_) => TrackDescriptor {
                        process: Some(ProcessDescriptor { pid, process_name: Some(name) }),
                        ..TrackDescriptor::default()
                    },
                    None => TrackDescriptor { name: Some(name), ..TrackDescriptor::default() },
                };
                let track = self.describe(machine, descriptor)?;
                self.tracks.processes.insert(process, track);
                track
            }
        };
        let track = match (&who, pid) {
            (TraceThread::Process, _) => parent,
            (TraceThread::Tid(tid), Some(_)) => self.describe(
                machine,
                TrackDescriptor {
                    parent_uuid: Some(parent),
                    thread: Some(ThreadDescriptor { pid, tid: Some((*tid).into()), thread_name }),
                    ..TrackDescriptor::default()
                },
            )?,
            _ => self.describe(
                machine,
                TrackDescriptor {
                    parent_uuid: Some(parent),
                    name: Some(label),
                    ..TrackDescriptor::default()
                },
            )?,
        };
        if self.tracks.threads.len() <= thread {
            self.tracks.threads.resize(thread + 1, 0);
        }
        self.tracks.threads[thread] = track;
        Ok(track)
    }

    /// The track of a lane: that of the thread, or one below it.
    pub(super) fn lane(&mut self, thread: usize, lane: usize) -> io::Result<u64> {
        let (parent, machine) = (self.thread(thread)?, self.threads.machine(thread));
        if lane == 0 {
            return Ok(parent);
        }
        if let Some(&track) = self.tracks.lanes.get(&(thread, lane)) {
            return Ok(track);
        }
        let track = self.describe(
            machine,
            TrackDescriptor {
                parent_uuid: Some(parent),
                name: Some("at the same time".to_owned()),
                ..TrackDescriptor::default()
            },
        )?;
        self.tracks.lanes.insert((thread, lane), track);
        Ok(track)
    }

    pub(super) fn counter(&mut self, thread: usize, kind: usize, field: usize) -> io::Result<u64> {
        let kind = &self.kinds[kind].kind;
        let name = kind.curve(field);
        let unit = kind.fields[field].metadata().get("unit").cloned();
        if let Some(&track) = self.tracks.counters.get(&(thread, name.clone())) {
            return Ok(track);
        }
        let (parent, machine) = (self.thread(thread)?, self.threads.machine(thread));
        let track = self.describe(
            machine,
            TrackDescriptor {
                parent_uuid: Some(parent),
                name: Some(name.clone()),
                counter: Some(CounterDescriptor { unit_name: unit }),
                ..TrackDescriptor::default()
            },
        )?;
        self.tracks.counters.insert((thread, name), track);
        Ok(track)
    }
}
