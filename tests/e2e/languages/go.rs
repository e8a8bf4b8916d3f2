//! Go targets: packages built as the documentation describes, by the installed Go.

use std::collections::BTreeSet;

use ppt_capture::{Capture, CaptureItem, Chunk};

use crate::fixtures::go::{built, go, program, program_by, run};
use crate::fixtures::support::{Account, Attach, Bench, Target, ppt, wait_until};

const FRAMES: &str = "buffer work;
enum Kind : u8 { GET = 1, PUT }
frame request { Kind kind; i32 who; char path[8]; float pos[2]; bytes raw[3]; interval time handle; }
frame note { u8 n; u32 most; i16 list[2]; }
frame rare { i64 low; u64 high; bool is; double x; time at; addr function; }
";

const CALLS: &str = r#"package main

import (
	"fmt"
	"math"
	"reflect"

	"program/work"
)

func main() {
	if work.On() || work.Now() != 0 || work.OnRequest() {
		panic("nobody is attached")
	}
	off := work.StartRequest()
	off.End(work.Request{Who: 7})
	fmt.Println("ready")
	line()
	if !work.On() || !work.OnRequest() || work.Now() < 1e18 {
		panic("somebody is attached")
	}
	work.Prepare()
	if off.On() {
		panic("begun before: it stays off")
	}
	off.End(work.Request{Who: 7})
	work.WriteRequest(work.Request{
		Kind: work.KindPut, Who: 1, Path: "ééééééééé", Pos: [2]float32{0.5, 2}, Raw: [3]byte{'a', 'b', 'c'},
	})
	scope := work.StartRequest()
	scope.End(work.Request{Kind: work.KindGet, Who: 2, Path: "a\xffb", Pos: [2]float32{1, 2}})
	scope.End(work.Request{Who: 7}) // it has ended
	other, third := work.StartRequest(), work.StartRequest()
	third.End(work.Request{Kind: 9, Who: 3, Path: "abcdefg\xff\xff"})
	other.Abandon()
	other.End(work.Request{Who: 7})
	work.WriteRequest(work.Request{Who: 4, Path: "1234567€", HandleStart: work.NOW, HandleEnd: work.NOW})
	work.WriteRequest(work.Request{})
	work.WriteNote(work.Note{N: 255, Most: math.MaxUint32, List: [2]int16{math.MinInt16, math.MaxInt16}})
	work.WriteRare(work.Rare{
		Low: math.MinInt64, High: math.MaxUint64, Is: true, X: math.NaN(), At: -1,
		Function: reflect.ValueOf(line).Pointer(),
	})
	work.WriteRare(work.Rare{X: math.Copysign(0, -1), At: -1500000000})
	fmt.Println("written 8")
	rest()
}
"#;

#[test]
fn calls_and_scopes() {
    let bench = Bench::new();
    bench.write("work.frame", FRAMES);
    bench.write("main.go", CALLS);
    if !program(&bench, &["work"], "main.go") {
        return;
    }
    run(&mut go(&bench, &["vet", "./..."]));
    let mut target = Target::start(built(&bench, &[]));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    let table = bench.table("out.bin", &["--frame", "request"]);
    assert_eq!(table.cells("kind"), ["PUT", "GET", "9", "0", "0"]);
    assert_eq!(table.numbers("who"), [1, 2, 3, 4, 0]);
    let path = ["éééé", "a\\xffb", "abcdefg\\xff", "1234567", ""];
    assert_eq!(table.cells("path"), path, "cut between characters; bytes that are none stay");
    assert_eq!(table.cells("pos_0"), ["0.5", "1.0", "0.0", "0.0", "0.0"]);
    assert_eq!(table.cells("raw")[..2], ["616263", "000000"]);
    let seconds = |name: &str| table.numbers_or_0(&format!("{name}.tv_sec"));
    let (start, end) = (seconds("handle_start"), seconds("handle_end"));
    assert!((1..4).all(|row| 0 < start[row] && start[row] <= end[row]), "{start:?} {end:?}");
    assert_eq!([(start[0], end[0]), (start[4], end[4])], [(0, 0); 2], "not taken");
    let note = bench.table("out.bin", &["--frame", "note"]);
    assert_eq!(note.rows[0][3..], ["255", "4294967295", "-32768", "32767"]);
    let rare = bench.table("out.bin", &["--frame", "rare"]);
    assert_eq!(rare.cells("low"), ["-9223372036854775808", "0"]);
    assert_eq!(rare.cells("high"), ["18446744073709551615", "0"]);
    assert_eq!([rare.cells("is"), rare.cells("x")], [["1", "0"], ["NaN", "-0.0"]]);
    assert_eq!(rare.numbers("at.tv_sec"), [-1, -2]);
    assert_eq!(rare.numbers("at.tv_usec"), [999_999, 500_000]);
    let function = rare.cells("function")[0];
    assert!(function.contains("main.line"), "{function}");
}

/// The frames of a capture, as they are in the file.
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

/// Not only the tables: every byte of every frame, padding included.
#[test]
fn the_bytes_are_those_of_c() {
    let bench = Bench::new();
    bench.copy_all(&["values.frame", "clocks.frame", "values_main.go"]);
    if !program(&bench, &["values", "clocks"], "values_main.go") {
        return;
    }
    bench.copy("values_main.c");
    bench.pptc(&["values.frame", "clocks.frame"]);
    bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "c", "-lpthread"]);
    let rounds = "300";
    let captured = |mut target: Target, capture: &str| {
        let attach = bench.attach(&target, &["-o", capture]);
        assert_eq!(target.run(), 1200);
        attach.stop();
        target.finish();
        let mut frames = frames(&bench, capture);
        // Two buffers, whose chunks come as they were drained.
        frames.sort();
        frames
    };
    let c = captured(bench.start("c", &["1", rounds]), "c.bin");
    let go = captured(Target::start(built(&bench, &["1", rounds])), "go.bin");
    assert_eq!((c.len(), go.len()), (1200, 1200));
    let differ = c.iter().zip(&go).find(|(c, go)| c != go);
    assert_eq!(differ, None);
}

const TICKS: &str =
    "buffer job 65536; frame tick { int who, i; } frame handled { interval time t; int who; }
    frame request @span { u64 id @key; }";

const MOVING: &str = r#"package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"program/job"
)

// Signals that interrupt all threads, while the collector stops them.
func disturb(done chan bool) {
	profile, err := os.Create("profile")
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(profile); err != nil {
		panic(err)
	}
	for {
		select {
		case <-done:
			pprof.StopCPUProfile()
			done <- true
			return
		default:
			syscall.Kill(os.Getpid(), syscall.SIGURG)
			runtime.GC()
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// A span and an interval begin on one thread, and end on another.
func hand(count int) {
	scopes := make(chan job.ScopeOfHandled)
	var ended sync.WaitGroup
	ended.Add(1)
	go func() {
		defer ended.Done()
		runtime.LockOSThread()
		id := uint64(0)
		for scope := range scopes {
			job.EndRequest(job.Request{Id: id})
			id++
			scope.End(job.Handled{Who: int32(id)})
		}
	}()
	runtime.LockOSThread()
	for i := 0; i < count; i++ {
		job.BeginRequest(job.Request{Id: uint64(i)})
		scopes <- job.StartHandled()
	}
	close(scopes)
	ended.Wait()
}

func main() {
	fmt.Println("ready")
	line()
	done := make(chan bool)
	go disturb(done)
	var all sync.WaitGroup
	for who := 0; who < 64; who++ {
		all.Add(1)
		go func(who int) {
			defer all.Done()
			for i := 0; i < 200; i++ {
				job.WriteTick(job.Tick{Who: int32(who), I: int32(i)})
				if i%10 == 0 {
					runtime.Gosched()
				}
			}
		}(who)
	}
	hand(300)
	all.Wait()
	done <- true
	<-done
	fmt.Println("written", 64*200+3*300)
	rest()
}
"#;

/// Goroutines go from thread to thread while signals interrupt them: no frame is torn, lost or counted
/// as nested, and what begins on one thread ends on another.
#[test]
fn goroutines_that_move_while_signals_interrupt_them() {
    let bench = Bench::new();
    bench.write("job.frame", TICKS);
    bench.write("main.go", MOVING);
    if !program(&bench, &["job"], "main.go") {
        return;
    }
    let mut target = Target::start(built(&bench, &[]));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!((account.captured, account.dropped), (written, 0), "{account:?}");
    let table = bench.table("out.bin", &["--frame", "tick"]);
    let mut seen: Vec<_> = table.numbers("who").into_iter().zip(table.numbers("i")).collect();
    seen.sort_unstable();
    let all = (0..64).flat_map(|who| (0..200).map(move |i| (who, i)));
    assert_eq!(seen, all.collect::<Vec<_>>());
    let request = bench.table("out.bin", &["--frame", "request"]);
    let of = |edge: &str| -> BTreeSet<&str> {
        let rows = request.cells("edge").into_iter().zip(request.cells("tid"));
        rows.filter(|row| row.0 == edge).map(|row| row.1).collect()
    };
    let (begins, ends) = (of("begin"), of("end"));
    assert_eq!((begins.len(), ends.len()), (1, 1), "{begins:?} {ends:?}");
    assert!(begins.is_disjoint(&ends), "{begins:?}");
    let handled = bench.table("out.bin", &["--frame", "handled"]);
    assert_eq!(handled.numbers("who"), (1..=300).collect::<Vec<_>>());
    let micros = |name: &str| {
        let [seconds, micros] =
            ["tv_sec", "tv_usec"].map(|part| handled.numbers_or_0(&format!("{name}.{part}")));
        seconds.into_iter().zip(micros).map(|(s, us)| s * 1_000_000 + us).collect::<Vec<_>>()
    };
    let all = micros("t_start").into_iter().zip(micros("t_end"));
    assert!(all.into_iter().all(|(start, end)| 0 < start && start <= end));
}

const THREADS: &str = r#"package main

import (
	"fmt"
	"runtime"
	"sync"

	"program/job"
)

// A thread of its own, which ends with the goroutine.
func run(who int) {
	var ended sync.WaitGroup
	ended.Add(1)
	go func() {
		defer ended.Done()
		runtime.LockOSThread()
		for i := 0; i < 100; i++ {
			job.WriteTick(job.Tick{Who: int32(who), I: int32(i)})
		}
	}()
	ended.Wait()
}

func main() {
	fmt.Println("ready")
	line()
	for who := 0; who < 40; who++ {
		run(who)
	}
	fmt.Println("written 4000")
	rest()
}
"#;

/// Threads that end, each with a ring until then: there are fewer rings.
#[test]
fn threads_that_end_give_their_rings_back() {
    let bench = Bench::new();
    bench.write("job.frame", "buffer job 4096; frame tick { int who, i; }");
    bench.write("main.go", THREADS);
    if !program(&bench, &["job"], "main.go") {
        return;
    }
    let mut target = Target::start(built(&bench, &[]));
    let memory = (16 * 4096 * 16).to_string();
    let attach = bench.attach(&target, &["--slots", "4096", "--memory", &memory]);
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((account.captured, account.dropped), (4000, 0), "{account:?}");
    let table = bench.table("out.bin", &[]);
    let (who, ring) = (table.numbers("who"), table.numbers("ring"));
    let rings: BTreeSet<_> = ring.iter().collect();
    assert!(rings.len() < 20, "{rings:?}");
    let mut seen: Vec<_> = who.into_iter().zip(table.numbers("i")).collect();
    seen.sort_unstable();
    let all = (0..40).flat_map(|who| (0..100).map(move |i| (who, i)));
    assert_eq!(seen, all.collect::<Vec<_>>());
}

const EXITS: &str = r#"package main

import (
	"fmt"
	"os"
	"time"

	"program/job"
)

func main() {
	fmt.Println("ready")
	for !job.On() {
	}
	open := job.StartHandled()
	for who := 0; who < 3; who++ {
		go func(who int) {
			for i := 0; ; i++ {
				job.WriteTick(job.Tick{Who: int32(who), I: int32(i)})
			}
		}(who)
	}
	time.Sleep(300 * time.Millisecond)
	if open.On() {
		os.Exit(3)
	}
}
"#;

/// A process that ends in an interval, while its goroutines write: what was published is there, and it
/// is accounted for.
#[test]
fn an_exit_in_the_middle() {
    let bench = Bench::new();
    bench.write("job.frame", TICKS);
    bench.write("main.go", EXITS);
    if !program(&bench, &["job"], "main.go") {
        return;
    }
    let mut target = Target::start(built(&bench, &[]));
    let attach = bench.attach(&target, &[]);
    assert_eq!(target.wait().code(), Some(3));
    attach.ended(0);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert!(account.captured > 0, "{account:?}");
    assert_eq!((&info["mismatches"], &info["damages"]), (&0.into(), &0.into()));
    assert_eq!(bench.table("out.bin", &["--frame", "handled"]).rows.len(), 0, "it did not end");
    // Each goroutine numbers its frames, so a missing number is a lost frame.
    let table = bench.table("out.bin", &["--frame", "tick"]);
    let mut seen: Vec<_> = table.numbers("who").into_iter().zip(table.numbers("i")).collect();
    seen.sort_unstable();
    let rows = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), rows, "none is there twice");
    let most = |who: i64| seen.iter().filter(|row| row.0 == who).map(|row| row.1 + 1).max();
    let written: i64 = (0..3).filter_map(most).sum();
    assert!(account.captured + account.lost >= u64::try_from(written).unwrap(), "{account:?}");
}

const CHILDREN: &str = r#"package main

import (
	"fmt"
	"os"
	"os/exec"

	"program/job"
)

func main() {
	if len(os.Args) > 1 {
		job.WriteTick(job.Tick{Who: 9, I: 9})
		fmt.Print(job.On())
		return
	}
	fmt.Println("ready")
	line()
	for i := 0; i < 20; i++ {
		job.WriteTick(job.Tick{Who: 1, I: int32(i)})
		said, err := exec.Command(os.Args[0], "child").Output()
		if err != nil || string(said) != "false" {
			panic(string(said))
		}
		if exec.Command("/bin/false").Run() == nil || exec.Command("/no/such/file").Run() == nil {
			panic("it fails")
		}
	}
	if !job.On() {
		panic("somebody is attached")
	}
	fmt.Println("written 20")
	rest()
}
"#;

/// A child is another program, which is off; its parent stays on.
#[test]
fn a_child_process_is_off() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int who, i; }");
    bench.write("main.go", CHILDREN);
    if !program(&bench, &["job"], "main.go") {
        return;
    }
    let mut target = Target::start(built(&bench, &[]));
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    let mut i = bench.table("out.bin", &[]).numbers("i");
    i.sort_unstable();
    assert_eq!(i, (0..20).collect::<Vec<_>>());
}

const HOT: &str = r#"package main

import (
	"fmt"

	"program/job"
)

func main() {
	fmt.Println("ready")
	for i := int32(0); i < 2000000000; i++ {
		job.WriteTick(job.Tick{I: i})
	}
	fmt.Println("done")
}
"#;

/// A loop that does nothing else notices that ppt is attached; from then on no frame is missing.
#[test]
fn a_loop_sees_the_switch() {
    let bench = Bench::new();
    bench.write("job.frame", "buffer job 262144; frame tick { int i; }");
    bench.write("main.go", HOT);
    if !program(&bench, &["job"], "main.go") {
        return;
    }
    let target = Target::start(built(&bench, &[]));
    let attach = bench.attach(&target, &[]);
    let size = || std::fs::metadata(bench.path("out.bin")).map_or(0, |metadata| metadata.len());
    wait_until("frames are in the capture", || size() > 1 << 20);
    attach.stop();
    assert!(!target.stdout.has("done"), "it is still in its loop");
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!(account.dropped, 0, "{account:?}");
    let mut i = bench.table("out.bin", &[]).numbers("i");
    i.sort_unstable();
    let span = u64::try_from(i[i.len() - 1] - i[0] + 1).unwrap();
    // Frames may be lost before the first that is captured, and after the last.
    let all = account.captured + account.lost;
    assert!(span == all || account.lost > 0 && span < all, "{span} of {all}: {account:?}");
}

const RACING: &str = r#"package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"program/job"
)

func main() {
	fmt.Println("ready")
	line()
	var all sync.WaitGroup
	for who := 0; who < 8; who++ {
		all.Add(1)
		go func(who int) {
			defer all.Done()
			for i := 0; i < 300; i++ {
				text := strings.Repeat("x", i%40)
				data := []byte(text)
				scope := job.StartHandled()
				job.WriteNamed(job.Named{Id: job.Hash(data), Body: job.Hash128(text), Name: text})
				job.AddSeen(1)
				if i%50 == 0 {
					runtime.GC()
				}
				scope.End(job.Handled{Who: int32(who)})
			}
		}(who)
	}
	all.Wait()
	fmt.Println("written", 8*300*2)
	rest()
}
"#;

/// Neither the race detector nor the checks of pointers between Go and C find anything.
#[test]
fn with_the_race_detector_and_all_checks_of_pointers() {
    let bench = Bench::new();
    bench.write(
        "job.frame",
        "frame named { hash id; hash128 body; char name[20]; } frame handled { interval time t; int who; }
         counter seen;",
    );
    bench.write("main.go", RACING);
    if !program_by(&bench, &["job"], "main.go", &["-race"]) {
        return;
    }
    let mut command = built(&bench, &[]);
    command.env("GODEBUG", "cgocheck=2,gccheckmark=1").env("GORACE", "halt_on_error=1 exitcode=7");
    let mut target = Target::start(command);
    let attach = bench.attach(&target, &["--memory", "1G"]);
    let written = target.run();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    let named = bench.table("out.bin", &["--frame", "named"]);
    assert_eq!(named.rows.len(), 2400);
    assert!(named.cells("name").iter().all(|name| name.len() <= 20 && !name.contains('\\')));
    let ids: BTreeSet<_> = named.cells("id").into_iter().collect();
    assert_eq!(ids.len(), 40, "of each text one");
}

const OFF: &str = r#"package main

import (
	"fmt"

	"program/job"
)

func main() {
	for i := int32(0); i < 1000; i++ {
		job.WriteTick(job.Tick{I: i, A: "text"})
		job.AddSum(7)
		scope := job.StartTick()
		scope.End(job.Tick{I: 7})
	}
	job.Prepare()
	job.AllowAttach()
	fmt.Println(job.On(), job.Now(), len(job.Hash128("")), int64(job.NsBetween(1, 2)))
	fmt.Println(job.HashU64(1) != 0, job.Hash("x") == job.Hash([]byte("x")))
}
"#;

/// Where nothing is compiled in, and without cgo, a program does the same, and writes nothing.
#[test]
fn a_program_without_c_runs_on() {
    let bench = Bench::new();
    let frames =
        "option time tsc; frame tick { int i; char a[9]; hash id; interval time t; } counter sum;";
    bench.write("job.frame", frames);
    bench.write("main.go", OFF);
    if !program(&bench, &["job"], "main.go") {
        return;
    }
    let said = || {
        let output = built(&bench, &[]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert_eq!(said(), "false 0 16 -1\ntrue true\n");
    for (variable, value, hashes) in
        [("CGO_CFLAGS", "-O2 -DPPT_DISABLE", true), ("CGO_ENABLED", "0", false)]
    {
        run(go(&bench, &["build", "-o", "program", "."]).env(variable, value));
        assert_eq!(said(), format!("false 0 16 -1\n{hashes} true\n"), "{variable}");
        let output = bench.command("readelf").args(["-Ws", "program"]).output().unwrap();
        let symbols = String::from_utf8(output.stdout).unwrap();
        assert!(!symbols.contains("_descriptor"), "{variable}: no buffer is there");
    }
}

/// A Go program under `ppt run` is captured from its first frame, which its `init` may write.
#[test]
fn from_the_first_frame() {
    let bench = Bench::new();
    bench.write("job.frame", "frame tick { int i; }");
    bench.write(
        "main.go",
        "package main\n\nimport \"program/job\"\n\nfunc init() {\n\tjob.WriteTick(job.Tick{})\n}\n\n\
        func main() {\n\tfor i := int32(1); i < 500; i++ {\n\t\tjob.WriteTick(job.Tick{I: i})\n\t}\n}\n",
    );
    if !program(&bench, &["job"], "main.go") {
        return;
    }
    let mut command = bench.command(ppt());
    command.args(["run", "-o", "out.bin", "--", "./program"]);
    Attach::spawn(command).ended(0);
    let mut i = bench.table("out.bin", &[]).numbers("i");
    i.sort_unstable();
    assert_eq!(i, (0..500).collect::<Vec<_>>());
}

#[test]
fn names_that_go_keeps_are_refused() {
    let bench = Bench::new();
    for (frames, what) in [
        ("buffer func; frame f { int a; }", "buffer `func`"),
        ("buffer main; frame f { int a; }", "buffer `main`"),
        ("frame on { int a; }", "frame `on`"),
        ("option time tsc; frame ns_between { time a; }", "frame `ns_between`"),
        ("enum allow { attach } frame f { allow a; }", "value `attach`"),
        ("frame f { int a; } counter prepare;", "counter `prepare`"),
    ] {
        bench.write("a.frame", frames);
        let pptc = env!("CARGO_BIN_EXE_pptc");
        let output = bench.command(pptc).args(["--emit", "go", "a.frame"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(what), "{what}: {stderr}");
        assert!(stderr.contains("has a name that Go output needs for itself\n"), "{stderr}");
    }
    for (frames, clash) in [
        ("frame f { int a_b, aB; }", "would both be called `AB` in Go"),
        ("frame write_f { int a; } frame f { int a; }", "would both be called `WriteF` in Go"),
        ("enum a { b_c } enum aB { c } frame f { a x; aB y; }", "`ABC` in Go"),
        ("frame f { interval time t; } frame start_f { int a; }", "`StartF` in Go"),
        ("frame Step @chain(a, b) { int c @key; }", "would both be called `StepStep` in Go"),
        ("frame on_f { int a; } counter f;", "would both be called `OnF` in Go"),
    ] {
        bench.write("a.frame", frames);
        let mut command = bench.command(env!("CARGO_BIN_EXE_pptc"));
        let output = command.args(["--emit", "go", "a.frame"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(clash), "{frames}: {stderr}");
    }
}
