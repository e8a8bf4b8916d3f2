//! JSON of Chrome's trace viewer, which many other tools read.
//!
//! Times are µs since the trace begins, with ns as decimals: readers keep them as doubles, which cannot
//! hold ns since the epoch. `otherData` contains the begin of the trace.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;

use ppt_tables::Processes;

use crate::event::{EventRole, EventRows, EventSchema, Trace};
use crate::lanes::Lanes;
use crate::threads::{PidScope, Threads, TraceThread};
use crate::values::FieldValue;

/// The largest integer that JavaScript represents exactly; larger ones are written as text.
const EXACT: u64 = 1 << 53;
/// First number for threads and processes without a usable one.
const FIRST_NUMBER: u64 = 1 << 32;

/// A trace for Chrome.
#[derive(Debug)]
pub struct Chrome<W> {
    out: W,
    kinds: Vec<Arc<ChromeFile>>,
    threads: Threads,
    lanes: Vec<Lanes>,
    /// Begin of the trace, ns since the epoch.
    origin: Option<i64>,
    described: HashSet<(u64, Option<u64>)>,
    /// Numbers of lanes, and of threads without a number, by thread and lane.
    numbers: HashMap<(usize, usize), u64>,
    some: bool,
}

#[derive(Debug)]
struct ChromeFile {
    kind: EventSchema,
    label: String,
    named_by: Option<usize>,
    flow: Option<usize>,
    counters: Vec<usize>,
}

impl<W: Write> Chrome<W> {
    /// A trace of events of `kinds`.
    ///
    /// # Errors
    /// Writing to the output fails.
    pub fn new(mut out: W, kinds: &[EventSchema], processes: Processes) -> io::Result<Self> {
        let written = |kind: &EventSchema| {
            Arc::new(ChromeFile {
                label: kind.label(),
                named_by: kind.marked(|marks| marks.name),
                flow: kind.marked(|marks| marks.flow),
                counters: kind.counters(),
                kind: kind.clone(),
            })
        };
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Chrome {
            out,
            kinds: kinds.iter().map(written).collect(),
            threads: Threads::new(processes, PidScope::Trace),
            lanes: Vec::new(),
            origin: None,
            described: HashSet::new(),
            numbers: HashMap::new(),
            some: false,
        })
    }

    fn next(&mut self) -> io::Result<()> {
        let between: &[u8] = if std::mem::replace(&mut self.some, true) { b",\n" } else { b"\n" };
        self.out.write_all(between)
    }

    /// Names a process, or a thread of it, once.
    fn describe(&mut self, pid: u64, tid: Option<u64>, name: &str) -> io::Result<()> {
        if !self.described.insert((pid, tid)) {
            return Ok(());
        }
        self.next()?;
        let what = if tid.is_some() { "thread_name" } else { "process_name" };
        write!(
            self.out,
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{}",
            tid.unwrap_or(0)
        )?;
        self.out.write_all(b",\"args\":{\"name\":")?;
        text(&mut self.out, name)?;
        self.out.write_all(b"}}")
    }

    /// The numbers of process and thread for a lane; names them first.
    fn lane(&mut self, thread: usize, lane: usize) -> io::Result<(u64, u64)> {
        let (process, who) = self.threads.get(thread);
        let is_first = self.threads.is_first_of_its_pid(process);
        let of = self.threads.process(process);
        let (who, name) = (who.clone(), self.threads.title(process));
        let pid =
            if is_first { of.pid.into() } else { FIRST_NUMBER.saturating_add(process as u64) };
        self.describe(pid, None, &name)?;
        let label = self.threads.label(thread);
        let label = match lane {
            0 => label,
            lane => format!("{label}, at the same time ({lane})"),
        };
        let next = FIRST_NUMBER + self.numbers.len() as u64;
        let tid = match (&who, lane) {
            (TraceThread::Tid(tid), 0) if *tid >= 0 => *tid as u64,
            _ => *self.numbers.entry((thread, lane)).or_insert(next),
        };
        self.describe(pid, Some(tid), &label)?;
        Ok((pid, tid))
    }

    fn since(&mut self, time: i64) -> (i64, i64) {
        let since = time.saturating_sub(*self.origin.get_or_insert(time)).max(0);
        (since / 1000, since % 1000)
    }

    /// Begins an event: phase, name, process and thread, time.
    fn event_at(
        &mut self,
        phase: char,
        name: &str,
        category: &str,
        (pid, tid): (u64, u64),
        time: i64,
    ) -> io::Result<()> {
        let (us, ns) = self.since(time);
        self.next()?;
        write!(self.out, "{{\"ph\":\"{phase}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{us}.{ns:03}")?;
        self.out.write_all(b",\"name\":")?;
        text(&mut self.out, name)?;
        self.out.write_all(b",\"cat\":")?;
        text(&mut self.out, category)
    }

    fn args<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a str, Option<FieldValue<'a>>)>,
    ) -> io::Result<()> {
        self.out.write_all(b",\"args\":{")?;
        let mut between: &[u8] = b"";
        for (name, value) in all {
            let Some(value) = value else { continue };
            self.out.write_all(between)?;
            between = b",";
            text(&mut self.out, name)?;
            self.out.write_all(b":")?;
            put(&mut self.out, value)?;
        }
        self.out.write_all(b"}}")
    }

    fn counters(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        if !rows.is_first_of_frame(row) {
            return Ok(());
        }
        let of = self.kinds[number].clone();
        for &field in &of.counters {
            let Some(value) = rows.fields.get(field).and_then(|field| field.get(row)) else {
                continue;
            };
            let thread = self.threads.thread(number, &of.kind, rows, row);
            let place = self.lane(thread, 0)?;
            let kind = &of.kind;
            let name = kind.curve(field);
            let unit = kind.fields[field].metadata().get("unit").map_or("value", String::as_str);
            // Readers identify curves by process, name and id.
            self.event_at('C', &name, &kind.buffer, place, rows.end(row))?;
            write!(self.out, ",\"id\":{}", place.1)?;
            let value = match value {
                FieldValue::Int(value) => FieldValue::Float(value as f64),
                FieldValue::Uint(value) => FieldValue::Float(value as f64),
                other => other,
            };
            self.args(std::iter::once((unit, Some(value))))?;
        }
        Ok(())
    }
}

impl<W: Write> Trace for Chrome<W> {
    fn turn_to(&mut self, kind: usize, rows: &EventRows) {
        self.threads.turn_to(kind, rows);
    }

    fn event(&mut self, number: usize, rows: &EventRows, row: usize) -> io::Result<()> {
        if self.kinds[number].kind.what == EventRole::Counter {
            return self.counters(number, rows, row);
        }
        let thread = self.threads.thread(number, &self.kinds[number].kind, rows, row);
        if self.lanes.len() <= thread {
            self.lanes.resize_with(thread + 1, Lanes::default);
        }
        let (begin, end) = (rows.begin(row), rows.end(row));
        let lane = match rows.dur(row) {
            None => None,
            Some(_) => self.lanes[thread].place(begin, end, |_, _| Ok::<_, io::Error>(()))?,
        };
        let place = self.lane(thread, lane.unwrap_or(0))?;
        let of = self.kinds[number].clone();
        let is_missing = of.kind.what == EventRole::Missing;
        let value = |field: Option<usize>| rows.fields.get(field?)?.get(row);
        let name = match value(of.named_by) {
            _ if is_missing => rows.missing_in_words(row),
            Some(FieldValue::Word(name) | FieldValue::Text(name)) if !name.is_empty() => {
                name.to_owned()
            }
            _ => of.label.clone(),
        };
        let flow = match value(of.flow) {
            Some(FieldValue::Int(flow)) => Some(flow as u64),
            Some(FieldValue::Uint(flow)) => Some(flow),
            _ => None,
        };
        let category = rows.buffer.get(row).unwrap_or("");
        match lane {
            Some(_) => {
                self.event_at('X', &name, category, place, begin)?;
                let dur = end - begin;
                write!(self.out, ",\"dur\":{}.{:03}", dur / 1000, dur % 1000)?;
                if let Some(flow) = flow.filter(|&flow| flow != 0) {
                    write!(
                        self.out,
                        ",\"bind_id\":\"0x{flow:x}\",\"flow_in\":true,\"flow_out\":true"
                    )?;
                }
            }
            None => {
                self.event_at('i', &name, category, place, begin)?;
                self.out.write_all(b",\"s\":\"t\"")?;
            }
        }
        let identity = [
            ("segment", rows.segment.get(row).map(FieldValue::Word)),
            ("ring", rows.ring(row).map(|ring| FieldValue::Int(ring.into()))),
            (of.kind.seqno.as_str(), rows.seqno(row).map(FieldValue::Int)),
        ];
        let names = || of.kind.fields.iter().map(|field| field.name().as_str());
        let fields = names().zip(rows.fields.iter().map(|field| field.get(row)));
        // A second field of the same name would replace the first.
        let identity = identity.into_iter().filter(|entry| names().all(|name| name != entry.0));
        self.args(identity.chain(fields))?;
        self.counters(number, rows, row)
    }

    fn finish(&mut self) -> io::Result<()> {
        let origin = self.origin.unwrap_or(0);
        write!(
            self.out,
            "\n],\"otherData\":{{\"origin_ns_since_the_epoch\":\"{origin}\",\"written_by\":\"ppt\"}}}}\n"
        )?;
        self.out.flush()
    }
}

fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    let mut json = Vec::with_capacity(text.len() + 2);
    ppt_text::json_string(text.as_bytes(), &mut json);
    out.write_all(&json)
}

fn put(out: &mut impl Write, value: FieldValue<'_>) -> io::Result<()> {
    match value {
        FieldValue::Int(value) if value.unsigned_abs() < EXACT => write!(out, "{value}"),
        FieldValue::Int(value) => write!(out, "\"{value}\""),
        FieldValue::Uint(value) if value < EXACT => write!(out, "{value}"),
        FieldValue::Uint(value) => write!(out, "\"{value}\""),
        FieldValue::Float(value) if value.is_finite() => Ok(serde_json::to_writer(out, &value)?),
        FieldValue::Float(value) => write!(out, "\"{value}\""),
        FieldValue::Bool(value) => write!(out, "{value}"),
        FieldValue::Word(word) | FieldValue::Text(word) => text(out, word),
        FieldValue::Bytes(bytes) => text(out, &hex::encode(bytes)),
    }
}
