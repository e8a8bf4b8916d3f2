//! Arbitrary recordings: replays reproduce them, and higher speeds make no vertex later.

use ppt_causality::retime::{
    NameId, RecordedRun, RetimeModel, RetimeRefusal, Speeds, ThreadId, ThreadState, VertexId,
};
use proptest::prelude::*;

use crate::retime::simulator::{answer, speeds};

#[derive(Debug, Clone)]
struct Graph {
    /// Threads and names of vertices, in the order of time.
    moments: Vec<(usize, usize)>,
    gaps: Vec<i64>,
    edges: Vec<(usize, usize)>,
    jobs: Vec<(usize, usize, u64)>,
    intervals: Vec<(usize, usize, usize)>,
    ran: Vec<(usize, i64, i64)>,
    outside: Vec<usize>,
    doubts: Vec<(usize, i64, i64)>,
}

const THREADS: usize = 5;

fn graphs() -> impl Strategy<Value = Graph> {
    (2usize..120).prop_flat_map(|count| {
        let moments = prop::collection::vec((0..THREADS, 0..4usize), count);
        let gaps = prop::collection::vec(1..1000i64, count);
        let edges = prop::collection::vec((0..count, 0..count), 0..count);
        let key = prop_oneof![0..3u64, any::<u64>()];
        let jobs = prop::collection::vec((0..count, 0..count, key), 0..count);
        let intervals = prop::collection::vec((0..count, 0..count, 0..3usize), 0..count / 2);
        let ran = prop::collection::vec((0..2usize, 0..60_000i64, 1..900i64), 0..count);
        let outside = prop::collection::vec(0..count, 0..3);
        let doubts = prop::collection::vec((0..THREADS, 0..60_000i64, 0..900i64), 0..3);
        (moments, gaps, edges, jobs, intervals, ran, outside, doubts).prop_map(
            |(moments, gaps, edges, jobs, intervals, ran, outside, doubts)| Graph {
                moments,
                gaps,
                edges,
                jobs,
                intervals,
                ran,
                outside,
                doubts,
            },
        )
    })
}

/// Forward in time.
fn sorted(one: usize, other: usize) -> Option<(usize, usize)> {
    (one != other).then(|| (one.min(other), one.max(other)))
}

/// The recording, and its vertices with their times. With `apart`, each vertex has a name of its own.
fn recording(graph: &Graph, jobs: bool, apart: bool) -> (RecordedRun, Vec<(VertexId, i64)>) {
    let (recording, vertices, _) = threaded(graph, jobs, apart);
    (recording, vertices)
}

/// The recording, its vertices with their times, and its threads.
fn threaded(
    graph: &Graph,
    jobs: bool,
    apart: bool,
) -> (RecordedRun, Vec<(VertexId, i64)>, Vec<ThreadId>) {
    let mut recording = RecordedRun::new();
    let threads: Vec<_> = (0..THREADS).map(|index| recording.thread(index as u32 / 3)).collect();
    let mut names = |text: String| recording.name(&text);
    let activities: Vec<NameId> = (0..3).map(|number| names(format!("work{number}"))).collect();
    let points: Vec<NameId> = graph
        .moments
        .iter()
        .enumerate()
        .map(|(at, entry)| names(if apart { format!("v{at}") } else { format!("p{}", entry.1) }))
        .collect();
    let mut now = 0;
    let times = graph.gaps.iter().map(|gap| {
        now += gap;
        now
    });
    let vertices: Vec<_> = times
        .zip(&graph.moments)
        .zip(&points)
        .map(|((time, entry), &name)| (recording.vertex(threads[entry.0], time, name), time))
        .collect();
    for (from, to) in graph.edges.iter().filter_map(|edge| sorted(edge.0, edge.1)) {
        recording.edge(vertices[from].0, vertices[to].0);
    }
    for &(one, other, key) in graph.jobs.iter().filter(|_| jobs) {
        if let Some((put, take)) = sorted(one, other) {
            recording.job(vertices[put].0, vertices[take].0, key);
        }
    }
    for &(one, other, name) in &graph.intervals {
        if let Some((begin, end)) = sorted(one, other)
            && graph.moments[begin].0 == graph.moments[end].0
        {
            recording.interval(activities[name], vertices[begin].0, vertices[end].0);
        }
    }
    let mut busy = [0; 2];
    for &(thread, gap, length) in &graph.ran {
        let begin = busy[thread] + gap % 1000;
        busy[thread] = begin + length;
        recording.ran(threads[thread], begin, busy[thread]);
    }
    for &(thread, from, length) in &graph.doubts {
        recording.doubt(threads[thread], from, from + length);
    }
    graph.outside.iter().for_each(|&index| recording.outside(vertices[index].0));
    (recording, vertices, threads)
}

/// Successive states of threads: thread, length and state.
fn states() -> impl Strategy<Value = Vec<(usize, i64, u32)>> {
    prop::collection::vec((0..THREADS, 1..9_000i64, 0..5u32), 0..200)
}

fn record_states(recording: &mut RecordedRun, threads: &[ThreadId], states: &[(usize, i64, u32)]) {
    let mut now = [0; THREADS];
    for &(thread, length, number) in states {
        let state = match number {
            0 => ThreadState::Ready,
            1 => ThreadState::Blocked,
            2 => ThreadState::Unknown,
            cpu => ThreadState::Running { cpu },
        };
        recording.state(threads[thread], now[thread], now[thread] + length, state);
        now[thread] += length;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_run_comes_out_as_it_was(graph in graphs()) {
        let (recording, vertices) = recording(&graph, true, false);
        let model = RetimeModel::new(recording).unwrap();
        let replay = model.replay(&Speeds::default()).unwrap();
        for (vertex, time) in vertices {
            prop_assert_eq!(model.time(&replay, vertex), time);
        }
    }

    #[test]
    fn a_run_with_cpus_comes_out_as_it_was(graph in graphs(), states in states()) {
        let (mut recording, vertices, threads) = threaded(&graph, true, false);
        record_states(&mut recording, &threads, &states);
        let Ok(model) = RetimeModel::new(recording) else { return Ok(()) };
        let replay = model.replay(&Speeds::default()).unwrap();
        let is_off = |&(vertex, time): &(VertexId, i64)| model.time(&replay, vertex).abs_diff(time) > 1_000;
        prop_assert_eq!(vertices.iter().any(is_off), model.notes().is_unlike_run);
        for times in [0.5, 3.0] {
            // It may be refused, but must end.
            let _ = model.replay(&speeds(&[&format!("work0={times}x")]));
        }
    }

    #[test]
    fn faster_is_never_later(graph in graphs(), times in 1.0..9.0f64, more in 1.0..9.0f64) {
        let (recording, vertices) = recording(&graph, false, true);
        let model = RetimeModel::new(recording).unwrap();
        let at = |times: f64| model.replay(&speeds(&[&format!("work0={times}x")])).unwrap();
        let (one, other) = (at(times), at(times * more));
        for (vertex, time) in vertices {
            let [one, other] = [&one, &other].map(|replay| model.time(replay, vertex));
            prop_assert!(other <= one && one <= time, "{} {} {}", other, one, time);
        }
    }

    #[test]
    fn what_is_not_critical_is_worth_nothing(mut graph in graphs()) {
        // Losses divide one group of threads and not another: then no end is common to all.
        graph.doubts.clear();
        let (recording, _) = recording(&graph, false, true);
        let model = RetimeModel::new(recording).unwrap();
        for activity in ["work0", "work1", "work2"] {
            if !model.activities().contains(&activity) {
                continue;
            }
            let end = answer(&model, "end", &[&format!("{activity}=1000x")]);
            // The gain is at most the share of the activity in the critical path.
            let most = end.critical_share * end.was.mean;
            prop_assert!(end.was.mean - end.predicted.mean <= most + 1.0, "{end:?}");
        }
    }
}

/// Vertices at these times of each thread.
fn threads(times: &[&[i64]]) -> (RecordedRun, Vec<Vec<VertexId>>) {
    let mut recording = RecordedRun::new();
    let mut vertices = Vec::new();
    for (at, times) in times.iter().enumerate() {
        let thread = recording.thread(0);
        let each = times.iter().enumerate().map(|(nth, &time)| {
            let name = recording.name(&format!("{}{nth}", ["a", "b", "c"][at]));
            recording.vertex(thread, time, name)
        });
        vertices.push(each.collect());
    }
    (recording, vertices)
}

#[test]
fn only_what_ran_becomes_faster() {
    // 100 ns of work, of which the kernel recorded a part as running.
    let end = |ran: &[(i64, i64)]| {
        let mut recording = RecordedRun::new();
        let thread = recording.thread(0);
        let [begin, end, work] = ["begin", "end", "work"].map(|text| recording.name(text));
        let vertices = (recording.vertex(thread, 0, begin), recording.vertex(thread, 100, end));
        recording.interval(work, vertices.0, vertices.1);
        ran.iter().for_each(|entry| recording.ran(thread, entry.0, entry.1));
        answer(&RetimeModel::new(recording).unwrap(), "end", &["work=2x"]).predicted.mean
    };
    assert_eq!(end(&[]), 50.0);
    assert_eq!(end(&[(-10, 20), (60, 100), (100, 900)]), 70.0);
}

#[test]
fn an_activity_goes_on_behind_a_loss() {
    let mut recording = RecordedRun::new();
    let thread = recording.thread(0);
    let [point, work] = ["point", "work"].map(|text| recording.name(text));
    let times = [0, 100, 400, 600, 700];
    let vertices = times.map(|time| recording.vertex(thread, time, point));
    recording.interval(work, vertices[0], vertices[4]);
    recording.doubt(thread, 250, 300);
    let model = RetimeModel::new(recording).unwrap();
    let end = answer(&model, "end", &["work=2x"]);
    // From 0 to 100, and from 400 to 700.
    assert_eq!((end.was.mean, end.predicted.mean), (400.0, 200.0));
    assert_eq!(end.missing_share, 50.0 / 700.0);
}

#[test]
fn an_edge_has_slack() {
    // a works for 100 ns and b for 250 ns, then b takes the message of a, and works for 50 ns. Another message
    // shows that messages take 5 ns.
    let (mut recording, vertices) = threads(&[&[0, 100], &[0, 250, 251, 301]]);
    let [one, other, third] = ["one", "other", "third"].map(|text| recording.name(text));
    recording.edge(vertices[0][1], vertices[1][2]);
    recording.interval(one, vertices[0][0], vertices[0][1]);
    recording.interval(other, vertices[1][0], vertices[1][1]);
    recording.interval(third, vertices[1][2], vertices[1][3]);
    let (from, to) = (recording.name("a1"), recording.name("b2"));
    let threads = [recording.thread(1), recording.thread(2)];
    let from = recording.vertex(threads[0], 60, from);
    let to = recording.vertex(threads[1], 65, to);
    recording.edge(from, to);
    let model = RetimeModel::new(recording).unwrap();
    let end = |texts: &[&str]| answer(&model, "end", texts).predicted.mean;
    assert_eq!(end(&["one=2x"]), 301.0);
    assert_eq!(end(&["other=2x"]), 176.0);
    // Now b waits for the message.
    assert_eq!(end(&["other=100x"]), 155.0);
    assert_eq!(end(&["one=2x", "other=100x"]), 105.0);
    let share = |text: &str| answer(&model, "end", &[text]).critical_share;
    assert_eq!((share("one=2x"), share("other=2x")), (0.0, 250.0 / 301.0));
}

#[test]
fn the_innermost_name_counts() {
    let (mut recording, vertices) = threads(&[&[0, 100, 400, 600]]);
    let [outer, inner] = ["job.outer", "job.inner"].map(|text| recording.name(text));
    recording.interval(outer, vertices[0][0], vertices[0][3]);
    recording.interval(inner, vertices[0][1], vertices[0][2]);
    let model = RetimeModel::new(recording).unwrap();
    let end = |texts: &[&str]| answer(&model, "end", texts).predicted.mean;
    assert_eq!(end(&["outer=2x"]), 300.0);
    assert_eq!(end(&["inner=3x"]), 400.0);
    assert_eq!(end(&["outer=2x", "inner=3x"]), 50.0 + 100.0 + 100.0);
}

#[test]
fn what_comes_from_elsewhere_comes_when_it_came() {
    let (mut recording, vertices) = threads(&[&[0, 100, 250, 300]]);
    let work = recording.name("work");
    recording.interval(work, vertices[0][0], vertices[0][1]);
    recording.outside(vertices[0][2]);
    let model = RetimeModel::new(recording).unwrap();
    assert_eq!(answer(&model, "end", &["work=2x"]).predicted.mean, 300.0);
    assert_eq!(answer(&model, "path(a0, a1)", &["work=2x"]).predicted.mean, 50.0);
}

#[test]
fn effects_before_causes_are_refused() {
    let (mut recording, vertices) = threads(&[&[0, 100], &[50]]);
    recording.edge(vertices[0][1], vertices[1][0]);
    assert_eq!(
        RetimeModel::new(recording).unwrap_err(),
        RetimeRefusal::Backward { backward: 1, of: 1 }
    );
}

#[test]
fn a_million_vertices_take_no_time_to_speak_of() {
    // No assertion on time: `--nocapture` shows it.
    use crate::retime::simulator::{JobSource, Network, SimulatorRandom, Station};
    let mut dice = SimulatorRandom::new(9);
    let jobs = 200_000;
    let station = Station::real(4, dice.exponentials(300_000.0, jobs), &mut dice);
    let think = (0..50).map(|_| dice.exponentials(1_000_000.0, jobs / 50)).collect();
    let network = Network {
        source: JobSource::Closed(think),
        stations: vec![station],
        way_back: vec![1; jobs],
    };
    let recorded = network.record(&network.run());
    let begin = std::time::Instant::now();
    let model = recorded.model();
    let built = begin.elapsed();
    let begin = std::time::Instant::now();
    let replay = model.replay(&speeds(&["handle0=2x"])).unwrap();
    println!(
        "{} vertices: {built:?} to learn, {:?} to replay",
        model.notes().vertices,
        begin.elapsed()
    );
    let end = *recorded.ends.last().unwrap().last().unwrap();
    assert!(model.time(&replay, end) > 0);
}
