//! Open networks, whose jobs arrive independently of answers: M/M/1, several workers, tandems, pipelines.

use ppt_causality::retime::{BlockBootstrap, SpeedVerdict};

use crate::retime::simulator::{
    JobSource, Network, SimulatorRandom, Station, answer, ask, hold, near, speeds,
};

const COUNT: usize = 20_000;
/// The mean service time in ns.
const SERVICE: f64 = 100_000.0;

fn network(dice: &mut SimulatorRandom, load: f64, stations: Vec<Station>) -> Network {
    let jobs = stations[0].service.len();
    Network { source: dice.poisson(SERVICE / load, jobs), stations, way_back: vec![0; jobs] }
}

#[test]
fn one_server() {
    for (load, seed) in [(0.3, 1), (0.6, 2), (0.9, 3)] {
        let mut dice = SimulatorRandom::new(seed);
        let service = dice.exponentials(SERVICE, COUNT);
        let ideal = network(&mut dice, load, vec![Station::ideal(1, service.clone())]);
        let real = Station::real(1, service, &mut dice);
        let real = network(&mut dice, load, vec![real]);
        for times in [0.95, 1.0, 1.25, 2.0, 4.0] {
            // If a wake takes no time, the model is exact.
            hold(&ideal, 0, times, (1e-6, 0.1));
            hold(&real, 0, times, (1.0, 2.0));
        }
    }
}

#[test]
fn one_server_by_its_formula() {
    let mut dice = SimulatorRandom::new(4);
    let service = dice.exponentials(SERVICE, 400_000);
    let network = network(&mut dice, 0.9, vec![Station::ideal(1, service)]);
    let model = network.record(&network.run()).model();
    for times in [1.5, 2.0, 3.0] {
        let answer = answer(&model, "request", &[&format!("handle0={times}x")]);
        near(answer.predicted.mean, SERVICE / (times - 0.9), 2.0);
        let (low, high) = answer.mean_interval.unwrap();
        assert!(low < answer.predicted.mean && answer.predicted.mean < high);
        assert_eq!(answer.verdict(), SpeedVerdict::Gain);
    }
}

#[test]
fn several_workers() {
    let mut dice = SimulatorRandom::new(5);
    for (workers, load) in [(2, 1.8), (4, 3.2), (8, 7.6)] {
        let service = dice.exponentials(SERVICE, COUNT);
        let ideal = network(&mut dice, load, vec![Station::ideal(workers, service.clone())]);
        let real = Station::real(workers, service, &mut dice);
        let real = network(&mut dice, load, vec![real]);
        for times in [1.0, 1.5, 3.0] {
            hold(&ideal, 0, times, (1e-6, 0.1));
            hold(&real, 0, times, (1.0, 2.0));
        }
    }
}

#[test]
fn two_stations() {
    let mut dice = SimulatorRandom::new(6);
    let mut service = |mean| dice.exponentials(mean, COUNT);
    let (first, second) = (service(0.8 * SERVICE), service(SERVICE));
    let stations = vec![Station::real(1, first, &mut dice), Station::real(1, second, &mut dice)];
    let network = network(&mut dice, 0.85, stations);
    for station in [0, 1] {
        for times in [1.5, 3.0] {
            hold(&network, station, times, (1.5, 3.0));
        }
    }
}

/// All input is present from the beginning: the slower stage decides.
fn pipeline(parse: f64, compress: f64) -> Network {
    let mut dice = SimulatorRandom::new(7);
    let service = |dice: &mut SimulatorRandom, mean: f64| {
        (0..2_000).map(|_| dice.between((0.5 * mean) as i64, (1.5 * mean) as i64)).collect()
    };
    let (parse, compress) = (service(&mut dice, parse), service(&mut dice, compress));
    let stations = vec![Station::real(1, parse, &mut dice), Station::real(1, compress, &mut dice)];
    Network { source: JobSource::Open(vec![0; 2_000]), stations, way_back: vec![0; 2_000] }
}

#[test]
fn the_slower_stage_decides() {
    let network = pipeline(20_000.0, 50_000.0);
    let model = network.record(&network.run()).model();
    let end = |times: &str| answer(&model, "end", &[times]);
    for times in [1.5, 2.0, 4.0] {
        let faster = network.faster(1, times).run();
        let real = faster.visits[1].iter().map(|visit| visit.end).max().unwrap();
        near(end(&format!("handle1={times}x")).predicted.mean, real as f64, 1.0);
    }
    // Only the first parse is not parallel to other work.
    let parse = end("handle0=2x");
    assert_eq!(parse.verdict(), SpeedVerdict::NoGain);
    assert!(parse.gain() >= 0.0 && parse.critical_share < 0.001, "{parse:?}");
    let compress = end("handle1=2x");
    assert!(compress.critical_share > 0.95, "{compress:?}");

    let ranked = model.rank(&ask(&model, "end"), 2.0, BlockBootstrap::default()).unwrap();
    let order: Vec<_> = ranked.iter().map(|ranked| ranked.activity.as_str()).collect();
    assert_eq!(order, ["handle1", "handle0"]);
    // Above the factor 2.5, parsing decides.
    let swept = model
        .sweep(
            &ask(&model, "end"),
            &speeds(&["handle1=2x"]),
            &[1.0, 5.0, 50.0],
            BlockBootstrap::default(),
        )
        .unwrap();
    let ends: Vec<_> = swept.iter().map(|worth| worth.predicted.mean).collect();
    assert_eq!(ends[0], swept[0].was.mean);
    near(ends[1], 2_000.0 * 20_000.0, 3.0);
    near(ends[2], ends[1], 1.0);
}

#[test]
fn nothing_waits_for_a_stage_that_is_never_waited_for() {
    let network = pipeline(50_000.0, 20_000.0);
    let model = network.record(&network.run()).model();
    let rate = answer(&model, "rate(handle1)", &["handle1=2x"]);
    assert_eq!(rate.verdict(), SpeedVerdict::NoGain);
    assert!(answer(&model, "rate(handle1)", &["handle0=2x"]).gain() > 0.9);
    // The time from put to take is a little longer, as more workers have to be woken.
    let path = answer(&model, "path(end0, take1)", &["handle1=2x"]);
    let faster = network.faster(1, 2.0).run();
    let waits: i64 = faster.visits[1].iter().map(|visit| visit.take - visit.put).sum();
    near(path.predicted.mean, waits as f64 / 2_000.0, 2.0);
    assert_eq!(path.verdict(), SpeedVerdict::Loss);
}

#[test]
fn shared_and_separate_queues_are_told_apart() {
    // Three servers with a queue each, and jobs with distinct keys, look like one server with three workers,
    // except for jobs that wait while another worker is idle.
    let mut dice = SimulatorRandom::new(8);
    let (mut apart, mut real) = (ppt_causality::retime::RecordedRun::new(), 0.0);
    let threads: Vec<_> = (0..3).map(|_| apart.thread(1)).collect();
    let [put, take, end, handle] = ["put", "take", "end", "handle"].map(|text| apart.name(text));
    for (at, &thread) in threads.iter().enumerate() {
        let source = apart.thread(0);
        let (mut now, mut free, mut faster) = (0, 0, 0);
        for job in 0..COUNT as u64 {
            now += dice.exponential(SERVICE);
            let service = dice.exponential(0.8 * SERVICE);
            let taken = free.max(now);
            free = taken + service;
            faster = faster.max(now) + (service as f64 / 2.0).round() as i64;
            real += (faster - now) as f64;
            let put = apart.vertex(source, now, put);
            let taken = apart.vertex(thread, taken, take);
            let end = apart.vertex(thread, free, end);
            apart.job(put, taken, job * 3 + at as u64);
            apart.interval(handle, taken, end);
        }
    }
    let model = ppt_causality::retime::RetimeModel::new(apart).unwrap();
    assert_eq!(model.notes().queues, 3);
    let answer = answer(&model, "path(put, end)", &["handle=2x"]);
    near(answer.predicted.mean, real / (3 * COUNT) as f64, 1e-6);
}
