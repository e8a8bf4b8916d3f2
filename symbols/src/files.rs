//! The function tables of modules. Each is read once, when an address needs it.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_capture::{Module, Process};
use ppt_foreign::ReadableFile;

use crate::elf::{ElfFile, LoadSegments, SymbolTables};
use crate::finder::{Finder, opened};
use crate::functions::FunctionTable;
use crate::limits;
use crate::remark::{NameRemark, UnnamedCause};

/// The file of a module.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    /// The functions, by their addresses in the file.
    pub functions: FunctionTable,
    /// The mapping of its code.
    pub loads: LoadSegments,
}

/// The identity of a file: the build id, or the path if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum FileKey {
    BuildId(Vec<u8>),
    Path(Vec<u8>),
}

/// All files that were requested so far.
#[derive(Debug)]
pub(crate) struct SymbolFiles {
    finder: Finder,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    files: HashMap<FileKey, Option<Arc<LoadedFile>>>,
    /// Bytes of all their tables.
    bytes: usize,
    remarks: BTreeSet<NameRemark>,
    /// Addresses in no module: where the set states all, and where it left some out.
    outside: u64,
    left_out: u64,
}

/// An ELF file that was verified to be that of a module.
type Proven = ElfFile<ReadableFile>;

impl SymbolFiles {
    pub fn new(finder: Finder) -> SymbolFiles {
        SymbolFiles { finder, inner: Mutex::default() }
    }

    /// Finds files.
    pub fn finder(&self) -> &Finder {
        &self.finder
    }

    /// The file of a module, if there is a verified one with symbols.
    pub fn of_module(&self, module: &Module, process: &Process) -> Option<Arc<LoadedFile>> {
        let key = if module.build_id.is_empty() {
            FileKey::Path(module.path.clone())
        } else {
            FileKey::BuildId(module.build_id.clone())
        };
        let mut inner = self.lock();
        if let Some(known) = inner.files.get(&key) {
            return known.clone();
        }
        // Other threads wait, because they probably need the same file.
        let before = ppt_foreign::failures();
        let loaded = self.load(module, process).map_err(|cause| {
            if ppt_foreign::failures() > before { UnnamedCause::NoAnswer } else { cause }
        });
        let loaded = loaded.and_then(|file| {
            let bytes = inner.bytes.saturating_add(file.functions.bytes());
            if bytes > limits::ALL_TABLES_BYTES {
                return Err(UnnamedCause::TooLarge);
            }
            inner.bytes = bytes;
            Ok(Arc::new(file))
        });
        if let Err(cause) = loaded
            && inner.remarks.len() < limits::REMARKS
        {
            inner.remarks.insert(NameRemark { path: module.path_text().into_owned(), cause });
        }
        inner.files.insert(key, loaded.as_ref().ok().cloned());
        loaded.ok()
    }

    /// Counts an address in no module that the capture holds.
    pub fn add_outside(&self, is_cut: bool) {
        let mut inner = self.lock();
        let count = if is_cut { &mut inner.left_out } else { &mut inner.outside };
        *count += 1;
    }

    /// The number of addresses in code that no file has, and of those in no module of a set that
    /// left some out.
    pub fn outside(&self) -> [u64; 2] {
        let inner = self.lock();
        [inner.outside, inner.left_out]
    }

    /// The reasons for missing names so far, by path.
    pub fn remarks(&self) -> Vec<NameRemark> {
        self.lock().remarks.iter().cloned().collect()
    }

    fn load(&self, module: &Module, process: &Process) -> Result<LoadedFile, UnnamedCause> {
        let mut cause = UnnamedCause::Missing;
        let mut best: Option<Proven> = None;
        for path in self.finder.candidates(module, process) {
            match self.proven(&path, module, process) {
                Ok(file) => {
                    best = Some(file);
                    break;
                }
                // The reason of the first existing file is more useful than that of missing ones.
                Err(other) if cause == UnnamedCause::Missing => cause = other,
                Err(_) => {}
            }
        }
        let is_whole = |file: &Proven| file.tables() == SymbolTables::Whole;
        let separate = || {
            let mut files = self.finder.debug_files(&module.build_id);
            files.find_map(|path| self.proven(&path, module, process).ok().filter(is_whole))
        };
        let loads = best.as_ref().map(|best| best.loads.clone()).unwrap_or_default();
        let file = match best {
            Some(file) if is_whole(&file) => file,
            best => separate().or(best).ok_or(cause)?,
        };
        let functions = file.functions();
        if functions.is_empty() {
            return Err(UnnamedCause::NoSymbols);
        }
        Ok(LoadedFile { functions, loads })
    }

    /// The file at `path`, if it is verified to be that of the module.
    fn proven(
        &self,
        path: &Path,
        module: &Module,
        process: &Process,
    ) -> Result<Proven, UnnamedCause> {
        let file = opened(path, process).ok_or(UnnamedCause::Missing)?;
        let stat = file.stat;
        let file = ElfFile::new(file).ok_or(UnnamedCause::OtherFile)?;
        let is_older = || !module.is_deleted && self.finder.is_older(&stat);
        match (module.build_id.is_empty(), file.build_id == module.build_id) {
            (false, false) => Err(UnnamedCause::OtherFile),
            // ppt could not read the id, or there is none.
            (true, _) if !is_older() => Err(UnnamedCause::NotProven),
            _ => Ok(file),
        }
    }

    /// A thread that panicked while it held the lock left no partial entries.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
