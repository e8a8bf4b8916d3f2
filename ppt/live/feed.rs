//! Describes attached buffers to the listener.

use std::sync::Arc;

use ppt_agent::{AttachedBuffer, Buffer, Segment, Session, Target, Threads};
use ppt_listener::{Feed, ListedSegment, Source, Unattended};

/// The buffers of a session, in order. `from_start`: the process waits for this session, and has
/// written no frame yet.
pub(super) fn feeds(session: &Session, from_start: bool) -> impl Iterator<Item = Feed> {
    let threads = session.target().threads_there();
    session.attached().iter().map(move |buffer| {
        let mut feed = feed(session.target(), buffer, threads.clone(), from_start);
        let leftovers = buffer
            .leftovers
            .iter()
            .flat_map(|leftover| unattended(&leftover.segment, &leftover.unattended));
        feed.unattended.extend(leftovers);
        feed
    })
}

/// The feed through which a file states facts of a process; it must not have ended. If a session
/// has no buffers, ppt's own feeds come first.
pub(super) fn living(first_feed: usize, session: &Session) -> Option<usize> {
    let buffers = session.attached();
    if buffers.is_empty() {
        return Some(first_feed);
    }
    let mut buffers = (first_feed..).zip(buffers);
    buffers.find(|(_, buffer)| buffer.end().is_none()).map(|(feed, _)| feed)
}

/// The source chunk's description of a process.
pub(super) fn process(target: &Target) -> ppt_listener::Process {
    let (uid, _) = target.owner();
    ppt_listener::Process {
        pid: target.pid() as u32,
        ns_pid: target.ns_pid() as u32,
        start_time: target.start_time(),
        uid,
        comm: target.comm().into(),
        exe: target.exe(),
        namespaces: target.namespaces(),
        time_offsets: match target.monotonic_offset() {
            0 => Vec::new(),
            ns => vec![("monotonic".into(), ns)],
        },
        ..Default::default()
    }
}

/// The source chunk of a buffer before ppt attaches to it.
pub(super) fn source(target: &Target, buffer: &Buffer) -> Source {
    Source {
        schema_json: buffer.schema_json.clone(),
        schema_hash: buffer.schema_hash,
        buffer: buffer.schema.buffer.clone(),
        object: buffer.object.clone(),
        object_build_id: buffer.build_id.clone(),
        process: process(target),
        tags: buffer.schema.tags.clone(),
        ..Default::default()
    }
}

/// The current segment of a buffer.
pub(super) fn feed(
    target: &Target,
    buffer: &AttachedBuffer,
    threads: Option<Threads>,
    from_start: bool,
) -> Feed {
    Feed {
        source: Source {
            segments: segments(buffer),
            from_start,
            clock: buffer.clock.as_ref().map_or(String::new(), |clock| clock.name().into()),
            ..source(target, &buffer.buffer)
        },
        segment: buffer.segment.clone(),
        first: buffer.first.clone(),
        cells: buffer.cells.clone(),
        unattended: unattended(&buffer.segment, &buffer.unattended).collect(),
        populated: buffer.plan.populate,
        alive: threads.map(|threads| Box::new(move |tid| threads.has(tid)) as _),
    }
}

fn unattended(
    segment: &Arc<Segment>,
    frames: &[ppt_agent::Unattended],
) -> impl Iterator<Item = Unattended> {
    let listed = |unattended: &ppt_agent::Unattended| {
        let segment = segment.clone();
        Unattended {
            segment,
            ring: unattended.ring,
            first_seq: unattended.first,
            count: unattended.count,
        }
    };
    frames.iter().map(listed)
}

/// All segments that the capture refers to.
fn segments(buffer: &AttachedBuffer) -> Vec<ListedSegment> {
    let leftovers = buffer.leftovers.iter().map(|leftover| &leftover.segment);
    let mut segments: Vec<ListedSegment> = Vec::new();
    for segment in leftovers.chain(buffer.former()).chain([&buffer.segment]).map(listed) {
        // Rings may grow into a segment of an earlier session.
        segments.retain(|former| former.nonce != segment.nonce);
        segments.push(segment);
    }
    segments
}

fn listed(segment: &Arc<Segment>) -> ListedSegment {
    let geometry = segment.geometry();
    ListedSegment {
        nonce: segment.nonce(),
        rings: geometry.rings(),
        slots: geometry.slots() as u32,
        stride: geometry.stride(),
    }
}

/// The frames that a target dropped, by cause.
pub(super) fn dropped(counts: ppt_agent::Dropped) -> ppt_listener::Dropped {
    let ppt_agent::Dropped { no_ring, nested, not_mapped } = counts;
    ppt_listener::Dropped { no_ring, nested, not_mapped }
}
