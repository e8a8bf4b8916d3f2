//! Perfetto's SDK: instants with the payload as debug arguments, a session in this process with a
//! buffer of 64 MiB, read when it stops. It has no event without a time.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};

use peer_serve::{Collecting, Way, serve};
use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::trace_config::TraceConfig;
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::{EventContext, TrackEvent, TrackEventDebugArg};
use perfetto_sdk::{track_event_categories, track_event_instant};

track_event_categories! {
    pub mod categories {
        ("bench", "What is measured", []),
    }
}
use categories as perfetto_te_ns;

const WAYS: &[Way] = &[("stamped", instants)];
const BUFFER_KB: u32 = 64 << 10;

#[inline(never)]
fn instant(i: u64) {
    track_event_instant!("bench", "payload", |ctx: &mut EventContext| {
        ctx.add_debug_arg("a", TrackEventDebugArg::Int64(i64::from(i as i32)));
        ctx.add_debug_arg("b", TrackEventDebugArg::Int64(i64::from((i >> 1) as i32)));
        ctx.add_debug_arg("c", TrackEventDebugArg::Uint64(i));
        ctx.add_debug_arg("d", TrackEventDebugArg::Uint64(i));
        ctx.add_debug_arg("e", TrackEventDebugArg::Uint64(i));
    });
}

fn instants(from: u64, to: u64) {
    (from..to).for_each(instant);
}

/// The configuration of a session, as the SDK wants it.
fn config() -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let heap = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    let mut config = TraceConfig { msg: &mut message };
    config.set_buffers(|buffers| {
        buffers.set_size_kb(BUFFER_KB);
    });
    config.set_data_sources(|sources| {
        sources.set_config(|source| {
            source.set_name("track_event");
            source.set_track_event_config(|events| {
                events.set_enabled_categories("bench");
            });
        });
    });
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    heap.copy_into(&mut bytes);
    bytes
}

#[derive(Default)]
struct Session {
    on: Option<(TracingSession, File)>,
}

impl Collecting for Session {
    fn on(&mut self, _: &str, file: &str) {
        let file = File::create(file).expect(file);
        let mut session = TracingSession::in_process().expect("a session");
        session.setup(&config());
        session.start_blocking();
        self.on = Some((session, file));
    }

    fn off(&mut self) -> Option<u64> {
        let (mut session, file) = self.on.take()?;
        session.flush_blocking(std::time::Duration::from_secs(5));
        session.stop_blocking();
        let file = Arc::new(Mutex::new(file));
        session.read_trace_blocking(move |data, _| {
            let mut file = file.lock().expect("one reader");
            file.write_all(data).expect("the trace");
        });
        None
    }
}

fn main() {
    let backends = ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS);
    Producer::init(backends.build());
    TrackEvent::init();
    perfetto_te_ns::register().expect("categories");
    serve(WAYS, Session::default());
}
