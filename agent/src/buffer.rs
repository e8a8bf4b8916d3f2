//! The buffers of a target: found by symbol or by scan, and believed after the same checks.

use std::collections::BTreeMap;
use std::fmt;

use ppt_frame_dsl::Schema;
use ppt_segment::abi::{self, Descriptor, PAGE};

use crate::elf::{Object, Symbol};
use crate::error::{AgentError, Result};
use crate::escape::escaped;
use crate::scan::scan;
use crate::target::{Mapping, Target};

/// Longest schema text that is read from a target.
const SCHEMA_LIMIT: u64 = 1 << 20;
/// Most buffers in one process.
const BUFFER_LIMIT: usize = 1024;
/// Most bytes that are scanned in one process.
const SCAN_LIMIT: u64 = 2 << 30;

/// How a descriptor was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// A symbol of `.symtab`.
    Symtab,
    /// A symbol of `.dynsym`.
    Dynsym,
    /// Its magic in mapped data.
    Scan,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Path::Symtab => "symtab",
            Path::Dynsym => "dynsym",
            Path::Scan => "scan",
        })
    }
}

/// A buffer of a target, checked.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// Its unambiguous name in this target: `NAME[#hash8][@object]`.
    pub name: String,
    /// What its frames look like.
    pub schema: Schema,
    /// The schema's text as it stands in the target.
    pub schema_json: Vec<u8>,
    /// Hash of the schema's layout part.
    pub schema_hash: u64,
    /// Path of the object that holds it, escaped.
    pub object: String,
    /// Build id of that object in hex, where it could be read.
    pub build_id: String,
    /// How it was found.
    pub path: Path,
    /// Where its descriptor is.
    pub(crate) address: u64,
    /// Where its control page is.
    pub(crate) control: u64,
    /// The descriptor's bytes, to be compared with before every write.
    pub(crate) descriptor: [u8; DESCRIPTOR_BYTES],
}

pub(crate) const DESCRIPTOR_BYTES: usize = size_of::<Descriptor>();

/// An object that was searched.
#[derive(Debug, Clone)]
pub struct Searched {
    /// Path of the object, escaped.
    pub object: String,
    /// What was looked at in it.
    pub how: &'static str,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// The buffers, by name.
    pub buffers: Vec<Buffer>,
    /// What looked like a buffer and is not believed, with the failed check.
    pub refused: Vec<String>,
    /// The objects that were looked into.
    pub searched: Vec<Searched>,
}

/// The mappings of one mapped file.
struct Mapped<'a> {
    path: &'a str,
    mappings: Vec<&'a Mapping>,
}

impl Target {
    /// Finds the ppt buffers. Reads only.
    pub fn buffers(&self) -> Result<Found> {
        let mappings = self.mappings()?;
        let mut search = Search { target: self, mappings: &mappings, found: Found::default() };
        let mut budget = SCAN_LIMIT;
        let objects = objects(&mappings);
        let mut symbols: Vec<Defined> = Vec::new();
        for executable_too in [false, true] {
            for (index, object) in objects.iter().enumerate() {
                search.object((index, object), executable_too, &mut budget, &mut symbols);
            }
            // Old linkers put constants beside code; look there only when there is nothing else.
            if !search.found.buffers.is_empty() || !search.found.refused.is_empty() {
                break;
            }
        }
        search.refuse_split_control_pages(&symbols);
        let mut found = search.found;
        name(&mut found.buffers);
        Ok(found)
    }

    /// The buffers called by `names`, or all of them where none is named.
    pub fn choose(&self, found: Found, names: &[String]) -> Result<Vec<Buffer>> {
        if found.buffers.is_empty() {
            self.still_there()?;
            let pid = self.pid();
            return Err(match found.refused.is_empty() {
                true => AgentError::NoBuffers { pid, searched: list(&found.searched) },
                false => AgentError::BufferRefused { pid, refused: found.refused.join("\n  ") },
            });
        }
        if names.is_empty() {
            return Ok(found.buffers);
        }
        let mut chosen: Vec<Buffer> = Vec::new();
        for wanted in names {
            let matching = found.buffers.iter().filter(|it| it.answers_to(wanted));
            let new: Vec<_> = matching.collect();
            if new.is_empty() {
                self.still_there()?;
                let all: Vec<_> = found.buffers.iter().map(|it| it.name.as_str()).collect();
                return Err(AgentError::NoSuchBuffer {
                    pid: self.pid(),
                    wanted: escaped(wanted),
                    available: all.join(", "),
                });
            }
            for buffer in new {
                if !chosen.iter().any(|it| it.address == buffer.address) {
                    chosen.push(buffer.clone());
                }
            }
        }
        Ok(chosen)
    }
}

fn list(searched: &[Searched]) -> String {
    const SHOWN: usize = 16;
    let mut lines: Vec<String> =
        searched.iter().take(SHOWN).map(|it| format!("{} ({})", it.object, it.how)).collect();
    if searched.len() > SHOWN {
        lines.push(format!("and {} more", searched.len() - SHOWN));
    }
    if lines.is_empty() { "nothing is mapped".into() } else { lines.join(", ") }
}

fn objects(mappings: &[Mapping]) -> Vec<Mapped<'_>> {
    let mut objects: Vec<Mapped> = Vec::new();
    let mut index: BTreeMap<(&str, (i32, i32, u64)), usize> = BTreeMap::new();
    for mapping in mappings.iter().filter(|it| it.private && it.readable) {
        let Some(path) = mapping.object.as_deref().filter(|path| path.starts_with('/')) else {
            continue;
        };
        let at = *index.entry((path, mapping.file)).or_insert_with(|| {
            objects.push(Mapped { path, mappings: Vec::new() });
            objects.len() - 1
        });
        objects[at].mappings.push(mapping);
    }
    objects
}

struct Search<'a> {
    target: &'a Target,
    mappings: &'a [Mapping],
    found: Found,
}

impl Search<'_> {
    fn object(
        &mut self,
        (index, object): (usize, &Mapped),
        executable_too: bool,
        budget: &mut u64,
        all: &mut Vec<Defined>,
    ) {
        let file = object.mappings.iter().find_map(|it| self.target.open_object(it));
        let elf = file.as_ref().and_then(Object::read);
        let build_id = elf.as_ref().map_or(String::new(), |elf| elf.build_id.clone());
        let mut how = "scan";
        let mut seen = Vec::new();
        if let Some(elf) = &elf {
            how = "symbols and scan";
            for (symbol, address) in resolve(elf, object) {
                all.push(Defined { object: index, name: symbol.name.clone(), address });
                if symbol.name.ends_with("_descriptor") && !seen.contains(&address) {
                    let path = if symbol.dynamic { Path::Dynsym } else { Path::Symtab };
                    if self.candidate(address, object.path, &build_id, path) {
                        seen.push(address);
                    }
                }
            }
        }
        // Also where symbols led to some: an object may hold Rust's buffers, which have none, beside
        // C's. Code is read only where there is nothing else.
        if !executable_too || seen.is_empty() {
            for mapping in &object.mappings {
                if mapping.executable == executable_too {
                    let range = (mapping.start, mapping.end);
                    let limit = BUFFER_LIMIT - self.found.buffers.len().min(BUFFER_LIMIT);
                    for address in scan(self.target.memory(), range, budget, limit) {
                        self.candidate(address, object.path, &build_id, Path::Scan);
                    }
                }
            }
        }
        if !executable_too {
            self.found.searched.push(Searched { object: escaped(object.path), how });
        }
    }

    /// Whether there is a descriptor at `address`, believed or refused.
    fn candidate(&mut self, address: u64, object: &str, build_id: &str, path: Path) -> bool {
        if self.found.buffers.iter().any(|it| it.address == address) {
            return true;
        }
        match self.check(address, object, build_id, path) {
            Ok(Some(buffer)) => self.found.buffers.push(buffer),
            Ok(None) => return false,
            Err(failed) => {
                let refused = format!("buffer in {}: {failed}", escaped(object));
                if !self.found.refused.contains(&refused) && self.found.refused.len() < 64 {
                    self.found.refused.push(refused);
                }
            }
        }
        true
    }

    /// Reads and checks a descriptor; `None` where there is none, or only a copy of one.
    fn check(
        &self,
        address: u64,
        object: &str,
        build_id: &str,
        path: Path,
    ) -> std::result::Result<Option<Buffer>, String> {
        let memory = self.target.memory();
        let mut bytes = [0; DESCRIPTOR_BYTES];
        if !address.is_multiple_of(8) || !memory.read_exact(address, &mut bytes).unwrap_or(false) {
            return Ok(None);
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let field = std::mem::offset_of!(Descriptor, self_address);
        if bytes[..16] != abi::DESCRIPTOR_MAGIC || word(field) != address {
            return Ok(None);
        }
        if !self.inside(address, DESCRIPTOR_BYTES as u64, |it| it.private && !it.stack) {
            return Err("its descriptor is not in a private mapping".into());
        }
        let version = half(std::mem::offset_of!(Descriptor, abi_version));
        if version != abi::ABI_VERSION {
            let age = if version > abi::ABI_VERSION { "newer" } else { "unknown" };
            return Err(format!(
                "it was built for ppt ABI {version}, which is {age}; this ppt knows ABI {}: use \
                 the ppt that came with its pptc",
                abi::ABI_VERSION
            ));
        }
        let hash = word(std::mem::offset_of!(Descriptor, schema_hash));
        let schema_address = word(std::mem::offset_of!(Descriptor, schema_address));
        let schema_length = word(std::mem::offset_of!(Descriptor, schema_length));
        if schema_length == 0 || schema_length > SCHEMA_LIMIT {
            return Err(format!("its schema claims to be {schema_length} bytes long"));
        }
        let mut json = vec![0; schema_length as usize];
        if !memory.read_exact(schema_address, &mut json).unwrap_or(false) {
            return Err("its schema points out of its memory".into());
        }
        let schema = Schema::from_json(&json)
            .map_err(|error| format!("its schema is not valid: {}", escaped(&error.to_string())))?;
        if schema.hash() != hash {
            return Err("its schema does not have the hash that its descriptor states".into());
        }
        if half(std::mem::offset_of!(Descriptor, stride)) != schema.stride {
            return Err("its stride is not that of its schema".into());
        }
        let control = word(std::mem::offset_of!(Descriptor, control_address));
        if !control.is_multiple_of(PAGE) {
            return Err("its control page is misaligned".into());
        }
        if let Some(where_it_is) = self.unfit(control) {
            return Err(format!("its control page is {where_it_is}"));
        }
        Ok(Some(Buffer {
            name: String::new(),
            schema,
            schema_json: json,
            schema_hash: hash,
            object: escaped(object),
            build_id: build_id.into(),
            path,
            address,
            control,
            descriptor: bytes,
        }))
    }

    /// What keeps a page from being a control page; `None` where nothing does.
    fn unfit(&self, page: u64) -> Option<&'static str> {
        let mut unfit = Some("not mapped");
        let fits = |it: &Mapping| {
            unfit = match it {
                _ if !it.private => Some("in shared memory"),
                _ if it.stack => Some("on a stack"),
                _ if !it.readable || !it.writable => Some("not writable"),
                _ => None,
            };
            unfit.is_none()
        };
        if self.inside(page, PAGE, fits) { None } else { unfit.or(Some("not mapped")) }
    }

    fn inside(&self, address: u64, length: u64, mut rule: impl FnMut(&Mapping) -> bool) -> bool {
        // A range may go over several mappings: an object's data, and the pages that a handler
        // of faults or mprotect(2) has split off.
        let mut at = address;
        let Some(end) = address.checked_add(length) else { return false };
        while at < end {
            match self.mappings.iter().find(|it| it.contains(at, 1)) {
                Some(mapping) if rule(mapping) => at = mapping.end,
                _ => return false,
            }
        }
        true
    }

    /// With `-Bsymbolic`, a library keeps to its own control page while the program that includes
    /// its header looks at a copy (R_X86_64_COPY): the two would never meet.
    fn refuse_split_control_pages(&mut self, symbols: &[Defined]) {
        let refused = &mut self.found.refused;
        self.found.buffers.retain(|buffer| {
            let (name, hash) = (&buffer.schema.buffer, buffer.schema_hash >> 32);
            let control = format!("ppt1_{name}_{hash:08x}_control");
            let descriptor = format!("ppt1_{name}_{hash:08x}_descriptor");
            let described =
                |object| symbols.iter().any(|it| it.object == object && it.name == descriptor);
            let copy = symbols.iter().find(|it| {
                it.name == control && it.address != buffer.control && !described(it.object)
            });
            if copy.is_some() {
                refused.push(format!(
                    "buffer {name} in {}: that library was linked with -Bsymbolic, and the program \
                     uses its header, so they see different control pages. Link the library \
                     without -Bsymbolic, or the .c file into the program",
                    buffer.object
                ));
            }
            copy.is_none()
        });
    }
}

/// A symbol of ours, where it lies in memory.
struct Defined {
    object: usize,
    name: String,
    address: u64,
}

/// The symbols of an object with their addresses in memory.
fn resolve<'e>(elf: &'e Object, object: &Mapped) -> Vec<(&'e Symbol, u64)> {
    let Some(mapping) = object.mappings.first() else { return Vec::new() };
    let Some(bias) = elf.bias(mapping.start, mapping.offset) else { return Vec::new() };
    elf.symbols.iter().map(|it| (it, it.address.0.wrapping_add(bias))).collect()
}

/// Gives every buffer the shortest name that only it has.
fn name(buffers: &mut [Buffer]) {
    let mut names = Vec::with_capacity(buffers.len());
    for it in buffers.iter() {
        let namesakes = || buffers.iter().filter(|other| other.schema.buffer == it.schema.buffer);
        let twins = || namesakes().filter(|other| other.schema_hash == it.schema_hash);
        let mut name = it.schema.buffer.clone();
        if namesakes().count() > twins().count() {
            name += &format!("#{}", it.hash8());
        }
        if twins().count() > 1 {
            let alike = twins().filter(|other| other.file_name() == it.file_name()).count();
            name += &format!("@{}", if alike > 1 { &it.object } else { it.file_name() });
        }
        names.push(name);
    }
    for (buffer, name) in buffers.iter_mut().zip(names) {
        buffer.name = name;
    }
    buffers.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
}

impl Buffer {
    /// Whether `wanted` names this buffer: its name, or any of `NAME`, `NAME#hash8`,
    /// `NAME@object`, `NAME#hash8@object`; the object by its file name or its path.
    pub fn answers_to(&self, wanted: &str) -> bool {
        let Some(rest) = wanted.strip_prefix(&self.schema.buffer) else { return false };
        let rest = rest.strip_prefix(&format!("#{}", self.hash8())).unwrap_or(rest);
        let Some(object) = rest.strip_prefix('@') else { return rest.is_empty() };
        object == self.object || object == self.file_name()
    }

    /// File name of its object.
    fn file_name(&self) -> &str {
        self.object.rsplit('/').next().unwrap_or(&self.object)
    }

    fn hash8(&self) -> String {
        format!("{:08x}", self.schema_hash >> 32)
    }
}
