//! Graphs and ways for programs.

use std::io::{self, Write};

use ppt_query::graph::{PointGraph, ThreadWakes, Way, Ways};
use ppt_query::plain_json;
use serde_json::{Value, json};

fn write(value: &Value, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", plain_json(&value.to_string()))
}

/// Whole numbers as JSON has them, up to 2^63.
fn long(value: i128) -> Value {
    i64::try_from(value).map_or(Value::Null, Value::from)
}

pub(super) fn points(
    graph: &PointGraph,
    wakes: &[ThreadWakes],
    out: &mut impl Write,
) -> io::Result<()> {
    let points = graph
        .points
        .iter()
        .map(|it| json!({"point": it.name, "frames": it.frames, "processes": it.processes}));
    let edges = graph.edges.iter().map(|it| {
        json!({
            "from": it.from, "to": it.to, "kind": it.kind, "type": it.of, "policy": it.policy,
            "count": it.count, "possible": it.possible, "time": long(it.time), "share": it.share,
            "min": it.min, "p50": it.p50, "p99": it.p99, "max": it.max,
        })
    });
    let unmatched = graph.unmatched.iter().map(|it| {
        json!({"point": it.point, "side": it.side, "type": it.of, "reason": it.reason, "count": it.count})
    });
    let types = graph.types.iter().map(|it| {
        json!({
            "type": it.of, "outs": it.outs, "ins": it.ins, "certain": it.certain,
            "possible": it.possible, "impossible": it.impossible,
        })
    });
    let wakes = wakes.iter().map(|wakes| {
        json!({
            "host": wakes.host, "pid": wakes.pid, "waker": wakes.waker, "woken": wakes.woken,
            "count": wakes.count, "p50": wakes.p50, "p99": wakes.p99, "max": wakes.max,
        })
    });
    let value = json!({
        "points": points.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "unmatched": unmatched.collect::<Vec<_>>(),
        "types": types.collect::<Vec<_>>(),
        "unknown": graph.unknown,
        "idle": graph.idle,
        "wakes": wakes.collect::<Vec<_>>(),
    });
    write(&value, out)
}

pub(super) fn ways(ways: &Ways, out: &mut impl Write) -> io::Result<()> {
    let [p50, p90, p99, _] = ways.latency.percentiles_as_floats();
    let stages = ways.stages.iter().map(|it| {
        json!({
            "stage": it.stage, "kind": it.kind, "place": it.place, "count": it.count,
            "time": long(it.time), "share": it.share, "p50": it.p50, "p99": it.p99,
        })
    });
    let parts = ways
        .parts
        .iter()
        .map(|it| json!({"place": it.place, "time": long(it.time), "share": it.share}));
    let gap = ways.gap.as_ref().map(|gap| {
        let side = |all: &[(String, u64)]| {
            all.iter().map(|it| json!({"point": it.0, "last": it.1})).collect::<Vec<_>>()
        };
        let open = gap
            .open
            .iter()
            .map(|it| json!({"from": it.from, "to": it.to, "type": it.of, "count": it.count}));
        json!({
            "ends": gap.ends, "forward": side(&gap.forward), "backward": side(&gap.backward),
            "missing": open.collect::<Vec<_>>(),
        })
    });
    let value = json!({
        "from": ways.from,
        "to": ways.to,
        "beginnings": ways.beginnings,
        "ends": ways.ends,
        "reached": ways.reached,
        "ambiguous": ways.ambiguous,
        "latency": {
            "n": ways.latency.count, "mean": ways.latency.mean_as_float(), "p50": p50, "p90": p90, "p99": p99,
            "min": ways.latency.min.map(|it| it.float()), "max": ways.latency.max.map(|it| it.float()),
        },
        "in_flight": ways.in_flight.map(|it| json!({"mean": it.0, "sd": it.1, "most": it.2})),
        "parts": parts.collect::<Vec<_>>(),
        "stages": stages.collect::<Vec<_>>(),
        "slowest": ways.slowest.iter().map(way).collect::<Vec<_>>(),
        "no_route": gap,
    });
    write(&value, out)
}

fn way(way: &Way) -> Value {
    let hops = way.hops.iter().map(|it| {
        let meanwhile: serde_json::Map<String, Value> =
            it.meanwhile.iter().map(|it| (it.0.clone(), it.1.into())).collect();
        json!({
            "from": it.from, "to": it.to, "kind": it.kind, "place": it.place, "ns": it.ns,
            "host": it.host, "pid": it.pid, "tid": it.tid, "meanwhile": meanwhile,
        })
    });
    json!({
        "ts": way.ts,
        "latency": way.latency,
        "ambiguous": way.ambiguous,
        "hops": hops.collect::<Vec<_>>(),
        "why": way.why.as_ref().map(|it| it.sentence()),
    })
}
