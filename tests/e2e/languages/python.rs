//! Python targets: modules built as the documentation describes, for the `python3` interpreter.

use crate::fixtures::python::modules;
use crate::fixtures::support::{Account, Bench, Target, text};

const FRAMES: &str = "buffer work;
enum Kind : u8 { GET = 1, PUT }
frame request { Kind kind; i32 who; char path[8]; float pos[2]; bytes raw[3]; interval time handle; }
frame note { u8 n; }
";

const PROGRAM: &str = r#"
import sys
import work
from work import Kind

def message(call, *args, **named):
    try:
        call(*args, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

class Odd:
    def __index__(self):
        work.note(7)
        raise KeyError("mine")

class Clears:
    def __float__(self):
        items.clear()
        raise KeyError("gone")

assert not work.on() and work.now() == 0
assert work.request(nonsense=object()) is None, "arguments are not looked at while off"
off = work.request_scope(who="?")
with off as same:
    assert same is off and same.set(1, 2, 3, 4, 5, 6, 7, 8, 9) is None
print("ready", flush=True)
sys.stdin.readline()
assert work.on() and work.now() > 10**18
work.prepare()
work.request(Kind.PUT, who=1, path="é" * 9, pos=iter([0.5, 2]), raw=bytearray(b"abcdef"))
with work.request_scope(kind=Kind.GET, path="x", pos=(1, 2), raw=b"y") as scope:
    scope.set(who=2, path=None, pos=None, raw=None)
    scope.set(path="a\ud800b\udfff\ud801")
try:
    with work.request_scope(kind=9, who=3):
        raise ValueError
except ValueError:
    pass
with work.request_scope() as scope:
    scope.abandon()
for _ in range(2):
    with scope:
        scope.set(who=4)
items = [Clears(), Clears()]
for got, right in [
    (message(work.request, who="x"), "TypeError: request.who (i32): an int is needed, not str"),
    (message(work.request, who=1.5), "TypeError: request.who (i32): an int is needed, not float"),
    (message(work.request, who=2**31), "OverflowError: request.who (i32): 2147483648 does not fit"),
    (message(work.note, -1), "OverflowError: note.n (u8): -1 does not fit"),
    (message(work.note, 2**70), f"OverflowError: note.n (u8): {2**70} does not fit"),
    (message(work.request, path=b"x"), "TypeError: request.path (char[8]): a str is needed, not bytes"),
    (message(work.request, raw="x"), "TypeError: request.raw (bytes[3]): a bytes-like object is needed, not str"),
    (message(work.request, pos=[1]), "ValueError: request.pos (f32[2]): 2 elements are needed, not 1"),
    (message(work.request, pos=1), "TypeError: request.pos (f32[2]): a sequence is needed, not int"),
    (message(work.request, pos=["a", 1]), "TypeError: request.pos (f32[2]): a float is needed, not str"),
    (message(work.request, handle_end=1.0), "TypeError: request.handle_end (time in ns): an int is needed, not float"),
    (message(work.request, what=1), "TypeError: request() has no field 'what'"),
    (message(work.request, 1, kind=1), "TypeError: request() is given field 'kind' twice"),
    (message(work.note, 1, 2), "TypeError: note() has 1 fields, and is given 2"),
    (message(work.note, Odd()), "KeyError: 'mine'"),
    (message(work.request, pos=items), "KeyError: 'gone'"),
    (message(scope.set, who=None), "TypeError: request.who (i32): an int is needed, not NoneType"),
]:
    assert got == right, f"{got!r} is not {right!r}"
print("written 6", flush=True)
sys.stdin.read()
"#;

#[test]
fn calls_scopes_and_exceptions() {
    let bench = Bench::new();
    bench.write("work.frame", FRAMES);
    bench.write("main.py", PROGRAM);
    if !modules(&bench, &["work"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.args(["-X", "dev", "-W", "error", "main.py"]);
    let mut target = Target::start(command);
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured, 6);
    let table = bench.table("out.bin", &["--frame", "request"]);
    assert_eq!(table.cells("kind"), ["PUT", "GET", "9", "0", "0"]);
    assert_eq!(table.numbers("who"), [1, 2, 3, 4, 4]);
    assert_eq!(table.cells("path"), ["éééé", "a\u{fffd}b\u{fffd}", "", "", ""]);
    assert_eq!(table.cells("pos_0")[..2], ["0.5", "0.0"]);
    assert_eq!(table.cells("raw")[..2], ["616263", "000000"]);
    let seconds = |name: &str| table.numbers_or_0(&format!("{name}.tv_sec"));
    let (start, end) = (seconds("handle_start"), seconds("handle_end"));
    assert_eq!((start[0], end[0]), (0, 0), "not taken");
    assert!((1..5).all(|row| 0 < start[row] && start[row] <= end[row]));
    assert_eq!(bench.table("out.bin", &["--frame", "note"]).numbers("n"), [7]);
}

#[test]
fn names_that_python_keeps_are_refused() {
    let bench = Bench::new();
    for (frames, what) in [
        ("frame f { int lambda; }", "field `lambda`"),
        ("frame on { int a; }", "frame `on`"),
        ("enum E { mro } frame f { E a; }", "value `mro`"),
        ("frame a { interval time t; } frame a_scope { time b; }", "frame `a_scope`"),
        ("buffer del; frame f { int a; }", "buffer `del`"),
    ] {
        bench.write("a.frame", frames);
        let pptc = env!("CARGO_BIN_EXE_pptc");
        let output = bench.command(pptc).args(["--emit", "python", "a.frame"]).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let expected = format!("the {what} has a name that Python output needs for itself\n");
        assert!(
            stderr.contains(&expected) && stderr.contains("^ used by the generated code"),
            "{stderr}"
        );
    }
}

const HASHES: &str = r#"
import ids

assert ids.hash(b"") == 0x2d06800538d394c2
assert ids.hash128(b"").hex() == "99aa06d3014798d86001c324468d497f"
assert ids.hash_u64(0x0102) == ids.hash(bytearray(b"\x02\x01" + 6 * b"\0")) == ids.hash(memoryview(
    b"\x02\x01\0\0\0\0\0\0"))
for call, wrong, error in [
    (ids.hash, "text", TypeError), (ids.hash128, 7, TypeError), (ids.hash_u64, -1, OverflowError),
    (ids.hash_u64, 2**64, OverflowError), (ids.hash_u64, 1.5, TypeError),
]:
    try:
        call(wrong)
        raise SystemExit(f"{call} takes {wrong}")
    except error:
        pass
print("ready", flush=True)
input()
ids.received(id=ids.hash(b"a"), body=ids.hash128(b"a"))
"#;

/// Published hashes, and those of a capture.
#[test]
fn hashes_are_those_that_xxhash_publishes() {
    let bench = Bench::new();
    bench.write("ids.frame", "frame received { hash id; hash128 body; }");
    bench.write("program.py", HASHES);
    if !modules(&bench, &["ids"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.arg("program.py");
    let mut target = Target::start(command);
    let attach = bench.attach(&target, &[]);
    target.say("");
    assert!(target.wait().success());
    attach.ended(0);
    let table = bench.table("out.bin", &[]);
    let of_a = ["16629034431890738719", "a96faf705af16834e6c632b61e964e1f"];
    assert_eq!([table.cells("id")[0], table.cells("body")[0]], of_a);
}
