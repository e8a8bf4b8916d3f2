//! Counters and histograms: plain stores into the thread's own row.

use ppt_codegen::Language;

use crate::build::{built_of, compilers, those_of};
use crate::disassembly::{Code, InstructionClass};
use crate::expectations::{hot, off};

const FRAMES: &str = "counter seen; histogram waits : duration; histogram sizes : u32 (0, 90, 9);";

const USER: &str = r#"
#include "counting.h"
void add_one(void) { PPT_ADD_SEEN(1); }
void observe_wait(int64_t ns) { PPT_OBSERVE_WAITS(ns); }
void observe_size(uint32_t size) { PPT_OBSERVE_SIZES(size); }
int main(void) {
    add_one();
    observe_wait(1);
    observe_size(1);
    return 0;
}
"#;

const CPP_USER: &str = r#"
#include "counting.hpp"
extern "C" void add_one() { ppt::counting::seen::add(1); }
extern "C" void observe_wait(int64_t ns) { ppt::counting::waits::observe(ns); }
extern "C" void observe_size(uint32_t size) { ppt::counting::sizes::observe(size); }
int main() {
    add_one();
    observe_wait(1);
    observe_size(1);
}
"#;

fn check(code: &Code) -> Vec<String> {
    let mut wrong = Vec::new();
    let (add, observe) = (code.symbol("add"), code.symbol("observe"));
    let (add, observe) = (add.as_str(), observe.as_str());
    for (function, calls) in [
        ("add_one", &[add][..]),
        ("observe_wait", &[observe]),
        ("observe_size", &[observe]),
        (add, &[]),
        (observe, &[]),
    ] {
        hot(code, function, calls, &mut wrong);
    }
    for function in ["add_one", "observe_wait", "observe_size"] {
        off(code, function, &mut wrong);
    }
    wrong
}

#[test]
fn nothing_but_plain_stores() {
    let (c, cpp) = (compilers(), those_of(["g++", "clang++"]));
    let c = c.into_iter().map(|text| (text, Language::C, USER));
    let cpp = cpp.into_iter().map(|text| (text, Language::Cpp, CPP_USER));
    for (compiler, language, user) in c.chain(cpp) {
        for kind in [InstructionClass::Program, InstructionClass::SharedLibrary] {
            let code = built_of(("counting", FRAMES, user), compiler, language, kind, &|_| {});
            let wrong = check(&code);
            assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
        }
    }
}

/// The check detects violations.
#[test]
fn the_check_can_fail() {
    let plain =
        "__atomic_store_n(cell, __atomic_load_n(cell, __ATOMIC_RELAXED) + value, __ATOMIC_RELAXED)";
    let atomic = "__atomic_fetch_add(cell, value, __ATOMIC_RELAXED)";
    for compiler in compilers() {
        let parts = ("counting", FRAMES, USER);
        let code = built_of(parts, compiler, Language::C, InstructionClass::Program, &|text| {
            *text = text.replace(plain, atomic);
        });
        let wrong = check(&code);
        assert!(wrong.iter().any(|it| it.contains("serialises")), "{compiler}");
    }
}
