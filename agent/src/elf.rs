//! Reads the file of a mapped object: the symbols of descriptors, and the mappings that may contain
//! a descriptor.
//!
//! All results are hints, because the file may have been replaced. A hint is accepted only if the
//! memory at that address holds a descriptor. The file is read in pieces, never mapped: any user
//! with write permission can truncate it, and reading a truncated mapping kills the reader by
//! SIGBUS.

use std::collections::BTreeMap;
use std::io;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::dynamic::{self, Dyn};
use goblin::elf::header::ET_EXEC;
use goblin::elf::note::{NT_GNU_BUILD_ID, NoteDataIterator};
use goblin::elf::program_header::{PF_W, PF_X, PT_DYNAMIC, PT_LOAD, PT_NOTE};
use goblin::elf::section_header::{SHT_DYNSYM, SHT_NOTE, SHT_SYMTAB};
use goblin::elf::{Elf, ProgramHeader, SectionHeader, Symtab, sym};
use memchr::memmem;
use ppt_foreign::ReadableFile;
use ppt_segment::abi::DESCRIPTOR_MAGIC;

use crate::budget::{Budget, Spent};
use crate::memory::ProcessMemory;

/// The prefix of the names of our symbols.
const PREFIX: &[u8] = b"ppt1_";
/// Longest name of such a symbol.
const NAME_LIMIT: u64 = 256;
/// Most such names in one table.
const NAMES: usize = 1024;
/// Most bytes that are searched of a symbol table, a string table, or a part of the file.
const LARGE_LIMIT: u64 = 64 << 20;
/// Largest table of headers, notes or dynamic entries.
const SMALL_LIMIT: u64 = 4 << 20;
/// Bytes of one read of a large range: a whole number of symbols.
const WINDOW: u64 = SYMBOL * 10_000;
/// Bytes of a symbol.
const SYMBOL: u64 = 24;
const PAGE: u64 = 4096;

const CONTEXT: Ctx = Ctx { container: Container::Big, le: Endian::Little };

/// An address as stated in the file. For a relocatable object, the load bias is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Svma(pub(crate) u64);

/// A symbol that may name one of our objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) address: Svma,
    pub(crate) dynamic: bool,
}

/// A part of the file that is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    offset: u64,
    size: u64,
    address: u64,
    writable: bool,
    executable: bool,
}

/// The content of the file of a mapped object.
#[derive(Debug, Default)]
pub(crate) struct Object {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) build_id: String,
    /// The object has a fixed load address. Its addresses need no relocation, so descriptors may be
    /// in memory that is never written to.
    pub(crate) fixed: bool,
    /// Whether the magic of a descriptor occurs where a descriptor may be. `None` if the file was
    /// not searched, or not to its end.
    pub(crate) has_magic: Option<bool>,
    loads: Vec<Load>,
}

/// The source from which an object is read.
pub(crate) trait ObjectSource {
    /// Reads up to the length of `buffer` at `offset`. Returns the number of bytes read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// The counter in `spent` for bytes of this source.
    fn count(spent: &mut Spent) -> &mut u64;
}

impl ObjectSource for ReadableFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_at(offset, buffer)
    }

    fn count(spent: &mut Spent) -> &mut u64 {
        &mut spent.files
    }
}

/// The beginning of an object in the memory of a process. It stands in for a file that cannot be
/// opened.
pub(crate) struct Mapped<'a> {
    pub(crate) memory: &'a ProcessMemory,
    pub(crate) start: u64,
}

impl ObjectSource for Mapped<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.memory.read(self.start.wrapping_add(offset), buffer)
    }

    fn count(spent: &mut Spent) -> &mut u64 {
        &mut spent.memory
    }
}

/// Bounded reads.
struct BoundedReader<'a, S> {
    source: &'a S,
    budget: &'a mut Budget,
}

impl<S: ObjectSource> BoundedReader<'_, S> {
    /// `length` bytes at `offset`; fewer at the end of the source, `None` at the end of the budget.
    fn some(&mut self, offset: u64, length: u64) -> Option<Vec<u8>> {
        if !self.budget.files.take_all(length) {
            return None;
        }
        let mut bytes = vec![0; length as usize];
        let mut done = 0;
        while done < bytes.len() {
            self.budget.spent.reads += 1;
            match self.source.read_at(offset.checked_add(done as u64)?, &mut bytes[done..]) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        *S::count(&mut self.budget.spent) += done as u64;
        bytes.truncate(done);
        Some(bytes)
    }

    /// All `length` bytes, or `None`.
    fn all(&mut self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let bytes = (length <= SMALL_LIMIT).then(|| self.some(offset, length)).flatten()?;
        (bytes.len() as u64 == length).then_some(bytes)
    }

    /// Passes a large range to `look`, piece by piece. Consecutive pieces overlap by `overlap`
    /// bytes. Stops at the end of the range, the file or the budget. Returns whether all of it was
    /// passed.
    fn pieces(&mut self, range: FileRange, overlap: u64, mut look: impl FnMut(u64, &[u8])) -> bool {
        let size = range.size.min(LARGE_LIMIT);
        let mut at = 0;
        while at < size {
            let want = (size - at).min(WINDOW);
            let Some(piece) = self.some(range.offset.saturating_add(at), want) else {
                return false;
            };
            look(at, &piece);
            if piece.len() as u64 != want || at + want == size {
                break;
            }
            at += want - overlap;
        }
        size == range.size
    }

    /// The names in a string table that start with our prefix, by offset. A name may be the suffix
    /// of a longer one.
    fn names(&mut self, table: FileRange) -> BTreeMap<u64, String> {
        let mut places = Vec::new();
        self.pieces(table, PREFIX.len() as u64 - 1, |at, piece| {
            let found = memmem::find_iter(piece, PREFIX).map(|place| at + place as u64);
            places.extend(found.take(NAMES - places.len()));
        });
        let mut names = BTreeMap::new();
        for place in places {
            let room = (table.size - place).min(NAME_LIMIT);
            let Some(bytes) = self.some(table.offset.saturating_add(place), room) else { break };
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            if let Ok(name) = str::from_utf8(&bytes[..end]) {
                names.insert(place, name.to_string());
            }
        }
        names
    }

    /// Our symbols in a symbol table, recognised by name.
    fn symbols(&mut self, table: &SymbolTable, found: &mut Vec<Symbol>) {
        let names = self.names(table.names);
        if names.is_empty() {
            return; // As in most files.
        }
        self.pieces(table.symbols, 0, |_, piece| {
            let count = piece.len() / SYMBOL as usize;
            let symbols = Symtab::parse(piece, 0, count, CONTEXT);
            for symbol in symbols.iter().flat_map(Symtab::iter) {
                let defined = symbol.st_shndx != 0 && symbol.st_value != 0;
                if symbol.st_type() == sym::STT_OBJECT
                    && defined
                    && found.len() < NAMES
                    && let Some(name) = names.get(&(symbol.st_name as u64))
                {
                    found.push(Symbol {
                        name: name.clone(),
                        address: Svma(symbol.st_value),
                        dynamic: table.dynamic,
                    });
                }
            }
        });
    }

    fn build_id(&mut self, notes: FileRange) -> Option<String> {
        let data = &self.all(notes.offset, notes.size)?;
        let aligned = |alignment| NoteDataIterator {
            data,
            size: data.len(),
            offset: 0,
            ctx: (alignment, CONTEXT),
        };
        let mut notes = aligned(4).take(64).map_while(Result::ok);
        let note = notes.find(|note| note.name == "GNU" && note.n_type == NT_GNU_BUILD_ID)?;
        Some(hex::encode(&note.desc[..note.desc.len().min(64)]))
    }
}

/// A part of a file.
#[derive(Debug, Clone, Copy)]
struct FileRange {
    offset: u64,
    size: u64,
}

/// A symbol table and its string table.
#[derive(Debug)]
struct SymbolTable {
    symbols: FileRange,
    names: FileRange,
    dynamic: bool,
}

impl Object {
    /// Reads a file. `None` if it is not an ELF file of a supported form.
    pub(crate) fn read(source: &impl ObjectSource, budget: &mut Budget) -> Option<Self> {
        let mut reader = BoundedReader { source, budget };
        let (mut object, programs, sections) = Self::headers(&mut reader)?;
        let sections = sections.map(|at| reader.all(at.offset, at.size));
        let sections = sections.flatten().map(|bytes| {
            let count = bytes.len() / size_of_section();
            SectionHeader::parse_from(&bytes, 0, count, CONTEXT).unwrap_or_default()
        });
        let sections = sections.unwrap_or_default();
        let tables = match tables(&sections) {
            tables if tables.is_empty() => {
                object.dynamic(&mut reader, &programs).into_iter().collect()
            }
            tables => tables,
        };
        for table in &tables {
            reader.symbols(table, &mut object.symbols);
        }
        let notes = notes(&programs);
        let of_sections = sections.iter().filter(|section| section.sh_type == SHT_NOTE);
        let of_sections = of_sections
            .map(|of_section| FileRange { offset: of_section.sh_offset, size: of_section.sh_size });
        let mut notes = notes.chain(of_sections.take(16));
        object.build_id = notes.find_map(|note| reader.build_id(note)).unwrap_or_default();
        Some(object)
    }

    /// Searches the file for a descriptor.
    pub(crate) fn look_for_magic(&mut self, source: &impl ObjectSource, budget: &mut Budget) {
        let mut reader = BoundedReader { source, budget };
        let mut found = false;
        let all = self.loads.iter().filter(|load| load.writable || self.fixed).all(|load| {
            let part = FileRange { offset: load.offset, size: load.size };
            reader.pieces(part, DESCRIPTOR_MAGIC.len() as u64 - 1, |_, piece| {
                found |= memmem::find(piece, &DESCRIPTOR_MAGIC).is_some();
            })
        });
        self.has_magic = if found { Some(true) } else { all.then_some(false) };
    }

    /// Reads an object's headers and its build id. Both can also be read from the memory of a
    /// process.
    pub(crate) fn identity(source: &impl ObjectSource, budget: &mut Budget) -> Option<Self> {
        let mut reader = BoundedReader { source, budget };
        let (mut object, programs, _) = Self::headers(&mut reader)?;
        let build_id = notes(&programs).find_map(|note| reader.build_id(note));
        object.build_id = build_id.unwrap_or_default();
        Some(object)
    }

    /// The address that the file assigns to code mapped at `offset`.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let load = self.loads.iter().find(|load| load.executable && load.covers(offset))?;
        Some(load.address.wrapping_add(offset.wrapping_sub(load.offset)))
    }

    /// Reads only an object's headers. They can also be read from the memory of a process.
    pub(crate) fn begin(source: &impl ObjectSource, budget: &mut Budget) -> Option<Self> {
        Some(Self::headers(&mut BoundedReader { source, budget })?.0)
    }

    /// The file's program headers, and the location of its section headers.
    fn headers(
        reader: &mut BoundedReader<impl ObjectSource>,
    ) -> Option<(Self, Vec<ProgramHeader>, Option<FileRange>)> {
        let header = Elf::parse_header(&reader.all(0, 64)?).ok()?;
        let ours = header.container().ok()? == Container::Big
            && header.endianness().ok()? == Endian::Little;
        let count = header.e_phnum as usize;
        let size = ProgramHeader::size(CONTEXT);
        if !ours || header.e_phentsize as usize != size {
            return None;
        }
        let bytes = reader.all(header.e_phoff, (count * size) as u64)?;
        let programs = ProgramHeader::parse(&bytes, 0, count, CONTEXT).ok()?;
        let loads = programs.iter().filter(|program| program.p_type == PT_LOAD);
        let loads = loads.map(|header| Load {
            offset: header.p_offset,
            size: header.p_filesz,
            address: header.p_vaddr,
            writable: header.p_flags & PF_W != 0,
            executable: header.p_flags & PF_X != 0,
        });
        let (fixed, loads) = (header.e_type == ET_EXEC, loads.collect());
        let sections = header.e_shnum as usize * size_of_section();
        let sections = (header.e_shoff != 0 && sections != 0)
            .then_some(FileRange { offset: header.e_shoff, size: sections as u64 });
        Some((Self { fixed, loads, ..Self::default() }, programs, sections))
    }

    /// The symbol table that the dynamic loader uses, for a file without section headers. The file
    /// does not state its size, so the next known table marks its end, or some bytes after it are
    /// read as symbols.
    fn dynamic(
        &self,
        reader: &mut BoundedReader<impl ObjectSource>,
        programs: &[ProgramHeader],
    ) -> Option<SymbolTable> {
        let at = programs.iter().find(|program| program.p_type == PT_DYNAMIC)?;
        let bytes = reader.all(at.p_offset, at.p_filesz)?;
        let entries = bytes.chunks_exact(16).map(|chunk| {
            let word =
                |at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().expect("8 bytes"));
            Dyn { d_tag: word(0), d_val: word(8) }
        });
        let entries: Vec<_> = entries.take_while(|entry| entry.d_tag != dynamic::DT_NULL).collect();
        let value = |tag| entries.iter().find(|entry| entry.d_tag == tag).map(|entry| entry.d_val);
        let symbols = self.offset(value(dynamic::DT_SYMTAB)?)?;
        let names = self.offset(value(dynamic::DT_STRTAB)?)?;
        // Sizes are among the values, and would be taken for addresses.
        let places = entries.iter().filter(|entry| IS_ADDRESS.contains(&entry.d_tag));
        let next = places.filter_map(|place| self.offset(place.d_val));
        let end = next.filter(|&offset| offset > symbols).min()?;
        Some(SymbolTable {
            symbols: FileRange { offset: symbols, size: end - symbols },
            names: FileRange { offset: names, size: value(dynamic::DT_STRSZ)? },
            dynamic: true,
        })
    }

    /// The file offset of an address.
    fn offset(&self, address: u64) -> Option<u64> {
        let inside =
            |load: &&Load| address.checked_sub(load.address).is_some_and(|at| at < load.size);
        let load = self.loads.iter().find(inside)?;
        load.offset.checked_add(address - load.address)
    }

    /// The difference between addresses in memory and addresses in the file, from one mapping. It
    /// is not trusted: a descriptor proves it by its own address.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let load = self.loads.iter().find(|load| load.covers(offset))?;
        let address = load.address.wrapping_add(offset.wrapping_sub(load.offset));
        Some(start.wrapping_sub(address))
    }

    /// The file offset of the code that belongs at `start..end`, if that is inside of the object's
    /// code. `bias` is that of a mapping of the same object.
    pub(crate) fn code_at(&self, bias: u64, start: u64, end: u64) -> Option<u64> {
        let (first, last) = (start.wrapping_sub(bias), end.wrapping_sub(bias));
        let covers = |load: &&Load| {
            let behind = load.address.saturating_add(load.size).checked_next_multiple_of(PAGE);
            load.executable
                && load.address & !(PAGE - 1) <= first
                && first < last
                && behind.is_some_and(|behind| last <= behind)
        };
        let load = self.loads.iter().find(covers)?;
        Some(load.offset.wrapping_add(first.wrapping_sub(load.address)))
    }

    /// Whether the part mapped at `offset` is writable, or was writable until relocation.
    pub(crate) fn is_relocated(&self, offset: u64) -> bool {
        self.loads.iter().any(|load| load.writable && load.covers(offset))
    }
}

impl Load {
    /// Whether a mapping at `offset` may belong to this part: mappings begin at whole pages.
    fn covers(&self, offset: u64) -> bool {
        self.offset & !(PAGE - 1) <= offset && offset <= self.offset.saturating_add(self.size)
    }
}

/// Entries of the dynamic section that point to data that may follow the symbols.
const IS_ADDRESS: [u64; 10] = [
    dynamic::DT_HASH,
    dynamic::DT_GNU_HASH,
    dynamic::DT_STRTAB,
    dynamic::DT_RELA,
    dynamic::DT_JMPREL,
    dynamic::DT_VERSYM,
    dynamic::DT_VERNEED,
    dynamic::DT_VERDEF,
    dynamic::DT_INIT,
    dynamic::DT_PLTGOT,
];

fn size_of_section() -> usize {
    SectionHeader::size(CONTEXT)
}

/// The file ranges of notes, according to the program headers.
fn notes(programs: &[ProgramHeader]) -> impl Iterator<Item = FileRange> {
    let notes = programs.iter().filter(|program| program.p_type == PT_NOTE).take(16);
    notes.map(|note| FileRange { offset: note.p_offset, size: note.p_filesz })
}

/// The symbol tables, according to the section headers. `.symtab` comes first, because it is
/// complete.
fn tables(sections: &[SectionHeader]) -> Vec<SymbolTable> {
    let table = |kind| {
        let symbols = sections.iter().find(|section| section.sh_type == kind)?;
        let names = sections.get(symbols.sh_link as usize)?;
        Some(SymbolTable {
            symbols: FileRange { offset: symbols.sh_offset, size: symbols.sh_size },
            names: FileRange { offset: names.sh_offset, size: names.sh_size },
            dynamic: kind == SHT_DYNSYM,
        })
    };
    [SHT_SYMTAB, SHT_DYNSYM].into_iter().filter_map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ObjectSource for &[u8] {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            let rest = self.get(offset as usize..).unwrap_or_default();
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        }

        fn count(spent: &mut Spent) -> &mut u64 {
            &mut spent.files
        }
    }

    #[test]
    fn our_own_program_is_read() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let file = ReadableFile::local(file).unwrap();
        let mut budget = Budget::of_one();
        let object = Object::read(&file, &mut budget).unwrap();
        assert!(!object.loads.is_empty() && !object.build_id.is_empty());
        assert!(object.symbols.is_empty());
        let whole = file.stat.len;
        assert!(budget.spent.files < whole, "{:?} of {whole}", budget.spent);
    }

    #[test]
    fn it_says_what_goblin_says() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let whole = Elf::parse(&bytes).unwrap();
        let object = Object::read(&&bytes[..], &mut Budget::of_one()).unwrap();
        let loads =
            whole.program_headers.iter().filter(|program_header| program_header.p_type == PT_LOAD);
        let loads: Vec<_> = loads.map(|header| (header.p_offset, header.p_vaddr)).collect();
        let ours: Vec<_> = object.loads.iter().map(|load| (load.offset, load.address)).collect();
        assert_eq!(ours, loads);
        let mut notes = whole.iter_note_headers(&bytes).unwrap().map(Result::unwrap);
        let note = notes.find(|note| note.n_type == NT_GNU_BUILD_ID).unwrap();
        let hex: String = note.desc.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(object.build_id, hex);
    }

    #[test]
    fn rubbish_is_no_object() {
        for bytes in [&b""[..], b"\x7fELF", &[0xff; 4096]] {
            assert!(Object::read(&bytes, &mut Budget::of_one()).is_none());
        }
    }
}
