//! The content of a view: captures, processes, rows.

use std::sync::Arc;

use ppt_capture::EndReason;
use ppt_tables::{Contents, ProcessRow};

use crate::build::Progress;
use crate::index::{RowKey, TrackIndex};
use crate::layout::{SliceName, Track, ViewLayout};
use crate::row::RowId;

/// The content of a view. All texts come from captures and must be escaped for display.
#[derive(Debug, Clone)]
pub struct About {
    /// The captures, in the order of the set.
    pub captures: Vec<AboutCapture>,
    /// The processes, indexed by the numbers of their rows.
    pub processes: Vec<ProcessRow>,
    /// The rows. A row follows its parent.
    pub rows: Vec<AboutRow>,
    /// The names of slices, indexed by the numbers in cells.
    pub names: Vec<SliceName>,
    /// The first known time, ns since the epoch.
    pub from: Option<i64>,
    /// The last known time, ns since the epoch.
    pub to: Option<i64>,
    /// The progress of the index.
    pub progress: Progress,
}

/// A capture, and the sums of its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboutCapture {
    /// The first 16 hex digits of its id.
    pub id: String,
    /// The path of its file.
    pub path: std::path::PathBuf,
    /// The name of its host.
    pub host: String,
    /// Whether it has an end, so that it does not grow.
    pub has_ended: bool,
    /// Whether it continues in another file of its series that is not in the set.
    pub is_continued: bool,
    /// The number of frames in the capture.
    pub captured: u64,
    /// The number of frames that got a sequence number and are not in the capture.
    pub lost: u64,
    /// The number of frames that were refused before they got a number.
    pub dropped: u64,
    /// The largest error of a time, ns.
    pub time_error: i64,
}

/// A row of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboutRow {
    /// Identifies the row.
    pub id: RowId,
    /// The row of its process or thread. None for a process.
    pub parent: Option<RowId>,
    /// The label for display.
    pub label: String,
    /// The unit of a counter; empty for other rows.
    pub unit: String,
    /// The number of frames of a thread or process, or of slices, moments or readings.
    pub count: u64,
    /// The number of lost frames of a thread or process.
    pub lost: u64,
    /// The thread id. None for other rows.
    pub tid: Option<u32>,
    /// The first time, ns since the epoch. None if it is unknown.
    pub from: Option<i64>,
    /// The last time, ns since the epoch. None if it is unknown.
    pub to: Option<i64>,
}

/// Whether a capture continues in a file that is not in the set.
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

/// The rows of a layout. `index` returns the index of a track, once it is built.
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
            let thread = thread(layout, track_number, track, id);
            let process_row = &mut rows[first];
            process_row.count += thread.count;
            process_row.lost = process_row.lost.saturating_add(thread.lost);
            let parent = thread.id;
            rows.push(thread);
            if let Some(index) = index(track_number as usize) {
                rows.extend(rows_within(layout, track_number, parent, &index));
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
        if let Some((process_row, others)) = rows[first..].split_first_mut() {
            others.iter().for_each(|row| widen(process_row, row));
        }
    }
    rows
}

/// An empty row.
fn row(id: RowId, parent: Option<RowId>) -> AboutRow {
    let (label, unit) = (String::new(), String::new());
    AboutRow { id, parent, label, unit, count: 0, lost: 0, tid: None, from: None, to: None }
}

/// Extends the times of a row to those of another one.
fn widen(row: &mut AboutRow, other: &AboutRow) {
    row.from = row.from.into_iter().chain(other.from).min();
    row.to = row.to.into_iter().chain(other.to).max();
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

/// The rows of depths and moments in a thread.
fn rows_within<'a>(
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
