//! The input of matching: the points of a set, the rules between them, and the periods of missing frames.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use arrow_array::StringArray;
use ppt_capture::RingKey;
use ppt_capture::frame_dsl::edge::{Edge, Policy as EdgePolicy};
use ppt_causality::{KeyRefusal, Policy, Rule, Rules};

use super::endpoint::{hex_of, type_of};
use super::point_directory::PointDirectory;
use crate::catalog::ChunkAt;
use crate::error::{SetError, TableError};
use crate::gap_times::Neighbours;
use crate::set::CaptureSet;
use crate::spans_and_chains::Missing;
use crate::standard::Standard;

/// Largest number of edges of one identity for which neither a policy nor a time bounds them.
const MAX_PAIRS: u64 = 1_000_000;
/// Largest number of causes of one identity that may wait for their effects at a time.
const MAX_KEPT: usize = 10_000_000;

/// The number of the first frame of a ring.
const FIRST_NUMBER: u64 = 1;

/// Bounds of a time; None if unknown.
type Between = (Option<i64>, Option<i64>);

/// The input of matching.
#[derive(Debug)]
pub(crate) struct Causes {
    set: Arc<CaptureSet>,
    pub directory: Arc<PointDirectory>,
    /// By hash type.
    pub rules: Vec<Arc<Rules>>,
    /// By point; computed on first use.
    missing: OnceLock<Vec<Missing>>,
}

/// The edge lines that apply: those of the set, or else those of all schemas.
fn edge_lines(set: &CaptureSet) -> Vec<Edge> {
    if let Some(given) = set.edges() {
        return given.to_vec();
    }
    let mut lines: Vec<Edge> = Vec::new();
    for capture in set.captures() {
        for info in &capture.catalog().sources {
            for edge in info.schema.edges() {
                if !lines.contains(&edge) {
                    lines.push(edge);
                }
            }
        }
    }
    lines
}

impl CaptureSet {
    /// Points that edge lines name but no program has.
    pub fn unknown_points(&self) -> Vec<String> {
        let directory = PointDirectory::new(self);
        let lines = edge_lines(self);
        let names = lines.into_iter().flat_map(|line| [line.from, line.to]);
        let unknown: BTreeSet<String> =
            names.filter(|name| directory.points_named(name).next().is_none()).collect();
        unknown.into_iter().collect()
    }

    /// Points of edge lines that allow no edges although both points exist: no data that leaves the first
    /// can enter the second.
    pub fn idle_edges(&self) -> Vec<(String, String)> {
        let directory = PointDirectory::new(self);
        let has_common_type = |from: usize, to: usize| {
            (0..directory.types.len()).any(|hash_type| directory.may_lead(from, to, hash_type))
        };
        let idle = |edge: &Edge| {
            let points = |name: &str| directory.points_named(name).collect::<Vec<_>>();
            let (from, to) = (points(&edge.from), points(&edge.to));
            let has_edges = from.iter().any(|&from| to.iter().any(|&to| has_common_type(from, to)));
            !from.is_empty() && !to.is_empty() && !has_edges
        };
        edge_lines(self).into_iter().filter(idle).map(|line| (line.from, line.to)).collect()
    }
}

impl Causes {
    pub fn new(set: &Arc<CaptureSet>, directory: Arc<PointDirectory>) -> Result<Causes, SetError> {
        let types = 0..directory.types.len();
        let mut by_type: Vec<Vec<Rule>> = types.clone().map(|_| Vec::new()).collect();
        for line in edge_lines(set) {
            for from in directory.points_named(&line.from) {
                for to in directory.points_named(&line.to) {
                    let rule = rule(&line, from, to);
                    for hash_type in types.clone() {
                        if directory.may_lead(from, to, hash_type) {
                            by_type[hash_type].push(rule);
                        }
                    }
                }
            }
        }
        let rules = by_type.iter().enumerate().map(|(hash_type, rules)| {
            let points = (0..directory.points.len()).filter(|&point| {
                let directions = directory.directions(point, hash_type);
                directions.enters || directions.leaves
            });
            let points: Vec<u32> = points.map(|point| point as u32).collect();
            let rules = Rules::new(&points, rules).map_err(|conflict| {
                let name = |point: u32| directory.points[point as usize].full_name();
                SetError::Edges { from: name(conflict.0.from), to: name(conflict.0.to) }
            })?;
            Ok(Arc::new(rules))
        });
        let rules = rules.collect::<Result<_, SetError>>()?;
        Ok(Causes { set: set.clone(), directory, rules, missing: OnceLock::new() })
    }

    /// Fails if points are on several time scales.
    pub fn comparable(&self, table: &str) -> Result<(), TableError> {
        if self.directory.scales.len() < 2 {
            return Ok(());
        }
        let hosts = self.directory.scales.iter().map(|scale| scale.1.clone()).collect();
        Err(TableError::Incomparable { table: table.to_owned(), hosts })
    }

    /// The limits of one identity.
    pub fn limits(&self) -> ppt_causality::KeyLimits {
        let width = self.directory.clocks.widest();
        ppt_causality::KeyLimits { pairs: MAX_PAIRS, kept: MAX_KEPT, width }
    }

    /// By point: when frames may be missing.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub fn missing(&self) -> Result<&[Missing], TableError> {
        if let Some(missing) = self.missing.get() {
            return Ok(missing);
        }
        let missing = self.find_missing()?;
        Ok(self.missing.get_or_init(|| missing))
    }

    fn find_missing(&self) -> Result<Vec<Missing>, TableError> {
        let mut gaps: HashMap<(usize, u16), Vec<Between>> = HashMap::new();
        for (number, capture) in self.set.captures().iter().enumerate() {
            let catalog = capture.verified()?;
            let neighbours = Neighbours::new(catalog);
            for gap in &catalog.gaps {
                let times = neighbours.bounds_of_missing(gap);
                gaps.entry((number, gap.gap.source)).or_default().push(times);
            }
            // The times of dropped frames are unknown.
            let dropped =
                |info: &&ppt_capture::SourceInfo| catalog.account.dropped(info.id).total() > 0;
            for info in catalog.sources.iter().filter(dropped) {
                gaps.entry((number, info.id)).or_default().push((None, None));
            }
        }
        let missing = |point| {
            let sources = self.directory.sources_of(point);
            Missing::during(sources.filter_map(|source| gaps.get(&source)).flatten().copied())
        };
        Ok((0..self.directory.points.len()).map(missing).collect())
    }

    /// By point: the time since which its frames are recorded, in ns since the epoch; None if since the
    /// start of its programs. Earlier frames may be missing if `ppt attach` came later, or if files of a
    /// series are not in the set.
    pub fn begins(&self) -> Vec<Option<i64>> {
        let mut firsts: HashMap<(u64, u32), u64> = HashMap::new();
        let captures = self.set.captures();
        for (key, ring) in captures.iter().flat_map(|capture| capture.catalog().account.rings()) {
            let first = firsts.entry((key.nonce, key.ring)).or_insert(ring.first_seq);
            *first = ring.first_seq.min(*first);
        }
        let begin = |(number, id): (usize, u16)| {
            let catalog = captures.get(number)?.catalog();
            let info = catalog.sources.iter().find(|info| info.id == id)?;
            let mut rings = catalog.account.rings().filter(|(key, _)| key.source == id);
            let has_first =
                |(key, _): (RingKey, _)| firsts.get(&(key.nonce, key.ring)) == Some(&FIRST_NUMBER);
            if info.source.from_start && rings.all(has_first) {
                return None;
            }
            let of_source = |chunk: &&ChunkAt| catalog.owners[chunk.owner as usize].source == id;
            let first = catalog.chunks.iter().find(of_source)?;
            let drained = catalog.epoch(first.drained.max(first.drained_by));
            let latest = |time| self.directory.clocks.around(number, time).map(|bounds| bounds.1);
            Some(drained.and_then(latest).unwrap_or(i64::MAX))
        };
        let points = 0..self.directory.points.len();
        points.map(|point| self.directory.sources_of(point).filter_map(begin).max()).collect()
    }

    /// The error for an identity that exceeds the limits.
    pub fn refusal_error(&self, refusal: KeyRefusal, key: &[u8]) -> TableError {
        let hash_type = &self.directory.types[type_of(key)];
        match refusal {
            KeyRefusal::Hot { outs, ins } => {
                let value = hex_of(key, hash_type.width);
                TableError::Hot { hash_type: hash_type.name.clone(), value, outs, ins }
            }
            KeyRefusal::Wide { width, limit } => TableError::Wide { width, limit },
        }
    }

    /// The dictionary of a standard column, if it has words.
    pub fn dictionary(&self, standard: Standard) -> Option<Arc<StringArray>> {
        standard.dictionary(self.set.names())
    }
}

fn rule(line: &Edge, from: usize, to: usize) -> Rule {
    Rule {
        from: from as u32,
        to: to as u32,
        within: line.within.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)),
        policy: match line.policy {
            EdgePolicy::All => Policy::All,
            EdgePolicy::Nearest => Policy::Nearest,
            EdgePolicy::Fifo => Policy::Fifo,
        },
    }
}
