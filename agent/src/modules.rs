//! The code mappings of a process, read repeatedly at a bounded cost.

use std::collections::HashMap;

use rustix::time::{ClockId, clock_gettime};

use crate::budget::Budget;
use crate::elf::{Mapped, Object};
use crate::mapping::{FileId, Mapping};
use crate::target::Target;

/// Most executable mappings that a look returns.
pub const MAX_MODULES_PER_LOOK: usize = 4096;

/// An executable mapping with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedModule {
    /// The first address.
    pub start: u64,
    /// The end address, exclusive.
    pub end: u64,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The address that the file assigns to `start`, if known.
    pub address: Option<u64>,
    /// The path as the process sees it, or a name of the kernel such as `[vdso]`: any bytes.
    pub path: Vec<u8>,
    /// The build id of the file; empty if it has none, or could not be read.
    pub build_id: Vec<u8>,
    /// The file had been deleted, or replaced by another.
    pub is_deleted: bool,
}

/// The result of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundModules {
    /// CLOCK_MONOTONIC in ns when the mappings were read.
    pub mono_ns: u64,
    /// The mappings, sorted by address.
    pub mapped: Vec<MappedModule>,
    /// Number of executable mappings that were left out.
    pub left_out: u32,
}

/// The executable mappings of a process, as last read.
#[derive(Debug, Default)]
pub struct ModuleWatch {
    /// The mappings at the last look, reduced to what is needed to notice a change.
    seen: Vec<ProcMapping>,
    /// Whether a ring of an io_uring was ever mapped.
    has_io_uring: bool,
}

/// A mapping as in procfs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProcMapping {
    start: u64,
    end: u64,
    offset: u64,
    file: FileId,
    path: Vec<u8>,
}

impl ModuleWatch {
    /// Reads the code mappings. Returns them if they changed since the last look. A process that
    /// has ended has no mappings, which counts as no change.
    pub fn look(&mut self, target: &Target) -> Option<FoundModules> {
        let now = clock_gettime(ClockId::Monotonic);
        let mono_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let (mappings, is_whole) = target.code_mappings().ok()?;
        // After an exec, the mappings are those of another program.
        if !target.maps_same_memory() {
            return None;
        }
        let is_ring =
            |mapping: &Mapping| mapping.object.as_deref() == Some("anon_inode:[io_uring]");
        self.has_io_uring |= mappings.iter().any(is_ring);
        let is_code = |mapping: &&Mapping| mapping.is_executable && !mapping.path().is_empty();
        let mut code: Vec<&Mapping> = mappings.iter().filter(is_code).collect();
        let beyond = code.len().saturating_sub(MAX_MODULES_PER_LOOK);
        // The program has the lowest addresses, and what it began with the highest.
        if beyond > 0 {
            code.drain(1..=beyond);
        }
        let left_out = beyond as u32 + u32::from(!is_whole);
        let seen: Vec<ProcMapping> =
            code.iter().map(|mapping| ProcMapping::of_mapping(mapping)).collect();
        if seen.is_empty() || seen == self.seen {
            return None;
        }
        self.seen = seen;
        let (budget, read) = (Budget::of_one(), HashMap::new());
        let mut files = ModuleFiles { target, mappings: &mappings, budget, read };
        let mapped = code.iter().map(|mapping| files.module(mapping)).collect();
        Some(FoundModules { mono_ns, mapped, left_out })
    }

    /// Whether a look has found the ring of an io_uring.
    pub fn has_io_uring(&self) -> bool {
        self.has_io_uring
    }

    /// Forgets the last look, so that the next one returns everything.
    pub fn forget(&mut self) {
        self.seen.clear();
    }
}

impl ProcMapping {
    fn of_mapping(mapping: &Mapping) -> ProcMapping {
        let Mapping { start, end, offset, file, .. } = *mapping;
        ProcMapping { start, end, offset, file, path: mapping.path() }
    }
}

/// The place where the headers of a mapping are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ObjectKey {
    File(FileId),
    /// Address of a mapping without a file, such as the kernel's own.
    Memory(u64),
}

/// The files of a process's mappings. Each file is read once.
struct ModuleFiles<'a> {
    target: &'a Target,
    mappings: &'a [Mapping],
    budget: Budget,
    read: HashMap<ObjectKey, Option<Object>>,
}

impl ModuleFiles<'_> {
    fn module(&mut self, mapping: &Mapping) -> MappedModule {
        let object = self.object(mapping);
        let address = object.and_then(|object| object.address(mapping.offset));
        let build_id = object
            .map(|object| hex::decode(&object.build_id).unwrap_or_default())
            .unwrap_or_default();
        MappedModule {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
            address,
            path: mapping.path(),
            build_id,
            is_deleted: mapping.is_deleted,
        }
    }

    /// The headers of a mapping's file. The kernel's own code has no file and is read from memory.
    fn object(&mut self, mapping: &Mapping) -> Option<&Object> {
        let key = match mapping.file.inode {
            0 => ObjectKey::Memory(mapping.start),
            _ => ObjectKey::File(mapping.file),
        };
        if !self.read.contains_key(&key) {
            let object = self.of_file(mapping).or_else(|| self.of_memory(mapping));
            self.read.insert(key, object);
        }
        self.read[&key].as_ref()
    }

    fn of_file(&mut self, mapping: &Mapping) -> Option<Object> {
        Object::identity(&self.target.mapped_file(mapping)?.open()?, &mut self.budget)
    }

    /// The headers of an object lie at its beginning, in a mapping of its own or in this one.
    fn of_memory(&mut self, mapping: &Mapping) -> Option<Object> {
        let is_begin = |other: &&Mapping| other.offset == 0 && other.file == mapping.file;
        let first = match mapping.file.inode {
            0 => mapping,
            _ => {
                self.mappings.iter().filter(is_begin).rfind(|begin| begin.start <= mapping.start)?
            }
        };
        let source = Mapped { memory: self.target.memory(), start: first.start };
        Object::identity(&source, &mut self.budget)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use ppt_foreign::ReadableFile;

    use super::*;
    use crate::system::System;

    fn sleeping() -> std::process::Child {
        std::process::Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn a_change_is_told_once() {
        let mut child = sleeping();
        let target = Target::open(&System::default(), child.id() as i32).unwrap();
        let mut watch = ModuleWatch::default();
        // Between fork and exec, and while libraries are loaded, the mappings differ.
        let is_whole = |found: &FoundModules| {
            let has = |name: &str| {
                found.mapped.iter().any(|module| module.path.ends_with(name.as_bytes()))
            };
            has("/sleep") && has("libc.so.6") && has("[vdso]")
        };
        let mut found = None;
        while !found.as_ref().is_some_and(is_whole) {
            found = watch.look(&target).or(found);
            std::thread::yield_now();
        }
        let found = found.unwrap();
        assert!(found.mapped.is_sorted_by_key(|module| module.start));
        for module in found.mapped.iter().filter(|module| module.path.starts_with(b"/")) {
            assert!(!module.build_id.is_empty() && !module.is_deleted, "{module:?}");
            assert!(module.address.is_some(), "{module:?}");
        }
        let vdso = found.mapped.iter().find(|module| module.path == b"[vdso]").unwrap();
        assert!(!vdso.build_id.is_empty(), "its object is in memory: {vdso:?}");
        assert_eq!(watch.look(&target), None);
        watch.forget();
        assert_eq!(watch.look(&target).unwrap().mapped, found.mapped);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(watch.look(&target), None, "it is gone");
    }

    #[test]
    fn a_deleted_program_is_known_by_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("odd \n name");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let target = Target::open(&System::default(), child.id() as i32).unwrap();
        std::fs::remove_file(&program).unwrap();
        let of_program = |found: FoundModules| {
            found.mapped.into_iter().find(|module| module.path.ends_with(b"name"))
        };
        let module = loop {
            if let Some(module) = ModuleWatch::default().look(&target).and_then(of_program) {
                break module;
            }
            std::thread::yield_now();
        };
        assert!(module.is_deleted && !module.build_id.is_empty(), "{module:?}");
        let file = ReadableFile::local(File::open("/bin/sleep").unwrap()).unwrap();
        let object = Object::identity(&file, &mut Budget::of_one()).unwrap();
        assert_eq!(module.build_id, hex::decode(&object.build_id).unwrap_or_default());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
