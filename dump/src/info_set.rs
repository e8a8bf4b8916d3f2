//! The accounts of several captures, with the frames missing between them.

use std::path::PathBuf;

use ppt_capture::{Absence, Capture, CaptureError, CapturePlace, SequenceCoverage};

use crate::info::{AbsentFilesInfo, AbsentInfo, Info};

/// A capture that cannot be read at all.
#[derive(Debug)]
pub struct Unreadable {
    /// The capture.
    pub path: PathBuf,
    /// The error.
    pub error: CaptureError,
}

impl Info {
    /// Reads the captures at `paths` (`-`: standard input), in that order. Each account also states
    /// the frames that were written between another of these captures and this one and are in none
    /// of them.
    ///
    /// # Errors
    /// A capture cannot be read at all. Damage is not an error; it is part of the account.
    pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Info>, Unreadable> {
        let mut together = SequenceCoverage::default();
        let mut infos = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let unreadable = |error| Unreadable { path: path.clone(), error };
            let mut capture = Capture::open(path).map_err(unreadable)?;
            let (info, part) = Info::read_from(&mut capture).map_err(unreadable)?;
            let id = capture.header().map_or([0; 16], |header| header.capture_id);
            let is_window = !info.triggers.is_empty();
            let place = CapturePlace { id, part, is_window };
            let sources = capture.sources().filter(|_| info.complete);
            together.add(number, (capture.account(), place), sources);
            let ids: Vec<u16> = capture.sources().map(|info| info.id).collect();
            infos.push((info, id, ids));
        }
        for absence in together.absent() {
            let after = hex::encode(infos[absence.before].1);
            let (info, _, ids) = &mut infos[absence.behind];
            info.add_absence(&absence, after, ids);
        }
        Ok(infos.into_iter().map(|(info, ..)| info).collect())
    }

    fn add_absence(&mut self, absence: &Absence, after: String, ids: &[u16]) {
        let gap = &absence.gap;
        let files = absence.files.map(|files| AbsentFilesInfo {
            first: files.first,
            last: files.last,
            count: files.count,
            removed: files.removed,
        });
        match self.absent.iter_mut().find(|known| known.after == after) {
            Some(known) => known.frames = known.frames.saturating_add(gap.count),
            None => self.absent.push(AbsentInfo { after, frames: gap.count, files }),
        }
        let place = ids.iter().position(|&id| id == gap.source);
        let Some(buffer) = place.and_then(|place| self.buffers.get_mut(place)) else { return };
        buffer.absent = buffer.absent.saturating_add(gap.count);
        let segment = format!("{:016x}", gap.nonce);
        let mut rings = buffer.rings.iter_mut();
        if let Some(ring) = rings.find(|ring| ring.ring == gap.ring && ring.segment == segment) {
            ring.absent = ring.absent.saturating_add(gap.count);
        }
    }
}
