//! `tracing` with tracing-appender's non-blocking writer: text through a bounded channel to a thread
//! that writes the file. A full channel loses lines, and counts them.

use std::fs::File;

use peer_serve::{Collecting, Way, serve};
use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, WorkerGuard};
use tracing_subscriber::fmt;

const WAYS: &[Way] = &[("bare", event_calls), ("stamped", event_calls)];

#[inline(never)]
fn event(i: u64) {
    tracing::info!(a = i as i32, b = (i >> 1) as i32, c = i, d = i, e = i);
}

fn event_calls(from: u64, to: u64) {
    (from..to).for_each(event);
}

#[derive(Default)]
struct Appender {
    on: Option<(WorkerGuard, ErrorCounter)>,
}

impl Collecting for Appender {
    fn on(&mut self, way: &str, file: &str) {
        let file = File::create(file).expect(file);
        let (writer, guard) = NonBlocking::new(file);
        self.on = Some((guard, writer.error_counter()));
        let lines = fmt().with_max_level(Level::INFO).with_ansi(false).with_writer(writer);
        match way {
            "bare" => lines.without_time().init(),
            _ => lines.init(),
        }
    }

    fn off(&mut self) -> Option<u64> {
        let (guard, errors) = self.on.take()?;
        drop(guard);
        Some(errors.dropped_lines() as u64)
    }
}

fn main() {
    serve(WAYS, Appender::default());
}
