//! What is missing.

use ppt_capture::Dropped;

use crate::set::CaptureSet;

/// What is missing in captures, as far as it is known: from heads of chunks, and from what was
/// read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureLoss {
    /// Frames that are there.
    pub captured: u64,
    /// Frames that were written and are not there.
    pub lost: u64,
    /// Runs of them.
    pub gaps: u64,
    /// Frames that their program could not write.
    pub dropped: u64,
    /// Frames that were written between the captures, and that are in none of them. They are not lost.
    pub absent: u64,
}

impl CaptureLoss {
    /// Frames that are lost or dropped.
    pub fn missing(&self) -> u64 {
        self.lost.saturating_add(self.dropped)
    }
}

/// What the causes are called of frames that their program could not write: `account` counts them,
/// `gaps` does not know them.
pub fn dropped_causes() -> [&'static str; 3] {
    Dropped::default().by_cause().map(|(cause, _)| cause.name())
}

impl CaptureSet {
    /// What is missing in the buffers that `of` wants.
    pub fn loss(&self, mut of: impl FnMut(&str) -> bool) -> CaptureLoss {
        let mut loss = CaptureLoss::default();
        for capture in self.captures() {
            let catalog = capture.catalog();
            let wanted: Vec<u16> = catalog
                .sources
                .iter()
                .filter(|info| of(&info.source.buffer))
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

    /// Which files of a series are not among the captures, in words, each once; at most `most` of them.
    pub fn absent_files(&self, most: usize) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for files in self.absent().iter().filter_map(|absence| absence.files) {
            let words = files.to_string();
            if all.len() < most && !all.contains(&words) {
                all.push(words);
            }
        }
        all
    }

    /// When the first of the captures began, ns since the epoch, where that is known.
    pub fn began(&self) -> Option<i64> {
        let began = |catalog: &crate::catalog::Catalog| {
            catalog.epoch(catalog.header.as_ref()?.created_mono_ns)
        };
        self.captures().iter().filter_map(|capture| began(capture.catalog())).min()
    }

    /// The captures as they were named.
    pub fn paths(&self) -> impl Iterator<Item = &std::path::Path> {
        self.captures().iter().map(|capture| capture.path.as_path())
    }
}
