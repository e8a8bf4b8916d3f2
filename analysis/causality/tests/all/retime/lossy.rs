//! Runs with missing frames, compared with the same runs without a loss.

use ppt_causality::retime::{Metric, MetricUnavailable, RetimeRefusal, SpeedWorth};

use crate::retime::simulator::{
    Burst, JobSource, Network, SimulatedRun, SimulatorRandom, Station, Writer, answer, near,
};

const SERVICE: f64 = 100_000.0;
const COUNT: usize = 6_000;

fn open(seed: u64, load: f64, workers: &[usize]) -> Network {
    let mut dice = SimulatorRandom::new(seed);
    let station = |&workers: &usize| {
        let service = dice.exponentials(SERVICE * workers as f64, COUNT);
        Station::real(workers, service, &mut dice)
    };
    let stations = workers.iter().map(station).collect();
    let source = dice.poisson(SERVICE / load, COUNT);
    Network { source, stations, way_back: vec![0; COUNT] }
}

fn closed(seed: u64, clients: usize, workers: usize) -> Network {
    let mut dice = SimulatorRandom::new(seed);
    let each = COUNT / clients;
    let think = (0..clients).map(|_| dice.exponentials(500_000.0, each)).collect();
    let service = dice.exponentials(SERVICE, clients * each);
    let station = Station::real(workers, service, &mut dice);
    let way_back = (0..clients * each).map(|_| 5_000 + dice.exponential(5_000.0)).collect();
    Network { source: JobSource::Closed(think), stations: vec![station], way_back }
}

/// `count` bursts of random writers, each as long as a `part` of the run.
fn bursts(
    seed: u64,
    network: &Network,
    run: &SimulatedRun,
    (count, part): (usize, f64),
) -> Vec<Burst> {
    let mut dice = SimulatorRandom::new(seed);
    let last = run.received.iter().chain(run.visits.iter().flatten().map(|visit| &visit.end));
    let end = *last.max().unwrap();
    let clients = match &network.source {
        JobSource::Open(_) => 1,
        JobSource::Closed(clients) => clients.len(),
    };
    let mut writers: Vec<_> = (0..clients).map(Writer::Client).collect();
    for (at, station) in network.stations.iter().enumerate() {
        writers.extend((0..station.workers).map(|worker| Writer::Worker(at, worker)));
    }
    let long = (end as f64 * part) as i64;
    let mut burst = |_| {
        let writer = writers[dice.between(0, writers.len() as i64) as usize];
        let from = dice.between(0, end - long);
        Burst { writer, from, to: from + long }
    };
    (0..count).map(&mut burst).collect()
}

fn networks() -> Vec<(&'static str, Network)> {
    vec![
        ("light", open(11, 0.3, &[1])),
        ("medium", open(12, 0.6, &[1])),
        ("heavy", open(13, 0.9, &[1])),
        ("workers", open(14, 0.8, &[4])),
        ("tandem", open(15, 0.6, &[1, 1])),
        ("two clients", closed(16, 2, 1)),
        ("ten clients", closed(17, 10, 1)),
        ("fifty clients", closed(18, 50, 8)),
    ]
}

/// Checks that the confidence interval of the lossy prediction contains the other prediction.
#[track_caller]
fn agree(name: &str, lossy: &SpeedWorth, whole: &SpeedWorth) {
    assert!(lossy.missing_share > 0.04 && lossy.was.n < whole.was.n, "{name}: {lossy:?}");
    let (low, high) = lossy.mean_interval.unwrap();
    let mean = whole.predicted.mean;
    assert!(low <= mean && mean <= high, "{name}: {mean} is not in {low}..{high}, {lossy:?}");
}

#[test]
fn what_is_left_says_what_all_of_it_says() {
    for (name, network) in networks() {
        let run = network.run();
        let whole = network.record(&run).model();
        for seed in 0..2 {
            let lost = bursts(seed, &network, &run, (6, 0.01));
            let lossy = network.record_without(&run, &lost).model();
            // At lower speeds, the backlog that one part would leave to the next is missing.
            let slower = if name == "heavy" { 1.2 } else { 0.95 };
            for times in [slower, 1.0, 1.5, 3.0] {
                let speed = format!("handle0={times}x");
                let both = |metric| [&lossy, &whole].map(|of| answer(of, metric, &[&speed]));
                for metric in ["request", "rate(request)"] {
                    let [lossy, whole] = both(metric);
                    if times == 1.0 {
                        assert_eq!(lossy.was, lossy.predicted);
                    } else {
                        agree(&format!("{name} {seed} {metric} {times}x"), &lossy, &whole);
                    }
                }
                let [lossy, whole] =
                    both("end").map(|answer| answer.predicted.mean / answer.was.mean);
                near(lossy, whole, 6.0);
            }
        }
    }
}

#[test]
fn a_loss_of_others_touches_nothing() {
    let network = open(19, 0.6, &[1]);
    let run = network.run();
    let mut recorded = network.record(&run);
    let whole = answer(&recorded.model(), "request", &["handle0=2x"]);
    let other = recorded.recording.thread(7);
    let name = recorded.recording.name("other");
    recorded.recording.vertex(other, 5, name);
    recorded.recording.doubt(other, 0, i64::MAX);
    assert_eq!(answer(&recorded.model(), "request", &["handle0=2x"]), whole);
    // All of its time is in doubt.
    let refused = recorded.model().ask(&Metric::End).unwrap_err();
    let all = RetimeRefusal::TooMuchMissing { metric: "end".to_owned(), share: 1.0 };
    assert_eq!(refused, MetricUnavailable::Refused(all));
}
