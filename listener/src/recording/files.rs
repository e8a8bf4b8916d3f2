//! Continues a capture in consecutive files.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::PoisonError;

use ppt_capture::{Dropped, EndReason, FileHeader};

use super::Recording;
use crate::limit::Room;
use crate::open::OpenFile;
use crate::origins::Origin;
use crate::rotate::Rotation;

/// The largest number of files in a row that may be taken away while they are begun.
const TRIES: usize = 8;

impl<W: Write> Recording<W> {
    /// Ends the file and continues in the next.
    pub(super) fn rotate(&mut self) {
        if !self.file.is_open() || !self.rotation.as_ref().is_some_and(Rotation::is_wanted) {
            return;
        }
        self.gaps(None);
        let size = self.rotation.as_ref().and_then(|rotation| rotation.size);
        self.cells(None, Room::Of(size));
        let readings = self.clocks.readings();
        self.written(|file| file.write(|writer| writer.clock(&readings)));
        let totals = self.origins.dropped_now().clone();
        let end = self.end_chunk(EndReason::Rotated, String::new(), &totals);
        let Some(rotation) = self.rotation.as_mut().filter(|_| self.file.is_open()) else { return };
        let next = rotation.files.next();
        // The former file states feeds that have ended. No later file does.
        let staying = self.origins.alive();
        match self.begin_one(next, &staying) {
            Ok(mut former) => {
                if former.end(&end) {
                    let dropped = |feed| totals.get(feed).copied().unwrap_or_default();
                    self.count_from_here(&staying, |feed, _| dropped(feed));
                } else {
                    // The former file is readable without an end. The new file states what is
                    // missing.
                    self.trouble = self.trouble.take().or(former.into_error());
                    let unstated = self.origins.unstated();
                    self.count_from_here(&unstated, |_, origin| origin.dropped_so_far());
                    let more = unstated.difference(&staying).copied().collect();
                    for (feed, source) in self.origins.sources(&more) {
                        self.file.source(feed, source);
                    }
                }
                self.rotation.iter_mut().for_each(|rotation| rotation.files.ended());
            }
            Err(error) => self.file.refuse(error),
        }
    }

    /// Whether the capture continues in another file because a write into this one failed.
    pub(super) fn went_on(&mut self) -> bool {
        let Some(error) = self.file.broken() else { return false };
        // The new file states what the former one leaves open.
        let staying = self.origins.unstated();
        match self.begin_one(Err(error), &staying) {
            Ok(_) => {
                self.count_from_here(&staying, |_, origin| origin.dropped_so_far());
                true
            }
            Err(error) => {
                self.file.fail(error);
                false
            }
        }
    }

    /// Writes into `opened` from now on. If that fails, tries the next file.
    pub(super) fn begin_one(
        &mut self,
        mut opened: io::Result<(W, FileHeader)>,
        staying: &BTreeSet<usize>,
    ) -> io::Result<OpenFile<W>> {
        let mut tries = 0..TRIES;
        loop {
            let error =
                match opened.and_then(|(out, header)| self.begin_file(out, &header, staying)) {
                    Ok(former) => return Ok(former),
                    Err(error) => error,
                };
            let files = self.rotation.as_mut().filter(|_| tries.next().is_some());
            match files.and_then(|file| file.files.instead(&error)) {
                Some(another) => opened = another,
                None => return Err(error),
            }
        }
    }

    /// Writes into a new file with these feeds from now on. Returns the former one.
    pub(super) fn begin_file(
        &mut self,
        out: W,
        header: &FileHeader,
        staying: &BTreeSet<usize>,
    ) -> io::Result<OpenFile<W>> {
        let mut file = OpenFile::create(out, header, &self.counters)?;
        let keep = self.rotation.as_ref().and_then(|rotation| rotation.keep).unwrap_or(0);
        file.continues(&self.file, keep, self.ledger().captured());
        file.begin(self.origins.sources(staying), &self.clocks)?;
        self.rotation.as_mut().map_or(Ok(()), |rotation| rotation.files.begun())?;
        Ok(std::mem::replace(&mut self.file, file))
    }

    /// The file's account of these feeds begins here. `dropped` returns the drops of each so far.
    pub(super) fn count_from_here(
        &mut self,
        staying: &BTreeSet<usize>,
        dropped: impl Fn(usize, &Origin) -> Dropped,
    ) {
        self.origins.begin_file(staying, dropped);
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.begin_file();
        self.captured_before = ledger.captured();
        self.states_more = false;
        self.deadline = self.rotation.as_ref().map_or(u64::MAX, Rotation::deadline);
        self.cadence.begin_file();
        drop(ledger);
        self.keep_for_cells();
        self.begin_cells();
        self.begin_masks();
        self.begin_names();
        self.begin_modules();
    }
}
