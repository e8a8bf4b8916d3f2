//! Descriptors by symbol: the quick way, where the file of an object can be opened.
//!
//! A symbol is only a hint. The file may be another one by now; what it says is believed when the
//! memory at that place holds a descriptor.

use std::fs::File;

use goblin::container::Ctx;
use goblin::elf::program_header::PT_LOAD;
use goblin::elf::section_header::SHT_NOBITS;
use goblin::elf::{Elf, Header, ProgramHeader, sym};
use memmap2::Mmap;

/// Largest file that is looked into.
const FILE_LIMIT: u64 = 4 << 30;

/// What the names of our symbols begin with.
const PREFIX: &str = "ppt1_";

/// Most symbols that are looked at in one table.
const SYMBOL_LIMIT: usize = 4_000_000;

/// An address as the file states it: what a relocatable object adds its load bias to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Svma(pub(crate) u64);

/// A symbol that may name one of our objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) address: Svma,
    pub(crate) dynamic: bool,
}

/// What the file of a mapped object says.
#[derive(Debug, Default)]
pub(crate) struct Object {
    pub(crate) symbols: Vec<Symbol>,
    loads: Vec<(u64, u64, u64)>,
    pub(crate) build_id: String,
}

impl Object {
    /// Reads the file; `None` where it is no ELF file that we understand.
    pub(crate) fn read(file: &File) -> Option<Self> {
        let length = file.metadata().ok()?.len();
        if length == 0 || length > FILE_LIMIT {
            return None;
        }
        // SAFETY: a private read-only mapping of a regular file. If somebody truncates it meanwhile
        // we may be killed by SIGBUS, as any debugger that maps the files of its target.
        let bytes = unsafe { Mmap::map(file) }.ok()?;
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let header = Elf::parse_header(bytes).ok()?;
        if (header.e_phnum as usize) * 56 > bytes.len()
            || (header.e_shnum as usize) * 64 > bytes.len()
        {
            return None;
        }
        let elf = match memchr::memmem::find(bytes, PREFIX.as_bytes()) {
            Some(_) => Elf::parse(bytes).ok()?,
            None => without_symbols(bytes, header)?,
        };
        let mut object = Self::default();
        for load in elf.program_headers.iter().filter(|it| it.p_type == PT_LOAD) {
            object.loads.push((load.p_offset, load.p_vaddr, load.p_filesz));
        }
        let symbols = elf.syms.iter().take(SYMBOL_LIMIT).map(|it| (it, &elf.strtab, false));
        let dynamic = elf.dynsyms.iter().take(SYMBOL_LIMIT).map(|it| (it, &elf.dynstrtab, true));
        for (symbol, names, dynamic) in symbols.chain(dynamic) {
            let Some(name) = names.get_at(symbol.st_name) else { continue };
            if name.starts_with(PREFIX) && symbol.st_type() == sym::STT_OBJECT {
                let defined = symbol.st_shndx != 0 && symbol.st_value != 0;
                if defined {
                    object.symbols.push(Symbol {
                        name: name.into(),
                        address: Svma(symbol.st_value),
                        dynamic,
                    });
                }
            }
        }
        object.build_id = build_id(&elf, bytes).unwrap_or_default();
        Some(object)
    }

    /// The difference between addresses in memory and addresses in the file, from one mapping.
    /// Not believed: a descriptor proves it by its own address.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let load = self
            .loads
            .iter()
            .find(|&&(file, _, size)| offset <= file.wrapping_add(size) && file & !0xfff <= offset);
        let &(file, address, _) = load?;
        Some(start.wrapping_sub(address.wrapping_add(offset.wrapping_sub(file))))
    }
}

/// A file that has no symbol of ours, as most have: reading all names only to pass them over takes
/// longer than everything else.
fn without_symbols(bytes: &[u8], header: Header) -> Option<Elf<'_>> {
    let context = Ctx::new(header.container().ok()?, header.endianness().ok()?);
    let (offset, count) = (header.e_phoff as usize, header.e_phnum as usize);
    let mut elf = Elf::lazy_parse(header).ok()?;
    elf.program_headers = ProgramHeader::parse(bytes, offset, count, context).ok()?;
    Some(elf)
}

fn build_id(elf: &Elf, bytes: &[u8]) -> Option<String> {
    let notes = elf
        .section_headers
        .iter()
        .filter(|it| it.sh_type != SHT_NOBITS)
        .any(|it| elf.shdr_strtab.get_at(it.sh_name) == Some(".note.gnu.build-id"))
        .then(|| elf.iter_note_sections(bytes, Some(".note.gnu.build-id")))
        .flatten()
        .or_else(|| elf.iter_note_headers(bytes))?;
    let note =
        notes.take(64).filter_map(Result::ok).find(|it| it.name == "GNU" && it.n_type == 3)?;
    Some(note.desc.iter().take(64).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_is_read() {
        let file = File::open("/proc/self/exe").unwrap();
        let object = Object::read(&file).unwrap();
        assert!(!object.loads.is_empty());
        assert!(object.symbols.is_empty());
    }

    #[test]
    fn without_symbols_it_says_the_same() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let whole = Elf::parse(&bytes).unwrap();
        let part = without_symbols(&bytes, Elf::parse_header(&bytes).unwrap()).unwrap();
        assert_eq!(part.program_headers, whole.program_headers);
        assert_eq!(build_id(&part, &bytes), build_id(&whole, &bytes));
    }

    #[test]
    fn rubbish_is_no_object() {
        for bytes in [&b""[..], b"\x7fELF", &[0xff; 4096]] {
            assert!(Object::parse(bytes).is_none());
        }
    }
}
