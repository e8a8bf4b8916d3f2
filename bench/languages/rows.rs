//! rows ROUNDS CALLS: nanoseconds a call of Rust, by turns, for each line of stdin.

include!(concat!(env!("CARGO_MANIFEST_DIR"), "/rust.rs"));

use rust::{BytesIn, Handled, Named, Request};
use std::hint::black_box;
use std::time::Instant;

const NAMES: [&str; 4] = ["main", "worker-3", "acceptor", "0123456789abcdef"];

fn span(calls: i32) {
    for i in 0..calls {
        let i = black_box(i);
        Request::begin(|f| {
            f.id = i as u64;
            (f.kind, f.who) = (i, i >> 1);
            (f.a, f.b) = (i as u64, i as u64);
        });
    }
}

fn text(calls: i32) {
    for i in 0..calls {
        let i = black_box(i);
        Named::write(|f| {
            (f.kind, f.who) = (i, i >> 1);
            (f.a, f.b) = (i as u64, i as u64);
            f.name.set(NAMES[i as usize & 3]);
        });
    }
}

fn interval(calls: i32) {
    for i in 0..calls {
        let i = black_box(i);
        let start = rust::now();
        Handled::write(|f| {
            (f.kind, f.who) = (i, i >> 1);
            (f.a, f.b) = (i as u64, i as u64);
            f.handle_start = start;
            f.handle_end = rust::now();
        });
    }
}

fn counter(calls: i32) {
    for i in 0..calls {
        BytesIn::add(black_box(i) as u64);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (rounds, calls) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(1000));
    let rows: [(&str, fn(i32)); 4] = [
        ("Rust: span, one tick", span),
        ("Rust: text, no tick", text),
        ("Rust: interval, two ticks", interval),
        ("Rust: counter", counter),
    ];
    println!("ready");
    for _ in std::io::stdin().lines() {
        let mut took = [const { Vec::new() }; 4];
        // The first round warms up.
        for round in 0..=rounds {
            for ((_, run), took) in rows.iter().zip(&mut took) {
                let start = Instant::now();
                run(calls);
                let ns = start.elapsed().as_nanos() as f64 / f64::from(calls);
                if round > 0 {
                    took.push(ns);
                }
            }
        }
        for ((name, _), took) in rows.iter().zip(&mut took) {
            took.sort_by(f64::total_cmp);
            println!("{name}\t{}\t{}", took[0], took[took.len() / 2]);
        }
        println!("done");
    }
}
