//! The functions and USDT probes of a code file that can be probed.

use ppt_foreign::ReadableFile;

use crate::elf::{ElfFile, FunctionSymbol, LoadSegments, ReadAt};
use crate::limits;
use crate::usdt::UsdtNote;

/// A file that a process has mapped as code.
pub struct CodeFile(ElfFile<ReadableFile>);

/// The addresses that a file assigns to its code.
#[derive(Debug, Clone)]
pub struct CodeAddresses(LoadSegments);

impl CodeAddresses {
    /// The address of the code at this file offset.
    pub fn of_offset(&self, offset: u64) -> Option<u64> {
        self.0.address(offset)
    }
}

/// A function and its offset in its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionEntry {
    /// The symbol from the linker, without its version.
    pub name: String,
    /// Whether the symbol has a version that programs linked today do not use.
    pub is_old: bool,
    /// File offset of its first instruction.
    pub offset: u64,
    /// Whether the loader calls it to choose the function (STT_GNU_IFUNC).
    pub is_indirect: bool,
}

/// A USDT probe and its offset in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsdtSite {
    /// The note of the probe.
    pub note: UsdtNote,
    /// The offset in the file, bytes.
    pub offset: u64,
    /// File offset of its semaphore; 0 if it has none.
    pub semaphore: u64,
}

/// The section `.eh_frame` of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwindTable {
    /// The address that the file assigns to the section.
    pub address: u64,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Why returns of a file's functions must not be probed: the kernel replaces the return address of
/// a probed function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnDanger {
    /// Functions of the file catch exceptions. An exception that passes a probed function ends the
    /// program.
    Exceptions,
    /// The file was compiled from Go, which moves stacks.
    Go,
    /// The file switches stacks with swapcontext(3).
    Coroutines,
}

impl CodeFile {
    /// Reads the headers. `None` if it is not a 64-bit little-endian ELF file.
    pub fn new(file: ReadableFile) -> Option<CodeFile> {
        ElfFile::new(file).map(CodeFile)
    }

    /// The functions of its most complete symbol table whose names are `wanted`, sorted by name. If a
    /// name has several versions, they are those of the default version.
    pub fn functions(&self, wanted: impl Fn(&str) -> bool) -> Vec<FunctionEntry> {
        let mut all = self.0.function_symbols(|symbol| {
            let name = str::from_utf8(symbol.name).ok().filter(|name| wanted(name))?.to_owned();
            let offset = self.0.loads.offset(symbol.address)?;
            let FunctionSymbol { is_old, is_indirect, .. } = symbol;
            Some(FunctionEntry { name, is_old, offset, is_indirect })
        });
        all.sort_unstable();
        all.dedup_by(|next, first| {
            next.name == first.name && (next.offset == first.offset || next.is_old && !first.is_old)
        });
        all
    }

    /// The USDT probes, in the order of their notes.
    pub fn usdt(&self) -> Vec<UsdtSite> {
        let base = self.0.section_address(b".stapsdt.base");
        let notes = self.0.notes_of("stapsdt", 3, limits::USDT_NOTES);
        let notes = notes.iter().filter_map(|bytes| UsdtNote::parse(bytes));
        let sites = notes.filter_map(|note| {
            let note = match base {
                Some(base) => note.moved(base),
                None => note,
            };
            let semaphore = match note.semaphore {
                0 => 0,
                address => self.0.data.offset(address)?,
            };
            Some(UsdtSite { offset: self.0.loads.offset(note.address)?, semaphore, note })
        });
        sites.collect()
    }

    /// The addresses that the file assigns to its code.
    pub fn into_addresses(self) -> CodeAddresses {
        CodeAddresses(self.0.loads)
    }

    /// Whether the file system hands out the code at this offset. From then on, the kernel has it.
    pub fn has_code(&self, offset: u64) -> bool {
        self.0.source.read_exact_at(&mut [0; 1], offset).is_ok()
    }

    /// The section `.eh_frame`, which describes how to find callers.
    pub fn unwind_table(&self) -> Option<UnwindTable> {
        const NAME: &[u8] = b".eh_frame";
        let (address, bytes) = (self.0.section_address(NAME)?, self.0.section_bytes(NAME)?);
        Some(UnwindTable { address, bytes })
    }

    /// Why the returns of its functions must not be probed. `None` if they may be.
    pub fn return_danger(&self) -> Option<ReturnDanger> {
        let has = |name: &[u8]| self.0.section_address(name).is_some();
        if has(b".gopclntab") || has(b".note.go.buildid") {
            return Some(ReturnDanger::Go);
        }
        if has(b".gcc_except_table") {
            return Some(ReturnDanger::Exceptions);
        }
        let changes_stacks = self.0.has_symbol(&[b"swapcontext", b"makecontext"]);
        changes_stacks.then_some(ReturnDanger::Coroutines)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn opened(path: &str) -> Option<CodeFile> {
        CodeFile::new(ReadableFile::local(File::open(path).unwrap()).unwrap())
    }

    fn ourselves() -> CodeFile {
        opened("/proc/self/exe").unwrap()
    }

    #[test]
    fn functions_begin_where_the_file_has_their_code() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let whole = goblin::elf::Elf::parse(&bytes).unwrap();
        let functions = ourselves().functions(|_| true);
        assert!(functions.len() > 100 && functions.is_sorted());
        for symbol in whole.syms.iter().filter(|symbol| symbol.is_function()).take(500) {
            let text = whole.shdr_strtab.get_at(whole.section_headers[symbol.st_shndx].sh_name);
            let section = &whole.section_headers[symbol.st_shndx];
            if symbol.st_shndx == 0 || text != Some(".text") {
                continue;
            }
            let name = whole.strtab.get_at(symbol.st_name).unwrap().to_owned();
            let offset = symbol.st_value - section.sh_addr + section.sh_offset;
            let is_it = |entry: &FunctionEntry| (&entry.name, entry.offset) == (&name, offset);
            assert!(functions.iter().any(is_it), "{name} at {offset:#x}");
        }
        // Variables are not functions.
        assert!(!functions.iter().any(|function| function.name == "environ"));
    }

    #[test]
    fn the_unwind_table_is_that_of_the_file() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let whole = goblin::elf::Elf::parse(&bytes).unwrap();
        let is_it = |section: &&goblin::elf::SectionHeader| {
            whole.shdr_strtab.get_at(section.sh_name) == Some(".eh_frame")
        };
        let section = whole.section_headers.iter().find(is_it).unwrap();
        let table = ourselves().unwind_table().unwrap();
        let content = bytes[section.file_range().unwrap()].to_vec();
        assert_eq!(table, UnwindTable { address: section.sh_addr, bytes: content });
    }

    #[test]
    fn programs_that_catch_are_known() {
        assert_eq!(ourselves().return_danger(), Some(ReturnDanger::Exceptions), "Rust unwinds");
        let shell = opened("/bin/sh").unwrap();
        assert_eq!(shell.return_danger(), None);
    }

    #[test]
    fn what_is_no_such_file_is_none() {
        assert!(opened("/etc/passwd").is_none());
    }
}
