//! fastrace: spans with properties, a hundred to a trace, to a reporter that writes lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;
use fastrace::{Span, flush, set_reporter};
use peer_serve::{Collecting, Way, serve};

const WAYS: &[Way] = &[("stamped", spans)];
const A_TRACE: usize = 100;

/// Whether traces are begun; off, a span finds no parent.
static ON: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn span(i: u64) {
    let _span = LocalSpan::enter_with_local_parent("payload").with_properties(|| {
        [
            ("a", (i as i32).to_string()),
            ("b", ((i >> 1) as i32).to_string()),
            ("c", i.to_string()),
            ("d", i.to_string()),
            ("e", i.to_string()),
        ]
    });
}

fn spans(from: u64, to: u64) {
    for first in (from..to).step_by(A_TRACE) {
        let root = match ON.load(Ordering::Relaxed) {
            true => Span::root("root", SpanContext::random()),
            false => Span::noop(),
        };
        let _scope = root.set_local_parent();
        (first..to.min(first + A_TRACE as u64)).for_each(span);
    }
}

struct Lines(BufWriter<File>);

impl Reporter for Lines {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        for span in spans.iter().filter(|span| span.name == "payload") {
            let _ = write!(self.0, "{} {}", span.begin_time_unix_ns, span.duration_ns);
            for (_, value) in &span.properties {
                let _ = write!(self.0, " {value}");
            }
            let _ = writeln!(self.0);
        }
        let _ = self.0.flush();
    }
}

struct Collector;

impl Collecting for Collector {
    fn on(&mut self, _: &str, file: &str) {
        let file = File::create(file).expect(file);
        set_reporter(Lines(BufWriter::new(file)), Config::default());
        ON.store(true, Ordering::Relaxed);
    }

    fn off(&mut self) -> Option<u64> {
        flush();
        None
    }
}

fn main() {
    serve(WAYS, Collector);
}
