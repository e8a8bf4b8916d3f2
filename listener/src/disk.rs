//! The disk thread: hands what comes out of the queue to a sink.

use std::sync::Arc;
use std::time::Duration;

use crate::clocks;
use crate::queue::{Item, Next, Queue};
use crate::sink::{Done, Sink};

/// Feeds `sink` until the queue says that it is over.
pub(crate) fn run(queue: &Arc<Queue>, mut sink: impl Sink) -> Done {
    loop {
        let patience = sink.due().saturating_sub(clocks::monotonic());
        match queue.next(Duration::from_nanos(patience)) {
            Next::Item(Item::Chunk(chunk)) => {
                sink.frames(&chunk);
                queue.pool().give(chunk.frames);
            }
            Next::Item(Item::Sources(new)) => sink.introduce(new),
            Next::Item(Item::Gone(part, closings)) => sink.gone(part, &closings),
            Next::Nothing => {}
            Next::End(ending) => return sink.end(ending),
            Next::Abandoned => return Done { error: None, complete: false },
        }
        sink.tick();
    }
}
