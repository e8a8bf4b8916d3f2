//! The expectations of a function that writes a frame, with ppt attached and without.

use std::collections::BTreeSet;

use crate::disassembly::{Code, Instruction, InstructionClass};

/// Functions that are called for a refused frame, for an add to the shared row, or once per
/// session.
const COLD: [&str; 5] = [
    "ppt1_begin_slow",
    "ppt1_begin_nested",
    "ppt1_begin_masked",
    "ppt1_end_at_edge",
    "ppt1_add_slow",
];

/// Follows a function's control flow without entering cold code.
pub fn hot(code: &Code, function: &str, expected: &[&str], wrong: &mut Vec<String>) {
    let reached = code.reached(function);
    let serialises = |instruction: &Instruction| {
        reached.contains(&instruction.address) && instruction.serialises()
    };
    if code.function(function).iter().any(serialises) {
        wrong.push(code.show(function, "serialises", serialises));
    }
    let tls = (code.kind == InstructionClass::SharedLibrary).then_some("__tls_get_addr");
    let allowed = |instruction: &Instruction| {
        let to = instruction.leads_to();
        is_cold(to) || expected.contains(&to) || Some(to) == tls
    };
    let calls = |instruction: &Instruction| {
        reached.contains(&instruction.address)
            && code.leaves(function, instruction)
            && !allowed(instruction)
    };
    if code.function(function).iter().any(calls) {
        wrong.push(code.show(function, "calls what it should not", calls));
    }
    // Otherwise the checks would cover nothing.
    for callee in expected {
        let called =
            code.function(function).iter().any(|instruction| instruction.leads_to() == *callee);
        assert!(called, "{}", code.show(function, &format!("does not call {callee}"), |_| false));
    }
}

/// Follows a function as it runs while the gate is 0. Its stack frame, which clang sets up before
/// the test, is not part of the cost of writing.
pub fn off(code: &Code, function: &str, wrong: &mut Vec<String>) {
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
            // The linker's replacement for a load from the GOT.
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
                at = instructions
                    .iter()
                    .position(|instruction| Some(instruction.address) == target)
                    .expect("inside");
            }
            _ => drop(strange.insert(it.address)),
        }
    }
    if !strange.is_empty() {
        wrong.push(code.show(function, "has more on its off path", |instruction| {
            strange.contains(&instruction.address)
        }));
        return;
    }
    // In a shared library the gate's address comes from the GOT.
    let expected = if code.kind == InstructionClass::SharedLibrary { 2 } else { 1 };
    if (loads, tests, branches) != (expected, 1, 1) {
        let what = format!("has {loads} loads, {tests} tests, {branches} branches on its off path");
        wrong.push(code.show(function, &what, |instruction| taken.contains(&instruction.address)));
    }
}

fn is_cold(symbol: &str) -> bool {
    // C++ mangles their names.
    symbol.ends_with(".cold") || COLD.iter().any(|name| symbol.contains(name))
}
