//! Graphs and paths as JSON.

use std::io::{self, Write};

use ppt_query::graph::{GraphPath, GraphPaths, PointGraph, ThreadWakes};
use ppt_query::plain_json;
use serde_json::{Value, json};

fn write(value: &Value, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", plain_json(&value.to_string()))
}

/// An integer in the range of JSON readers, up to 2^63.
fn long(value: i128) -> Value {
    i64::try_from(value).map_or(Value::Null, Value::from)
}

pub(super) fn points(
    graph: &PointGraph,
    wakes: &[ThreadWakes],
    out: &mut impl Write,
) -> io::Result<()> {
    let points = graph.points.iter().map(
        |point| json!({"point": point.name, "frames": point.frames, "processes": point.processes}),
    );
    let edges = graph.edges.iter().map(|edge| {
        json!({
            "from": edge.from, "to": edge.to, "kind": edge.kind, "type": edge.of, "policy": edge.policy,
            "count": edge.count, "possible": edge.possible, "time": long(edge.time), "share": edge.share,
            "min": edge.min, "p50": edge.p50, "p99": edge.p99, "max": edge.max,
        })
    });
    let unmatched = graph.unmatched.iter().map(|unmatched| {
        json!({"point": unmatched.point, "side": unmatched.side, "type": unmatched.of, "reason": unmatched.reason, "count": unmatched.count})
    });
    let types = graph.types.iter().map(|matching| {
        json!({
            "type": matching.of, "outs": matching.outs, "ins": matching.ins, "certain": matching.certain,
            "possible": matching.possible, "impossible": matching.impossible,
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

pub(super) fn paths(paths: &GraphPaths, out: &mut impl Write) -> io::Result<()> {
    let [p50, p90, p99, _] = paths.latency.percentiles_as_floats();
    let stages = paths.stages.iter().map(|stage| {
        json!({
            "stage": stage.stage, "kind": stage.kind, "place": stage.place, "count": stage.count,
            "time": long(stage.time), "share": stage.share, "p50": stage.p50, "p99": stage.p99,
        })
    });
    let parts = paths
        .parts
        .iter()
        .map(|part| json!({"place": part.place, "time": long(part.time), "share": part.share}));
    let no_route = paths.disconnection.as_ref().map(|disconnection| {
        let side = |all: &[(String, u64)]| {
            all.iter().map(|entry| json!({"point": entry.0, "last": entry.1})).collect::<Vec<_>>()
        };
        let open = disconnection.open.iter().map(
            |edge| json!({"from": edge.from, "to": edge.to, "type": edge.of, "count": edge.count}),
        );
        json!({
            "ends": disconnection.ends, "forward": side(&disconnection.forward),
            "backward": side(&disconnection.backward), "missing": open.collect::<Vec<_>>(),
        })
    });
    let value = json!({
        "from": paths.from,
        "to": paths.to,
        "beginnings": paths.beginnings,
        "ends": paths.ends,
        "reached": paths.reached,
        "ambiguous": paths.ambiguous,
        "latency": {
            "n": paths.latency.count, "mean": paths.latency.mean_as_float(), "p50": p50, "p90": p90, "p99": p99,
            "min": paths.latency.min.map(|number| number.float()), "max": paths.latency.max.map(|number| number.float()),
        },
        "in_flight": paths.in_flight.map(|moments| json!({"mean": moments.0, "sd": moments.1, "most": moments.2})),
        "parts": parts.collect::<Vec<_>>(),
        "stages": stages.collect::<Vec<_>>(),
        "slowest": paths.slowest.iter().map(path).collect::<Vec<_>>(),
        "no_route": no_route,
    });
    write(&value, out)
}

fn path(path: &GraphPath) -> Value {
    let hops = path.steps.iter().map(|step| {
        let meanwhile: serde_json::Map<String, Value> =
            step.meanwhile.iter().map(|entry| (entry.0.clone(), entry.1.into())).collect();
        json!({
            "from": step.from, "to": step.to, "kind": step.kind, "place": step.place, "ns": step.ns,
            "host": step.host, "pid": step.pid, "tid": step.tid, "meanwhile": meanwhile,
        })
    });
    json!({
        "ts": path.ts,
        "latency": path.latency,
        "ambiguous": path.ambiguous,
        "hops": hops.collect::<Vec<_>>(),
        "why": path.why.as_ref().map(|why| why.sentence()),
    })
}
