//! Perfetto's trace format: packets, each with its length before it.
//!
//! Times are CLOCK_REALTIME. Processes and threads are tracks; slices of a thread that overlap without
//! nesting are on tracks below it. A slice ends on its track before the next one begins there, so that
//! readers, which sort by time and keep the order of equal times, nest slices correctly.
//!
//! Each boot of a host is a machine. Packets of all but the first have a `machine_id`: readers keep
//! pids, interned names, and clocks for each machine. All times are those of one clock, so the clocks
//! of machines compare as equal.

mod encode;
mod interned_words;
mod message;
mod names;
mod tracks;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use crate::event::{ClockPair, EventRole, EventRows, EventSchema, Trace, is_loss};
use crate::lanes::Lanes;
use crate::threads::{PidScope, Threads};
use crate::values::{Column, FieldValue};
use encode::{CounterValue, Event, Note};
use interned_words::InternedWords;
use message::{
    COUNTER, ClockMessage, ClockSnapshot, DebugAnnotation, INSTANT, MONOTONIC, NEEDS_STATE,
    REALTIME, RemoteClockSync, SLICE_BEGIN, SLICE_END, STATE_CLEARED, SyncedClocks, TracePacket,
    TracePacketDefaults, TrackEvent,
};
use names::{InternedNames, PacketSchema};
use ppt_tables::Processes;

/// Sequences of frames and of missing frames: a reader forgets the interned names of a sequence from
/// which packets were dropped.
const FRAMES: u32 = 1;
const MISSING: u32 = 2;

/// A trace for Perfetto.
#[derive(Debug)]
pub struct Perfetto<W> {
    out: W,
    kinds: Vec<Arc<PacketSchema>>,
    threads: Threads,
    lanes: Vec<Lanes>,
    tracks: Tracks,
    /// Interned words of each machine.
    words: Vec<InternedWords>,
    packet: Vec<u8>,
    event: Event,
    /// Slices that end: lane and time.
    ends: Vec<(usize, i64)>,
}

/// Ids of tracks.
#[derive(Debug, Default)]
struct Tracks {
    next: u64,
    processes: HashMap<usize, u64>,
    /// One for each thread; 0: not yet described.
    threads: Vec<u64>,
    lanes: HashMap<(usize, usize), u64>,
    counters: HashMap<(usize, String), u64>,
}

impl Tracks {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl<W: Write> Perfetto<W> {
    /// A trace of events of `kinds`. `readings` relate the monotonic clock to the realtime clock; empty if the
    /// events are from several boots or hosts.
    ///
    /// # Errors
    /// Writing to the output fails.
    pub fn new(
        out: W,
        kinds: &[EventSchema],
        processes: Processes,
        readings: &[ClockPair],
    ) -> io::Result<Self> {
        let mut names = InternedNames::default();
        // Rows without a process belong to the first machine.
        let machines = processes.machine_count().max(1);
        let written = kinds.iter().map(|kind| Arc::new(names.schema(kind))).collect();
        let mut trace = Perfetto {
            out,
            kinds: written,
            threads: Threads::new(processes, PidScope::Machine),
            lanes: Vec::new(),
            tracks: Tracks::default(),
            words: (0..machines).map(|_| InternedWords::new(kinds.len())).collect(),
            packet: Vec::new(),
            event: Event::default(),
            ends: Vec::new(),
        };
        trace.begin(names, readings)?;
        Ok(trace)
    }

    fn begin(&mut self, names: InternedNames, readings: &[ClockPair]) -> io::Result<()> {
        let clock = |id, ns| ClockMessage { clock_id: Some(id), timestamp: Some(ns) };
        let mut last = ClockPair { monotonic: 0, realtime: 0 };
        // A clock that was set back cannot be compared.
        let rising = readings.iter().filter(|reading| {
            let rises = reading.monotonic > last.monotonic && reading.realtime > last.realtime;
            if rises {
                last = **reading;
            }
            rises
        });
        let mut snapshots: Vec<Vec<ClockMessage>> = rising
            .map(|pair| vec![clock(REALTIME, pair.realtime), clock(MONOTONIC, pair.monotonic)])
            .collect();
        if snapshots.is_empty() {
            snapshots.push(vec![clock(REALTIME, 1)]);
        }
        let names = names.interned();
        for machine in 0..self.words.len() {
            if machine > 0 {
                // Written before the machine's own clocks, which readers use as the clocks of the trace
                // from then on.
                self.write(machine, same_clocks(clock(REALTIME, 1)))?;
            }
            for clocks in &snapshots {
                let (clocks, primary_trace_clock) = (clocks.clone(), Some(REALTIME));
                self.write(
                    machine,
                    TracePacket {
                        trusted_packet_sequence_id: Some(FRAMES),
                        clock_snapshot: Some(ClockSnapshot { clocks, primary_trace_clock }),
                        ..TracePacket::default()
                    },
                )?;
            }
            let defaults = TracePacketDefaults { timestamp_clock_id: Some(REALTIME) };
            self.write(
                machine,
                TracePacket {
                    trusted_packet_sequence_id: Some(FRAMES),
                    sequence_flags: Some(STATE_CLEARED),
                    trace_packet_defaults: Some(defaults),
                    interned_data: Some(names.clone()),
                    ..TracePacket::default()
                },
            )?;
        }
        Ok(())
    }

    fn write(&mut self, machine: usize, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { machine_id: machine_id(machine), ..packet };
        write(&mut self.out, &mut self.packet, &packet)
    }

    /// Writes missing frames as a packet that needs no interned names.
    fn missing(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        let thread = self.threads.thread(number, &self.kinds[number].kind, rows, row);
        let track = self.thread(thread)?;
        let (count, cause) = rows.missing(row);
        let note = |name: &str| DebugAnnotation {
            name: Some(name.to_owned()),
            ..DebugAnnotation::default()
        };
        let mut notes = vec![
            DebugAnnotation { int_value: Some(count), ..note("count") },
            DebugAnnotation { string_value: Some(cause.to_owned()), ..note("cause") },
        ];
        let word = |name, word: Option<&str>| {
            word.map(|word| DebugAnnotation { string_value: Some(word.to_owned()), ..note(name) })
        };
        let number = |name, number: Option<i64>| {
            number.map(|number| DebugAnnotation { int_value: Some(number), ..note(name) })
        };
        notes.extend(word("buffer", rows.buffer.get(row)));
        notes.extend(word("segment", rows.segment.get(row)));
        notes.extend(number("ring", rows.ring(row).map(Into::into)));
        notes.extend(number("seqno", rows.seqno(row)));
        if let Some(FieldValue::Int(until)) = rows.fields.get(2).and_then(|field| field.get(row)) {
            notes.push(DebugAnnotation { int_value: Some(until), ..note("until") });
        }
        let packet = TracePacket {
            timestamp: Some(rows.begin(row) as u64),
            timestamp_clock_id: Some(REALTIME),
            trusted_packet_sequence_id: Some(MISSING),
            previous_packet_dropped: Some(is_loss(cause)),
            track_event: Some(TrackEvent {
                kind: Some(INSTANT),
                track_uuid: Some(track),
                name: Some(rows.missing_in_words(row)),
                debug_annotations: notes,
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        };
        self.write(self.threads.machine(thread), packet)
    }

    /// Adds the annotations of a row to the event.
    fn annotate(&mut self, machine: usize, number: usize, rows: &EventRows, row: usize) {
        let of = &self.kinds[number];
        let (words, event) = (&mut self.words[machine], &mut self.event);
        let [segment, ring, seqno] = [of.annotations[0], of.annotations[1], of.annotations[2]];
        if let Some(note) = words.note(number, 0, &rows.segment, row, event) {
            event.note(segment, note);
        }
        if let Some(value) = rows.ring(row) {
            event.note(ring, Note::Int(value.into()));
        }
        if let Some(value) = rows.seqno(row) {
            event.note(seqno, Note::Int(value));
        }
        for (at, (column, &name)) in rows.fields.iter().zip(&of.annotations[3..]).enumerate() {
            if let Column::Words(column) = column {
                if let Some(note) = words.note(number, at + 1, column, row, event) {
                    event.note(name, note);
                }
                continue;
            }
            match column.get(row) {
                None => {}
                Some(FieldValue::Int(value)) => event.note(name, Note::Int(value)),
                Some(FieldValue::Uint(value)) => event.note(name, Note::Uint(value)),
                Some(FieldValue::Float(value)) => event.note(name, Note::Double(value)),
                Some(FieldValue::Bool(value)) => event.note(name, Note::Bool(value)),
                Some(FieldValue::Word(text) | FieldValue::Text(text)) => {
                    event.note(name, Note::Text(text));
                }
                Some(FieldValue::Bytes(bytes)) => event.note(name, Note::Text(&hex::encode(bytes))),
            }
        }
    }

    fn counters(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        if self.kinds[number].counters.is_empty() || !rows.is_first_of_frame(row) {
            return Ok(());
        }
        let of = self.kinds[number].clone();
        for &field in &of.counters {
            let value = match rows.fields.get(field).and_then(|column| column.get(row)) {
                Some(FieldValue::Int(value)) => CounterValue::Int(value),
                Some(FieldValue::Uint(value)) => match i64::try_from(value) {
                    Ok(value) => CounterValue::Int(value),
                    Err(_) => CounterValue::Double(value as f64),
                },
                Some(FieldValue::Float(value)) => CounterValue::Double(value),
                _ => continue,
            };
            let thread = self.threads.thread(number, &of.kind, rows, row);
            let track = self.counter(thread, number, field)?;
            self.event.kind(COUNTER);
            self.event.track(track);
            self.event.counter(value);
            self.write_event(self.threads.machine(thread), rows.end(row))?;
        }
        Ok(())
    }

    /// Writes the current event.
    fn write_event(&mut self, machine: usize, time: i64) -> io::Result<()> {
        let machine = machine_id(machine);
        self.packet.clear();
        self.event.packet(time as u64, (FRAMES, NEEDS_STATE, machine), &mut self.packet);
        self.out.write_all(&self.packet)
    }

    fn close(&mut self, thread: usize, ends: &[(usize, i64)]) -> io::Result<()> {
        for &(lane, end) in ends {
            let track = self.lane(thread, lane)?;
            self.event.kind(SLICE_END);
            self.event.track(track);
            self.write_event(self.threads.machine(thread), end)?;
        }
        Ok(())
    }
}

impl<W: Write> Trace for Perfetto<W> {
    fn turn_to(&mut self, kind: usize, rows: &EventRows) {
        self.threads.turn_to(kind, rows);
    }

    fn event(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        if self.kinds[number].kind.what == EventRole::Missing {
            return self.missing(number, rows, row);
        }
        if self.kinds[number].kind.what == EventRole::Counter {
            return self.counters(number, rows, row);
        }
        let thread = self.threads.thread(number, &self.kinds[number].kind, rows, row);
        if self.lanes.len() <= thread {
            self.lanes.resize_with(thread + 1, Lanes::default);
        }
        let lane = match rows.dur(row) {
            None => None,
            Some(_) => {
                let mut ends = std::mem::take(&mut self.ends);
                let closed = |lane, end| {
                    ends.push((lane, end));
                    Ok::<_, io::Error>(())
                };
                let lane = self.lanes[thread].place(rows.begin(row), rows.end(row), closed)?;
                self.close(thread, &ends)?;
                ends.clear();
                self.ends = ends;
                lane
            }
        };
        let (kind, track) = match lane {
            Some(lane) => (SLICE_BEGIN, self.lane(thread, lane)?),
            None => (INSTANT, self.thread(thread)?),
        };
        if let Some(category) = self.kinds[number].category {
            self.event.category(category);
        }
        let machine = self.threads.machine(thread);
        self.annotate(machine, number, rows, row);
        let (of, event) = (&self.kinds[number], &mut self.event);
        let value = |field: Option<usize>| rows.fields.get(field?)?.get(row);
        let name = match value(of.named_by) {
            Some(FieldValue::Word(name) | FieldValue::Text(name)) if !name.is_empty() => Some(name),
            _ => None,
        };
        event.kind(kind);
        if name.is_none() {
            event.name_iid(of.name);
        }
        event.track(track);
        if let Some(name) = name {
            event.name(name);
        }
        let flow = match value(of.flow) {
            Some(FieldValue::Int(flow)) => flow as u64,
            Some(FieldValue::Uint(flow)) => flow,
            _ => 0,
        };
        // 0 means no flow.
        if flow != 0 {
            event.flow(flow);
        }
        if of.chain.is_some() || !of.identities.is_empty() {
            let boot = &self.threads.process(self.threads.get(thread).0).boot;
            if let Some(keys) = &of.chain {
                event.flow(of.kind.flow_of_chain(keys, rows, row, boot));
            }
            let points = of.identities.iter();
            for flow in points.filter_map(|of| EventSchema::flow_of_point(of, rows, row, boot)) {
                event.flow(flow);
            }
        }
        self.write_event(machine, rows.begin(row))?;
        self.counters(number, rows, row)
    }

    fn finish(&mut self) -> io::Result<()> {
        for (thread, lanes) in std::mem::take(&mut self.lanes).into_iter().enumerate() {
            let ends: Vec<_> = lanes.close().collect();
            self.close(thread, &ends)?;
        }
        self.out.flush()
    }
}

/// Id of a machine in packets; None for the first machine.
fn machine_id(machine: usize) -> Option<u32> {
    u32::try_from(machine).ok().filter(|&machine| machine > 0)
}

/// Declares the clocks of a machine equal to those of the first one. Readers compare at least two
/// readings.
fn same_clocks(reading: ClockMessage) -> TracePacket {
    let snapshot =
        || Some(ClockSnapshot { clocks: vec![reading.clone()], ..ClockSnapshot::default() });
    let both = || SyncedClocks { client_clocks: snapshot(), host_clocks: snapshot() };
    TracePacket {
        trusted_packet_sequence_id: Some(FRAMES),
        remote_clock_sync: Some(RemoteClockSync { synced_clocks: vec![both(), both()] }),
        ..TracePacket::default()
    }
}

/// Writes a packet as a field of the trace.
fn write(out: &mut impl Write, buffer: &mut Vec<u8>, packet: &TracePacket) -> io::Result<()> {
    buffer.clear();
    prost::encoding::message::encode(1, packet, buffer);
    out.write_all(buffer)
}
