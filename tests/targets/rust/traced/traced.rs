//! traced subscriber|layer|all REQUESTS: a program that uses `tracing` and `log`, and counts its
//! own events.
#![deny(warnings)]
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{Event, Level, Metadata, Subscriber, debug, info, info_span, trace_span};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, Layer, SubscriberExt};

/// A layer of the program's own that counts events.
struct Counting(Arc<AtomicU64>);

impl<S: Subscriber> Layer<S> for Counting {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Like `EnvFilter` with `info`: it applies to its own layer only.
struct Info;

impl<S> Filter<S> for Info {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }
}

/// A value with a long text, whose `Debug` panics if it cannot write.
struct Long;

impl fmt::Debug for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..40).for_each(|n| write!(f, "größe{n} ").unwrap());
        Ok(())
    }
}

fn request(n: u64) {
    let span = info_span!("request", n, ok = n.is_multiple_of(2), method = "GET", status = tracing::field::Empty);
    let _entered = span.enter();
    info!(share = 0.5, left = -(n as i64), path = "/index", "served {n}");
    trace_span!("query", table = %"users").in_scope(|| debug!(a = 1, b = 2, c = 3, d = 4, e = 5, "rows"));
    span.record("status", 200 + n);
    log::warn!("from log {n}");
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let requests: u64 = args[2].parse().unwrap();
    let counted = Arc::new(AtomicU64::new(0));
    let own = || Counting(counted.clone());
    let registry = tracing_subscriber::registry();
    match args[1].as_str() {
        "subscriber" => ppt_tracing::init().unwrap(),
        "layer" => {
            let all = registry.with(own()).with(LevelFilter::INFO).with(ppt_tracing::layer());
            tracing::subscriber::set_global_default(all).unwrap();
        }
        _ => {
            let all = registry.with(own().with_filter(Info)).with(ppt_tracing::layer_all());
            tracing::subscriber::set_global_default(all).unwrap();
        }
    }
    // No session is attached yet.
    let is_seen = tracing::enabled!(Level::TRACE);
    println!("before {is_seen} {}", log::log_enabled!(log::Level::Warn));
    request(0);
    println!("ready");
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).unwrap() != 0 {
        if line.trim_end() == "wait" {
            // The thread of ppt-tracing notices it a little later.
            while args[1] != "layer" && !tracing::enabled!(Level::TRACE) {
                std::thread::yield_now();
            }
        } else {
            let before = counted.load(Ordering::Relaxed);
            (1..=requests).for_each(request);
            if line.trim_end() == "long" {
                info!(long = ?Long, "long");
            }
            println!("counted {}", counted.load(Ordering::Relaxed) - before);
        }
        println!("done");
        line.clear();
    }
}
