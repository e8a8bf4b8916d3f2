//! What the listener needs to know of attached buffers, in its words.

use std::sync::Arc;

use ppt_agent::{Attached, Segment, Session, Target};
use ppt_listener::{Feed, ListedSegment, Unattended};

/// The buffers of a session, in their order.
pub(super) fn feeds(session: &Session) -> impl Iterator<Item = Feed> {
    session.attached().iter().map(|it| feed(session.target(), it))
}

/// The segment that a buffer has now.
pub(super) fn feed(target: &Target, it: &Attached) -> Feed {
    let (uid, _) = target.owner();
    Feed {
        source: ppt_listener::Source {
            schema_json: it.buffer.schema_json.clone(),
            schema_hash: it.buffer.schema_hash,
            buffer: it.buffer.schema.buffer.clone(),
            object: it.buffer.object.clone(),
            object_build_id: it.buffer.build_id.clone(),
            process: ppt_listener::Process {
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
            },
            segments: it.former().chain([&it.segment]).map(listed).collect(),
            tags: it.buffer.schema.tags.clone(),
            clock: it.clock.as_ref().map_or(String::new(), |clock| clock.name().into()),
            ..Default::default()
        },
        segment: it.segment.clone(),
        first: it.first.clone(),
        unattended: it
            .unattended
            .iter()
            .map(|&(ring, first_seq, count)| Unattended { ring, first_seq, count })
            .collect(),
        populated: it.plan.populate,
        alive: target.thread_probe().map(|probe| Box::new(probe) as _),
    }
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

/// What a target refused.
pub(super) fn dropped(it: ppt_agent::Dropped) -> ppt_listener::Dropped {
    ppt_listener::Dropped { no_ring: it.no_ring, nested: it.nested, not_mapped: it.not_mapped }
}
