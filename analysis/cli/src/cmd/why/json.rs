//! Slow intervals as JSON: an array of objects, each with its parts.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ppt_query::plain_json;
use ppt_query::why::{
    FunctionCounts, RunningIn, ServiceCall, SliceDescription, SlowInterval, SlowPart, ThreadSlice,
    WakerHop,
};
use serde_json::{Value, json};

use super::alike::alike;
use super::part_text::PartText;

pub(super) fn write(slow: &[SlowInterval], out: &mut impl Write) -> io::Result<()> {
    let mut before = "[\n";
    for (slow, alike) in slow.iter().zip(alike(slow)) {
        let mut object = interval(slow);
        object["alike"] = alike.into();
        write!(out, "{before}{}", plain_json(&object.to_string()))?;
        before = ",\n";
    }
    let empty = before == "[\n";
    out.write_all(if empty { b"[]\n" } else { b"\n]\n" })
}

fn interval(slow: &SlowInterval) -> Value {
    json!({
        "name": slow.name,
        "capture": slow.capture,
        "buffer": slow.buffer,
        "segment": slow.segment,
        "ring": slow.ring,
        "seqno": slow.seqno,
        "host": slow.host,
        "pid": slow.pid,
        "tid": slow.tid,
        "thread": slow.thread,
        "ts": slow.ts,
        "dur": slow.dur,
        "request": slow.request.iter().cloned().collect::<BTreeMap<_, _>>(),
        "sentence": slow.sentence(),
        "parts": slow.parts.iter().map(part).collect::<Vec<_>>(),
        "answered_by": slow.answered_by.as_ref().map(|call| answered_by(call)),
    })
}

/// A call of another service, and the request there.
fn answered_by(call: &ServiceCall) -> Value {
    json!({
        "service": call.service,
        "identity": call.identity,
        "ts": call.ts,
        "dur": call.dur,
        "taken_after": call.taken_after,
        "had_others": call.had_others,
        "process_name": call.process_name,
        "request": interval(&call.request),
    })
}

fn about(doing: Option<&ThreadSlice>) -> Option<String> {
    doing?.about.as_ref().map(SliceDescription::to_string)
}

fn part(part: &SlowPart) -> Value {
    let text = PartText::new(&part.state);
    json!({
        "part": text.part,
        "cause": part.cause(),
        "ns": part.spent.ns,
        "times": part.spent.times,
        "longest": part.spent.longest.1 - part.spent.longest.0,
        "call": text.call,
        "woken_by": text.woken_by,
        "waker": text.waker,
        "waker_name": text.waker_name,
        "inside": part.own_slice.as_ref().map(|entry| &entry.name),
        "inside_about": about(part.own_slice.as_ref()),
        "doing": part.waker_slice.as_ref().map(|doing| &doing.name),
        "doing_about": about(part.waker_slice.as_ref()),
        "doing_ns": part.waker_slice.as_ref().map(|doing| doing.ns),
        "doing_frame": part.waker_slice.as_ref().map(frame),
        "running_in": part.running_in.iter().map(running_in).collect::<Vec<_>>(),
        "stacks": stacks(&part.functions),
        "successor": text.successor,
        "successor_name": text.successor_name,
        "hops": part.hops.iter().map(hop).collect::<Vec<_>>(),
    })
}

/// Slices of one name that a thread ran in, and the one that it ran in most.
fn running_in(share: &RunningIn) -> Value {
    json!({
        "name": share.name,
        "ns": share.ns,
        "slices": share.slices,
        "longest_ns": share.longest.ns,
        "longest_frame": frame(&share.longest),
    })
}

/// Number of stacks, and counts of their innermost functions.
pub(super) fn stacks(counts: &FunctionCounts) -> Value {
    let of_function =
        |(function, count): &(String, u64)| json!({"function": function, "stacks": count});
    json!({
        "count": counts.stacks,
        "functions": counts.functions.iter().map(of_function).collect::<Vec<_>>(),
    })
}

/// The frame that shows the activity of a thread.
fn frame(doing: &ThreadSlice) -> Value {
    let of = &doing.frame;
    json!({
        "capture": of.capture,
        "buffer": of.buffer,
        "segment": of.segment,
        "ring": of.ring,
        "seqno": of.seqno,
    })
}

fn hop(hop: &WakerHop) -> Value {
    let text = PartText::new(&hop.state);
    json!({
        "thread": hop.thread,
        "thread_name": hop.name,
        "from": hop.within.0,
        "to": hop.within.1,
        "part": text.part,
        "ns": hop.spent.ns,
        "call": text.call,
        "woken_by": text.woken_by,
        "waker": text.waker,
        "doing": hop.slice.as_ref().map(|entry| &entry.name),
    })
}
