//! Slow intervals for programs: an array of objects, each with its parts.

use std::io::{self, Write};

use ppt_query::plain_json;
use ppt_query::why::{Slow, SlowPart};
use serde_json::{Value, json};

use super::said::Said;

pub(super) fn write(slow: &[Slow], out: &mut impl Write) -> io::Result<()> {
    let mut before = "[\n";
    for slow in slow {
        let parts: Vec<Value> = slow.parts.iter().map(part).collect();
        let object = json!({
            "name": slow.name,
            "capture": slow.capture,
            "buffer": slow.buffer,
            "segment": slow.segment,
            "ring": slow.ring,
            "seqno": slow.seqno,
            "host": slow.host,
            "pid": slow.pid,
            "tid": slow.tid,
            "ts": slow.ts,
            "dur": slow.dur,
            "sentence": slow.sentence(),
            "parts": parts,
        });
        write!(out, "{before}{}", plain_json(&object.to_string()))?;
        before = ",\n";
    }
    let empty = before == "[\n";
    out.write_all(if empty { b"[]\n" } else { b"\n]\n" })
}

fn part(part: &SlowPart) -> Value {
    let said = Said::of(&part.part);
    json!({
        "part": said.part,
        "ns": part.spent.ns,
        "times": part.spent.times,
        "longest": part.spent.longest.1 - part.spent.longest.0,
        "call": said.call,
        "woken_by": said.woken_by,
        "waker": said.waker,
        "doing": part.doing.as_ref().map(|it| &it.name),
        "doing_ns": part.doing.as_ref().map(|it| it.ns),
        "successor": said.successor,
        "successor_name": said.successor_name,
    })
}
