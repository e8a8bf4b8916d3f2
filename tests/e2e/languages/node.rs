//! Node.js targets: packages built as the documentation describes, for the installed Node.

use std::collections::BTreeSet;

use ppt_capture::{Capture, CaptureItem, Chunk};

use crate::fixtures::node::{addon, headers, node, packages};
use crate::fixtures::support::{Account, Attach, Bench, Table, Target, available, wait_until};

const FRAMES: &str = "buffer work;
enum Kind : u8 { GET = 1, PUT }
frame request { Kind kind; i32 who; char path[8]; float pos[2]; bytes raw[3]; interval time handle; }
frame note { u8 n; u32 most; i16 list[2]; }
frame rare { i64 low; u64 high; bool is; double x; time at; }
";

const CALLS: &str = r#"
const assert = require('node:assert');
const work = require('./work');
const { line, rest } = require('./lines');
const { Kind, NOW, note, rare, request } = work;

function refused(name, message, call) {
    assert.throws(call, { name, message });
}

assert(!work.on() && work.now() === 0n && work.failure() === null && !request.on());
note.write(-1, -1, new Array(7)); // arguments are not looked at while off
request.write(() => assert.fail('runs only while on'));
const off = request.scope();
assert.strictEqual(off, request.scope());
off.end(NaN);
console.log('ready');
line();
assert(work.on() && request.on() && work.now() > 10n ** 18n);
work.prepare();
off.end(() => assert.fail('begun before: it stays off'));
request.write(Kind.PUT, 1, '\u00e9'.repeat(9), [0.5, 2], Buffer.from('abcdef'), 0, 0);
const scope = request.scope();
scope.end(Kind.GET, 2, 'a\ud800b', Float32Array.of(1, 2));
scope.end(Kind.GET, 7); // it has ended
const other = request.scope(), third = request.scope();
third.end(() => ({ kind: 9, who: 3 }));
other.abandon();
other.end(Kind.GET, 7);
request.scope().end(() => null);
request.write(() => null);
request.write(undefined, 4, null, undefined, null, NOW, NOW);
request.write();
refused('RangeError', 'note.n (u8): -1 does not fit', () => note.write(-1));
refused('RangeError', 'note.n (u8): 256 does not fit', () => note.write(256n));
refused('RangeError', 'note.n (u8): 1.5 does not fit', () => note.write(1.5));
refused('RangeError', 'note.n (u8): NaN does not fit', () => note.write(NaN));
refused('TypeError', 'note.n (u8): a number is needed, not a string', () => note.write('1'));
refused('TypeError', 'note.n (u8): a number is needed, not an object', () => note.write({}));
refused('TypeError', 'note.n (u8): a number is needed, not a symbol', () => note.write(NOW));
refused('RangeError', 'note.most (u32): 4294967296 does not fit', () => note.write(0, 2 ** 32));
refused('RangeError', 'note.most (u32): -1 does not fit', () => note.write(0, -1));
refused('RangeError', 'note.list (i16[2]): 32768 does not fit', () => note.write(0, 0, [0, 32768]));
refused('RangeError', 'note.list (i16[2]): 2 elements are needed, not 3',
    () => note.write(0, 0, [1, 2, 3]));
refused('TypeError', 'note.list (i16[2]): an array is needed, not a number', () => note.write(0, 0, 1));
refused('RangeError', 'note.n (u8): -1 does not fit', () => note.write(() => ({ n: -1 })));
refused('TypeError', 'note: there is no field m', () => note.write(() => ({ m: 1 })));
refused('TypeError', 'note: the function returns no object with the fields',
    () => note.write(() => { }));
refused('RangeError', 'request.kind (Kind): 256 does not fit', () => request.write(256));
refused('TypeError', 'request.kind (Kind): a number is needed, not a string', () => request.write('GET'));
refused('TypeError', 'request.path (char[8]): a string is needed, not a number',
    () => request.write(Kind.GET, 1, 7));
refused('TypeError', 'request.raw (bytes[3]): a Uint8Array is needed, not a string',
    () => request.write(Kind.GET, 1, '', null, 'abc'));
refused('RangeError', 'request.pos (f32[2]): 2 elements are needed, not 1',
    () => request.scope().end(Kind.GET, 1, '', [1]));
refused('TypeError', 'request.pos (f32[2]): a number is needed, not a bigint',
    () => request.write(Kind.GET, 1, '', [1, 2n]));
refused('RangeError', 'request.handle_start (time in ns): 0.5 does not fit',
    () => request.write(1, 1, '', null, null, 0.5));
refused('RangeError', 'rare.low (i64): 9007199254740992 is not exact as a number: give a bigint',
    () => rare.write(2 ** 53));
refused('RangeError', 'rare.low (i64): 9223372036854775808 does not fit', () => rare.write(2n ** 63n));
refused('RangeError', 'rare.high (u64): -1 does not fit', () => rare.write(0, -1));
refused('RangeError', 'rare.high (u64): -1 does not fit', () => rare.write(0, -1n));
refused('TypeError', 'rare.high (u64): a number or a bigint is needed, not a string',
    () => rare.write(0, '1'));
refused('TypeError', 'rare.is (bool): a boolean is needed, not a number', () => rare.write(0, 0, 1));
refused('TypeError', 'rare.x (f64): a number is needed, not a bigint', () => rare.write(0, 0, true, 1n));
note.write(255, 4294967295, [-32768, 32767]);
rare.write(-(2n ** 63n), 2n ** 64n - 1n, true, NaN, -1);
rare.write(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, false, -0, -1500000000n);
console.log('written 8');
rest();
"#;

#[test]
fn calls_scopes_and_errors() {
    let bench = Bench::new();
    bench.write("work.frame", FRAMES);
    bench.write("main.js", CALLS);
    if !packages(&bench, &["work"]) {
        return;
    }
    let mut target = Target::start(node(&bench, "main.js", &[]));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    let table = bench.table("out.bin", &["--frame", "request"]);
    assert_eq!(table.cells("kind"), ["PUT", "GET", "9", "0", "0"]);
    assert_eq!(table.numbers("who"), [1, 2, 3, 4, 0]);
    assert_eq!(table.cells("path"), ["éééé", "a\u{fffd}b", "", "", ""]);
    assert_eq!(table.cells("pos_0"), ["0.5", "1.0", "0.0", "0.0", "0.0"]);
    assert_eq!(table.cells("raw")[..2], ["616263", "000000"]);
    let seconds = |name: &str| table.numbers_or_0(&format!("{name}.tv_sec"));
    let (start, end) = (seconds("handle_start"), seconds("handle_end"));
    assert!((1..4).all(|row| 0 < start[row] && start[row] <= end[row]), "{start:?} {end:?}");
    assert_eq!([(start[0], end[0]), (start[4], end[4])], [(0, 0); 2], "not taken");
    let note = bench.table("out.bin", &["--frame", "note"]);
    assert_eq!(note.rows[0][3..], ["255", "4294967295", "-32768", "32767"]);
    let rare = bench.table("out.bin", &["--frame", "rare"]);
    assert_eq!(rare.cells("low"), ["-9223372036854775808", "-9007199254740991"]);
    assert_eq!(rare.cells("high"), ["18446744073709551615", "9007199254740991"]);
    assert_eq!([rare.cells("is"), rare.cells("x")], [["1", "0"], ["NaN", "-0.0"]]);
    assert_eq!(rare.numbers("at.tv_sec"), [-1, -2]);
    assert_eq!(rare.numbers("at.tv_usec"), [999_999, 500_000]);
}

const WRITES_MEANWHILE: &str = r#"
const { EncodeStep, encode, note, request } = require('./work');
const { line, rest } = require('./lines');

let notes = 0;
/** What is read while a frame is written, and writes another one. */
function noted(value) {
    note.write(++notes, 0xffffffff, [-1, -1]);
    encode.step(EncodeStep.send, 99, [9, 9, 9]);
    request.write(9, 9, 'xxxxxxxx', [9, 9], Buffer.alloc(3, 9), 9, 9);
    return value;
}
/** An object whose property says so. */
function noting(object, name, value) {
    return Object.defineProperty(object, name, { get: () => noted(value), enumerable: true });
}
console.log('ready');
line();
const pos = Float32Array.of(0, 4);
const proxy = (array) => new Proxy(array, { get: (of, name) => noted(of[name]) });
class Short extends Uint8Array { get length() { return noted(1); } }
class View extends DataView { get byteLength() { return noted(2); } }
class Floats extends Float32Array { get length() { return noted(2); } }

request.write(1, 1, 'one', noting([0, 4], 0, 3), Buffer.from('abc'), 7, 8);
request.write(1, 2, 'two', proxy([3, 4]), Buffer.from('abc'), 7, 8);
request.write(1, 3, 'three', Floats.of(3, 4), Buffer.from('abc'), 7, 8);
request.write(1, 4, 'four', [3, 4], Short.from(Buffer.from('abc')), 7, 8);
request.write(1, 5, 'five', [3, 4], new View(Uint8Array.of(97, 98, 99).buffer), 7, 8);
request.write(() => noting({ kind: 1, who: 6, path: 'six', pos: [3, 4], raw: Buffer.from('abc') }, 'handle_start', 7));
request.scope().end(1, 7, 'seven', proxy([3, 4]), noting(Buffer.from('abc'), 'length', 1));
request.write(() => ({ kind: 1, who: 8, path: 'eight', pos: proxy([3, 4]), raw: Buffer.from('abc') }));
encode.step(EncodeStep.dsp, 1, noting([5, 6, 7], 1, 6));
encode.step(EncodeStep.dsp, () => noting({ n: 2 }, 'sizes', [5, 6, 7]));
console.log('written', notes * 3 + 10);
rest();
"#;

/// Reading an argument may run code of the program that writes other frames: neither mixes with the
/// other.
#[test]
fn a_getter_among_the_arguments_writes_a_frame_of_its_own() {
    let bench = Bench::new();
    bench.write(
        "work.frame",
        &format!("{FRAMES}frame encode @chain(dsp, send) {{ u32 n @key; u16 sizes[3]; }}\n"),
    );
    bench.write("main.js", WRITES_MEANWHILE);
    if !packages(&bench, &["work"]) {
        return;
    }
    let mut target = Target::start(node(&bench, "main.js", &[]));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    let own = |table: &Table, name: &str, other: &str, columns: &[&str]| -> Vec<Vec<String>> {
        let (at, columns) = (table.column(name), columns.iter().map(|name| table.column(name)));
        let columns: Vec<_> = columns.collect();
        let rows = table.rows.iter().filter(|row| row[at] != other);
        rows.map(|row| columns.iter().map(|&column| row[column].clone()).collect()).collect()
    };
    let requests = bench.table("out.bin", &["--frame", "request"]);
    let columns = ["kind", "who", "path", "pos_0", "pos_1", "raw"];
    let paths = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
    let expected = paths.iter().zip(1..).map(|(path, who)| {
        // The view says that it is shorter.
        let raw = if *path == "five" { "616200" } else { "616263" };
        ["GET", &who.to_string(), path, "3.0", "4.0", raw].map(str::to_owned).to_vec()
    });
    assert_eq!(own(&requests, "who", "9", &columns), expected.collect::<Vec<_>>());
    let steps = bench.table("out.bin", &["--frame", "encode"]);
    let columns = ["step", "n", "sizes_0", "sizes_1", "sizes_2"];
    let expected = ["1", "2"].map(|n| ["dsp", n, "5", "6", "7"].map(str::to_owned).to_vec());
    assert_eq!(own(&steps, "n", "99", &columns), expected);
    // Those that were written at the same time are whole, too.
    let notes = bench.table("out.bin", &["--frame", "note"]);
    let count = notes.rows.len() as u64;
    assert_eq!(3 * count + 10, written);
    for (row, number) in notes.rows.iter().zip(1..) {
        assert_eq!(row[3..], [&number.to_string(), "4294967295", "-1", "-1"]);
    }
    let others = |table: &Table, name: &str, value: i64| {
        table.numbers(name).iter().filter(|&&number| number == value).count() as u64
    };
    assert_eq!((others(&requests, "who", 9), others(&steps, "n", 99)), (count, count));
}

/// The frames of a capture, as in the file.
fn frames(bench: &Bench, capture: &str) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut capture = Capture::open(&bench.path(capture)).unwrap();
    while let Some(item) = capture.read().unwrap() {
        if let CaptureItem::Chunk(Chunk::Frames(chunk)) = item {
            frames.extend(chunk.iter().map(|(_, bytes)| bytes.to_vec()));
        }
    }
    frames
}

/// Compares not only the tables: every byte of every frame, including padding.
#[test]
fn the_bytes_are_those_of_c() {
    let bench = Bench::new();
    bench.copy_all(&["values.frame", "clocks.frame", "values_main.c", "values_main.js"]);
    if !packages(&bench, &["values", "clocks"]) {
        return;
    }
    bench.pptc(&["values.frame", "clocks.frame"]);
    bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "program", "-lpthread"]);
    let rounds = "300";
    let captured = |mut target: Target, capture: &str| {
        let attach = bench.attach(&target, &["-o", capture]);
        assert_eq!(target.run(), 1200);
        attach.stop();
        target.finish();
        let mut frames = frames(&bench, capture);
        // Two buffers, whose chunks are in the order of draining.
        frames.sort();
        frames
    };
    let c = captured(bench.start("program", &["1", rounds]), "c.bin");
    let js = node(&bench, "values_main.js", &["1", rounds]);
    let js = captured(Target::start(js), "js.bin");
    assert_eq!((c.len(), js.len()), (1200, 1200));
    let differ = c.iter().zip(&js).find(|(c, js)| c != js);
    assert_eq!(differ, None);
}

const WORKERS: &str = r#"
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const { line, rest } = require('./lines');

function run(data) {
    const worker = new Worker(__filename, { workerData: data });
    return {
        worker,
        said: new Promise((resolve) => worker.once('message', resolve)),
        ended: new Promise((resolve) => worker.once('exit', resolve)),
    };
}

async function main() {
    const first = run({ who: 0, waits: true });
    await first.said;
    console.log('ready');
    line();
    first.worker.postMessage('go');
    await first.ended;
    for (let who = 1; who < 13; who++)
        await run({ who }).ended;
    // One that is ended in a loop that it does not leave by itself.
    const endless = run({ who: 13, endless: true });
    await endless.said;
    await endless.worker.terminate();
    await run({ who: 14 }).ended;
    console.log('written 14000');
    rest();
}

function work() {
    const { tick } = require('./job');
    const { who, waits, endless } = workerData;
    const all = () => {
        for (let i = 0; i < 1000; i++)
            tick.write(who, i);
    };
    if (endless) {
        parentPort.postMessage('begun');
        for (;;);
    } else if (waits) {
        parentPort.once('message', all);
        parentPort.postMessage('loaded');
    } else {
        all();
    }
}

if (isMainThread)
    main();
else
    work();
"#;

/// Workers started before and after the session, each with a ring until it ends: there are ten
/// rings. The main thread does not load the addon, so each worker is the last one that has it, and
/// the next one loads it again.
#[test]
fn workers_that_end_give_their_rings_back() {
    let bench = Bench::new();
    bench.write("job.frame", "buffer job 4096; frame tick { int who, i; }");
    bench.write("main.js", WORKERS);
    if !packages(&bench, &["job"]) {
        return;
    }
    let mut target = Target::start(node(&bench, "main.js", &[]));
    let memory = (10 * 4096 * 16).to_string();
    let attach = bench.attach(&target, &["--slots", "4096", "--memory", &memory]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!((account.captured, account.dropped), (14_000, 0), "{account:?}");
    let table = bench.table("out.bin", &[]);
    let (who, tid) = (table.numbers("who"), table.numbers("tid"));
    let threads: BTreeSet<_> = who.iter().zip(&tid).collect();
    assert_eq!(threads.len(), 14, "{threads:?}");
    let mut seen: Vec<_> = who.into_iter().zip(table.numbers("i")).collect();
    seen.sort_unstable();
    let all = (0..13).chain([14]).flat_map(|who| (0..1000).map(move |i| (who, i)));
    assert_eq!(seen, all.collect::<Vec<_>>());
}

const EXITS: &str = r#"
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const job = require('./job');
if (isMainThread) {
    console.log('ready');
    while (!job.on());
    const open = job.handled.scope();
    let online = 0;
    for (let who = 0; who < 3; who++)
        new Worker(__filename, { workerData: who }).once('online', () => {
            if (++online === 3)
                setTimeout(() => process.exit(3), 300);
        });
} else {
    for (let i = 0; ; i++)
        job.tick.write(workerData, i);
}
"#;

/// A process that ends in an interval while its workers write: published frames are captured, and
/// all are accounted for.
#[test]
fn an_exit_in_the_middle() {
    let bench = Bench::new();
    bench.write(
        "job.frame",
        "buffer job 65536; frame tick { int who, i; } frame handled { interval time t; }",
    );
    bench.write("main.js", EXITS);
    if !packages(&bench, &["job"]) {
        return;
    }
    let mut target = Target::start(node(&bench, "main.js", &[]));
    let attach = bench.attach(&target, &[]);
    assert_eq!(target.wait().code(), Some(3));
    attach.ended(0);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert!(account.captured > 0, "{account:?}");
    assert_eq!((&info["mismatches"], &info["damages"]), (&0.into(), &0.into()));
    assert_eq!(bench.table("out.bin", &["--frame", "handled"]).rows.len(), 0, "it did not end");
    // Each worker numbers its frames: missing numbers are lost.
    let table = bench.table("out.bin", &["--frame", "tick"]);
    let mut next = [0; 3];
    for (who, i) in table.numbers("who").into_iter().zip(table.numbers("i")) {
        let next = &mut next[usize::try_from(who).unwrap()];
        assert!(*next <= i, "{who} wrote {i} after {next}");
        *next = i + 1;
    }
    let written: i64 = next.iter().sum();
    assert!(account.captured + account.lost >= u64::try_from(written).unwrap(), "{account:?}");
}

const CHILDREN: &str = r#"
const assert = require('node:assert');
const children = require('node:child_process');
const job = require('./job');
const { line, rest } = require('./lines');
if (process.argv[2] === 'child') {
    job.tick.write(9, 9);
    console.log(job.on());
} else {
    console.log('ready');
    line();
    const before = job.tick.write(1, 1);
    const child = children.spawnSync(process.execPath, [__filename, 'child']);
    assert.strictEqual(child.status, 0);
    assert.strictEqual(String(child.stdout), 'false\n');
    assert.strictEqual(children.spawnSync('/bin/false').status, 1);
    assert(job.on());
    job.tick.write(1, 2);
    console.log('written 2');
    rest();
}
"#;

/// A child runs another program, which is off; its parent stays on.
#[test]
fn a_child_process_is_off() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int who, i; }");
    bench.write("main.js", CHILDREN);
    if !packages(&bench, &["job"]) {
        return;
    }
    let mut target = Target::start(node(&bench, "main.js", &[]));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    let table = bench.table("out.bin", &[]);
    assert_eq!((table.numbers("who"), table.numbers("i")), (vec![1, 1], vec![1, 2]));
}

const HOT: &str = r#"
const { tick } = require('./job');
function run(from, to) {
    for (let i = from; i < to; i++)
        tick.write(i);
}
run(0, 20_000_000);
console.log('ready');
run(20_000_000, 2_000_000_000);
console.log('done');
"#;

/// An otherwise empty loop that was compiled without a session notices an attach; from then on no
/// frame is missing.
#[test]
fn a_compiled_loop_sees_the_switch() {
    let bench = Bench::new();
    bench.write("job.frame", "buffer job 262144; frame tick { int i; }");
    bench.write("main.js", HOT);
    if !packages(&bench, &["job"]) {
        return;
    }
    let target = Target::start(node(&bench, "main.js", &[]));
    let attach = bench.attach(&target, &[]);
    let size = || std::fs::metadata(bench.path("out.bin")).map_or(0, |metadata| metadata.len());
    wait_until("frames are in the capture", || size() > 1 << 20);
    attach.stop();
    assert!(!target.stdout.has("done"), "it is still in its loop");
    let account = Account::of(&bench.info("out.bin"));
    let table = bench.table("out.bin", &[]);
    // Frames lost by the listener have numbers, too: each frame has the next one.
    let rows = table.numbers("i").into_iter().zip(table.numbers("seqno"));
    let first: BTreeSet<_> = rows.map(|(i, seqno)| i - seqno).collect();
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(account.dropped, 0, "{account:?}");
}

const OFF: &str = r#"
import { allowAttach, failure, hash, hash128, hashU64, now, nsBetween, on, prepare, sum, tick } from 'job';
for (let i = 0; i < 1000; i++) {
    tick.write(i, 'text', 1, 2, 3);
    tick.write(() => ({ i: 7 }));
    sum.add(7);
    tick.scope().end(7);
}
prepare();
allowAttach();
console.log(on(), now(), hash(null), hash128(null).length, nsBetween(1, 2));
console.log(hashU64(1) !== 0n, hash('x') === hash(Buffer.from('x')), failure() === null);
"#;

/// Without its addon, with that of other frames, or on an unsupported platform, a program still
/// runs.
#[test]
fn a_program_without_its_addon_runs_on() {
    let bench = Bench::new();
    let frames =
        "option time tsc; frame tick { int i; char a[9]; hash id; interval time t; } counter sum;";
    bench.write("job.frame", frames);
    if !packages(&bench, &["job"]) {
        return;
    }
    let include = headers().unwrap();
    std::fs::create_dir(bench.path("node_modules")).unwrap();
    std::os::unix::fs::symlink("../job", bench.path("node_modules/job")).unwrap();
    bench.write("main.mjs", OFF);
    let run = || {
        let output = node(&bench, "main.mjs", &[]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let [out, err] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (out, err)
    };
    let (out, err) = run();
    assert_eq!((&*out, &*err), ("false 0n 0n 16 -1\ntrue true true\n", ""));

    // The folder in which node-gyp builds.
    std::fs::create_dir_all(bench.path("job/build/Release")).unwrap();
    let built = bench.path("job/build/Release/job_node.node");
    std::fs::rename(bench.path("job/job_node.node"), &built).unwrap();
    assert_eq!(run().0, "false 0n 0n 16 -1\ntrue true true\n");

    std::fs::remove_file(built).unwrap();
    let (out, err) = run();
    assert_eq!(out, "false 0n 0n 16 -1\nfalse true false\n");
    assert!(err.contains("PptWarning: buffer job writes no frames: Cannot find module"), "{err}");
    assert_eq!(err.matches("writes no frames").count(), 1, "{err}");

    addon(&bench, &include, "job", &["-DPPT_DISABLE"]);
    let (out, err) = run();
    assert_eq!((&*out, &*err), ("false 0n 0n 16 -1\nfalse true true\n", ""));

    // The addon of a file with a different field.
    std::fs::rename(bench.path("job"), bench.path("old")).unwrap();
    bench.write("job.frame", &frames.replace("int i;", "int i, more;"));
    assert!(packages(&bench, &["job"]));
    std::fs::copy(bench.path("old/index.js"), bench.path("job/index.js")).unwrap();
    let (out, err) = run();
    assert_eq!(out, "false 0n 0n 16 -1\nfalse true false\n");
    assert!(err.contains("is not of this index.js: build both from one frame file"), "{err}");
}

/// Node under `ppt run` is captured from its first frame. A module that is loaded twice writes the
/// same frames.
#[test]
fn from_the_first_frame() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int i; }");
    bench.write(
        "main.js",
        "for (let round = 0; round < 2; round++) {
            const { tick } = require('./job');
            for (let i = 0; i < 250; i++)
                tick.write(250 * round + i);
            delete require.cache[require.resolve('./job')];
        }",
    );
    if !packages(&bench, &["job"]) {
        return;
    }
    let mut command = bench.command(crate::fixtures::support::ppt());
    command.args(["run", "-o", "out.bin", "--", "node", "main.js"]);
    Attach::spawn(command).ended(0);
    let table = bench.table("out.bin", &[]);
    assert_eq!(table.numbers("i"), (0..500).collect::<Vec<_>>());
}

/// `npm` includes node-gyp, which needs no network if it is given the folder of Node's headers.
#[test]
fn the_recipe_of_node_gyp() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int i; }");
    let Some(include) = headers() else { return };
    let prefix = include.parent().unwrap().parent().unwrap();
    let of_npm = prefix.join("lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js");
    let gyp = if of_npm.exists() { of_npm.to_str().unwrap() } else { "node-gyp" };
    if gyp == "node-gyp" && !available(gyp) {
        return;
    }
    bench.pptc(&["--emit", "node", "-o", "job", "job.frame"]);
    let mut command = bench.command(gyp);
    command.current_dir(bench.path("job")).args(["rebuild", "--nodedir"]);
    let output = command.arg(prefix).env("HOME", bench.path("")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    bench.write("main.js", "const job = require('./job'); console.log(job.failure(), job.on());");
    let output = node(&bench, "main.js", &[]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "null false\n");
}

#[test]
fn names_that_node_keeps_are_refused() {
    let bench = Bench::new();
    for (frames, what) in [
        ("frame f { int arguments; }", "field `arguments`"),
        ("frame f { int constructor; }", "field `constructor`"),
        ("frame on { int a; }", "frame `on`"),
        ("option time tsc; frame nsBetween { time a; }", "frame `nsBetween`"),
        ("enum Uint8Array { A } frame f { Uint8Array a; }", "enum `Uint8Array`"),
        ("frame f { int a; } counter function;", "counter `function`"),
    ] {
        bench.write("a.frame", frames);
        let pptc = env!("CARGO_BIN_EXE_pptc");
        let output = bench.command(pptc).args(["--emit", "node", "a.frame"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let expected = format!("the {what} has a name that Node output needs for itself\n");
        assert!(stderr.contains(&expected), "{stderr}");
    }
    bench.write("a.frame", "enum LegStep { A } frame leg @chain(a, b) { int c @key; }");
    let mut command = bench.command(env!("CARGO_BIN_EXE_pptc"));
    let output = command.args(["--emit", "node", "a.frame"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("in Node"), "{stderr}");
}
