//! What there is to be seen.

use std::sync::Arc;

use ppt_capture::EndReason;
use ppt_tables::{Contents, ProcessRow};

use crate::build::Progress;
use crate::index::{RowKey, TrackIndex};
use crate::layout::{SliceName, Track, ViewLayout};
use crate::row::RowId;

/// What there is to be seen. All texts are those of others: escape them before you show them.
#[derive(Debug, Clone)]
pub struct About {
    /// The captures.
    pub captures: Vec<AboutCapture>,
    /// The processes, by the numbers of their rows.
    pub processes: Vec<ProcessRow>,
    /// The rows, each behind the one that it belongs to.
    pub rows: Vec<AboutRow>,
    /// What slices are called, by the numbers that cells have.
    pub names: Vec<SliceName>,
    /// From when on there is something, ns since the epoch; None: nobody knows of anything.
    pub from: Option<i64>,
    /// Up to when there is something.
    pub to: Option<i64>,
    /// How far the index is built.
    pub progress: Progress,
}

/// A capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboutCapture {
    /// The first 16 hex digits of its id.
    pub id: String,
    /// The name of its file.
    pub path: std::path::PathBuf,
    /// Its host.
    pub host: String,
    /// It was closed: it does not grow.
    pub has_ended: bool,
    /// It goes on in another file of its series, which is not among these.
    pub is_continued: bool,
    /// Frames that are there.
    pub captured: u64,
    /// Frames that were written and are not there.
    pub lost: u64,
    /// Frames that were refused before they got a number.
    pub dropped: u64,
    /// How far a time can be from the truth, ns.
    pub time_error: i64,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboutRow {
    /// The row.
    pub id: RowId,
    /// The row that it belongs to.
    pub parent: Option<RowId>,
    /// What it is called.
    pub label: String,
    /// The unit of a counter.
    pub unit: String,
    /// How many frames of a thread, slices, moments or readings there are.
    pub count: u64,
    /// Frames of a thread that are lost.
    pub lost: u64,
    /// Of a thread: its number.
    pub tid: Option<u32>,
    /// When the first is, ns since the epoch, as far as it is known.
    pub from: Option<i64>,
    /// When the last is.
    pub to: Option<i64>,
}

/// Whether a capture goes on in a file that is not there.
fn is_continued(layout: &ViewLayout, contents: &Contents) -> bool {
    let hex = |id: &[u8; 16]| id[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let follows =
        |other: &Contents| other.part().is_some_and(|part| hex(&part.previous) == contents.id());
    contents.end().is_some_and(|end| end.reason == EndReason::Rotated)
        && !layout.captures.iter().any(follows)
}

pub(crate) fn captures(layout: &ViewLayout) -> Vec<AboutCapture> {
    let about = layout.captures.iter().map(|contents| {
        let account = contents.account();
        let (mut captured, mut lost) = (0u64, 0u64);
        for (_, ring) in account.rings() {
            captured = captured.saturating_add(ring.captured);
            lost = lost.saturating_add(ring.lost_with_damage().total());
        }
        let dropped = contents.sources().iter().map(|source| account.dropped(source.id).total());
        AboutCapture {
            id: contents.id().to_owned(),
            path: contents.path().to_owned(),
            host: contents.host().to_owned(),
            has_ended: contents.has_ended(),
            is_continued: is_continued(layout, contents),
            captured,
            lost,
            dropped: dropped.fold(0, u64::saturating_add),
            time_error: contents.time_error(),
        }
    });
    about.collect()
}

/// The rows of a layout; `index` is that of a track, once it is built.
pub(crate) fn rows(
    layout: &ViewLayout,
    index: impl Fn(usize) -> Option<Arc<TrackIndex>>,
) -> Vec<AboutRow> {
    let mut rows = Vec::new();
    for (number, process) in layout.processes.iter().enumerate() {
        let id = RowId::Process(number as u32);
        let tracks = (0..).zip(&layout.tracks).filter(|(_, track)| track.process == number);
        let first = rows.len();
        rows.push(AboutRow { label: process.exe.clone(), ..row(id, None) });
        for (track_number, track) in tracks {
            let own = thread(layout, track_number, track, id);
            let of = &mut rows[first];
            of.count += own.count;
            of.lost = of.lost.saturating_add(own.lost);
            widen(of, &own);
            let thread = own.id;
            rows.push(own);
            if let Some(index) = index(track_number as usize) {
                rows.extend(parts(layout, track_number, thread, &index));
            }
        }
        let counters = (0..).zip(&layout.counters.0).filter(|(_, track)| track.process == number);
        rows.extend(counters.map(|(number, counter)| AboutRow {
            label: format!("{}.{}", counter.buffer, counter.name),
            unit: counter.unit.clone(),
            count: counter.points.len() as u64,
            from: counter.points.first().map(|point| point.0),
            to: counter.points.last().map(|point| point.0),
            ..row(RowId::Counter(number), Some(id))
        }));
        if let Some((of, parts)) = rows[first..].split_first_mut() {
            parts.iter().for_each(|own| widen(of, own));
        }
    }
    rows
}

fn row(id: RowId, parent: Option<RowId>) -> AboutRow {
    let (label, unit) = (String::new(), String::new());
    AboutRow { id, parent, label, unit, count: 0, lost: 0, tid: None, from: None, to: None }
}

fn widen(of: &mut AboutRow, own: &AboutRow) {
    of.from = of.from.into_iter().chain(own.from).min();
    of.to = of.to.into_iter().chain(own.to).max();
}

fn thread(layout: &ViewLayout, number: u32, track: &Track, process: RowId) -> AboutRow {
    let entries = || track.chunks.iter().map(|&chunk| &layout.chunks[chunk]);
    let times = || entries().filter_map(|entry| entry.chunk.times);
    let losses = track.losses.iter().filter(|loss| loss.cause.is_loss());
    let label = match (track.tid, &track.name) {
        (Some(tid), Some(name)) => format!("{tid} ({name})"),
        (Some(tid), None) => tid.to_string(),
        (None, _) => "?".to_owned(),
    };
    AboutRow {
        label,
        tid: track.tid,
        count: entries().map(|entry| u64::from(entry.share.count)).sum(),
        lost: losses.fold(0, |sum, loss| sum.saturating_add(loss.count)),
        from: times().map(|times| times.0).min(),
        to: times().map(|times| times.1).max(),
        ..row(RowId::Thread(number), Some(process))
    }
}

fn parts<'a>(
    layout: &'a ViewLayout,
    thread: u32,
    parent: RowId,
    index: &'a TrackIndex,
) -> impl Iterator<Item = AboutRow> + 'a {
    index.rows.iter().filter_map(move |(key, tree)| {
        let whole = tree.whole()?;
        let (id, label) = match *key {
            RowKey::Depth(depth) => (RowId::Depth { thread, depth }, depth.to_string()),
            RowKey::Moments(name) => {
                let label = layout.names.get(name as usize).map(|name| name.name.clone());
                (RowId::Moments { thread, name }, label.unwrap_or_default())
            }
        };
        Some(AboutRow {
            label,
            count: whole.count,
            from: Some(whole.from),
            to: Some(whole.to),
            ..row(id, Some(parent))
        })
    })
}
