//! Plain frames, by the block form and by macros: only plain stores.

use ppt_codegen::Language;

use crate::build::{built_of, compilers, those_of};
use crate::disassembly::{Code, InstructionClass};
use crate::expectations::{hot, off};

const FRAMES: &str = include_str!("../../codegen/tests/golden/example.frame");

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

/// A program with plain frames. `change` may first modify the generated text.
fn built(
    compiler: &str,
    language: Language,
    kind: InstructionClass,
    change: &dyn Fn(&mut String),
) -> Code {
    let user = if language == Language::Cpp { CPP_USER } else { USER };
    built_of(("example", FRAMES, user), compiler, language, kind, change)
}

#[test]
fn nothing_but_plain_stores() {
    for compiler in compilers() {
        for kind in [InstructionClass::Program, InstructionClass::SharedLibrary] {
            let code = built(compiler, Language::C, kind, &|_| {});
            let wrong = check(&code);
            assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
        }
    }
}

/// A lambda does not become a call.
#[test]
fn nothing_but_plain_stores_in_cpp() {
    for compiler in those_of(["g++", "clang++"]) {
        for kind in [InstructionClass::Program, InstructionClass::SharedLibrary] {
            let code = built(compiler, Language::Cpp, kind, &|_| {});
            let mut wrong = Vec::new();
            block_forms(&code, &mut wrong);
            assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
        }
    }
}

/// The checks detect violations.
#[test]
fn each_check_can_fail() {
    let gate = "(&control->gate, __ATOMIC_RELAXED) == 0";
    let slot = "uint64_t *s = t->slot;";
    for (old, new, complaint) in [
        // A sequentially consistent store of the cursor: xchg, or mov and mfence.
        ("(t->tail, seq, __ATOMIC_RELEASE)", "(t->tail, seq, __ATOMIC_SEQ_CST)", "serialises"),
        (slot, "uint64_t *s = t->slot; __atomic_fetch_add(&t->next, 1, 0);", "serialises"),
        (slot, "uint64_t *s = t->slot; __atomic_thread_fence(__ATOMIC_SEQ_CST);", "serialises"),
        (slot, "uint64_t *s = t->slot; ppt_example_prepare();", "calls"),
        (
            gate,
            "(&control->gate, __ATOMIC_RELAXED) + (uint64_t)time(0) == 0",
            "more on its off path",
        ),
        (
            gate,
            "(&control->gate, __ATOMIC_RELAXED) + 0 * *(volatile const uint64_t *)__func__ == 0",
            "has 2 loads",
        ),
    ] {
        for compiler in compilers() {
            let code = built(compiler, Language::C, InstructionClass::Program, &|text| {
                *text = text.replace(old, new);
            });
            let wrong = check(&code);
            let found = wrong.iter().any(|text| text.contains(complaint));
            assert!(
                found,
                "{compiler}: `{new}` passes, or not for `{complaint}`:\n{}",
                wrong.join("\n")
            );
        }
    }
}

/// All violations in the hot path, each with the instructions.
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
    // One store, whether on or off.
    let branches =
        code.function("macro_field").iter().any(|instruction| instruction.is_conditional());
    if branches {
        wrong
            .push(code.show("macro_field", "branches", |instruction| instruction.is_conditional()));
    }
    wrong
}

/// The forms in C and C++: the block form, and the functions that it calls.
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
