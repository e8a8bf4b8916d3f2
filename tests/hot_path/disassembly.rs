//! Reads the output of objdump(1) for a file: its functions, and the instructions of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionClass {
    Program,
    SharedLibrary,
}

/// A disassembled file.
pub struct Code {
    pub kind: InstructionClass,
    /// The prefix of linker symbols.
    prefix: String,
    functions: BTreeMap<String, Vec<Instruction>>,
}

/// A line of objdump(1), in AT&T syntax.
pub struct Instruction {
    pub address: u64,
    prefixes: Vec<String>,
    pub mnemonic: String,
    pub operands: String,
    text: String,
}

impl Code {
    pub fn read(file: &Path, kind: InstructionClass, prefix: String) -> Code {
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

    pub fn symbol(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub fn function(&self, name: &str) -> &[Instruction] {
        self.functions.get(name).unwrap_or_else(|| panic!("no function {name}"))
    }

    /// Whether the instruction leaves the function, or its target is unknown.
    pub fn leaves(&self, function: &str, it: &Instruction) -> bool {
        if it.is_call() {
            return true;
        }
        let inside = |target| {
            self.function(function).iter().any(|instruction| instruction.address == target)
        };
        it.is_jump() && !it.target().is_some_and(inside)
    }

    /// Addresses of the reachable instructions of a function.
    pub fn reached(&self, function: &str) -> BTreeSet<u64> {
        let instructions = self.function(function);
        let mut reached = BTreeSet::new();
        let mut todo = vec![0];
        while let Some(index) = todo.pop() {
            let Some(it) = instructions.get(index) else { continue };
            if !reached.insert(it.address) {
                continue;
            }
            let target = it.target().filter(|_| it.is_jump());
            todo.extend(
                instructions.iter().position(|instruction| Some(instruction.address) == target),
            );
            if !matches!(it.mnemonic.as_str(), "ret" | "jmp") {
                todo.push(index + 1);
            }
        }
        reached
    }

    /// A listing of a function with the given instructions marked.
    pub fn show(
        &self,
        function: &str,
        what: &str,
        marked: impl Fn(&Instruction) -> bool,
    ) -> String {
        let mut shown = format!("{function} {what}:\n");
        for instruction in self.function(function) {
            let mark = if marked(instruction) { ">>" } else { "  " };
            writeln!(shown, "  {mark} {}", instruction.text).unwrap();
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

    pub fn is_conditional(&self) -> bool {
        self.is_jump() && self.mnemonic != "jmp"
    }

    /// Address of a direct jump or call.
    pub fn target(&self) -> Option<u64> {
        u64::from_str_radix(self.operands.split(' ').next()?, 16).ok()
    }

    /// The target function of a jump or call; objdump's text if it is not direct.
    pub fn leads_to(&self) -> &str {
        if !self.is_call() && !self.is_jump() {
            return "";
        }
        let Some((_, symbol)) = self.operands.split_once('<') else { return &self.operands };
        // gcc's `begin.cold` may be entered at any offset.
        let name = symbol.trim_end_matches('>').split(['+', '@']).next();
        name.unwrap_or(symbol)
    }

    pub fn reads_memory(&self) -> bool {
        self.operands.split("),%").count() == 2 && !self.operands.contains("%fs:")
    }

    /// Whether it waits for other processors, or enters the kernel.
    pub fn serialises(&self) -> bool {
        const ALWAYS: [&str; 8] =
            ["mfence", "sfence", "lfence", "syscall", "sysenter", "int", "cpuid", "rdtscp"];
        self.prefixes.iter().any(|prefix| prefix == "lock")
            || ALWAYS.contains(&self.mnemonic.as_str())
            || (self.mnemonic.starts_with("xchg") && self.operands.contains('('))
    }
}
