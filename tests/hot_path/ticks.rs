//! Stamps that are ticks of the processor's counter.

use ppt_codegen::Language;

use crate::build::{built_of, those_of};
use crate::disassembly::{Code, Instruction, InstructionClass};
use crate::expectations::{hot, off};

/// One function for each number of stamps, and the macro.
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

/// A tick stamp is one rdtsc, after branches with the same outcome every time.
#[test]
fn a_tick_is_one_instruction() {
    for compiler in those_of(["gcc", "clang"]) {
        for kind in [InstructionClass::Program, InstructionClass::SharedLibrary] {
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
            let code = built_of(TICK, compiler, Language::C, InstructionClass::Program, &change);
            let wrong = check_ticks(&code).join("\n");
            assert!(wrong.contains(complaint), "{compiler}: `{new}` passes:\n{wrong}");
        }
    }
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
        let tick = |instruction: &Instruction| instruction.mnemonic == "rdtsc";
        if code.function(function).iter().filter(|instruction| tick(instruction)).count() != stamps
        {
            wrong.push(code.show(function, &format!("is to have {stamps} rdtsc"), tick));
        }
    }
    for function in ["one_stamp", "three_stamps"] {
        off(code, function, &mut wrong);
    }
    wrong
}
