//! What matching rests on: the points of a set, which may follow which, and where frames are missing.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use arrow_array::StringArray;
use ppt_capture::RingKey;
use ppt_capture::frame_dsl::edge::{Edge, Policy as Word};
use ppt_causality::{KeyRefusal, Policy, Rule, Rules};

use super::endpoint::{hex_of, type_of};
use super::known::PointDirectory;
use crate::catalog::ChunkAt;
use crate::error::{SetError, TableError};
use crate::gap_times::Neighbours;
use crate::set::CaptureSet;
use crate::whole::Missing;

/// Edges that one identity may have where neither a policy nor a time bounds them.
const MOST_PAIRS: u64 = 1_000_000;
/// Identities of one kind and value that may wait for their effects at a time.
const MOST_KEPT: usize = 10_000_000;

/// The number of the first frame of a ring.
const FIRST_NUMBER: u64 = 1;

/// Between which times something was; None: nobody knows.
type Between = (Option<i64>, Option<i64>);

/// What matching rests on.
#[derive(Debug)]
pub(crate) struct Causes {
    set: Arc<CaptureSet>,
    pub known: Arc<PointDirectory>,
    /// By hash type.
    pub rules: Vec<Arc<Rules>>,
    /// By point, once they are asked for.
    missing: OnceLock<Vec<Missing>>,
}

/// The edge lines that count: those that are given, or else all that schemas have.
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
    /// Points that edge lines name, and that no program has.
    pub fn unknown_points(&self) -> Vec<String> {
        let known = PointDirectory::new(self);
        let lines = edge_lines(self);
        let names = lines.into_iter().flat_map(|line| [line.from, line.to]);
        let unknown: BTreeSet<String> =
            names.filter(|name| known.called(name).next().is_none()).collect();
        unknown.into_iter().collect()
    }

    /// Edge lines that allow nothing, though there are both points: what enters the second one never leaves
    /// the first.
    pub fn idle_edges(&self) -> Vec<(String, String)> {
        let known = PointDirectory::new(self);
        let meets = |from: usize, to: usize| {
            (0..known.types.len()).any(|of| known.has(from, of).1 && known.has(to, of).0)
        };
        let idle = |edge: &Edge| {
            let points = |name: &str| known.called(name).collect::<Vec<_>>();
            let (from, to) = (points(&edge.from), points(&edge.to));
            let any = from.iter().any(|&from| to.iter().any(|&to| meets(from, to)));
            !from.is_empty() && !to.is_empty() && !any
        };
        edge_lines(self)
            .into_iter()
            .filter(idle)
            .map(|edge_line| (edge_line.from, edge_line.to))
            .collect()
    }
}

impl Causes {
    pub fn new(set: &Arc<CaptureSet>, known: Arc<PointDirectory>) -> Result<Causes, SetError> {
        let mut of_types: HashMap<usize, Vec<Rule>> = HashMap::new();
        for line in edge_lines(set) {
            for from in known.called(&line.from) {
                for to in known.called(&line.to) {
                    let rule = rule(&line, from, to);
                    let types = 0..known.types.len();
                    for of in types.filter(|&of| known.has(from, of).1 && known.has(to, of).0) {
                        of_types.entry(of).or_default().push(rule);
                    }
                }
            }
        }
        let rules = (0..known.types.len()).map(|of| {
            let points = (0..known.points.len()).filter(|&point| {
                let (takes, gives) = known.has(point, of);
                takes || gives
            });
            let points: Vec<u32> = points.map(|point| point as u32).collect();
            let rules = of_types.remove(&of).unwrap_or_default();
            let rules = Rules::new(&points, &rules).map_err(|conflict| {
                let name = |point: u32| known.points[point as usize].full_name();
                SetError::Edges { from: name(conflict.0.from), to: name(conflict.0.to) }
            })?;
            Ok(Arc::new(rules))
        });
        let rules = rules.collect::<Result<_, SetError>>()?;
        Ok(Causes { set: set.clone(), known, rules, missing: OnceLock::new() })
    }

    /// Fails where points are of several hosts.
    pub fn comparable(&self, table: &str) -> Result<(), TableError> {
        if self.known.scales.len() < 2 {
            return Ok(());
        }
        let hosts = self.known.scales.iter().map(|scale| scale.1.clone()).collect();
        Err(TableError::Incomparable { table: table.to_owned(), hosts })
    }

    /// What one identity may cost.
    pub fn limits(&self) -> ppt_causality::KeyLimits {
        let width = self.known.clocks.widest();
        ppt_causality::KeyLimits { pairs: MOST_PAIRS, kept: MOST_KEPT, width }
    }

    /// When frames of each point may be missing.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub fn missing(&self) -> Result<&[Missing], TableError> {
        if let Some(known) = self.missing.get() {
            return Ok(known);
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
            // Nobody knows when a program could not write a frame.
            let dropped =
                |info: &&ppt_capture::SourceInfo| catalog.account.dropped(info.id).total() > 0;
            for info in catalog.sources.iter().filter(dropped) {
                gaps.entry((number, info.id)).or_default().push((None, None));
            }
        }
        let of = |point| {
            let sources = self.known.sources_of(point);
            Missing::during(sources.filter_map(|source| gaps.get(&source)).flatten().copied())
        };
        Ok((0..self.known.points.len()).map(of).collect())
    }

    /// By which time each point was seen, in ns since the epoch; None: from the start of its programs.
    /// A program may have written frames before that: `ppt attach` came later, or files of a series are
    /// not in the set.
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
            let latest = |time| self.known.clocks.around(number, time).map(|around| around.1);
            Some(drained.and_then(latest).unwrap_or(i64::MAX))
        };
        let points = 0..self.known.points.len();
        points.map(|point| self.known.sources_of(point).filter_map(begin).max()).collect()
    }

    /// Says of which identity a matcher wants no more.
    pub fn refused(&self, refused: KeyRefusal, key: &[u8]) -> TableError {
        let of = &self.known.types[type_of(key)];
        match refused {
            KeyRefusal::Hot { outs, ins } => {
                TableError::Hot { of: of.name.clone(), value: hex_of(key, of.width), outs, ins }
            }
            KeyRefusal::Wide { width, limit } => TableError::Wide { width, limit },
        }
    }

    /// The words that name captures, buffers and segments.
    pub fn dictionary(&self, of: crate::standard::Standard) -> Option<Arc<StringArray>> {
        of.dictionary(self.set.names())
    }
}

fn rule(line: &Edge, from: usize, to: usize) -> Rule {
    Rule {
        from: from as u32,
        to: to as u32,
        within: line.within.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)),
        policy: match line.policy {
            Word::All => Policy::All,
            Word::Nearest => Policy::Nearest,
            Word::Fifo => Policy::Fifo,
        },
    }
}
