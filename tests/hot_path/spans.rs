//! Spans and chains, compared with a plain frame of the same fields.

use ppt_codegen::Language;

use crate::build::{built_of, those_of};
use crate::disassembly::{Code, Instruction, InstructionClass};
use crate::expectations::{hot, off};

/// Spans, and a plain frame with the same fields and one stamp for comparison.
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

/// A begin, an end and a step cost no more than a plain frame with one tick.
#[test]
fn an_end_of_a_span_costs_a_frame_with_a_tick() {
    let programs =
        [(Language::C, SPANS, ["gcc", "clang"]), (Language::Cpp, CPP_SPANS, ["g++", "clang++"])];
    for (language, user, compilers) in programs {
        for compiler in those_of(compilers) {
            for kind in [InstructionClass::Program, InstructionClass::SharedLibrary] {
                let of = ("errand", SPAN_FRAMES, user);
                let code = built_of(of, compiler, language, kind, &|_| {});
                let wrong = check_spans(&code);
                assert!(wrong.is_empty(), "{compiler}, {kind:?}:\n{}", wrong.join("\n"));
            }
        }
    }
    // A stamp that tests the gate again, and frames that are built in memory.
    for (old, new) in [
        ("uint64_t ppt_at_##f = ", "uint64_t ppt_at_##f = ppt_errand_now() + 0 * "),
        ("f->edge = ", "__asm__ volatile(\"\" : : \"r\"(f) : \"memory\"); f->edge = "),
    ] {
        let change = |text: &mut String| *text = text.replace(old, new);
        let of = ("errand", SPAN_FRAMES, SPANS);
        let code = built_of(of, "gcc", Language::C, InstructionClass::Program, &change);
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
        let tick = |instruction: &Instruction| instruction.mnemonic == "rdtsc";
        if code.function(function).iter().filter(|instruction| tick(instruction)).count() != 1 {
            wrong.push(code.show(function, "is to have 1 rdtsc", tick));
        }
        let count = code.reached(function).len();
        // The exit path of a disabled frame may have one jump more or less.
        if count > plain + 1 {
            let what = format!("has {count} instructions, and `one_stamp` {plain}");
            wrong.push(code.show(function, &what, |_| false));
        }
    }
    wrong
}
