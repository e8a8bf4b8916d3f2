"""Reads an export for OpenTelemetry by its official messages, strictly; what it holds as JSON, one a line.

    otlp.py FOLDER FILE         the export as protobuf, and the same as lines of JSON: both must hold equal messages
    otlp.py FOLDER              an export that goes on: the files of its folders `traces` and `metrics`

A line is {"span": name, "trace", "id", "parent", "ts", "dur", "kind", "args",
"links", "resource"}, or {"metric": name, "unit", "type", "ts", "value", "args", "resource"}; numbers that JSON does
not hold are text, as in trace.py.
"""

import json
import pathlib
import sys

from google.protobuf import json_format
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from trace import fail, plain


def walk(message, where):
    if len(UnknownFieldSet(message)):
        fail(f"unknown fields in {where}")
    for field, value in message.ListFields():
        if field.message_type:
            repeated = not isinstance(value, field.message_type._concrete_class)
            for one in value if repeated else [value]:
                walk(one, f"{where}.{field.name}")


def messages(path, request):
    """Each with its length before it."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        bytes_, at = data[at + 4 : at + 4 + length], at + 4 + length
        if at > len(data) or not length:
            fail("a message is cut off, or empty")
        found.append(request.FromString(bytes_))
        walk(found[-1], request.__name__)
    return found


# Ids are bytes to readers of protobuf, for which its JSON has base64; OTLP has digits.
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def digits_to_base64(value):
    import base64

    if isinstance(value, list):
        return [digits_to_base64(it) for it in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, it in value.items():
        if key in IDS:
            if it != it.lower() or len(it) != 2 * IDS[key]:
                fail(f"{key} is {it}")
            changed[key] = base64.b64encode(bytes.fromhex(it)).decode()
        else:
            changed[key] = digits_to_base64(it)
        is_long = key in ("intValue", "asInt", "count") or key.endswith("UnixNano")
        if is_long and not isinstance(it, str):
            fail(f"{key} is no text: {it}")
        if key in ("kind", "aggregationTemporality") and not isinstance(it, int):
            fail(f"{key} is no number: {it}")
    return changed


def lines(path):
    traces, metrics = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        value = json.loads(line)
        request, all_ = {
            "resourceSpans": (ExportTraceServiceRequest, traces),
            "resourceMetrics": (ExportMetricsServiceRequest, metrics),
        }[next(iter(value))]
        if len(value) != 1:
            fail("a line of several kinds")
        all_.append(json_format.ParseDict(digits_to_base64(value), request()))
    return traces, metrics


def attributes(of):
    keys = [it.key for it in of]
    if len(keys) != len(set(keys)) or not all(keys):
        fail(f"a key twice, or none: {keys}")
    found = {}
    for it in of:
        which = it.value.WhichOneof("value")
        if not which:
            fail(f"{it.key} has no value")
        found[it.key] = plain(getattr(it.value, which))
    return found


def scoped(of):
    if of.scope.name != "ppt" or not of.scope.version:
        fail(f"the scope is {of.scope}")
    return of


def span(one, resource, seen):
    context = one.trace_id, one.span_id
    if len(one.trace_id) != 16 or len(one.span_id) != 8 or not any(one.trace_id) or not any(one.span_id):
        fail(f"ids of {one.name}")
    if context in seen:
        fail(f"the span {one.name} is told twice")
    seen[context] = one
    if one.parent_span_id and (len(one.parent_span_id) != 8 or not any(one.parent_span_id)):
        fail(f"the parent of {one.name}")
    for link in one.links:
        if len(link.trace_id) != 16 or len(link.span_id) != 8:
            fail(f"a link of {one.name}")
    if one.end_time_unix_nano < one.start_time_unix_nano:
        fail(f"{one.name} ends before it begins")
    if not one.name or one.kind != 1:
        fail(f"the name or the kind of a span: {one.name} {one.kind}")
    return {
        "span": one.name,
        "trace": one.trace_id.hex(),
        "id": one.span_id.hex(),
        "parent": one.parent_span_id.hex(),
        "ts": one.start_time_unix_nano,
        "dur": one.end_time_unix_nano - one.start_time_unix_nano,
        "args": attributes(one.attributes),
        "links": [[it.trace_id.hex(), it.span_id.hex(), attributes(it.attributes)] for it in one.links],
        "resource": resource,
    }


def points(metric, resource):
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind)
    if not metric.name or not data.data_points:
        fail(f"a metric without a name or points: {metric.name}")
    if kind != "gauge" and data.aggregation_temporality != 2:
        fail(f"{metric.name} is not cumulative")
    for point in data.data_points:
        if kind != "gauge" and not point.start_time_unix_nano:
            fail(f"{metric.name} has no start")
        said = {
            "metric": metric.name,
            "unit": metric.unit,
            "type": kind,
            "ts": point.time_unix_nano,
            "args": attributes(point.attributes),
            "resource": resource,
        }
        if kind == "sum":
            said["monotonic"] = data.is_monotonic
        if kind == "histogram":
            bounds, counts = list(point.explicit_bounds), list(point.bucket_counts)
            if len(counts) != len(bounds) + 1 or sum(counts) != point.count or bounds != sorted(set(bounds)):
                fail(f"the buckets of {metric.name}: {bounds} {counts}")
            said.update(count=point.count, bounds=bounds, counts=counts)
            said["sum"] = point.sum if point.HasField("sum") else None
        else:
            said["value"] = plain(getattr(point, point.WhichOneof("value")))
        yield said


def both(folder, file):
    traces = messages(folder / "traces.pb", ExportTraceServiceRequest)
    metrics = messages(folder / "metrics.pb", ExportMetricsServiceRequest)
    for found, expected in zip(lines(pathlib.Path(file)), (traces, metrics)):
        # As text: what is no number does not equal itself.
        if list(map(str, found)) != list(map(str, expected)):
            fail("the lines of JSON hold other messages")
    return traces, metrics


def followed(folder):
    all_ = []
    for of, (kind, request) in enumerate(
        {"traces": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}.items()
    ):
        found = []
        for path in sorted((folder / kind).glob("[!._]*")):
            read = messages(path, request) if path.suffix == ".pb" else lines(path)[of]
            found += read
        all_.append(found)
    return all_


def main(folder, *file):
    folder = pathlib.Path(folder)
    traces, metrics = both(folder, *file) if file else followed(folder)
    seen = {}
    for request in traces:
        if sum(len(it.spans) for of in request.resource_spans for it in of.scope_spans) > 512:
            fail("a request of more than 512 spans")
        for of in request.resource_spans:
            resource = attributes(of.resource.attributes)
            for scope in of.scope_spans:
                for one in scoped(scope).spans:
                    print(json.dumps(span(one, resource, seen)))
    for one in seen.values():
        parent = seen.get((one.trace_id, one.parent_span_id))
        if one.parent_span_id and parent is None:
            fail(f"the parent of {one.name} is not told")
        if any((it.trace_id, it.span_id) not in seen for it in one.links):
            fail(f"a link of {one.name} leads nowhere")
    for request in metrics:
        for of in request.resource_metrics:
            resource = attributes(of.resource.attributes)
            for scope in of.scope_metrics:
                for metric in scoped(scope).metrics:
                    for said in points(metric, resource):
                        print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
