"""Reads a trace by other people's tools, strictly; its events as JSON, one a line.

    trace.py perfetto FILE      by the messages of the perfetto wheel
    trace.py ctf FOLDER         by babeltrace2

An event is {"name", "cat", "ts", "dur", "args", "track"}: `dur` is null for instants. Those of Perfetto also have
"machine", and "process" and "pid", the process that their track is in. Numbers that JSON
does not hold are text. A line {"discarded": N} is what a reader itself says is missing.
"""

import json
import sys


def fail(why):
    sys.exit(f"not a trace: {why}")


def plain(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and abs(value) >= 1 << 53:
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


def say(**event):
    print(json.dumps(event))


def perfetto(path):
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

    trace = messages.Trace()
    trace.ParseFromString(open(path, "rb").read())

    def walk(message, where):
        if len(UnknownFieldSet(message)):
            fail(f"unknown fields in {where}")
        for field, value in message.ListFields():
            if field.message_type:
                repeated = not isinstance(value, field.message_type._concrete_class)
                for one in value if repeated else [value]:
                    walk(one, f"{where}.{field.name}")

    walk(trace, "trace")
    realtime = messages.BUILTIN_CLOCK_REALTIME
    snapshots = [it.clock_snapshot for it in trace.packet if it.HasField("clock_snapshot")]
    if not snapshots or any(it.primary_trace_clock != realtime for it in snapshots):
        fail("the clock of the trace is not CLOCK_REALTIME")
    tracks, interned, cleared, events = {}, {}, set(), []
    # What readers keep for each machine: numbers of processes, sequences, and clocks.
    numbers, synced, clocked, machines = set(), {0}, set(), {}
    for order, packet in enumerate(trace.packet):
        machine = packet.machine_id
        if packet.HasField("machine_id") and not machine:
            fail("the first machine has no number")
        if not packet.trusted_packet_sequence_id:
            fail("a packet of no sequence")
        sequence = machine, packet.trusted_packet_sequence_id
        if packet.HasField("remote_clock_sync"):
            rounds = packet.remote_clock_sync.synced_clocks
            if machine in synced or events or len(rounds) < 2:
                fail("clocks of machines are compared too late, or hardly")
            for one in rounds:
                same = one.client_clocks == one.host_clocks and one.host_clocks.clocks
                if not same or {it.clock_id for it in same} != {realtime} or not all(it.timestamp for it in same):
                    fail("a machine has another clock")
            synced.add(machine)
        if packet.HasField("clock_snapshot"):
            if machine not in synced or events:
                fail("a clock of a machine that is not compared yet")
            clocked.add(machine)
        if packet.previous_packet_dropped:
            # What was interned is forgotten.
            cleared.discard(sequence)
        if packet.sequence_flags & 1:
            cleared.add(sequence)
            interned[sequence] = {}
            defaults = packet.trace_packet_defaults
            if defaults.timestamp_clock_id != realtime:
                fail("times of another clock")
        for field, values in packet.interned_data.ListFields():
            for value in values:
                key = (field.name, value.iid)
                if not value.iid or key in interned[sequence]:
                    fail(f"{key} is interned twice")
                text = value.str.decode() if field.name.endswith("values") else value.name
                interned[sequence][key] = text
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.parent_uuid and machines.get(track.parent_uuid) != machine:
                fail("a track of another machine than its parent's")
            machines[track.uuid] = machine
            if track.uuid in tracks or (track.parent_uuid and track.parent_uuid not in tracks):
                fail("a track twice, or before its parent")
            tracks[track.uuid] = track
            if track.HasField("process"):
                if (machine, track.process.pid) in numbers:
                    fail("two processes of one number")
                numbers.add((machine, track.process.pid))
            if track.HasField("thread") and (machine, track.thread.pid) not in numbers:
                fail("a thread of no process")
        if packet.HasField("track_event"):
            if machine not in clocked:
                fail("a machine without clocks")
            if packet.sequence_flags & 2 and sequence not in cleared:
                fail("an event needs what is forgotten")
            if not packet.sequence_flags & 2 and packet.timestamp_clock_id != realtime:
                fail("an event of an unknown clock")
            events.append((packet.timestamp, order, packet))

    def word(sequence, kind, iid):
        try:
            return interned[sequence][kind, iid]
        except KeyError:
            fail(f"{kind} {iid} is not interned")

    def value(sequence, note):
        which = note.WhichOneof("value")
        if which == "string_value_iid":
            return word(sequence, "debug_annotation_string_values", note.string_value_iid)
        return plain(getattr(note, which))

    def process(uuid):
        while uuid and not tracks[uuid].HasField("process"):
            uuid = tracks[uuid].parent_uuid
        return tracks[uuid].process if uuid else None

    open_slices = {}
    for time, _, packet in sorted(events, key=lambda it: it[:2]):
        event, sequence = packet.track_event, (packet.machine_id, packet.trusted_packet_sequence_id)
        if event.track_uuid not in tracks:
            fail("an event of no track")
        if machines[event.track_uuid] != packet.machine_id:
            fail("an event of another machine than its track's")
        stack = open_slices.setdefault(event.track_uuid, [])
        if event.type == event.TYPE_SLICE_END:
            if not stack:
                fail("a slice ends that did not begin")
            said = stack.pop()
            say(dur=time - said["ts"], **said)
            continue
        names = [
            note.name or word(sequence, "debug_annotation_names", note.name_iid)
            for note in event.debug_annotations
        ]
        if len(names) != len(set(names)):
            fail("an annotation twice")
        if event.type == event.TYPE_COUNTER:
            track = tracks[event.track_uuid]
            which = event.WhichOneof("counter_value_field")
            counted = plain(getattr(event, which))
            say(counter=track.name, ts=time, value=counted, unit=track.counter.unit_name)
            continue
        said = {
            "name": event.name or word(sequence, "event_names", event.name_iid),
            "cat": "".join(word(sequence, "event_categories", it) for it in event.category_iids),
            "ts": time,
            "args": {n: value(sequence, it) for n, it in zip(names, event.debug_annotations)},
            "track": str(event.track_uuid),
            "flows": [str(it) for it in event.flow_ids],
            "machine": packet.machine_id,
        }
        owner = process(event.track_uuid)
        if owner:
            said.update(process=owner.process_name, pid=owner.pid)
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append(said)
        elif event.type == event.TYPE_INSTANT:
            say(dur=None, dropped=packet.previous_packet_dropped, **said)
        else:
            fail(f"an event of type {event.type}")
    if any(open_slices.values()):
        fail("a slice does not end")


def ctf(path):
    import bt2

    def of(field):
        if isinstance(field, bt2._StringFieldConst):
            return str(field)
        if isinstance(field, bt2._ArrayFieldConst):
            return "".join(f"{int(it):02x}" for it in field)
        if isinstance(field, bt2._RealFieldConst):
            return plain(float(field))
        return plain(int(field))

    for message in bt2.TraceCollectionMessageIterator(path):
        if isinstance(message, bt2._DiscardedEventsMessageConst):
            if message.count is None:
                fail("nobody knows how many events are missing")
            say(discarded=message.count)
        if not isinstance(message, bt2._EventMessageConst):
            continue
        event = message.event
        context = event.packet.context_field
        args = {name: of(field) for name, field in event.payload_field.items()}
        for name in args.pop("null").replace("-", "").split():
            del args[name]
        args.update(segment=str(context["segment"]), ring=int(context["ring"]))
        say(
            name=event.name,
            cat=str(context["buffer"]),
            ts=message.default_clock_snapshot.ns_from_origin,
            dur=None,
            args=args,
            tid=int(event["tid"]),
            pid=int(context["pid"]),
            host=str(context["host"]),
        )


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
