//! The modules of a capture, and the naming of addresses in them.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use ppt_capture::{ModuleTable, Modules, Process, ProgramKey};

use crate::files::SymbolFiles;
use crate::finder::{CaptureHost, Finder, SearchPaths};
use crate::namer::Namer;
use crate::program::ProgramNames;
use crate::remark::NameRemark;

/// Names the addresses of a capture. Threads may share it.
#[derive(Debug)]
pub struct Symbols {
    modules: ModuleTable,
    files: Arc<SymbolFiles>,
    programs: RwLock<BTreeMap<ProgramKey, Arc<ProgramNames>>>,
}

impl Symbols {
    /// A namer for a capture that was made on `host`.
    pub fn new(places: SearchPaths, host: CaptureHost) -> Symbols {
        Symbols::of_table(places, host, ModuleTable::default())
    }

    /// A namer for a capture whose modules are all known in advance.
    pub fn of_table(places: SearchPaths, host: CaptureHost, modules: ModuleTable) -> Symbols {
        let files = Arc::new(SymbolFiles::new(Finder::new(places, host)));
        Symbols { modules, files, programs: RwLock::default() }
    }

    /// Adds the modules that a chunk states for `process`.
    pub fn add(&mut self, process: &Process, modules: &Modules) {
        self.modules.add(process, modules);
        let programs = self.programs.get_mut().unwrap_or_else(PoisonError::into_inner);
        programs.remove(&ProgramKey::of_process(process));
    }

    /// A namer for the addresses of `process`.
    pub fn namer(&self, process: &Process) -> Namer {
        Namer::new(self.program(process))
    }

    /// The number of addresses so far that are in no file that a process had mapped, and of those in
    /// no mapping that the capture states, where it left some out.
    pub fn outside(&self) -> [u64; 2] {
        self.files.outside()
    }

    /// The reasons for missing names so far, by path.
    pub fn remarks(&self) -> Vec<NameRemark> {
        self.files.remarks()
    }

    fn program(&self, process: &Process) -> Arc<ProgramNames> {
        let key = ProgramKey::of_process(process);
        let known = self.programs.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        known.unwrap_or_else(|| {
            let history = self.modules.history(process).cloned().unwrap_or_default();
            let new = || Arc::new(ProgramNames::new(process, history, self.files.clone()));
            let mut programs = self.programs.write().unwrap_or_else(PoisonError::into_inner);
            programs.entry(key).or_insert_with(new).clone()
        })
    }
}
