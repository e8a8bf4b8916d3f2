//! Finds the missing frames of the kernel.

use std::sync::{Arc, PoisonError};

use arrow_array::Array;
use ppt_capture::Stamps;

use super::chosen::Chosen;
use super::frames::KernelFrames;
use super::read::{KernelBatch, columns_read};
use crate::bounds::Bounds;
use crate::chunk_scan::{ChunkScan, kind_bit};
use crate::error::TableError;
use crate::kernel::{KernelChunk, KernelFrameKind, KernelLoss, Recorded, Records, RecordsBuilder};
use crate::set::CaptureSet;
use crate::table::{Scan, TableRequest};

impl KernelFrames {
    /// The completeness of the frames, by group; read once.
    pub fn records(
        self: &Arc<Self>,
        set: &Arc<CaptureSet>,
    ) -> Result<Arc<Vec<Records>>, TableError> {
        let mut cached = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(records) = &*cached {
            return Ok(records.clone());
        }
        let mut builders: Vec<RecordsBuilder> = Vec::new();
        builders.resize_with(self.groups.len(), RecordsBuilder::default);
        self.add_chunks(set, &mut builders)?;
        self.add_losses(set, &mut builders)?;
        let records = Arc::new(builders.into_iter().map(RecordsBuilder::build).collect());
        Ok(cached.insert(records).clone())
    }

    /// Adds the ranges of sequence numbers that chunks have.
    fn add_chunks(
        &self,
        set: &CaptureSet,
        builders: &mut [RecordsBuilder],
    ) -> Result<(), TableError> {
        for (number, capture) in set.captures().iter().enumerate() {
            let catalog = capture.verified()?;
            let owners = set.owners(number, catalog);
            for chunk in &catalog.chunks {
                let Some(owner) = owners.get(chunk.owner as usize) else { continue };
                let Some(form) = self.forms.get(&(number, owner.source)) else { continue };
                let Some(&group) = self.group_of.get(&(owner.process, owner.nonce)) else {
                    continue;
                };
                let builder = &mut builders[group as usize];
                let has_kind = |kind| {
                    let mut own = form.kinds.iter().filter(|entry| entry.1.kind == kind);
                    own.any(|entry| chunk.mask == 0 || chunk.mask & kind_bit(entry.0.into()) != 0)
                };
                let Recorded { calls, faults } = builder.recorded;
                builder.recorded = Recorded {
                    calls: calls
                        || has_kind(KernelFrameKind::SyscallEnter)
                        || has_kind(KernelFrameKind::SyscallExit),
                    faults: faults || has_kind(KernelFrameKind::PageFault),
                };
                let namespace = catalog.sources[owner.info].source.process.time_namespace();
                let stamps = Stamps::new(&catalog.clocks, chunk.drained, namespace);
                let time = form.kinds.iter().find_map(|kind| kind.1.at);
                let words = chunk.t_min..=chunk.t_max;
                let offset = catalog.offset();
                let times = time
                    .and_then(|time| time.bounds(words, &stamps, &catalog.clocks, offset))
                    .and_then(|(from, to)| Some((from.try_into().ok()?, to.try_into().ok()?)));
                builder.parts.push(KernelChunk {
                    first: chunk.first_seq,
                    count: chunk.count.into(),
                    has_bad: chunk.bad > 0,
                    times,
                });
            }
        }
        Ok(())
    }

    /// Adds the losses that frames of the kernel report.
    fn add_losses(
        self: &Arc<Self>,
        set: &Arc<CaptureSet>,
        builders: &mut [RecordsBuilder],
    ) -> Result<(), TableError> {
        let chosen = Arc::new(Chosen {
            frames: self.clone(),
            kinds: &[KernelFrameKind::Lost],
            threads: None,
        });
        let (columns, bounds) = (columns_read(), Bounds::default());
        let scan = ChunkScan::new(set, &chosen, &TableRequest::all_rows(&columns, &bounds))?;
        for part in 0..scan.parts() {
            for batch in scan.read(part) {
                let batch = KernelBatch::new(&batch?);
                for row in (0..batch.rows).filter(|&row| batch.times.is_valid(row)) {
                    let Some(builder) = builders.get_mut(batch.groups.value(row) as usize) else {
                        continue;
                    };
                    builder.losses.push(KernelLoss {
                        seqno: batch.seqno(row),
                        since: batch.a.is_valid(row).then(|| batch.a.value(row)),
                        at: batch.times.value(row),
                        cpu: batch.cpu(row),
                        thread: batch.threads.value(row),
                        count: batch.b.value(row).max(0) as u64,
                    });
                }
            }
        }
        Ok(())
    }
}
