//! The statements of a file about counters and histograms.

use std::io::Write;

use ppt_capture::CellsHead;

use super::Recording;
use crate::cells::UnstatedReading;
use crate::limit::Room;

impl<W: Write> Recording<W> {
    /// Reserves room for the last readings in a file of bounded size.
    pub(super) fn keep_for_cells(&mut self) {
        let last = self.max_size.map_or(0, |_| self.origins.last_readings());
        self.file.keep_for_cells(last);
    }

    /// Reads counters and histograms, of feed `of` or of all, and states the changes. Returns
    /// whether everything had room.
    pub(super) fn cells(&mut self, of: Option<usize>, room: Room) -> bool {
        let fits = self.cells_into_file(of, room);
        if self.went_on() { self.cells_into_file(of, room) } else { fits }
    }

    /// Adds a reading to files that rotate by size: to another file if this one has no room. A file has
    /// room for one reading of any size. Returns whether the files rotate by size.
    pub(super) fn cells_or_rotate(&mut self, of: Option<usize>) -> bool {
        let Some(size) = self.rotation.as_ref().and_then(|rotation| rotation.size) else {
            return false;
        };
        if !self.cells(of, Room::Of(Some(size))) {
            if self.has_content() {
                self.rotate();
            }
            let size = Some(size).filter(|_| self.has_content());
            self.cells(of, Room::Of(size));
        }
        true
    }

    /// Adds a reading when it is due.
    pub(super) fn cells_in_time(&mut self) {
        if !self.cells_or_rotate(None) && !self.cells(None, Room::Of(self.max_size)) {
            self.file.fill();
        }
    }

    /// Adds a reading to this file only. Adds that do not fit are in the next reading.
    pub(super) fn cells_into_file(&mut self, of: Option<usize>, room: Room) -> bool {
        let now = ppt_now::monotonic();
        let (file, adds, states_more) = (&mut self.file, &self.adds, &mut self.states_more);
        let mut fits = true;
        self.origins.state_cells(of, adds, |feed, (not_mapped, is_news), readings| {
            let Some(source) = file.source_of(feed) else { return true };
            let nonce = readings.nonce();
            let mut new = readings.read();
            if new.is_empty() && is_news {
                new.push(UnstatedReading::default());
            }
            let (Room::Of(max) | Room::Last(max)) = room;
            if !file.has_room(max, new.iter().map(UnstatedReading::len)) {
                if let Room::Of(_) = room {
                    fits = false;
                    return false;
                }
                // The chunk fits, because the room was reserved.
                new = readings.read_as_one();
            }
            for reading in new {
                let head = UnstatedReading::head(source, nonce, now, not_mapped);
                if !file.write(|writer| writer.cells(&head, reading.rows())) {
                    return false;
                }
                *states_more = true;
                readings.stated(reading);
            }
            true
        });
        fits
    }

    /// States the values at the start of a file. If they do not fit, the file counts from 0.
    pub(super) fn begin_cells(&mut self) {
        let now = ppt_now::monotonic();
        let size = self.rotation.as_ref().and_then(|rotation| rotation.size).or(self.max_size);
        let (file, adds) = (&mut self.file, &self.adds);
        self.origins.state_cells(None, adds, |feed, _, readings| {
            let Some(source) = file.source_of(feed) else { return true };
            let head = UnstatedReading::head(source, readings.nonce(), now, 0);
            let head = CellsHead { is_base: true, ..head };
            let base = readings.base();
            // Half of the file is reserved for new data.
            let half = size.map(|size| size / 2);
            if !file.has_room(half, base.iter().map(|rows| rows.bytes().len())) {
                readings.forget_stated();
                return true;
            }
            base.iter().all(|rows| file.write(|writer| writer.cells(&head, rows)))
        });
    }
}
