//! Paths against an exhaustive search.

use std::collections::{BTreeMap, BTreeSet};

use ppt_causality::{
    Bridge, Certainty, DisconnectedPoint, Disconnection, EdgeKind, Graph, GraphLink, Latency, Mode,
    Path, PointTypes, RouteStep, StepCause, StepPlace, TooManyPaths, Vertex,
};
use proptest::prelude::*;

const POINTS: u32 = 5;
const THREADS: u32 = 3;

#[derive(Debug, Clone)]
struct MadeEdges {
    vertices: Vec<Vertex>,
    links: Vec<GraphLink>,
}

fn made() -> impl Strategy<Value = MadeEdges> {
    let vertex = (0..POINTS, 0..THREADS, 0..3i64, prop::bool::weighted(0.1));
    let vertices = prop::collection::vec(vertex, 2..14).prop_map(|all| {
        let mut ts = 0;
        let vertex = |(point, thread, later, cut)| {
            ts += later;
            Vertex { point, thread, lo: ts - 1, ts, hi: ts + 2, cut }
        };
        all.into_iter().map(vertex).collect::<Vec<_>>()
    });
    let kinds =
        prop::sample::select(vec![EdgeKind::Hash, EdgeKind::Span, EdgeKind::Chain, EdgeKind::Wake]);
    let doubt = prop::bool::weighted(0.2);
    let link = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), kinds, doubt, doubt);
    (vertices, prop::collection::vec(link, 0..14)).prop_map(|(vertices, links)| {
        let link = |(one, other, kind, doubt, queue): (
            prop::sample::Index,
            prop::sample::Index,
            _,
            _,
            _,
        )| {
            let (src, dst) = (one.index(vertices.len()) as u32, other.index(vertices.len()) as u32);
            let certainty = if doubt { Certainty::Possible } else { Certainty::Certain };
            GraphLink { src, dst, kind, certainty, queue }
        };
        let links = links.into_iter().map(link).collect();
        MadeEdges { vertices, links }
    })
}

/// Finds all paths by following every step backwards.
struct Search<'a> {
    made: &'a MadeEdges,
    from: &'a dyn Fn(&Vertex) -> bool,
}

impl Search<'_> {
    fn point(&self, vertex: u32) -> u32 {
        self.made.vertices[vertex as usize].point
    }

    fn begins(&self, vertex: u32) -> bool {
        (self.from)(&self.made.vertices[vertex as usize])
    }

    fn links(&self, to: u32) -> Vec<GraphLink> {
        let links = self.made.links.iter().copied();
        links.filter(|link| link.dst == to && link.src < to).collect()
    }

    fn ignores_thread(&self, vertex: u32) -> bool {
        let of_point = |link: &&GraphLink| self.point(link.dst) == self.point(vertex);
        let hash = self.made.links.iter().filter(of_point).any(|link| link.kind == EdgeKind::Hash);
        hash || self.links(vertex).iter().any(|link| link.kind == EdgeKind::Chain)
    }

    fn before(&self, vertex: u32) -> Option<u32> {
        let vertices = &self.made.vertices;
        let Vertex { thread, cut, .. } = vertices[vertex as usize];
        (!cut).then_some(())?;
        (0..vertex).rev().find(|&other| vertices[other as usize].thread == thread)
    }

    /// All paths from beginnings to a vertex, each as its vertices in reverse order.
    fn ways(&self, vertex: u32) -> Vec<Vec<u32>> {
        let over = |sources: Vec<u32>| -> Vec<Vec<u32>> {
            let ways = sources.into_iter().flat_map(|source| {
                if self.begins(source) { vec![vec![source]] } else { self.ways(source) }
            });
            ways.map(|way| [vec![vertex], way].concat()).collect()
        };
        let links = self.links(vertex);
        let reached_by = |wake| {
            let these = links.iter().filter(|link| (link.kind == EdgeKind::Wake) == wake);
            over(these.map(|link| link.src).collect())
        };
        let ways = reached_by(false);
        if !ways.is_empty() || self.ignores_thread(vertex) {
            return ways;
        }
        let ways = reached_by(true);
        if ways.is_empty() { over(self.before(vertex).into_iter().collect()) } else { ways }
    }

    fn origin(&self, vertex: u32) -> Option<u32> {
        if self.begins(vertex) {
            return Some(vertex);
        }
        self.ways(vertex).iter().filter_map(|way| way.last().copied()).max()
    }

    /// The step between two vertices of a path, and whether it makes the path ambiguous.
    fn step(&self, src: u32, dst: u32) -> (RouteStep, bool) {
        let origin = |link: &GraphLink| self.origin(link.src);
        let tier = |wake: bool| {
            let links = self.links(dst).into_iter();
            let links = links.filter(move |link| (link.kind == EdgeKind::Wake) == wake);
            links.filter(|link| origin(link).is_some()).collect::<Vec<_>>()
        };
        let (first, second) = (tier(false), tier(true));
        let used = if first.is_empty() { &second } else { &first };
        let between = used.iter().filter(|link| link.src == src);
        let link = between.min_by_key(|link| (link.certainty, link.kind, link.queue));
        let Some(link) = link else {
            let (by, certainty, place) =
                (StepCause::Program, Certainty::Certain, StepPlace::Thread);
            let doubt = self.links(dst).iter().any(|link| link.kind == EdgeKind::Span);
            return (RouteStep { src, dst, by, certainty, place }, doubt);
        };
        let place = match self.made.vertices[src as usize].thread {
            _ if link.queue => StepPlace::Queue,
            number if number == self.made.vertices[dst as usize].thread => StepPlace::Thread,
            // Threads 0 and 1 are one process.
            number if number + self.made.vertices[dst as usize].thread == 1 => StepPlace::Process,
            _ => StepPlace::Between,
        };
        let mut origins: Vec<_> = used.iter().map(origin).collect();
        if link.kind == EdgeKind::Wake && first.is_empty() {
            origins
                .extend(self.before(dst).map(|before| self.origin(before)).filter(Option::is_some));
        }
        let rivals = origins.iter().any(|origin| *origin != origins[0]);
        let certainty = link.certainty;
        let doubt = rivals || certainty == Certainty::Possible;
        (RouteStep { src, dst, by: StepCause::Edge(link.kind), certainty, place }, doubt)
    }

    /// All vertices that may lead to a vertex.
    fn sources(&self, vertex: u32) -> BTreeSet<u32> {
        let ignores_thread = self.ignores_thread(vertex);
        let links = self.links(vertex).into_iter();
        let links = links
            .filter(|link| !ignores_thread || link.kind != EdgeKind::Wake)
            .map(|link| link.src);
        links.chain(self.before(vertex).filter(|_| !ignores_thread)).collect()
    }

    fn disconnected_points(
        &self,
        side: &BTreeSet<u32>,
        joined: impl Fn(u32) -> bool,
    ) -> Vec<DisconnectedPoint> {
        let mut points: Vec<DisconnectedPoint> = (0..POINTS)
            .map(|point| {
                let of_point = || side.iter().filter(|number| self.point(**number) == point);
                let dead_ends = of_point().filter(|number| !joined(**number)).count() as u64;
                DisconnectedPoint { point, count: of_point().count() as u64, dead_ends }
            })
            .filter(|point| point.count > 0)
            .collect();
        points.sort_by_key(|point| (std::cmp::Reverse(point.dead_ends), point.point));
        points
    }

    /// All points have the same hash type.
    fn disconnection(&self, to: u32) -> Disconnection {
        let all = 0..self.made.vertices.len() as u32;
        let forward: BTreeSet<u32> =
            all.clone().filter(|&number| self.origin(number).is_some()).collect();
        let ends =
            all.clone().filter(|&number| self.point(number) == to && self.ways(number).is_empty());
        let mut backward: BTreeSet<u32> = ends.collect();
        let ends = backward.len() as u64;
        while let Some(more) = backward
            .iter()
            .flat_map(|&number| self.sources(number))
            .find(|number| !backward.contains(number))
        {
            backward.insert(more);
        }
        let leads_on = |number| forward.iter().any(|&to| self.sources(to).contains(&number));
        let led_to = |number| !self.sources(number).is_empty();
        let hash =
            |&&number: &&u32| self.links(number).iter().any(|link| link.kind == EdgeKind::Hash);
        let open = backward.iter().filter(|number| !hash(number)).map(|&number| self.point(number));
        let mut bridges = Vec::new();
        let open: Vec<u32> = open.collect();
        for from in forward.iter().map(|&number| self.point(number)).collect::<BTreeSet<_>>() {
            for &to in &open.iter().copied().collect::<BTreeSet<_>>() {
                let open = open.iter().filter(|number| **number == to).count() as u64;
                bridges.push(Bridge { from, to, hash_type: 3, open });
            }
        }
        bridges.sort_by_key(|bridge| (std::cmp::Reverse(bridge.open), *bridge));
        Disconnection {
            beginnings: all.filter(|&number| self.begins(number)).count() as u64,
            ends,
            forward: self.disconnected_points(&forward, leads_on),
            backward: self.disconnected_points(&backward, led_to),
            bridges,
        }
    }

    /// The latencies to each other process from the one whose vertices `from` selects.
    fn latencies(&self, process: impl Fn(u32) -> u32) -> BTreeMap<u32, Latency> {
        let mut latencies = BTreeMap::<u32, Latency>::new();
        for vertex in 0..self.made.vertices.len() as u32 {
            let ways = self.ways(vertex);
            let best = ways.iter().max_by_key(|way| (way.last().copied(), *way));
            let Some(way) = best.filter(|way| process(way[1]) != process(vertex)) else { continue };
            let ts = |number: u32| self.made.vertices[number as usize].ts;
            let time = ts(vertex) - ts(way[way.len() - 1]);
            let (min, max, sum) = (time, time, time.into());
            let new = Latency { count: 1, sum, min, max };
            latencies
                .entry(process(vertex))
                .and_modify(|entry| {
                    entry.count += 1;
                    entry.sum += new.sum;
                    entry.min = entry.min.min(time);
                    entry.max = entry.max.max(time);
                })
                .or_insert(new);
        }
        latencies
    }

    fn paths(&self, to: u32, mode: Mode) -> Vec<Path> {
        let mut paths = Vec::new();
        for dst in (0..self.made.vertices.len() as u32).filter(|&number| self.point(number) == to) {
            let mut ways = self.ways(dst);
            ways.sort_by_key(|way| (way.last().copied(), way.clone()));
            // The best path from each beginning is the last one.
            ways.reverse();
            ways.dedup_by_key(|way| way.last().copied());
            if mode == Mode::Nearest {
                ways.truncate(1);
            }
            ways.reverse();
            let several = ways.len() > 1;
            for mut way in ways {
                way.reverse();
                let steps: Vec<_> =
                    way.windows(2).map(|window| self.step(window[0], window[1])).collect();
                let route: Vec<RouteStep> = steps.iter().map(|step| step.0).collect();
                let possible = route.iter().any(|step| step.certainty == Certainty::Possible);
                let ambiguous = match mode {
                    Mode::Nearest => steps.iter().any(|step| step.1),
                    Mode::All { .. } => several || possible,
                };
                paths.push(Path { src: way[0], dst, ambiguous, route });
            }
        }
        paths
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_way_was_tried(made in made(), to in 0..POINTS) {
        let graph = Graph::new(vec![0, 0, 1], made.vertices.clone(), made.links.clone()).unwrap();
        let clocks = [4, 5, 4];
        let graph = graph.with_clocks(clocks.to_vec());
        let backward = made.links.iter().filter(|link| link.src >= link.dst).count();
        prop_assert_eq!(graph.backward(), backward as u64);
        let search = Search { made: &made, from: &|vertex| vertex.point == 0 };
        for mode in [Mode::Nearest, Mode::All { limit: 10_000 }] {
            let found = graph.paths(&[0], &[to], mode).unwrap().collect();
            prop_assert_eq!(&found, &search.paths(to, mode));
            for path in found {
            let steps = path.route.iter().map(|step| graph.ts(step.dst) - graph.ts(step.src));
                prop_assert_eq!(steps.sum::<i64>(), path.latency(&graph));
                let clock = |vertex: u32| clocks[graph.thread(vertex) as usize];
                let doubt = if clock(path.src) == clock(path.dst) { 0 } else { 3 };
                prop_assert_eq!(path.latency_lo(&graph), path.latency(&graph) - doubt);
                prop_assert_eq!(path.latency_hi(&graph), path.latency(&graph) + doubt);
            }
        }
    }
    #[test]
    fn disconnections_lie_between_the_reached_and_the_reaching(made in made(), to in 0..POINTS) {
        let graph = Graph::new(vec![0, 0, 1], made.vertices.clone(), made.links.clone()).unwrap();
        let search = Search { made: &made, from: &|vertex| vertex.point == 0 };
        let types = vec![PointTypes { ins: vec![3], outs: vec![3, 4] }; POINTS as usize];
        prop_assert_eq!(graph.disconnection(&[0], &[to], &types), search.disconnection(to));
    }

    #[test]
    fn latencies_between_nodes(made in made()) {
        let graph = Graph::new(vec![0, 1, 2], made.vertices.clone(), made.links.clone()).unwrap();
        // Processes 1 and 2 are one node.
        let node = |thread: u32| thread.min(1);
        let matrix = graph.latency_matrix(&[0, 1, 1]);
        let mut expected = BTreeMap::new();
        for from in 0..2 {
            let search = Search { made: &made, from: &|vertex| node(vertex.thread) == from };
            let node_of = |vertex: u32| node(made.vertices[vertex as usize].thread);
            let latencies = search.latencies(node_of).into_iter();
            expected.extend(latencies.map(|(to, latency)| ((from, to), latency)));
        }
        prop_assert_eq!(matrix, expected);
    }
}

/// A graph with hash edges, whose vertices (point, thread) are 1 ns apart.
fn graph(vertices: &[(u32, u32)], links: &[(u32, u32)]) -> Graph {
    let vertex = |(ts, &(point, thread)): (i64, _)| {
        let (lo, hi, cut) = (ts, ts, false);
        Vertex { point, thread, lo, ts, hi, cut }
    };
    let link = |&(src, dst): &(u32, u32)| {
        let (kind, certainty, queue) = (EdgeKind::Hash, Certainty::Certain, false);
        GraphLink { src, dst, kind, certainty, queue }
    };
    let vertices = (0..).zip(vertices).map(vertex);
    Graph::new(vec![0, 1, 2], vertices, links.iter().map(link).collect()).unwrap()
}

/// Beginnings and ends of the paths.
fn pairs(graph: &Graph, from: u32, to: u32) -> Vec<(u32, u32)> {
    let paths = graph.paths(&[from], &[to], Mode::Nearest).unwrap().collect();
    paths.iter().map(|path| (path.src, path.dst)).collect()
}

const SENT: u32 = 0;
const RECEIVED: u32 = 1;
const REPLIED: u32 = 2;

/// A server handles the second request first. Its replies have no value that entered.
#[test]
fn a_thread_does_not_lead_one_request_to_the_next() {
    let vertices = [(SENT, 0), (SENT, 0), (RECEIVED, 1), (REPLIED, 1), (RECEIVED, 1), (REPLIED, 1)];
    let graph = graph(&vertices, &[(0, 4), (1, 2)]);
    assert_eq!(pairs(&graph, SENT, REPLIED), [(1, 3), (0, 5)]);
}

/// The second request comes from a client that is not in the capture.
#[test]
fn who_is_not_in_the_capture_is_not_mistaken_for_another() {
    let vertices = [(SENT, 0), (RECEIVED, 1), (REPLIED, 1), (RECEIVED, 1), (REPLIED, 1)];
    let graph = graph(&vertices, &[(0, 1)]);
    assert_eq!(pairs(&graph, SENT, REPLIED), [(0, 2)]);
}

/// The second job comes from a clock, not from a request.
#[test]
fn what_belongs_to_something_else_is_led_by_nothing_else() {
    const CLOCK: u32 = 3;
    let vertices =
        [(SENT, 0), (CLOCK, 2), (RECEIVED, 1), (RECEIVED, 1), (REPLIED, 1), (REPLIED, 1)];
    let graph = graph(&vertices, &[(0, 2), (1, 3), (3, 4), (2, 5)]);
    assert_eq!(pairs(&graph, SENT, REPLIED), [(0, 5)]);
}

#[test]
fn a_disconnection_says_what_would_join_it() {
    // The value that is received is not the one that was sent, but is handled and replied.
    let vertices = [(SENT, 0), (RECEIVED, 1), (REPLIED, 1), (3, 0)];
    let graph = graph(&vertices, &[(2, 3)]);
    assert_eq!(pairs(&graph, SENT, 3), []);
    let types = [(vec![], vec![7]), (vec![7], vec![]), (vec![], vec![8]), (vec![8], vec![])];
    let types = types.map(|(ins, outs)| PointTypes { ins, outs });
    let disconnection = graph.disconnection(&[SENT], &[3], &types);
    let disconnected_point = |point, dead_ends| DisconnectedPoint { point, count: 1, dead_ends };
    assert_eq!(disconnection.forward, [disconnected_point(SENT, 1)]);
    assert_eq!(
        disconnection.backward,
        [disconnected_point(RECEIVED, 1), disconnected_point(REPLIED, 0), disconnected_point(3, 0)]
    );
    assert_eq!(disconnection.bridges, [Bridge { from: SENT, to: RECEIVED, hash_type: 7, open: 1 }]);
}

#[test]
fn too_many_paths_are_refused() {
    // Ten beginnings meet, ten times.
    let vertices: Vec<_> = (0..10).map(|_| (0, 0)).chain((0..10).map(|_| (1, 1))).collect();
    let links: Vec<_> = (0..100).map(|number| (number / 10, 10 + number % 10)).collect();
    let graph = graph(&vertices, &links);
    let found =
        |limit| graph.paths(&[0], &[1], Mode::All { limit }).map(|path| path.collect().len());
    assert_eq!(found(100), Ok(100));
    let refused = Err(TooManyPaths { limit: 99, vertices: 20, total: 20 });
    assert_eq!(found(99), refused);
    // The limit also holds for beginnings in memory, if no vertex is an end.
    let ends = |limit| graph.paths(&[0], &[2], Mode::All { limit }).map(|paths| paths.ends());
    assert_eq!((ends(100), ends(99)), (Ok(0), refused.map(|_: usize| 0)));
}

#[test]
fn what_is_no_graph_is_refused() {
    let vertex = |ts, thread| Vertex { point: 0, thread, lo: ts, ts, hi: ts, cut: false };
    let (kind, certainty, queue) = (EdgeKind::Hash, Certainty::Certain, false);
    let link = GraphLink { src: 0, dst: 2, kind, certainty, queue };
    let refused = |vertices: [Vertex; 2], links| {
        Graph::new(vec![0], vertices, links).unwrap_err().to_string()
    };
    assert_eq!(
        refused([vertex(2, 0), vertex(1, 0)], vec![]),
        "vertex 1 is before the one that it follows"
    );
    assert_eq!(
        refused([vertex(1, 0), vertex(1, 1)], vec![]),
        "vertex 1 has thread 1, which does not exist"
    );
    assert_eq!(
        refused([vertex(1, 0), vertex(1, 0)], vec![link]),
        "an edge leads from vertex 0 to vertex 2, and there are 2"
    );
}
