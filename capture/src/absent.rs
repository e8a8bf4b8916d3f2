//! Finds the sequence numbers that lie between captures and in none of them.
//!
//! The numbers of a ring continue from one capture to the next: from file to file of a rotated
//! series, and from session to session. So a number between two captures that neither accounts for
//! belongs to a missing capture.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use crate::account::Account;
use crate::cause::Cause;
use crate::chunk::Gap;
use crate::series::SeriesPart;
use crate::sources::SourceInfo;

/// The sequence numbers that several captures account for, ring by ring.
#[derive(Debug, Clone, Default)]
pub struct SequenceCoverage {
    /// By nonce of the segment and number of the ring.
    rings: BTreeMap<(u64, u32), Vec<HeldRun>>,
    captures: BTreeMap<usize, KnownCapture>,
}

/// The facts about a capture.
#[derive(Debug, Clone, Default)]
struct KnownCapture {
    place: CapturePlace,
    /// The sources by the nonces of their segments. Empty without an end, because only the end
    /// lists all rings.
    segments: BTreeMap<u64, u16>,
    /// The rings in its account: nonce and number.
    rings: BTreeSet<(u64, u32)>,
}

/// The position of a capture among others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapturePlace {
    /// The id of the capture.
    pub id: [u8; 16],
    /// The position in a series, if the capture states one.
    pub part: Option<SeriesPart>,
    /// Whether it is a window of a flight recorder.
    pub is_window: bool,
}

impl CapturePlace {
    fn series(&self) -> [u8; 16] {
        self.part.map_or(self.id, |part| part.series)
    }

    fn number(&self) -> u32 {
        self.part.map_or(1, |part| part.number)
    }
}

/// The files of a series that lie between two others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesBetween {
    /// The number of the first of them.
    pub first: u32,
    /// The number of the last of them.
    pub last: u32,
    /// The number of missing files from the first to the last.
    pub count: u32,
    /// Whether `--keep` has removed all of them.
    pub removed: bool,
}

impl fmt::Display for FilesBetween {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, count, .. } = *self;
        let (files, were, are) = match count {
            1 => (format!("file {first}"), "was", "is"),
            _ if count > last - first => (format!("files {first} to {last}"), "were", "are"),
            _ => (format!("{count} of the files {first} to {last}"), "were", "are"),
        };
        if self.removed {
            write!(f, "--keep: {files} of the series {were} removed")
        } else {
            write!(f, "{files} of the series {are} not among these captures")
        }
    }
}

/// A run of sequence numbers that one capture accounts for.
#[derive(Debug, Clone, Copy)]
struct HeldRun {
    first_seq: u64,
    next_seq: u64,
    capture: usize,
    source: u16,
}

/// A run of sequence numbers between two captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absence {
    /// The capture before it, by the number passed to [`SequenceCoverage::add`].
    pub before: usize,
    /// The capture after it, by that number.
    pub behind: usize,
    /// The numbers, with the source of the capture after them. The cause is [`Cause::Absent`].
    pub gap: Gap,
    /// The files that should hold them, if both captures are of one series.
    pub files: Option<FilesBetween>,
}

impl SequenceCoverage {
    /// Adds the account of a capture that has been read to its end, and its `sources` if it has an
    /// end chunk. `capture` is a number that the caller chooses. Nothing counts as absent before
    /// and after a window of a flight recorder, because the recorder was not meant to keep it.
    pub fn add<'a>(
        &mut self,
        capture: usize,
        (account, place): (&Account, CapturePlace),
        sources: impl IntoIterator<Item = &'a SourceInfo>,
    ) {
        let segments = sources
            .into_iter()
            .flat_map(|info| info.source.segments.iter().map(|segment| (segment.nonce, info.id)));
        let rings = account.rings().map(|(key, _)| (key.nonce, key.ring)).collect();
        self.captures.insert(capture, KnownCapture { place, segments: segments.collect(), rings });
        for (key, first_seq, next_seq) in account.held() {
            let held = HeldRun { first_seq, next_seq, capture, source: key.source };
            self.rings.entry((key.nonce, key.ring)).or_default().push(held);
        }
    }

    /// The absent numbers, by segment, ring and number.
    pub fn absent(mut self) -> Vec<Absence> {
        let mut removed: HashMap<[u8; 16], u32> = HashMap::new();
        let mut present: HashMap<[u8; 16], BTreeSet<u32>> = HashMap::new();
        for KnownCapture { place, .. } in self.captures.values() {
            present.entry(place.series()).or_default().insert(place.number());
            let most = removed.entry(place.series()).or_default();
            *most = place.part.map_or(0, |part| part.removed()).max(*most);
        }
        let mut all = Vec::new();
        let mut rings = std::mem::take(&mut self.rings);
        for (&(nonce, ring), runs) in &mut rings {
            if runs.iter().all(|held| held.first_seq > 1) {
                runs.extend(self.unwritten(nonce, ring));
            }
            runs.sort_by_key(|held| (held.first_seq, held.capture));
            let Some(mut last) = runs.first().copied() else { continue };
            for held in &runs[1..] {
                let place = |held: &HeldRun| self.captures[&held.capture].place;
                let (before, behind) = (place(&last), place(held));
                if held.first_seq > last.next_seq && !(before.is_window || behind.is_window) {
                    let gap = Gap {
                        source: held.source,
                        nonce,
                        ring,
                        first_seq: last.next_seq,
                        count: held.first_seq - last.next_seq,
                        cause: Cause::Absent,
                    };
                    let series = behind.series();
                    let files =
                        files_between(&before, &behind, &present[&series], removed[&series]);
                    all.push(Absence { before: last.capture, behind: held.capture, gap, files });
                }
                if held.next_seq > last.next_seq {
                    last = *held;
                }
            }
        }
        all
    }
}

impl SequenceCoverage {
    /// The beginning of a ring, from the capture in which ppt attached to its segment before any
    /// thread wrote to the ring.
    fn unwritten(&self, nonce: u64, ring: u32) -> Option<HeldRun> {
        let by_id = |id| self.captures.values().find(|known| known.place.id == id);
        let attached_in = |known: &KnownCapture| match known.place.part {
            None => true,
            Some(part) => by_id(part.previous).is_some_and(|former| {
                !former.segments.is_empty() && !former.segments.contains_key(&nonce)
            }),
        };
        self.captures.iter().find_map(|(&capture, known)| {
            let source = *known.segments.get(&nonce)?;
            let is_unwritten = !known.rings.contains(&(nonce, ring)) && attached_in(known);
            is_unwritten.then_some(HeldRun { first_seq: 1, next_seq: 1, capture, source })
        })
    }
}

/// The files between two captures of one series that are not among the `present` ones. `None` if
/// none is missing.
fn files_between(
    before: &CapturePlace,
    behind: &CapturePlace,
    present: &BTreeSet<u32>,
    removed: u32,
) -> Option<FilesBetween> {
    if before.series() != behind.series() {
        return None;
    }
    let (mut first, mut last) = (before.number().checked_add(1)?, behind.number().checked_sub(1)?);
    while present.contains(&first) && first <= last {
        first += 1;
    }
    while present.contains(&last) && first <= last {
        last -= 1;
    }
    if first > last {
        return None;
    }
    let others = present.range(first..=last).count() as u32;
    let count = (last - first).saturating_add(1) - others;
    Some(FilesBetween { first, last, count, removed: last <= removed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::FramesHead;

    fn account(nonce: u64, runs: &[(u64, u32)]) -> Account {
        let mut account = Account::default();
        for &(first_seq, count) in runs {
            let head = FramesHead { nonce, ring: 3, first_seq, count, ..FramesHead::default() };
            account.frames(&head, 0).unwrap();
        }
        account
    }

    fn absent(captures: &[Account], windows: &[usize]) -> Vec<(usize, usize, u64, u64)> {
        let mut together = SequenceCoverage::default();
        for (number, account) in captures.iter().enumerate() {
            let is_window = windows.contains(&number);
            let place = CapturePlace { is_window, ..CapturePlace::default() };
            together.add(number, (account, place), []);
        }
        let absent = together.absent().into_iter();
        absent
            .map(|absence| {
                (absence.before, absence.behind, absence.gap.first_seq, absence.gap.count)
            })
            .collect()
    }

    #[test]
    fn numbers_between_captures_are_absent_in_any_order_of_captures() {
        let captures = [account(7, &[(31, 10)]), account(7, &[(1, 10)]), account(7, &[(15, 6)])];
        assert_eq!(absent(&captures, &[]), [(1, 2, 11, 4), (2, 0, 21, 10)]);
        assert_eq!(absent(&captures, &[2]), [], "a window is between the two");
    }

    #[test]
    fn what_a_capture_lacks_itself_and_other_segments_are_not_absent() {
        assert_eq!(absent(&[account(7, &[(1, 10), (20, 5)])], &[]), [], "that is damage");
        assert_eq!(absent(&[account(7, &[(1, 10)]), account(8, &[(20, 5)])], &[]), []);
        let copies = [account(7, &[(1, 10)]), account(7, &[(1, 20)]), account(7, &[(21, 5)])];
        assert_eq!(absent(&copies, &[]), []);
    }

    #[test]
    fn a_ring_that_nobody_had_written_to_begins_at_1() {
        let json = br#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{"name":"it",
            "kind":"plain","size":16,"fields":[{"name":"n","type":"u64","offset":8}]}]}"#;
        let schema = ppt_frame_dsl::Schema::from_json(json).unwrap();
        let segment = crate::Segment { nonce: 7, rings: 8, slots: 16, stride: 8 };
        let source = crate::Source { segments: vec![segment], ..crate::Source::default() };
        let info = SourceInfo { id: 5, source, schema, metrics: Vec::new() };
        let part = |number| SeriesPart { series: [1; 16], number, ..SeriesPart::default() };
        let third = CapturePlace { id: [3; 16], part: Some(part(3)), is_window: false };
        let first = CapturePlace { id: [1; 16], part: None, is_window: false };
        let of = |place: CapturePlace| {
            let mut together = SequenceCoverage::default();
            together.add(0, (&Account::default(), place), [&info]);
            together.add(1, (&account(7, &[(31, 10)]), third), []);
            let absent = together.absent().into_iter();
            absent
                .map(|absence| (absence.before, absence.gap.first_seq, absence.gap.count))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(first), [(0, 1, 30)]);
        let second = CapturePlace { part: Some(part(2)), ..first };
        assert_eq!(of(second), [], "the ring may have been written to in the file before that");
    }

    #[test]
    fn the_files_between_are_missing_or_were_removed() {
        let part =
            |number, keep| SeriesPart { series: [1; 16], number, keep, ..SeriesPart::default() };
        let place = |part| CapturePlace { id: [1; 16], part, is_window: false };
        let files = |captures: &[(u64, Option<SeriesPart>)]| {
            let mut together = SequenceCoverage::default();
            for (number, &(first, part)) in captures.iter().enumerate() {
                together.add(number, (&account(7, &[(first, 10)]), place(part)), []);
            }
            let absent = together.absent().into_iter();
            let words =
                |files: Option<FilesBetween>| files.map_or(String::new(), |file| file.to_string());
            absent.map(|absence| words(absence.files)).collect::<Vec<_>>()
        };
        assert_eq!(
            files(&[(1, None), (31, Some(part(4, 0))), (51, Some(part(6, 0)))]),
            [
                "files 2 to 3 of the series are not among these captures",
                "file 5 of the series is not among these captures"
            ]
        );
        // The ring is idle in file 3.
        let silent = [(1, None), (91, Some(part(3, 0))), (31, Some(part(5, 0)))];
        assert_eq!(
            files(&silent)[0],
            "2 of the files 2 to 4 of the series are not among these captures"
        );
        let all = [(1, None), (91, Some(part(2, 0))), (31, Some(part(3, 0)))];
        assert_eq!(files(&all)[..1], [""; 1], "they are all there");
        assert_eq!(
            files(&[(1, None), (31, Some(part(3, 2))), (51, Some(part(5, 2)))]),
            [
                "--keep: file 2 of the series was removed",
                "file 4 of the series is not among these captures"
            ]
        );
    }

    #[test]
    fn what_nobody_attended_is_accounted_for() {
        let mut next = account(7, &[(21, 5)]);
        let gap = |first_seq, count| Gap {
            source: 0,
            nonce: 7,
            ring: 3,
            first_seq,
            count,
            cause: Cause::Unattended,
        };
        next.gap(&gap(11, 10)).unwrap();
        assert_eq!(absent(&[account(7, &[(1, 10)]), next.clone()], &[]), []);
        assert_eq!(absent(&[account(7, &[(1, 5)]), next], &[]), [(0, 1, 6, 5)]);
    }
}
