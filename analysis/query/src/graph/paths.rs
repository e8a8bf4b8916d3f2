//! The paths from one point to another: where their time goes, and what the slowest of them waited for.

use std::collections::BTreeMap;

use datafusion::prelude::ident;
use futures::StreamExt;
use ppt_causality::{
    Graph, Mode, Path, PathTimes, Paths, PointTypes, RouteStep, StepPlace, in_flight,
};
use ppt_stats::{Budget, Samples, Summary};
use ppt_tables::Processes;
use strum::IntoEnumIterator;

use crate::causality::{Causality, Input, Loader, Texts, place_word, short, step_word};
use crate::engine::{BoxedAnswer, Engine};
use crate::error::QueryError;
use crate::why::SlowInterval;

/// All paths from one point to another.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphPaths {
    /// The point where the paths begin, as requested.
    pub from: String,
    /// The point where the paths end, as requested.
    pub to: String,
    /// The number of frames of `from`.
    pub beginnings: u64,
    /// The number of frames of `to`.
    pub ends: u64,
    /// The number of ends that a path leads to.
    pub reached: u64,
    /// The number of paths that are not certain, or might begin elsewhere.
    pub ambiguous: u64,
    /// The latencies of the paths, in ns.
    pub latency: Summary,
    /// The stages of the paths, the longest first.
    pub stages: Vec<Stage>,
    /// The time within each process, between processes, and in queues. The largest first.
    pub parts: Vec<PlaceShare>,
    /// The number of paths in progress at the same time: average, standard deviation, maximum. None if there
    /// is no path.
    pub in_flight: Option<(f64, f64, u64)>,
    /// The slowest paths, the slowest first.
    pub slowest: Vec<GraphPath>,
    /// The places where paths break off. None if a path leads to each end.
    pub disconnection: Option<PathDisconnection>,
}

/// The time that paths spend in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceShare {
    /// A process, `between processes`, `in queues`.
    pub place: String,
    /// The time, in ns.
    pub time: i128,
    /// The share of that time in the time of all places, 0 to 1.
    pub share: f64,
}

/// All steps from one point to another of the same kind and place.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The two points: `queued -> shown`.
    pub stage: String,
    /// The kind of the edge, or `program`.
    pub kind: &'static str,
    /// The place that the steps lead through.
    pub place: &'static str,
    /// The number of steps. A step of several paths counts for each of them.
    pub count: u64,
    /// The sum of the steps' times, ns.
    pub time: i128,
    /// The share of that sum in the time of all paths, 0 to 1.
    pub share: f64,
    /// The median time of a step, ns.
    pub p50: f64,
    /// The 99th percentile of the time of a step, ns.
    pub p99: f64,
}

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphPath {
    /// The begin, ns since the epoch.
    pub ts: i64,
    /// The length, ns: the sum of the steps.
    pub latency: i64,
    /// Whether another path may be the real one.
    pub ambiguous: bool,
    /// The steps, in order.
    pub steps: Vec<PathStep>,
    /// The explanation of the longest step. None without frames of the kernel.
    pub why: Option<SlowInterval>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathStep {
    /// The point at which the step begins.
    pub from: String,
    /// The point at which the step ends.
    pub to: String,
    /// The kind of the edge, or `program`.
    pub kind: &'static str,
    /// The place that the step leads through.
    pub place: &'static str,
    /// The length, ns.
    pub ns: i64,
    /// The process in which the step ends.
    pub pid: Option<i32>,
    /// The thread in which the step ends.
    pub tid: Option<i32>,
    /// The host on which the step ends. None if there is only one host.
    pub host: Option<String>,
    /// The points that thread `tid` passed during the step, each with its number. The most frequent first.
    pub meanwhile: Vec<(String, u64)>,
}

/// The points at which the paths between two points break off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathDisconnection {
    /// The number of ends that no path leads to.
    pub ends: u64,
    /// The last points of paths from the beginnings, each with the number of paths.
    pub forward: Vec<(String, u64)>,
    /// The first points of paths to the ends, each with the number of paths.
    pub backward: Vec<(String, u64)>,
    /// Edges that would join the two sides.
    pub open: Vec<MissingEdge>,
}

/// An edge that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingEdge {
    /// The point that identities leave.
    pub from: String,
    /// The point that identities enter.
    pub to: String,
    /// The hash type of the identities.
    pub of: String,
    /// The number of identities that entered `to` without an edge.
    pub count: u64,
}

impl Engine {
    /// The graph of all frames that the engine shows.
    ///
    /// # Errors
    /// A capture cannot be read, clocks of hosts cannot be compared, an identity has too many edges, or the query
    /// is cancelled or exceeds its memory.
    pub fn causality(&self) -> BoxedAnswer<'_, Causality> {
        Box::pin(async move {
            let mut loader = Loader::new(self.set().clocks().clone());
            for input in Input::iter() {
                let columns = input.columns();
                let rows = self.context().table(input.table()).await?;
                let rows = rows.select(columns.iter().map(ident).collect::<Vec<_>>())?;
                let mut rows = rows.execute_stream().await?;
                while let Some(batch) = rows.next().await.transpose()? {
                    loader.add_rows(input, &batch)?;
                }
            }
            Ok(loader.finish()?)
        })
    }

    /// The paths from one point to another, and the slowest of them.
    ///
    /// # Errors
    /// [`QueryError::NoPoint`]: a name is not that of a point. Others: as for [`Self::causality`].
    pub fn paths<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        slowest: usize,
    ) -> BoxedAnswer<'a, GraphPaths> {
        Box::pin(async move {
            let causality = self.causality().await?;
            let (starts, ends) = (causality.points_named(from), causality.points_named(to));
            for (name, points) in [(from, &starts), (to, &ends)] {
                if points.is_empty() {
                    return Err(QueryError::NoPoint(causality.no_point(name)));
                }
            }
            let graph = &causality.graph;
            let paths = graph.paths(&starts, &ends, Mode::Nearest);
            let paths = paths.map_err(|error| QueryError::Failed(error.to_string()))?;
            let budget = Budget::new(256 << 20);
            let PathSums { latency, ambiguous, times, spans } =
                PathSums::new(graph, &paths, &budget);
            let processes = Processes::new(self.set());
            let parts = time_shares(&causality, &processes, times);
            let stages = paths.critical_path(&budget);
            let stages = stages.iter().map(|stage| named_stage(&causality, stage)).collect();
            let slow: Vec<Path> = paths.slowest(slowest);
            let mut shown: Vec<GraphPath> =
                slow.iter().map(|path| graph_path(&causality, path, &processes)).collect();
            self.explain_longest_steps(&causality, &processes, &slow, &mut shown).await?;
            let reached = paths.ends() as u64;
            let (beginnings, all_ends) = (frames_at(graph, &starts), frames_at(graph, &ends));
            let disconnection = if reached < all_ends {
                Some(self.disconnection(&causality, &starts, &ends).await?)
            } else {
                None
            };
            Ok(GraphPaths {
                from: from.to_owned(),
                to: to.to_owned(),
                beginnings,
                ends: all_ends,
                reached,
                ambiguous,
                latency: latency.finish(),
                stages,
                parts,
                in_flight: in_flight(spans)
                    .map(|in_flight| (in_flight.mean, in_flight.sd, in_flight.most)),
                slowest: shown,
                disconnection,
            })
        })
    }

    /// Finds where the paths from `from` to `to` break off.
    async fn disconnection(
        &self,
        causality: &Causality,
        from: &[u32],
        to: &[u32],
    ) -> Result<PathDisconnection, QueryError> {
        let mut names: Vec<String> = Vec::new();
        let mut types = vec![PointTypes::default(); causality.points.len()];
        let columns = ["buffer", "point", "in_type", "out_type"];
        let rows = self.context().table("points").await?.select(columns.map(ident).to_vec())?;
        for batch in rows.distinct()?.collect().await? {
            let texts = (0..4).map(|at| Texts::new(&batch, at)).collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                let name = format!("{}.{}", texts[0].get(row), texts[1].get(row));
                let Some(point) = causality.points.iter().position(|point| *point == name) else {
                    continue;
                };
                let mut number = |at: usize| {
                    let text = texts[at].get(row);
                    let place = names.iter().position(|name| name == text).unwrap_or_else(|| {
                        names.push(text.to_owned());
                        names.len() - 1
                    });
                    (!text.is_empty()).then_some(place as u32)
                };
                let (entered, left) = (number(2), number(3));
                types[point].ins.extend(entered);
                types[point].outs.extend(left);
            }
        }
        let disconnection = causality.graph.disconnection(from, to, &types);
        let name = |point: u32| short(&causality.points[point as usize]).to_owned();
        let shores = |all: &[ppt_causality::DisconnectedPoint]| {
            all.iter().map(|side| (name(side.point), side.dead_ends)).collect()
        };
        Ok(PathDisconnection {
            ends: disconnection.ends,
            forward: shores(&disconnection.forward),
            backward: shores(&disconnection.backward),
            open: disconnection
                .bridges
                .iter()
                .map(|bridge| MissingEdge {
                    from: name(bridge.from),
                    to: name(bridge.to),
                    of: names.get(bridge.hash_type as usize).cloned().unwrap_or_default(),
                    count: bridge.open,
                })
                .collect(),
        })
    }

    /// Fills in where the longest step of each path spent its time, if there are frames of the kernel.
    async fn explain_longest_steps(
        &self,
        causality: &Causality,
        processes: &Processes,
        paths: &[Path],
        shown: &mut [GraphPath],
    ) -> Result<(), QueryError> {
        if !self.set().has_kernel() {
            return Ok(());
        }
        let graph = &causality.graph;
        let slow = paths.iter().map(|path| {
            let longest = path.route.iter().max_by_key(|step| length(graph, step));
            let longest = longest.copied().unwrap_or_else(|| path.route[0]);
            let owner = causality.owner(longest.dst);
            let found = processes.find(&owner.capture, Some(&owner.segment), owner.pid);
            SlowInterval {
                name: format!(
                    "{} -> {}",
                    causality.point(longest.src),
                    causality.point(longest.dst)
                ),
                capture: owner.capture.clone(),
                buffer: owner.buffer.clone(),
                segment: owner.segment.clone(),
                ring: owner.ring.map(i64::from),
                seqno: Some(causality.seqno(longest.dst)),
                host: processes.get(found).host.clone(),
                pid: owner.pid,
                tid: owner.tid,
                thread: None,
                ts: graph.ts(longest.src),
                dur: length(graph, &longest).max(0),
                is_span: false,
                request: Vec::new(),
                parts: Vec::new(),
                answered_by: None,
            }
        });
        let slow = self.explain_time(slow.collect()).await?;
        let slow = self.follow_calls(slow).await?;
        for (path, slow) in shown.iter_mut().zip(slow) {
            path.why = Some(slow).filter(|slow| !slow.parts.is_empty());
        }
        Ok(())
    }
}

/// The sums over all paths.
struct PathSums {
    latency: Samples<i64>,
    ambiguous: u64,
    times: PathTimes,
    /// The begin and the end of each path, ns since the epoch.
    spans: Vec<(i64, i64)>,
}

impl PathSums {
    fn new(graph: &Graph, paths: &Paths<'_>, budget: &Budget) -> PathSums {
        let mut sums = PathSums {
            latency: Samples::new(budget),
            ambiguous: 0,
            times: PathTimes::default(),
            spans: Vec::new(),
        };
        paths.each(|path| {
            sums.latency.push(path.latency(graph));
            sums.ambiguous += u64::from(path.ambiguous);
            let own = path.times(graph);
            for (process, ns) in own.within {
                *sums.times.within.entry(process).or_default() += ns;
            }
            sums.times.between += own.between;
            sums.times.queues += own.queues;
            sums.spans.push((graph.ts(path.src), graph.ts(path.dst)));
        });
        sums
    }
}

/// The time within each process, between processes, and in queues. The largest first.
fn time_shares(causality: &Causality, processes: &Processes, times: PathTimes) -> Vec<PlaceShare> {
    let within = times.within.into_iter().map(|(process, time)| {
        let name = process_name(causality, processes, process);
        (name.unwrap_or_default(), time)
    });
    let outside =
        [("between processes".to_owned(), times.between), ("in queues".to_owned(), times.queues)];
    shares(within.chain(outside).collect())
}

/// A stage, with the names of its points.
fn named_stage(causality: &Causality, stage: &ppt_causality::Stage) -> Stage {
    Stage {
        stage: causality.stage(stage),
        kind: step_word(stage.by),
        place: place_word(stage.place),
        count: stage.count,
        time: stage.time,
        share: stage.share,
        p50: stage.p50,
        p99: stage.p99,
    }
}

/// The number of frames of these points.
fn frames_at(graph: &Graph, points: &[u32]) -> u64 {
    let all = 0..graph.len() as u32;
    all.filter(|&number| points.contains(&graph.point(number))).count() as u64
}

/// The name of a process of a graph.
fn process_name(causality: &Causality, processes: &Processes, process: u32) -> Option<String> {
    let graph = &causality.graph;
    let vertex = (0..graph.len() as u32).find(|&number| graph.process(number) == process)?;
    let owner = causality.owner(vertex);
    let found = processes.find(&owner.capture, Some(&owner.segment), owner.pid);
    let found = processes.get(found);
    let exe = found.exe.rsplit('/').next().unwrap_or_default();
    let pid = owner.pid.map_or("?".to_owned(), |pid| pid.to_string());
    Some(if processes.are_of_several_hosts() {
        format!("process {pid} ({exe}) on {}", found.host)
    } else {
        format!("process {pid} ({exe})")
    })
}

/// The share of each place in the time of all of them, the largest first.
fn shares(times: Vec<(String, i128)>) -> Vec<PlaceShare> {
    let all: i128 = times.iter().map(|place| place.1).sum();
    let share = |(place, time): (String, i128)| PlaceShare {
        place,
        time,
        share: if all > 0 { time as f64 / all as f64 } else { 0.0 },
    };
    let mut shares: Vec<_> = times.into_iter().filter(|place| place.1 != 0).map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.time));
    shares
}

fn length(graph: &Graph, step: &RouteStep) -> i64 {
    graph.ts(step.dst).saturating_sub(graph.ts(step.src))
}

fn graph_path(causality: &Causality, path: &Path, processes: &Processes) -> GraphPath {
    let graph = &causality.graph;
    let path_step = |step: &RouteStep| {
        let owner = causality.owner(step.dst);
        PathStep {
            from: causality.point(step.src).to_owned(),
            to: causality.point(step.dst).to_owned(),
            kind: step_word(step.by),
            place: place_word(step.place),
            ns: length(graph, step),
            pid: owner.pid,
            tid: owner.tid,
            host: processes.are_of_several_hosts().then(|| {
                let found = processes.find(&owner.capture, Some(&owner.segment), owner.pid);
                processes.get(found).host.clone()
            }),
            meanwhile: meanwhile(causality, step),
        }
    };
    GraphPath {
        ts: graph.ts(path.src),
        latency: path.latency(graph),
        ambiguous: path.ambiguous,
        steps: path.route.iter().map(path_step).collect(),
        why: None,
    }
}

/// The points that the thread where a step ends passed during the step, if the step was not in that
/// thread all the time.
fn meanwhile(causality: &Causality, step: &RouteStep) -> Vec<(String, u64)> {
    if step.place == StepPlace::Thread {
        return Vec::new();
    }
    let graph = &causality.graph;
    let own =
        (step.src + 1..step.dst).filter(|&number| graph.thread(number) == graph.thread(step.dst));
    let mut passed: BTreeMap<u32, u64> = BTreeMap::new();
    own.for_each(|number| *passed.entry(graph.point(number)).or_default() += 1);
    let name = |point: (u32, u64)| (short(&causality.points[point.0 as usize]).to_owned(), point.1);
    let mut passed: Vec<(String, u64)> = passed.into_iter().map(name).collect();
    passed.sort_by_key(|point| std::cmp::Reverse(point.1));
    passed
}
