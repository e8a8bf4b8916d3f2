//! A program in a process, and the names of its addresses.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use ppt_capture::{Module, ModuleHistory, Process};

use crate::demangle::demangled;
use crate::files::SymbolFiles;
use crate::functions::FunctionTable;
use crate::limits;
use crate::perf_map;

/// A program, and the names of its addresses that were found so far.
#[derive(Debug)]
pub(crate) struct Program {
    process: Process,
    history: ModuleHistory,
    files: Arc<SymbolFiles>,
    /// By the set of modules that held, and address.
    names: RwLock<HashMap<(usize, u64), Arc<str>>>,
    /// Code that a JIT compiler made.
    made: OnceLock<FunctionTable>,
}

impl Program {
    /// The program of `process`, which had these modules.
    pub fn new(process: &Process, history: ModuleHistory, files: Arc<SymbolFiles>) -> Program {
        let (names, made) = (RwLock::default(), OnceLock::new());
        Program { process: process.clone(), history, files, names, made }
    }

    /// The number of the set of modules that holds at `mono_ns`.
    pub fn set_at(&self, mono_ns: u64) -> usize {
        self.history.set_at(mono_ns).unwrap_or(0)
    }

    /// The name of an address while set `set` of the modules held.
    pub fn name(&self, set: usize, address: u64) -> Arc<str> {
        let key = (set, address);
        let known = self.names.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        known.unwrap_or_else(|| {
            let name: Arc<str> = self.resolved(set, address).into();
            let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
            if names.len() >= limits::NAMES {
                names.clear();
            }
            names.insert(key, name.clone());
            name
        })
    }

    fn resolved(&self, set: usize, address: u64) -> String {
        match self.history.find(set, address) {
            Some(module) => self.in_module(module, address),
            None => self.made(address),
        }
    }

    fn in_module(&self, module: &Module, address: u64) -> String {
        let name = module.name();
        let file = self.files.of_module(module, &self.process);
        // What the file calls the first address of the mapping.
        let start = module.address.or_else(|| file.as_ref()?.loads.address(module.offset));
        let known = Module { address: start, ..module.clone() };
        let in_file = known.in_file(address);
        let function = file.as_ref().filter(|_| start.is_some());
        match function.and_then(|file| file.functions.find(in_file)) {
            Some((symbol, offset)) => shown(symbol, offset, &name),
            None => format!("{name}+{in_file:#x}"),
        }
    }

    /// The name of code that a JIT compiler made.
    fn made(&self, address: u64) -> String {
        let made = self.made.get_or_init(|| {
            let text = self.files.finder().perf_map(&self.process);
            text.map(perf_map::parsed).unwrap_or_default()
        });
        match made.find(address) {
            Some((symbol, offset)) => shown(symbol, offset, "jit"),
            None => format!("{address:#x}"),
        }
    }
}

/// A function and a place in it: `processCommand+0x12 (redis-server)`.
fn shown(symbol: &[u8], offset: u64, module: &str) -> String {
    let name = demangled(symbol);
    match offset {
        0 => format!("{name} ({module})"),
        _ => format!("{name}+{offset:#x} ({module})"),
    }
}
