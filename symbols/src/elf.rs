//! The functions of an ELF file, and its build id. The file is untrusted.
//!
//! It is read in pieces, never mapped: any user with write permission can truncate it, and reading
//! a truncated mapping kills the reader by SIGBUS. Lengths stated in the file are checked against
//! the length of the file before memory is allocated.

use std::io;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::note::{NT_GNU_BUILD_ID, NoteDataIterator};
use goblin::elf::program_header::{PF_X, PT_LOAD, PT_NOTE};
use goblin::elf::section_header::{
    SHF_EXECINSTR, SHN_XINDEX, SHT_DYNSYM, SHT_GNU_VERSYM, SHT_NOBITS, SHT_NOTE, SHT_SYMTAB,
};
use goblin::elf::sym::{STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use goblin::elf::{Elf, ProgramHeader, SectionHeader};
use ppt_foreign::ReadableFile;

use crate::functions::{Candidate, FunctionTable, TextRange};
use crate::limits;

/// Bytes of a symbol table entry.
const SYMBOL: usize = 24;
/// Most notes that are searched for a build id.
const NOTES: usize = 64;
const CONTEXT: Ctx = Ctx { container: Container::Big, le: Endian::Little };

/// A source of known length that can be read at any offset.
pub(crate) trait ReadAt {
    /// Length in bytes.
    fn len(&self) -> u64;
    /// Reads all of `buffer` at `offset`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for ReadableFile {
    fn len(&self) -> u64 {
        self.stat.len
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.read_at(offset, buffer)?;
        if read < buffer.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl ReadAt for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|at| self.get(at..)?.get(..buffer.len()));
        let from = from.ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(from);
        Ok(())
    }
}

/// A part of the file that is mapped as code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    offset: u64,
    size: u64,
    address: u64,
}

/// The parts of a file that are mapped as code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoadSegments(Vec<Load>);

impl LoadSegments {
    /// The address that the file assigns to the code at this file offset.
    pub fn address(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        // Mappings begin at whole pages.
        let covers = |load: &&Load| {
            load.offset & !(PAGE - 1) <= offset && offset <= load.offset.saturating_add(load.size)
        };
        let load = self.0.iter().find(covers)?;
        Some(load.address.wrapping_add(offset.wrapping_sub(load.offset)))
    }

    /// The file offset of the code with this address.
    pub fn offset(&self, address: u64) -> Option<u64> {
        let holds = |load: &&Load| {
            load.address <= address && address < load.address.saturating_add(load.size)
        };
        let load = self.0.iter().find(holds)?;
        load.offset.checked_add(address - load.address)
    }
}

/// The headers of a 64-bit little-endian ELF file.
pub(crate) struct ElfFile<R> {
    pub source: R,
    /// The build id; empty if there is none.
    pub build_id: Vec<u8>,
    /// The mapping of its code.
    pub loads: LoadSegments,
    /// The mapping of its other content.
    pub data: LoadSegments,
    sections: Vec<SectionHeader>,
    /// The index of the section with the names of sections.
    names: usize,
}

/// The symbol of a function.
pub(crate) struct FunctionSymbol<'a> {
    /// The name without the version.
    pub name: &'a [u8],
    /// The address that the file assigns to it.
    pub address: u64,
    /// Whether it has a version that programs linked today do not use.
    pub is_old: bool,
    /// Whether the loader calls it to choose the function.
    pub is_indirect: bool,
}

/// The symbol tables of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SymbolTables {
    /// No symbol table.
    Nothing,
    /// Only the dynamic symbols.
    Dynamic,
    /// A complete table.
    Whole,
}

impl<R: ReadAt> ElfFile<R> {
    /// Reads the headers. `None` if it is not such a file.
    pub fn new(source: R) -> Option<ElfFile<R>> {
        let header = Elf::parse_header(&bytes(&source, 0, 64, limits::HEADER_BYTES)?).ok()?;
        let is_ours = header.container().ok()? == Container::Big
            && header.endianness().ok()? == Endian::Little;
        let program_size = ProgramHeader::size(CONTEXT);
        if !is_ours || (header.e_phnum > 0 && usize::from(header.e_phentsize) != program_size) {
            return None;
        }
        let count = usize::from(header.e_phnum);
        let len = (count * program_size) as u64;
        let programs =
            bytes(&source, header.e_phoff, len, limits::HEADER_BYTES).unwrap_or_default();
        let count = programs.len() / program_size;
        let programs = ProgramHeader::parse(&programs, 0, count, CONTEXT).unwrap_or_default();
        let of_loads = |is_code: bool| {
            let loads = programs.iter().filter(|program| {
                program.p_type == PT_LOAD && (program.p_flags & PF_X != 0) == is_code
            });
            let loads = loads.map(|header| Load {
                offset: header.p_offset,
                size: header.p_filesz,
                address: header.p_vaddr,
            });
            LoadSegments(loads.collect())
        };
        let (loads, data) = (of_loads(true), of_loads(false));
        let (build_id, sections, names) = (Vec::new(), Vec::new(), header.e_shstrndx.into());
        let mut file = ElfFile { source, build_id, loads, data, sections, names };
        file.sections = file.sections(header.e_shoff, header.e_shnum);
        let notes = programs.iter().filter(|program| program.p_type == PT_NOTE).take(NOTES);
        let notes = notes.map(|note| (note.p_offset, note.p_filesz));
        let of_sections =
            file.sections.iter().filter(|section| section.sh_type == SHT_NOTE).take(NOTES);
        let of_sections = of_sections.map(|of_section| (of_section.sh_offset, of_section.sh_size));
        let id = notes.chain(of_sections).find_map(|note| file.note(note));
        file.build_id = id.unwrap_or_default();
        Some(file)
    }

    fn sections(&self, offset: u64, count: u16) -> Vec<SectionHeader> {
        let size = SectionHeader::size(CONTEXT) as u64;
        if offset == 0 || count == 0 {
            return Vec::new();
        }
        let read = bytes(&self.source, offset, u64::from(count) * size, limits::HEADER_BYTES);
        let read = read.unwrap_or_default();
        let count = read.len() / size as usize;
        SectionHeader::parse_from(&read, 0, count, CONTEXT).unwrap_or_default()
    }

    fn note(&self, (offset, size): (u64, u64)) -> Option<Vec<u8>> {
        let data = &bytes(&self.source, offset, size, limits::HEADER_BYTES)?;
        let context = (4, CONTEXT);
        let notes = NoteDataIterator { data, size: data.len(), offset: 0, ctx: context };
        let mut notes = notes.take(NOTES).map_while(Result::ok);
        let note = notes.find(|note| note.name == "GNU" && note.n_type == NT_GNU_BUILD_ID)?;
        Some(note.desc.to_vec())
    }

    /// The symbol tables that it has.
    pub fn tables(&self) -> SymbolTables {
        let has = |kind| {
            self.sections.iter().any(|section| section.sh_type == kind && section.sh_size > 0)
        };
        match (has(SHT_SYMTAB), has(SHT_DYNSYM)) {
            (true, _) => SymbolTables::Whole,
            (false, true) => SymbolTables::Dynamic,
            (false, false) => SymbolTables::Nothing,
        }
    }

    /// The content of its notes with this owner and type, from sections.
    pub fn notes_of(&self, owner: &str, kind: u32, most: usize) -> Vec<Vec<u8>> {
        let sections =
            self.sections.iter().filter(|section| section.sh_type == SHT_NOTE).take(NOTES);
        let mut found = Vec::new();
        for section in sections {
            let (offset, size) = (section.sh_offset, section.sh_size);
            let data = bytes(&self.source, offset, size, limits::HEADER_BYTES).unwrap_or_default();
            let context = (4, CONTEXT);
            let notes = NoteDataIterator { data: &data, size: data.len(), offset: 0, ctx: context };
            let notes = notes.map_while(Result::ok);
            let such = notes.filter(|note| note.name == owner && note.n_type == kind);
            found.extend(such.take(most - found.len()).map(|note| note.desc.to_vec()));
        }
        found
    }

    /// The address of the section with this name.
    pub fn section_address(&self, name: &[u8]) -> Option<u64> {
        self.section(name).map(|section| section.sh_addr)
    }

    /// The bytes of a section. `None` if the file has none of them.
    pub fn section_bytes(&self, name: &[u8]) -> Option<Vec<u8>> {
        let section = self.section(name).filter(|section| section.sh_type != SHT_NOBITS)?;
        bytes(&self.source, section.sh_offset, section.sh_size, limits::UNWIND_BYTES)
    }

    fn section(&self, name: &[u8]) -> Option<&SectionHeader> {
        let names = self.sections.get(self.names)?;
        let names = bytes(&self.source, names.sh_offset, names.sh_size, limits::HEADER_BYTES)?;
        let is_it = |header: &&SectionHeader| {
            names.get(header.sh_name..).and_then(|rest| rest.split(|&byte| byte == 0).next())
                == Some(name)
        };
        self.sections.iter().find(is_it)
    }

    /// Applies `make` to each symbol of a function that is defined in this file. Returns the results.
    pub fn function_symbols<T>(&self, make: impl Fn(FunctionSymbol<'_>) -> Option<T>) -> Vec<T> {
        let whole = self.table(SHT_SYMTAB);
        let versions = if whole.is_none() { self.table(SHT_GNU_VERSYM) } else { None };
        let Some((symbols, names)) = whole.or_else(|| self.table(SHT_DYNSYM)) else {
            return Vec::new();
        };
        let versions = versions.unwrap_or_default().0;
        let functions = (0..).zip(symbols.chunks_exact(SYMBOL)).filter_map(|(number, symbol)| {
            /// VERSYM_HIDDEN.
            const OLD: u8 = 0x80;
            let (kind, section) = (symbol[4] & 0xf, &symbol[6..8]);
            let written = name_of(symbol, &names)?;
            let address = u64::from_le_bytes(*symbol.get(8..)?.first_chunk()?);
            let is_function = [STT_FUNC, STT_GNU_IFUNC].contains(&kind) && section != [0, 0];
            // In a complete table, the version is a part of the name: memcpy@@GLIBC_2.14.
            let name = written.split(|&byte| byte == b'@').next()?;
            let behind = &written[name.len()..];
            let is_old = versions.get(2 * number + 1usize).is_some_and(|high| high & OLD != 0)
                || (behind.starts_with(b"@") && !behind.starts_with(b"@@"));
            let is_indirect = kind == STT_GNU_IFUNC;
            let found = FunctionSymbol { name, address, is_old, is_indirect };
            (is_function && !name.is_empty()).then(|| make(found)).flatten()
        });
        functions.take(limits::FUNCTIONS).collect()
    }

    /// Whether a symbol has one of these names, defined or undefined.
    pub fn has_symbol(&self, wanted: &[&[u8]]) -> bool {
        [SHT_SYMTAB, SHT_DYNSYM].into_iter().filter_map(|kind| self.table(kind)).any(
            |(symbols, names)| {
                let mut symbols = symbols.chunks_exact(SYMBOL);
                symbols.any(|symbol| {
                    let name = name_of(symbol, &names).unwrap_or_default();
                    // An undefined symbol may have a version: swapcontext@GLIBC_2.2.5.
                    let name = name.split(|&byte| byte == b'@').next().unwrap_or_default();
                    wanted.contains(&name)
                })
            },
        )
    }

    /// The bytes of a symbol table and of its string table.
    fn table(&self, kind: u32) -> Option<(Vec<u8>, Vec<u8>)> {
        let symbols =
            self.sections.iter().find(|section| section.sh_type == kind && section.sh_size > 0)?;
        let names = self.sections.get(symbols.sh_link as usize)?;
        let read = |header: &SectionHeader| {
            let has_bytes = header.sh_type != SHT_NOBITS;
            let read =
                || bytes(&self.source, header.sh_offset, header.sh_size, limits::TABLE_BYTES);
            has_bytes.then(read).flatten()
        };
        Some((read(symbols)?, read(names)?))
    }

    /// The functions of its most complete symbol table, by their addresses in the file.
    pub fn functions(&self) -> FunctionTable {
        let Some((symbols, names)) = self.table(SHT_SYMTAB).or_else(|| self.table(SHT_DYNSYM))
        else {
            return FunctionTable::default();
        };
        let candidates =
            symbols.chunks_exact(SYMBOL).filter_map(|chunk| self.candidate(chunk, &names));
        let candidates = candidates.take(limits::FUNCTIONS).collect();
        FunctionTable::of_candidates(candidates, names)
    }

    /// The function of a symbol table entry, if it describes one.
    fn candidate(&self, symbol: &[u8], names: &[u8]) -> Option<Candidate> {
        let word = |at: usize| Some(u64::from_le_bytes(*symbol.get(at..)?.first_chunk()?));
        let at = u32::from_le_bytes(*symbol.first_chunk()?);
        let info = *symbol.get(4)?;
        let section = u16::from_le_bytes(*symbol.get(6..)?.first_chunk()?);
        let (start, size) = (word(8)?, word(16)?);
        let (kind, binding) = (info & 0xf, info >> 4);
        let header = self.sections.get(usize::from(section));
        let in_code = header.is_some_and(|header| header.sh_flags & u64::from(SHF_EXECINSTR) != 0);
        let is_function = match kind {
            STT_FUNC | STT_GNU_IFUNC => section != 0,
            // Labels in assembly have no type.
            STT_NOTYPE => in_code,
            _ => false,
        };
        let name = name_of(symbol, names)?;
        // Mapping symbols of AArch64 for code and data.
        let is_mark = name.first() == Some(&b'$');
        if !is_function || name.is_empty() || is_mark || start == 0 {
            return None;
        }
        let section_end = match header {
            Some(section_header) if u32::from(section) != SHN_XINDEX => {
                section_header.sh_addr.saturating_add(section_header.sh_size)
            }
            _ => start,
        };
        let is_sized = size > 0;
        let end = if is_sized { start.checked_add(size)? } else { section_end };
        let of_binding = match binding {
            STB_GLOBAL => 4,
            STB_WEAK => 2,
            STB_LOCAL => 0,
            _ => 1,
        };
        let rank = of_binding + u8::from(name[0] != b'_');
        let name = TextRange { at, len: name.len() as u32 };
        (end > start).then_some(Candidate { start, end, is_sized, name, rank })
    }
}

/// The name of a symbol table entry. A name beyond the limit is cut.
fn name_of<'a>(symbol: &[u8], names: &'a [u8]) -> Option<&'a [u8]> {
    let at = u32::from_le_bytes(*symbol.first_chunk()?);
    let name = names.get(at as usize..)?;
    let name = &name[..name.len().min(limits::NAME_BYTES)];
    name.split(|&byte| byte == 0).next()
}

/// The functions of the ELF file in `bytes`. Empty if it is not such a file.
pub fn functions_of(bytes: &[u8]) -> FunctionTable {
    ElfFile::new(bytes).map(|file| file.functions()).unwrap_or_default()
}

/// `size` bytes at `offset`, if the source has them and they are at most `most`.
fn bytes(source: &impl ReadAt, offset: u64, size: u64, most: u64) -> Option<Vec<u8>> {
    let end = offset.checked_add(size)?;
    if size > most || end > source.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    source.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ourselves() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()
    }

    #[test]
    fn our_own_program_is_read() {
        let bytes = ourselves();
        let file = ElfFile::new(&bytes[..]).unwrap();
        assert!(!file.build_id.is_empty() && file.tables() == SymbolTables::Whole);
        let functions = file.functions();
        let whole = Elf::parse(&bytes).unwrap();
        let mut found = 0;
        for symbol in whole.syms.iter().filter(|sym| sym.st_type() == STT_FUNC && sym.st_size > 0) {
            let (_, offset) = functions.find(symbol.st_value).expect("a function");
            assert_eq!(offset, 0);
            found += 1;
        }
        assert!(found > 100, "{found}");
        let load = file.loads.0[0];
        assert_eq!(file.loads.address(load.offset), Some(load.address));
    }

    #[test]
    fn rubbish_is_no_file() {
        for bytes in [&b""[..], b"\x7fELF", &[0xff; 4096]] {
            assert!(ElfFile::new(bytes).is_none() && functions_of(bytes).is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// No change in the headers and tables of a file causes a panic.
        #[test]
        fn damaged_files_are_survived(
            damage in prop::collection::vec((0usize..4096, any::<u8>()), 1..20),
            cut in prop::option::of(0.0f64..1.0),
        ) {
            let mut bytes = std::fs::read("/bin/true").unwrap();
            let len = bytes.len();
            for (at, byte) in damage {
                // The section headers are at the end.
                let at = if at % 2 == 0 { at / 2 } else { len - 1 - at / 2 };
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate((len as f64 * cut) as usize);
            }
            let functions = functions_of(&bytes);
            functions.find(0x1000);
            functions.find(u64::MAX);
        }
    }
}
