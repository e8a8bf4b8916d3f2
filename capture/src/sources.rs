//! The sources that a capture has introduced so far.

use std::collections::BTreeMap;

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::metric::Metric;

use crate::error::DamageKind;
use crate::source::Source;

/// Most sources of one capture, and most segments of one source. More are damage.
pub const MAX_SOURCES: usize = 4096;

/// A source with its schema, both checked.
#[derive(Debug, Clone)]
pub struct SourceInfo {
    /// The number of the source.
    pub id: u16,
    /// The source as the capture states it.
    pub source: Source,
    /// The schema of its frames.
    pub schema: Schema,
    /// The counters and histograms of the schema.
    pub metrics: Vec<Metric>,
}

impl SourceInfo {
    /// Cells of one row.
    pub fn cells(&self) -> u32 {
        self.metrics.last().map_or(0, |last| last.cells.end)
    }
}

/// The sources so far. Later chunks may refer to them.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    known: BTreeMap<u16, SourceInfo>,
}

impl Sources {
    /// Adds a new source, or a new version of a known one: a schema never changes, and segments are
    /// only added.
    pub fn introduce(&mut self, id: u16, source: Source, schema: Schema) -> Result<(), DamageKind> {
        const TOO_MANY: DamageKind =
            DamageKind::Content("more sources or segments than any capture has");
        if source.segments.len() > MAX_SOURCES {
            return Err(TOO_MANY);
        }
        let is_full = self.known.len() >= MAX_SOURCES;
        let Some(known) = self.known.get_mut(&id) else {
            if is_full {
                return Err(TOO_MANY);
            }
            let metrics = schema.metrics();
            self.known.insert(id, SourceInfo { id, source, schema, metrics });
            return Ok(());
        };
        if known.source.schema_json != source.schema_json {
            return Err(DamageKind::Content("a source whose schema is no longer the same"));
        }
        if !known.source.segments.iter().all(|old| source.segments.contains(old)) {
            return Err(DamageKind::Content("a source that lost a segment"));
        }
        known.source = source;
        Ok(())
    }

    /// All sources, by number.
    pub fn iter(&self) -> impl Iterator<Item = &SourceInfo> {
        self.known.values()
    }

    /// Source `id`.
    pub fn get(&self, id: u16) -> Result<&SourceInfo, DamageKind> {
        self.known.get(&id).ok_or(DamageKind::UnknownSource(id))
    }

    /// Source `id`, if it has this segment and the segment has this ring.
    pub fn with_ring(&self, id: u16, nonce: u64, ring: u32) -> Result<&SourceInfo, DamageKind> {
        let info = self.get(id)?;
        match info.source.segments.iter().find(|segment| segment.nonce == nonce) {
            Some(segment) if ring < segment.rings => Ok(info),
            Some(_) => Err(DamageKind::Content("a ring that its segment does not have")),
            None => Err(DamageKind::Content("a segment that its source does not have")),
        }
    }
}
