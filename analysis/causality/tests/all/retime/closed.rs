//! Closed networks: each client waits for its answer before it sends the next request.

use ppt_causality::retime::SpeedVerdict;

use crate::retime::simulator::{JobSource, Network, SimulatorRandom, Station, answer, hold, near};

const THINK: f64 = 500_000.0;

/// `clients` with `each` requests; mean service time and number of workers of each station.
fn network(
    seed: u64,
    clients: usize,
    each: usize,
    stations: &[(f64, usize)],
    real: bool,
) -> Network {
    let mut dice = SimulatorRandom::new(seed);
    let jobs = clients * each;
    let think = (0..clients).map(|_| dice.exponentials(THINK, each)).collect();
    let stations = stations
        .iter()
        .map(|&(mean, workers)| {
            let service = dice.exponentials(mean, jobs);
            if real {
                Station::real(workers, service, &mut dice)
            } else {
                Station::ideal(workers, service)
            }
        })
        .collect();
    let mut way = || if real { 5_000 + dice.exponential(5_000.0) } else { 0 };
    let way_back = (0..jobs).map(|_| way()).collect();
    Network { source: JobSource::Closed(think), stations, way_back }
}

#[test]
fn clients_of_one_server() {
    for clients in [2, 5, 10, 50] {
        let ideal = network(1, clients, 20_000 / clients, &[(100_000.0, 1)], false);
        let real = network(2, clients, 20_000 / clients, &[(100_000.0, 1)], true);
        for times in [1.0, 1.5, 3.0] {
            hold(&ideal, 0, times, (0.1, 0.5));
            hold(&real, 0, times, (1.0, 3.0));
        }
    }
}

#[test]
fn clients_of_a_server_with_several_threads() {
    for (clients, workers) in [(2, 2), (10, 4), (50, 4), (50, 8)] {
        let stations = [(400_000.0, workers)];
        let ideal = network(3, clients, 20_000 / clients, &stations, false);
        let real = network(4, clients, 20_000 / clients, &stations, true);
        for times in [1.0, 1.5, 3.0] {
            hold(&ideal, 0, times, (0.1, 0.5));
            hold(&real, 0, times, (1.0, 3.0));
        }
    }
}

#[test]
fn one_client_of_a_server_that_always_takes_as_long() {
    let mut network = network(8, 1, 1_000, &[(100_000.0, 1)], false);
    network.stations[0].service.fill(100_000);
    hold(&network, 0, 4.0, (1e-6, 1e-6));
}

#[test]
fn a_slower_server() {
    let network = network(5, 10, 2_000, &[(50_000.0, 1)], true);
    hold(&network, 0, 0.5, (1.5, 3.0));
}

/// Mean value analysis (Reiser and Lavenberg 1980): the response time of `clients`.
fn mva(clients: usize, think: f64, stations: &[f64]) -> f64 {
    let mut queues = vec![0.0; stations.len()];
    let mut response = 0.0;
    for customers in 1..=clients {
        let each: Vec<_> = stations.iter().zip(&queues).map(|(d, q)| d * (1.0 + q)).collect();
        response = each.iter().sum();
        let rate = customers as f64 / (think + response);
        queues = each.iter().map(|value| rate * value).collect();
    }
    response
}

/// The response time of `clients` at one station with `workers` (birth-death process).
fn machines(clients: usize, think: f64, service: f64, workers: usize) -> f64 {
    let mut weights = vec![1.0];
    for there in 0..clients {
        let comes = (clients - there) as f64 / think;
        let goes = (there + 1).min(workers) as f64 / service;
        weights.push(weights[there] * comes / goes);
    }
    let all: f64 = weights.iter().sum();
    let there: f64 = weights.iter().enumerate().map(|(n, value)| n as f64 * value / all).sum();
    let rate: f64 = weights
        .iter()
        .enumerate()
        .map(|(n, value)| n.min(workers) as f64 / service * value / all)
        .sum();
    there / rate
}

#[test]
fn networks_by_mean_value_analysis() {
    for clients in [2, 10, 50] {
        let stations = [(60_000.0, 1), (100_000.0, 1)];
        let network = network(6, clients, 120_000 / clients, &stations, false);
        let model = network.record(&network.run()).model();
        let was = answer(&model, "request", &["handle1=1x"]);
        near(was.was.mean, mva(clients, THINK, &[60_000.0, 100_000.0]), 2.0);
        assert_eq!((was.was, was.verdict()), (was.predicted, SpeedVerdict::NoGain));
        for times in [2.0, 4.0] {
            let answer = answer(&model, "request", &[&format!("handle1={times}x")]);
            near(answer.predicted.mean, mva(clients, THINK, &[60_000.0, 100_000.0 / times]), 2.0);
        }
        // Clients that think less wait longer.
        let faster = answer(&model, "request", &["think=2x"]);
        near(faster.predicted.mean, mva(clients, THINK / 2.0, &[60_000.0, 100_000.0]), 2.0);
        assert_eq!(faster.verdict(), SpeedVerdict::Loss);
    }
}

#[test]
fn several_threads_by_births_and_deaths() {
    for clients in [2, 10, 50] {
        let network = network(7, clients, 120_000 / clients, &[(400_000.0, 4)], false);
        let model = network.record(&network.run()).model();
        for times in [1.0, 2.0, 4.0] {
            let answer = answer(&model, "request", &[&format!("handle0={times}x")]);
            near(answer.predicted.mean, machines(clients, THINK, 400_000.0 / times, 4), 2.0);
        }
    }
}
