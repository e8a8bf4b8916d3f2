//! Counts of missing frames.

use ppt_capture::Dropped;

use crate::set::CaptureSet;

/// Counts of frames in captures and of missing frames, as far as heads of chunks and previous reads show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureLoss {
    /// Frames in the captures.
    pub captured: u64,
    /// Frames that were written but are not in the captures.
    pub lost: u64,
    /// Runs of lost frames.
    pub gaps: u64,
    /// Frames that their program could not write.
    pub dropped: u64,
    /// Frames that were written between the captures. They do not count as lost.
    pub absent: u64,
}

impl CaptureLoss {
    /// Number of frames that are lost or dropped.
    pub fn missing(&self) -> u64 {
        self.lost.saturating_add(self.dropped)
    }
}

/// Names of the causes of dropped frames, which their program could not write. `account` counts them; `gaps`
/// has no rows for them.
pub fn dropped_causes() -> [&'static str; 3] {
    Dropped::default().by_cause().map(|(cause, _)| cause.name())
}

impl CaptureSet {
    /// The counts for the buffers that `is_wanted` accepts.
    pub fn loss(&self, mut is_wanted: impl FnMut(&str) -> bool) -> CaptureLoss {
        let mut loss = CaptureLoss::default();
        for capture in self.captures() {
            let catalog = capture.catalog();
            let wanted: Vec<u16> = catalog
                .sources
                .iter()
                .filter(|info| is_wanted(&info.source.buffer))
                .map(|info| info.id)
                .collect();
            for (key, ring) in catalog.account.rings() {
                if wanted.contains(&key.source) {
                    loss.captured = loss.captured.saturating_add(ring.captured);
                    loss.lost = loss.lost.saturating_add(ring.lost_with_damage().total());
                }
            }
            let is_gap = |gap: &&crate::catalog::GapAt| {
                gap.gap.cause.is_loss() && wanted.contains(&gap.gap.source)
            };
            let absent = catalog.absent(|gap| wanted.contains(&gap.source));
            loss.absent = loss.absent.saturating_add(absent);
            loss.gaps += catalog.gaps.iter().filter(is_gap).count() as u64;
            let mut dropped = Dropped::default();
            wanted.iter().for_each(|&source| dropped += catalog.account.dropped(source));
            loss.dropped = loss.dropped.saturating_add(dropped.total());
        }
        loss
    }

    /// Texts that name files of a series that are not in the set; at most `limit` different ones.
    pub fn absent_files(&self, limit: usize) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for files in self.absent().iter().filter_map(|absence| absence.files) {
            let text = files.to_string();
            if all.len() < limit && !all.contains(&text) {
                all.push(text);
            }
        }
        all
    }

    /// The time at which the first capture began, ns since the epoch; None if unknown.
    pub fn began(&self) -> Option<i64> {
        let began = |catalog: &crate::catalog::Catalog| {
            catalog.epoch(catalog.header.as_ref()?.created_mono_ns)
        };
        self.captures().iter().filter_map(|capture| began(capture.catalog())).min()
    }

    /// The paths that the user gave.
    pub fn paths(&self) -> impl Iterator<Item = &std::path::Path> {
        self.captures().iter().map(|capture| capture.path.as_path())
    }
}
