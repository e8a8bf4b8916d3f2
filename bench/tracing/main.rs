//! calls none|off|registry|on NUMBER: the cost of an event and of a span of the crate `tracing`, in nanoseconds: the
//! least of nine rounds of so many.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use tracing::subscriber::set_global_default;
use tracing::{Level, Subscriber, info, info_span};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Layer, SubscriberExt};

/// A layer that is interested in everything, and does nothing.
struct Idle;

impl<S: Subscriber> Layer<S> for Idle {}

fn event(n: u64) {
    info!(a = n, b = 7, "event");
}

fn span(n: u64) {
    let _entered = info_span!("span", a = n).entered();
}

fn least(number: u64, call: fn(u64)) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..number).for_each(|n| call(black_box(n)));
        let took = start.elapsed().as_nanos() as f64 / number as f64;
        // The rings are read at the same time.
        thread::sleep(Duration::from_millis(50));
        took
    };
    (0..9).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mode, number] = &arguments[..] else { panic!("calls none|off|registry|on NUMBER") };
    let number = number.parse().expect("a number");
    match mode.as_str() {
        "none" => {}
        "registry" => {
            set_global_default(Registry::default().with(Idle)).expect("no other subscriber");
        }
        _ => ppt_tracing::init().expect("no other subscriber"),
    }
    while mode == "on" && !tracing::enabled!(Level::INFO) {
        thread::yield_now();
    }
    println!("{:.2} {:.2}", least(number, event), least(number, span));
}
