//! Computes the account of a capture.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use ppt_capture::frame_dsl::metric::MetricShape;
use ppt_capture::frame_dsl::schema::{Frame, Schema};
use ppt_capture::{
    Account, Capture, CaptureError, CaptureItem, CellTotals, Chosen, Chunk, ChunkFrames,
    ClockTable, Codec, Damage, Dropped, FileHeader, Flip, FlipRing, HistogramCells, Lost,
    ModuleHistory, ModuleTable, Modules, Process, ProgramKey, RingAccount, SeriesPart, SourceInfo,
    ThreadNames, ThreadTable, Trigger,
};

use ppt_predicate::{FrameKind, NamedField, named_fields};

use crate::info::{
    BucketInfo, BufferInfo, CaptureInfo, ClockInfo, CounterInfo, DamageInfo, EndInfo, FieldInfo,
    HistogramInfo, Info, KindFieldsInfo, MaskInfo, MaskRingInfo, ModuleInfo, RingInfo, SeriesInfo,
    StepInfo, StoredInfo, ThreadInfo, TickStepInfo, TriggerInfo,
};
use crate::select::{labels, process};

const MAX_DAMAGED: usize = 1000;
/// A window lists at most this many: half that can wait, half that cannot.
const MAX_TRIGGERS: usize = 2000;
const MAX_FLIPS: usize = 50_000;
const MAX_THREADS: usize = 50_000;
const MAX_MODULES: usize = 10_000;

impl Info {
    /// Reads the whole capture at `path` (`-`: standard input).
    ///
    /// # Errors
    /// The capture cannot be read at all. Damage is not an error; it is part of the account.
    pub fn read(path: &Path) -> Result<Info, CaptureError> {
        Ok(Info::read_from(&mut Capture::open(path)?)?.0)
    }

    /// Reads a whole stream.
    ///
    /// # Errors
    /// As for [`Info::read`].
    pub fn read_stream(reader: impl Read + 'static) -> Result<Info, CaptureError> {
        Ok(Info::read_from(&mut Capture::from_reader(reader)?)?.0)
    }

    /// Reads `capture` to its end. Returns its account, and its position among others.
    pub(crate) fn read_from(
        capture: &mut Capture,
    ) -> Result<(Info, Option<SeriesPart>), CaptureError> {
        let mut content = CaptureContent::default();
        while let Some(item) = capture.read()? {
            content.add(item);
        }
        let CaptureContent {
            clocks,
            damaged,
            damages,
            last_drain,
            stored,
            cells,
            triggers,
            triggers_not_listed,
            flips,
            disabled,
            names,
            mapped,
            part,
        } = content;
        let finish = capture.finish();
        let end_ns = finish.end.map_or(last_drain, |end| end.mono_ns);
        let sources: Vec<&SourceInfo> = capture.sources().collect();
        let mismatches = match finish.end {
            Some(end) if damages == 0 => capture.account().mismatches(end).len() as u64,
            _ => 0,
        };
        let mut rings = rings(capture.account());
        let buffers = sources.iter().zip(labels(&sources)).map(|(info, label)| {
            let rings = rings.remove(&info.id).unwrap_or_default();
            let mut buffer = buffer(info, label, capture.account().dropped(info.id), rings);
            buffer.adds_not_mapped = cells.not_mapped(info.id);
            metrics(info, &cells.sums(info.id), &mut buffer);
            let names = disabled.get(&info.id).into_iter().flatten();
            buffer.disabled = names.filter_map(|name| name.name(&info.schema)).collect();
            buffer
        });
        let modules = module_table(&mapped, &sources);
        let info = Info {
            format: 1,
            complete: finish.end.is_some(),
            cut: finish.cut,
            damaged: damaged
                .iter()
                .map(|damage| DamageInfo { offset: damage.offset, what: damage.kind.to_string() })
                .collect(),
            damages,
            mismatches,
            capture: capture.header().map(|header| file(header, end_ns)),
            end: finish.end.map(|end| EndInfo {
                reason: end.reason.name(),
                message: end.message.clone(),
                realtime_ns: end.realtime_ns,
                mono_ns: end.mono_ns,
            }),
            series: part.map(series),
            absent: Vec::new(),
            stored,
            triggers_not_listed,
            triggers: triggers.into_iter().map(|found| trigger(found, &sources)).collect(),
            masks: flips.iter().flat_map(|flip| masks(flip, &sources)).collect(),
            threads: threads(&names, &sources),
            modules_left_out: modules_left_out(&modules),
            modules: modules_of(&modules),
            buffers: buffers.collect(),
            clock: clock(&clocks, sources.first().copied()),
            target: sources.first().map(|info| info.source.process.clone()),
            targets: processes(&sources),
        };
        Ok((info, part))
    }
}

/// The items of a capture, as far as its account needs them.
#[derive(Default)]
struct CaptureContent {
    clocks: ClockTable,
    /// The first damaged places.
    damaged: Vec<Damage>,
    /// The number of all damaged places.
    damages: u64,
    /// CLOCK_MONOTONIC of the last drain, ns.
    last_drain: u64,
    stored: StoredInfo,
    cells: CellTotals,
    /// The first triggers.
    triggers: Vec<Trigger>,
    /// The number of further triggers.
    triggers_not_listed: u64,
    /// The first changes of masks.
    flips: Vec<Flip>,
    /// The disabled frames, counters and histograms of each source.
    disabled: BTreeMap<u16, BTreeSet<Chosen>>,
    names: Vec<ThreadNames>,
    mapped: Vec<Modules>,
    part: Option<SeriesPart>,
}

impl CaptureContent {
    fn add(&mut self, item: CaptureItem<'_>) {
        match item {
            CaptureItem::Damage(damage) => {
                self.damages += 1;
                if self.damaged.len() < MAX_DAMAGED {
                    self.damaged.push(damage);
                }
            }
            CaptureItem::Chunk(Chunk::Clock(readings)) => self.clocks.add(&readings),
            CaptureItem::Chunk(Chunk::Frames(frames)) => {
                self.last_drain = frames.head.drained_mono_ns;
                self.stored.add(&frames);
            }
            CaptureItem::Chunk(Chunk::Cells(chunk)) => self.cells.add(&chunk),
            CaptureItem::Chunk(Chunk::Trigger(trigger)) => match trigger.further() {
                None if self.triggers.len() < MAX_TRIGGERS => self.triggers.push(trigger),
                further => {
                    let further = further.unwrap_or(1);
                    self.triggers_not_listed = self.triggers_not_listed.saturating_add(further);
                }
            },
            CaptureItem::Chunk(Chunk::Series(part)) => self.part = Some(part),
            CaptureItem::Chunk(Chunk::Masks(flip)) => {
                let disabled = self.disabled.entry(flip.source).or_default();
                for &(chosen, enabled) in &flip.changes {
                    if enabled {
                        disabled.remove(&chosen)
                    } else {
                        disabled.insert(chosen)
                    };
                }
                if self.flips.len() < MAX_FLIPS {
                    self.flips.push(flip);
                }
            }
            CaptureItem::Chunk(Chunk::Threads(names)) => self.names.push(names),
            CaptureItem::Chunk(Chunk::Modules(modules)) => self.mapped.push(modules),
            CaptureItem::Chunk(_) => {}
        }
    }
}

/// The last name of each thread.
fn threads(names: &[ThreadNames], sources: &[&SourceInfo]) -> Vec<ThreadInfo> {
    let mut table = ThreadTable::default();
    for some in names {
        if let Some(info) = sources.iter().find(|info| info.id == some.source) {
            table.add(process(info), some);
        }
    }
    let last = table.iter().filter_map(|(process, names)| {
        let (last, before) = names.split_last()?;
        Some(ThreadInfo {
            pid: process.pid,
            tid: last.tid,
            name: last.text().into_owned(),
            mono_ns: last.mono_ns,
            former_names: before.len() as u64,
        })
    });
    last.take(MAX_THREADS).collect()
}

fn module_table(mapped: &[Modules], sources: &[&SourceInfo]) -> ModuleTable {
    let mut table = ModuleTable::default();
    for modules in mapped {
        if let Some(info) = sources.iter().find(|info| info.id == modules.source) {
            table.add(&info.source.process, modules);
        }
    }
    table
}

fn modules_of(table: &ModuleTable) -> Vec<ModuleInfo> {
    let of_program = |(program, history): (&ProgramKey, &ModuleHistory)| {
        let pid = program.process.pid;
        let mapped = history.seen();
        let infos = mapped.map(|(mono_ns, module)| ModuleInfo {
            pid,
            start: format!("{:016x}", module.start),
            end: format!("{:016x}", module.end),
            offset: module.offset,
            path: module.path_text().into_owned(),
            build_id: module.build_id_text(),
            deleted: module.is_deleted,
            mono_ns,
        });
        infos.take(MAX_MODULES).collect::<Vec<_>>()
    };
    table.iter().flat_map(of_program).take(MAX_MODULES).collect()
}

/// The number of mappings that the sets do not list.
fn modules_left_out(table: &ModuleTable) -> u64 {
    let most = |history: &ModuleHistory| history.sets().iter().map(|set| set.left_out).max();
    table.iter().filter_map(|(_, history)| most(history)).map(u64::from).sum()
}

fn masks(flip: &Flip, sources: &[&SourceInfo]) -> Vec<MaskInfo> {
    let Some(info) = sources.iter().find(|info| info.id == flip.source) else { return Vec::new() };
    let mask = |&(chosen, enabled): &(Chosen, bool)| {
        let first_seq =
            |ring: &FlipRing| if enabled { ring.first_enabled } else { ring.first_disabled };
        let ring = |ring: &FlipRing| MaskRingInfo { ring: ring.ring, first_seq: first_seq(ring) };
        let rings = flip.rings.iter().filter(|_| chosen.is_frame());
        Some(MaskInfo {
            mono_ns: flip.mono_ns,
            pid: info.source.process.pid,
            buffer: info.source.buffer.clone(),
            segment: format!("{:016x}", flip.nonce),
            name: chosen.name(&info.schema)?,
            enabled,
            rings: rings.map(ring).collect(),
        })
    };
    flip.changes.iter().filter_map(mask).collect()
}

fn trigger(trigger: Trigger, sources: &[&SourceInfo]) -> TriggerInfo {
    let source = sources.iter().find(|info| Some(info.id) == trigger.source);
    TriggerInfo {
        mono_ns: trigger.mono_ns,
        why: trigger.why.name(),
        expression: trigger.expression,
        buffer: source.map(|info| info.source.buffer.clone()),
        segment: trigger.ring.map(|(nonce, _)| format!("{nonce:016x}")),
        ring: trigger.ring.map(|(_, ring)| ring),
        seqno: trigger.seqno,
        note: trigger.note,
        from_ns: trigger.wanted.from_ns,
        to_ns: trigger.wanted.to_ns,
        held_from_ns: trigger.held.from_ns,
        held_to_ns: trigger.held.to_ns,
    }
}

impl StoredInfo {
    fn add(&mut self, frames: &ChunkFrames<'_>) {
        self.bytes += frames.stored_len;
        self.raw_bytes += frames.bytes().len() as u64;
        let name = frames.codec.map(Codec::name);
        self.codecs.extend(name.filter(|name| !self.codecs.contains(name)));
    }
}

/// Each process once. A process that started another program counts once, under its first name.
fn processes(sources: &[&SourceInfo]) -> Vec<Process> {
    let mut seen = BTreeSet::new();
    let new = sources.iter().filter(|info| seen.insert(process(info)));
    new.map(|info| info.source.process.clone()).collect()
}

fn rings(account: &Account) -> BTreeMap<u16, Vec<(RingInfo, RingAccount)>> {
    let mut rings: BTreeMap<u16, Vec<(RingInfo, RingAccount)>> = BTreeMap::new();
    for (key, account) in account.rings() {
        let info = RingInfo {
            ring: key.ring,
            segment: format!("{:016x}", key.nonce),
            first_seq: account.first_seq,
            next_seq: account.next_seq,
            frames: account.captured,
            lost: account.lost_with_damage().total(),
            left_out: account.left_out,
            unattended: account.unattended,
            absent: 0,
        };
        rings.entry(key.source).or_default().push((info, account));
    }
    rings
}

fn series(part: SeriesPart) -> SeriesInfo {
    SeriesInfo {
        id: hex::encode(part.series),
        previous: hex::encode(part.previous),
        number: part.number,
        keep: part.keep,
        removed: part.removed(),
        captured_before: part.captured_before,
    }
}

fn file(header: &FileHeader, end_ns: u64) -> CaptureInfo {
    CaptureInfo {
        id: hex::encode(header.capture_id),
        host: header.host.clone(),
        boot_id: header.boot_id.clone(),
        tool: header.tool.clone(),
        created_realtime_ns: header.created_realtime_ns,
        created_mono_ns: header.created_mono_ns,
        duration_ns: end_ns.saturating_sub(header.created_mono_ns),
    }
}

fn buffer(
    info: &SourceInfo,
    name: String,
    dropped: Dropped,
    rings: Vec<(RingInfo, RingAccount)>,
) -> BufferInfo {
    let mut lost = Lost::default();
    let (mut frames, mut damaged, mut left_out, mut unattended) = (0u64, 0u64, 0u64, 0u64);
    for (_, ring) in &rings {
        lost += ring.lost_with_damage();
        frames = frames.saturating_add(ring.captured);
        damaged = damaged.saturating_add(ring.damaged);
        left_out = left_out.saturating_add(ring.left_out);
        unattended = unattended.saturating_add(ring.unattended);
    }
    let kinds = info.schema.frames.iter().filter(|frame| !frame.is_hidden());
    BufferInfo {
        name,
        schema_hash: format!("{:016x}", info.source.schema_hash),
        frames,
        lost: lost.total(),
        lost_by: lost,
        damaged,
        dropped,
        left_out,
        disabled: Vec::new(),
        unattended,
        absent: 0,
        object: info.source.object.clone(),
        pid: info.source.process.pid,
        from_start: info.source.from_start,
        clock: info.source.clock.clone(),
        kinds: kinds.map(|frame| frame.name.clone()).collect(),
        fields: fields(&info.schema),
        counters: Vec::new(),
        histograms: Vec::new(),
        adds_not_mapped: 0,
        tags: info.source.tags.clone(),
        rings: rings.into_iter().map(|(info, _)| info).collect(),
    }
}

/// The fields of each kind of frame that is shown.
fn fields(schema: &Schema) -> Vec<KindFieldsInfo> {
    let field = |field: NamedField| FieldInfo {
        name: field.name,
        ty: field.ty.to_string(),
        unit: field.unit,
    };
    let shown = schema.frames.iter().filter(|frame| !frame.is_hidden());
    let of_kind = |frame: &Frame| {
        let named = named_fields(FrameKind { buffer: &schema.buffer, schema, frame });
        KindFieldsInfo { kind: frame.name.clone(), fields: named.into_iter().map(field).collect() }
    };
    shown.map(of_kind).collect()
}

/// The sums of counters and histograms.
fn metrics(info: &SourceInfo, sums: &BTreeMap<u32, u64>, buffer: &mut BufferInfo) {
    for metric in &info.metrics {
        let (name, unit) = (metric.name.clone(), metric.unit.clone());
        let first = sums.get(&metric.cells.start).copied().unwrap_or_default();
        let signed = i128::from(first as i64);
        if !metric.shape.is_histogram() {
            let value = if metric.shape == MetricShape::Counter { first.into() } else { signed };
            buffer.counters.push(CounterInfo { name, value, unit });
            continue;
        }
        let histogram = HistogramCells::from_sums(metric, sums);
        let bucket = |part| {
            let (lo, hi) = histogram.quantile(part).unwrap_or_default();
            BucketInfo { lo, hi }
        };
        let is_time = metric.shape == MetricShape::Exponential;
        buffer.histograms.push(HistogramInfo {
            name,
            count: histogram.count,
            sum: if is_time { signed } else { first.into() },
            p50: bucket(0.5),
            p99: bucket(0.99),
            max: bucket(1.0),
            unit: if is_time && unit.is_empty() { "ns".into() } else { unit },
        });
    }
}

fn clock(clocks: &ClockTable, source: Option<&SourceInfo>) -> ClockInfo {
    let steps = clocks.steps().iter().map(|&(mono_ns, by)| StepInfo { mono_ns, by_ns: fit(by) });
    let tick_steps = clocks.tick_steps().iter().map(|step| TickStepInfo {
        after_mono_ns: step.between.0,
        before_mono_ns: step.between.1,
        by_ns: fit(step.by_ns),
    });
    ClockInfo {
        target: source.map(|info| info.source.clock.clone()).unwrap_or_default(),
        tick_hz: source.and_then(|info| info.source.tick_hz),
        tick_readings: clocks.tick_readings(),
        epoch_offset_ns: clocks.epoch_offset().map(fit),
        steps: steps.collect(),
        tick_error_ns: clocks.tick_error_ns(),
        monotonic_error_ns: clocks.epoch_error_ns(),
        tick_steps: tick_steps.collect(),
        ticks_distrusted_ns: clocks.distrusted(),
    }
}

/// The nearest i64: no existing clock has values beyond that.
fn fit(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
