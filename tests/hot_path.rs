//! What a compiler makes of the path that runs once a frame: when off, one load, one test and one
//! branch; when on, plain stores. Looks at the machine code of gcc's and clang's `-O2`, in a program
//! and in a shared library.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use ppt_codegen::Language;

const FRAMES: &str = include_str!("../codegen/tests/golden/example.frame");

/// One function per form.
const USER: &str = r#"
#include "example.h"

void block_form(int who) {
    PPT_WRITE_EXAMPLE(f) {
        f.kind = 1;
        f.who = who;
    }
}

void block_form_stamped(int who) {
    PPT_WRITE_EXAMPLE(f) {
        f.who = who;
        f.end = ppt_example_now();
    }
}

void macro_form(void) { ppt_write_example_frame(); }

void macro_field(int who) { WRITE_EXAMPLE_WHO(who); }

void macro_stamp(void) { WRITE_EXAMPLE_END_TIMESTAMP(); }

int main(void) {
    block_form(1);
    block_form_stamped(1);
    macro_form();
    macro_field(1);
    macro_stamp();
    return 0;
}
"#;

/// The same in C++.
const CPP_USER: &str = r#"
#include "example.hpp"

namespace example = ppt::example;

extern "C" void block_form(int who) {
    example::example::write([&](auto &f) {
        f.kind = 1;
        f.who = who;
    });
}

extern "C" void block_form_stamped(int who) {
    example::example::write([&](auto &f) {
        f.who = who;
        f.end = example::now();
    });
}

int main() {
    block_form(1);
    block_form_stamped(1);
}
"#;

/// The same with ticks.
const TICKS: &str = r#"
#include "tick.h"

void one_stamp(int who) {
    PPT_WRITE_TICK(f) {
        f.who = who;
        f.end = ppt_tick_now();
    }
}

void three_stamps(int who) {
    PPT_WRITE_TICK(f) {
        f.start = ppt_tick_now();
        f.middle = ppt_tick_now();
        f.who = who;
        f.end = ppt_tick_now();
    }
}

void macro_stamp(void) { WRITE_TICK_END_TIMESTAMP(); }

int main(void) {
    one_stamp(1);
    three_stamps(1);
    macro_stamp();
    return 0;
}
"#;

const TICK: (&str, &str, &str) =
    ("tick", "option time tsc;\nframe tick { int who; time start, middle, end; }\n", TICKS);

/// Spans, and what a plain frame of the same fields costs that is stamped once.
const SPAN_FRAMES: &str = "buffer errand;\noption time tsc;\n\
    frame errand @span { u64 id @key; u32 bytes; }\n\
    frame leg @chain(leave, arrive) { u64 id @key; u32 bytes; }\n\
    frame stamped { u64 id; u32 bytes; u8 end; time when; }\n";

const SPANS: &str = r#"
#include "errand.h"

void begun(uint64_t id) {
    PPT_BEGIN_ERRAND(f) f.id = id;
}

void ended(uint64_t id) {
    PPT_END_ERRAND(f) {
        f.id = id;
        f.bytes = 1;
    }
}

void arrived(uint64_t id) {
    PPT_STEP_LEG(ARRIVE, f) {
        f.id = id;
        f.bytes = 1;
    }
}

void one_stamp(uint64_t id) {
    PPT_WRITE_STAMPED(f) {
        f.when = ppt_errand_now();
        f.id = id;
        f.bytes = 1;
        f.end = 1;
    }
}

int main(void) {
    begun(1);
    ended(1);
    arrived(1);
    one_stamp(1);
    return 0;
}
"#;

const CPP_SPANS: &str = r#"
#include "errand.hpp"

namespace errand = ppt::errand;

extern "C" void begun(uint64_t id) {
    errand::errand::begin([&](auto &f) { f.id = id; });
}

extern "C" void ended(uint64_t id) {
    errand::errand::end([&](auto &f) {
        f.id = id;
        f.bytes = 1;
    });
}

extern "C" void arrived(uint64_t id) {
    errand::leg::step(errand::leg::Step::arrive, [&](auto &f) {
        f.id = id;
        f.bytes = 1;
    });
}

extern "C" void one_stamp(uint64_t id) {
    errand::stamped::write([&](auto &f) {
        f.when = errand::now();
        f.id = id;
        f.bytes = 1;
        f.end = 1;
    });
}

int main() {
    begun(1);
    ended(1);
    arrived(1);
    one_stamp(1);
}
"#;

/// Functions that are entered for a refused frame, or once a session.
const COLD: [&str; 2] = ["ppt1_begin_slow", "ppt1_begin_nested"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Program,
    SharedLibrary,
}

/// The generated text before a compiler sees it; `change` may break it.
fn built(compiler: &str, language: Language, kind: Kind, change: &dyn Fn(&mut String)) -> Code {
    let user = if language == Language::Cpp { CPP_USER } else { USER };
    built_of(("example", FRAMES, user), compiler, language, kind, change)
}

/// The same of a buffer's name, frames and program.
fn built_of(
    (name, frames, user): (&str, &str, &str),
    compiler: &str,
    language: Language,
    kind: Kind,
    change: &dyn Fn(&mut String),
) -> Code {
    let file = format!("{name}.frame");
    let frames = ppt_codegen::parse(frames.as_bytes(), &file).unwrap();
    let mut outputs = ppt_codegen::generate(&frames, &file, &[language]).unwrap();
    outputs.iter_mut().for_each(|output| change(&mut output.text));
    let folder = tempfile::tempdir().unwrap();
    ppt_codegen::write_outputs(folder.path(), &outputs).unwrap();
    let (program, standard, extension) = match language {
        Language::Cpp => ("user.cpp", "-std=c++17", "cpp"),
        _ => ("user.c", "-std=c11", "c"),
    };
    std::fs::write(folder.path().join(program), user).unwrap();
    let generated = format!("{name}.{extension}");
    let mut command = Command::new(compiler);
    let args = [standard, "-O2", &generated, program, "-o", "built"];
    command.current_dir(folder.path()).args(args);
    if kind == Kind::SharedLibrary {
        command.args(["-fPIC", "-shared"]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Code::of(&folder.path().join("built"), kind, frames.schema.symbol_prefix())
}

/// gcc, which the tests need, and clang, which they would like.
fn compilers() -> Vec<&'static str> {
    those_of(["gcc", "clang"])
}

fn those_of([gcc, clang]: [&'static str; 2]) -> Vec<&'static str> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    assert!(there(&gcc), "these tests need {gcc}");
    if !there(&clang) {
        println!("{clang} is skipped: it does not run here");
    }
    [gcc, clang].into_iter().filter(there).collect()
}

#[test]
fn nothing_but_plain_stores() {
    for compiler in compilers() {
        for kind in [Kind::Program, Kind::SharedLibrary] {
            let code = built(compiler, Language::C, kind, &|_| {});
            let wrong = check(&code);
            assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
        }
    }
}

/// A lambda is no call.
#[test]
fn nothing_but_plain_stores_in_cpp() {
    for compiler in those_of(["g++", "clang++"]) {
        for kind in [Kind::Program, Kind::SharedLibrary] {
            let code = built(compiler, Language::Cpp, kind, &|_| {});
            let mut wrong = Vec::new();
            block_forms(&code, &mut wrong);
            assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
        }
    }
}

/// Where stamps are ticks, each is one rdtsc, behind branches that are the same every time.
#[test]
fn a_tick_is_one_instruction() {
    for compiler in those_of(["gcc", "clang"]) {
        for kind in [Kind::Program, Kind::SharedLibrary] {
            let code = built_of(TICK, compiler, Language::C, kind, &|_| {});
            let wrong = check_ticks(&code);
            assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
        }
        for (old, new, complaint) in [
            (
                "return __builtin_ia32_rdtsc();",
                "return __builtin_ia32_rdtsc() + __builtin_ia32_rdtsc();",
                "rdtsc",
            ),
            (
                "return __builtin_ia32_rdtsc();",
                "__builtin_ia32_lfence(); return __builtin_ia32_rdtsc();",
                "serialises",
            ),
            ("return ppt1_ticks();", "return ppt1_ticks() + (uint64_t)clock();", "calls"),
        ] {
            let change = |text: &mut String| *text = text.replace(old, new);
            let code = built_of(TICK, compiler, Language::C, Kind::Program, &change);
            let wrong = check_ticks(&code).join("\n");
            assert!(wrong.contains(complaint), "{compiler}: `{new}` passes:\n{wrong}");
        }
    }
}

/// A begin, an end and a step cost no more than a plain frame with one tick.
#[test]
fn an_end_of_a_span_costs_a_frame_with_a_tick() {
    let programs =
        [(Language::C, SPANS, ["gcc", "clang"]), (Language::Cpp, CPP_SPANS, ["g++", "clang++"])];
    for (language, user, compilers) in programs {
        for compiler in those_of(compilers) {
            for kind in [Kind::Program, Kind::SharedLibrary] {
                let of = ("errand", SPAN_FRAMES, user);
                let code = built_of(of, compiler, language, kind, &|_| {});
                let wrong = check_spans(&code);
                assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
            }
        }
    }
    // A stamp that asks for the gate once more, and frames that are made in memory.
    for (old, new) in [
        ("uint64_t ppt_at_##f = ", "uint64_t ppt_at_##f = ppt_errand_now() + 0 * "),
        ("f->edge = ", "__asm__ volatile(\"\" : : \"r\"(f) : \"memory\"); f->edge = "),
    ] {
        let change = |text: &mut String| *text = text.replace(old, new);
        let of = ("errand", SPAN_FRAMES, SPANS);
        let code = built_of(of, "gcc", Language::C, Kind::Program, &change);
        assert!(!check_spans(&code).is_empty(), "`{new}` passes");
    }
}

fn check_spans(code: &Code) -> Vec<String> {
    let mut wrong = Vec::new();
    let (begin, end, stamp) = (code.symbol("begin"), code.symbol("end"), code.symbol("stamp"));
    let calls = [begin.as_str(), end.as_str(), stamp.as_str()];
    let plain = code.reached("one_stamp").len();
    for function in ["begun", "ended", "arrived", "one_stamp"] {
        hot(code, function, &calls, &mut wrong);
        off(code, function, &mut wrong);
        let tick = |it: &Instruction| it.mnemonic == "rdtsc";
        if code.function(function).iter().filter(|it| tick(it)).count() != 1 {
            wrong.push(code.show(function, "is to have 1 rdtsc", tick));
        }
        let count = code.reached(function).len();
        if count > plain {
            let what = format!("has {count} instructions, and `one_stamp` {plain}");
            wrong.push(code.show(function, &what, |_| false));
        }
    }
    wrong
}

fn check_ticks(code: &Code) -> Vec<String> {
    let mut wrong = Vec::new();
    let (begin, end, stamp) = (code.symbol("begin"), code.symbol("end"), code.symbol("stamp"));
    let (begin, end, stamp) = (begin.as_str(), end.as_str(), stamp.as_str());
    for (function, stamps, calls) in [
        ("one_stamp", 1, &[begin, end, stamp][..]),
        ("three_stamps", 3, &[begin, end, stamp]),
        ("macro_stamp", 1, &[stamp]),
    ] {
        hot(code, function, calls, &mut wrong);
        let tick = |it: &Instruction| it.mnemonic == "rdtsc";
        if code.function(function).iter().filter(|it| tick(it)).count() != stamps {
            wrong.push(code.show(function, &format!("is to have {stamps} rdtsc"), tick));
        }
    }
    for function in ["one_stamp", "three_stamps"] {
        off(code, function, &mut wrong);
    }
    wrong
}

/// The checks see what they look for.
#[test]
fn each_check_can_fail() {
    let gate = "_control.gate, __ATOMIC_RELAXED)";
    let slot = "uint64_t *s = t->slot;";
    for (old, new, complaint) in [
        // A cursor stored in sequential consistency: xchg, or mov and mfence.
        ("(t->tail, seq, __ATOMIC_RELEASE)", "(t->tail, seq, __ATOMIC_SEQ_CST)", "serialises"),
        (slot, "uint64_t *s = t->slot; __atomic_fetch_add(&t->next, 1, 0);", "serialises"),
        (slot, "uint64_t *s = t->slot; __atomic_thread_fence(__ATOMIC_SEQ_CST);", "serialises"),
        (slot, "uint64_t *s = t->slot; ppt_example_prepare();", "calls"),
        (gate, "_control.gate, __ATOMIC_RELAXED) + (uint64_t)time(0)", "more on its off path"),
        (
            gate,
            "_control.gate, __ATOMIC_RELAXED) + 0 * *(volatile const uint64_t *)__func__",
            "has 2 loads",
        ),
    ] {
        for compiler in compilers() {
            let code = built(compiler, Language::C, Kind::Program, &|text| {
                *text = text.replace(old, new);
            });
            let wrong = check(&code);
            let found = wrong.iter().any(|it| it.contains(complaint));
            assert!(
                found,
                "{compiler}: `{new}` passes, or not for `{complaint}`:\n{}",
                wrong.join("\n")
            );
        }
    }
}

/// Everything that is wrong with the hot path, each with the instructions.
fn check(code: &Code) -> Vec<String> {
    let mut wrong = Vec::new();
    let (begin, end, clock) = (code.symbol("begin"), code.symbol("end"), code.symbol("clock"));
    let (begin, end, clock) = (begin.as_str(), end.as_str(), clock.as_str());
    block_forms(code, &mut wrong);
    for (function, calls) in
        [("macro_form", &[begin, end][..]), ("macro_field", &[]), ("macro_stamp", &[clock])]
    {
        hot(code, function, calls, &mut wrong);
    }
    off(code, "macro_form", &mut wrong);
    // One store, on or off.
    let branches = code.function("macro_field").iter().any(|it| it.is_conditional());
    if branches {
        wrong.push(code.show("macro_field", "branches", |it| it.is_conditional()));
    }
    wrong
}

/// What C and C++ have: the block form, and what it calls.
fn block_forms(code: &Code, wrong: &mut Vec<String>) {
    let (begin, end, clock) = (code.symbol("begin"), code.symbol("end"), code.symbol("clock"));
    let (begin, end, clock) = (begin.as_str(), end.as_str(), clock.as_str());
    for (function, calls) in [
        ("block_form", &[begin, end][..]),
        ("block_form_stamped", &[begin, clock, end]),
        (begin, &[]),
        (end, &[]),
    ] {
        hot(code, function, calls, wrong);
    }
    off(code, "block_form", wrong);
    off(code, "block_form_stamped", wrong);
}

/// Follows a function wherever it goes without entering what is cold.
fn hot(code: &Code, function: &str, expected: &[&str], wrong: &mut Vec<String>) {
    let reached = code.reached(function);
    let serialises = |it: &Instruction| reached.contains(&it.address) && it.serialises();
    if code.function(function).iter().any(serialises) {
        wrong.push(code.show(function, "serialises", serialises));
    }
    let tls = (code.kind == Kind::SharedLibrary).then_some("__tls_get_addr");
    let allowed = |it: &Instruction| {
        let to = it.leads_to();
        is_cold(to) || expected.contains(&to) || Some(to) == tls
    };
    let calls = |it: &Instruction| {
        reached.contains(&it.address) && code.leaves(function, it) && !allowed(it)
    };
    if code.function(function).iter().any(calls) {
        wrong.push(code.show(function, "calls what it should not", calls));
    }
    // Or the checks would be about nothing.
    for callee in expected {
        let called = code.function(function).iter().any(|it| it.leads_to() == *callee);
        assert!(called, "{}", code.show(function, &format!("does not call {callee}"), |_| false));
    }
}

/// Follows a function as it runs while the gate is 0. Its own stack frame, which clang sets up
/// before it looks, is not what writing costs.
fn off(code: &Code, function: &str, wrong: &mut Vec<String>) {
    let instructions = code.function(function);
    let (mut loads, mut tests, mut branches) = (0, 0, 0);
    let mut taken = BTreeSet::new();
    let mut strange = BTreeSet::new();
    let mut at = 0;
    loop {
        let it = &instructions[at];
        if !taken.insert(it.address) {
            strange.insert(it.address);
            break;
        }
        at += 1;
        match it.mnemonic.as_str() {
            "ret" => break,
            "push" | "pop" | "endbr64" => {}
            "sub" | "add" if it.operands.ends_with(",%rsp") => {}
            // What the linker makes of a load from the GOT.
            "lea" => {}
            "mov" if it.reads_memory() => loads += 1,
            "test" => tests += 1,
            "cmp" | "cmpq" | "cmpl" => {
                tests += 1;
                loads += u32::from(it.operands.contains('('));
            }
            // Zero: `je` is taken, `jne` is not.
            "jne" => branches += 1,
            "je" => {
                branches += 1;
                let target = it.target();
                at = instructions.iter().position(|it| Some(it.address) == target).expect("inside");
            }
            _ => drop(strange.insert(it.address)),
        }
    }
    if !strange.is_empty() {
        wrong.push(
            code.show(function, "has more on its off path", |it| strange.contains(&it.address)),
        );
        return;
    }
    // In a shared library the gate's address comes from the GOT.
    let expected = if code.kind == Kind::SharedLibrary { 2 } else { 1 };
    if (loads, tests, branches) != (expected, 1, 1) {
        let what = format!("has {loads} loads, {tests} tests, {branches} branches on its off path");
        wrong.push(code.show(function, &what, |it| taken.contains(&it.address)));
    }
}

fn is_cold(symbol: &str) -> bool {
    // C++ mangles their names.
    symbol.ends_with(".cold") || COLD.iter().any(|name| symbol.contains(name))
}

/// A disassembled file.
struct Code {
    kind: Kind,
    /// What the linker's names begin with.
    prefix: String,
    functions: BTreeMap<String, Vec<Instruction>>,
}

/// A line of objdump(1), in AT&T syntax.
struct Instruction {
    address: u64,
    prefixes: Vec<String>,
    mnemonic: String,
    operands: String,
    text: String,
}

impl Code {
    fn of(file: &Path, kind: Kind, prefix: String) -> Code {
        let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(file).output();
        let output = output.expect("objdump, of the binutils that gcc needs");
        assert!(output.status.success());
        let mut functions: BTreeMap<String, Vec<Instruction>> = BTreeMap::new();
        let mut name = String::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            if let Some(head) = line.strip_suffix(">:") {
                name = head.split_once('<').unwrap().1.to_owned();
            } else if let Some(instruction) = Instruction::of(line) {
                functions.entry(name.clone()).or_default().push(instruction);
            }
        }
        Code { kind, prefix, functions }
    }

    fn symbol(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn function(&self, name: &str) -> &[Instruction] {
        self.functions.get(name).unwrap_or_else(|| panic!("no function {name}"))
    }

    /// Whether the instruction goes to another function, or nobody knows where.
    fn leaves(&self, function: &str, it: &Instruction) -> bool {
        if it.is_call() {
            return true;
        }
        let inside = |target| self.function(function).iter().any(|it| it.address == target);
        it.is_jump() && !it.target().is_some_and(inside)
    }

    /// Addresses of the instructions of a function that can run.
    fn reached(&self, function: &str) -> BTreeSet<u64> {
        let instructions = self.function(function);
        let mut reached = BTreeSet::new();
        let mut todo = vec![0];
        while let Some(index) = todo.pop() {
            let Some(it) = instructions.get(index) else { continue };
            if !reached.insert(it.address) {
                continue;
            }
            let target = it.target().filter(|_| it.is_jump());
            todo.extend(instructions.iter().position(|it| Some(it.address) == target));
            if !matches!(it.mnemonic.as_str(), "ret" | "jmp") {
                todo.push(index + 1);
            }
        }
        reached
    }

    /// A function with the instructions in question marked.
    fn show(&self, function: &str, what: &str, marked: impl Fn(&Instruction) -> bool) -> String {
        let mut shown = format!("{function} {what}:\n");
        for it in self.function(function) {
            let mark = if marked(it) { ">>" } else { "  " };
            writeln!(shown, "  {mark} {}", it.text).unwrap();
        }
        shown
    }
}

impl Instruction {
    /// ` 131a:\tjne    1320 <block_form+0x10>`
    fn of(line: &str) -> Option<Instruction> {
        const PREFIXES: [&str; 9] =
            ["lock", "rep", "repz", "repnz", "data16", "cs", "rex.W", "bnd", "notrack"];
        let (address, text) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        let mut words = text.split_whitespace().peekable();
        let mut prefixes = Vec::new();
        while let Some(prefix) = words.next_if(|word| PREFIXES.contains(word)) {
            prefixes.push(prefix.to_owned());
        }
        let mnemonic = words.next().unwrap_or_default().to_owned();
        let operands = words.collect::<Vec<_>>().join(" ");
        Some(Instruction { address, prefixes, mnemonic, operands, text: line.trim().to_owned() })
    }

    fn is_call(&self) -> bool {
        self.mnemonic.starts_with("call")
    }

    fn is_jump(&self) -> bool {
        self.mnemonic.starts_with('j')
    }

    fn is_conditional(&self) -> bool {
        self.is_jump() && self.mnemonic != "jmp"
    }

    /// Address of a direct jump or call.
    fn target(&self) -> Option<u64> {
        u64::from_str_radix(self.operands.split(' ').next()?, 16).ok()
    }

    /// The function that a jump or call goes to; what objdump shows where it is not a direct one.
    fn leads_to(&self) -> &str {
        if !self.is_call() && !self.is_jump() {
            return "";
        }
        let Some((_, symbol)) = self.operands.split_once('<') else { return &self.operands };
        // gcc's `begin.cold` may be entered in its middle.
        let name = symbol.trim_end_matches('>').split(['+', '@']).next();
        name.unwrap_or(symbol)
    }

    fn reads_memory(&self) -> bool {
        self.operands.split("),%").count() == 2 && !self.operands.contains("%fs:")
    }

    /// Waits for other processors, or enters the kernel.
    fn serialises(&self) -> bool {
        const ALWAYS: [&str; 8] =
            ["mfence", "sfence", "lfence", "syscall", "sysenter", "int", "cpuid", "rdtscp"];
        self.prefixes.iter().any(|prefix| prefix == "lock")
            || ALWAYS.contains(&self.mnemonic.as_str())
            || (self.mnemonic.starts_with("xchg") && self.operands.contains('('))
    }
}
