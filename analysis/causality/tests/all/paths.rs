//! Paths against an exhaustive search of every way that there is.

use ppt_causality::{By, Certainty, Graph, Kind, Link, Mode, Path, Place, Step, Vertex};
use proptest::prelude::*;

const POINTS: u32 = 5;
const THREADS: u32 = 3;

#[derive(Debug, Clone)]
struct Made {
    vertices: Vec<Vertex>,
    links: Vec<Link>,
}

fn made() -> impl Strategy<Value = Made> {
    let vertex = (0..POINTS, 0..THREADS, 0..3i64, prop::bool::weighted(0.1));
    let vertices = prop::collection::vec(vertex, 2..14).prop_map(|all| {
        let mut ts = 0;
        let vertex = |(point, thread, later, cut)| {
            ts += later;
            Vertex { point, thread, lo: ts - 1, ts, hi: ts + 2, cut }
        };
        all.into_iter().map(vertex).collect::<Vec<_>>()
    });
    let kinds = prop::sample::select(vec![Kind::Hash, Kind::Span, Kind::Chain, Kind::Wake]);
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
            Link { src, dst, kind, certainty, queue }
        };
        let links = links.into_iter().map(link).collect();
        Made { vertices, links }
    })
}

/// Everything that leads somewhere, found by going all ways back.
struct Search<'a> {
    made: &'a Made,
    from: u32,
}

impl Search<'_> {
    fn point(&self, vertex: u32) -> u32 {
        self.made.vertices[vertex as usize].point
    }

    fn links(&self, to: u32) -> Vec<Link> {
        let links = self.made.links.iter().copied();
        links.filter(|it| it.dst == to && it.src < to).collect()
    }

    fn belongs(&self, vertex: u32) -> bool {
        let of_point = |it: &&Link| self.point(it.dst) == self.point(vertex);
        let hash = self.made.links.iter().filter(of_point).any(|it| it.kind == Kind::Hash);
        hash || self.links(vertex).iter().any(|it| it.kind == Kind::Chain)
    }

    fn before(&self, vertex: u32) -> Option<u32> {
        let all = &self.made.vertices;
        let it = all[vertex as usize];
        (!it.cut).then_some(())?;
        (0..vertex).rev().find(|&other| all[other as usize].thread == it.thread)
    }

    /// The ways from a beginning to what leads to a vertex, backwards and with it.
    fn ways(&self, vertex: u32) -> Vec<Vec<u32>> {
        let over = |sources: Vec<u32>| -> Vec<Vec<u32>> {
            let ways = sources.into_iter().flat_map(|it| match self.point(it) == self.from {
                true => vec![vec![it]],
                false => self.ways(it),
            });
            ways.map(|way| [vec![vertex], way].concat()).collect()
        };
        let links = self.links(vertex);
        let of = |wake| {
            let these = links.iter().filter(|it| (it.kind == Kind::Wake) == wake);
            over(these.map(|it| it.src).collect())
        };
        let ways = of(false);
        if !ways.is_empty() || self.belongs(vertex) {
            return ways;
        }
        let ways = of(true);
        if ways.is_empty() { over(self.before(vertex).into_iter().collect()) } else { ways }
    }

    fn origin(&self, vertex: u32) -> Option<u32> {
        if self.point(vertex) == self.from {
            return Some(vertex);
        }
        self.ways(vertex).iter().filter_map(|it| it.last().copied()).max()
    }

    /// The step between two vertices of a way, and whether it leaves a doubt.
    fn step(&self, src: u32, dst: u32) -> (Step, bool) {
        let origin = |it: &Link| self.origin(it.src);
        let tier = |wake: bool| {
            let links = self.links(dst).into_iter();
            let links = links.filter(move |it| (it.kind == Kind::Wake) == wake);
            links.filter(|it| origin(it).is_some()).collect::<Vec<_>>()
        };
        let (first, second) = (tier(false), tier(true));
        let used = if first.is_empty() { &second } else { &first };
        let between = used.iter().filter(|it| it.src == src);
        let link = between.min_by_key(|it| (it.certainty, it.kind, it.queue));
        let Some(link) = link else {
            let (by, certainty, place) = (By::Program, Certainty::Certain, Place::Thread);
            let doubt = self.links(dst).iter().any(|it| it.kind == Kind::Span);
            return (Step { src, dst, by, certainty, place }, doubt);
        };
        let place = match self.made.vertices[src as usize].thread {
            _ if link.queue => Place::Queue,
            it if it == self.made.vertices[dst as usize].thread => Place::Thread,
            // Threads 0 and 1 are one process.
            it if it + self.made.vertices[dst as usize].thread == 1 => Place::Process,
            _ => Place::Between,
        };
        let mut origins: Vec<_> = used.iter().map(origin).collect();
        if link.kind == Kind::Wake && first.is_empty() {
            origins.extend(self.before(dst).map(|it| self.origin(it)).filter(Option::is_some));
        }
        let rivals = origins.iter().any(|it| *it != origins[0]);
        let certainty = link.certainty;
        let doubt = rivals || certainty == Certainty::Possible;
        (Step { src, dst, by: By::Edge(link.kind), certainty, place }, doubt)
    }

    fn paths(&self, to: u32, mode: Mode) -> Vec<Path> {
        let mut paths = Vec::new();
        for dst in (0..self.made.vertices.len() as u32).filter(|&it| self.point(it) == to) {
            let mut ways = self.ways(dst);
            ways.sort_by_key(|way| (way.last().copied(), way.clone()));
            // The best way from each beginning is the last one.
            ways.reverse();
            ways.dedup_by_key(|way| way.last().copied());
            if mode == Mode::Nearest {
                ways.truncate(1);
            }
            ways.reverse();
            let several = ways.len() > 1;
            for mut way in ways {
                way.reverse();
                let steps: Vec<_> = way.windows(2).map(|it| self.step(it[0], it[1])).collect();
                let route: Vec<Step> = steps.iter().map(|it| it.0).collect();
                let possible = route.iter().any(|it| it.certainty == Certainty::Possible);
                let ambiguous = match mode {
                    Mode::Nearest => steps.iter().any(|it| it.1),
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
        let backward = made.links.iter().filter(|it| it.src >= it.dst).count();
        prop_assert_eq!(graph.backward(), backward as u64);
        let search = Search { made: &made, from: 0 };
        for mode in [Mode::Nearest, Mode::All { limit: 10_000 }] {
            let told = graph.paths(&[0], &[to], mode).unwrap().collect();
            prop_assert_eq!(&told, &search.paths(to, mode));
            for path in told {
                let steps = path.route.iter().map(|it| graph.ts(it.dst) - graph.ts(it.src));
                prop_assert_eq!(steps.sum::<i64>(), path.latency(&graph));
                prop_assert_eq!(path.latency_lo(&graph), path.latency(&graph) - 3);
                prop_assert_eq!(path.latency_hi(&graph), path.latency(&graph) + 3);
            }
        }
    }
}
