//! The search for buffers, by symbols and by scans. It is bounded, whatever a process has mapped,
//! and its order ensures that large mappings do not hide buffers.
//!
//! ```text
//! objects (ELF)     relocated data, small mappings first
//!                   constants and code, where addresses are fixed
//!                   everything else             ┐ of one process,
//! other files       as far as a bound allows    ┘ and where nothing has been found
//! ```
//! A descriptor holds its own address, so the loader relocates it, unless the program has a fixed
//! address. So in most objects only the few relocated pages can hold one. In a search of many
//! processes, even those are not read if their file has no descriptor.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use ppt_foreign::{Device, FileStat, FoundFile};

use crate::budget::{Budget, Spent};
use crate::buffer::{Buffer, FoundBy, assign_names};
use crate::descriptor::{Candidate, Checked, check};
use crate::elf::{self, Object};
use crate::error::{AgentError, Result};
use crate::escape::escaped;
use crate::mapping::{FileId, Kept, MAPS_LIMIT, MAPS_OF_MANY, Mapping};
use crate::scan::Scanner;
use crate::target::Target;

/// Most buffers in one process.
const BUFFER_LIMIT: usize = 1024;
/// Most refusals that are reported.
const REFUSED_LIMIT: usize = 64;
/// Most bytes that are scanned in files that are not objects.
const DATA_LIMIT: u64 = 64 << 20;
/// Most objects of one process whose files are opened.
const FILES: usize = 4096;
/// Most paths that are tried for one file, and most mapped copies of it that are searched for
/// symbols.
const COPIES: usize = 16;
/// Most files that are cached.
const REMEMBERED: usize = 1 << 16;

/// An object that was searched.
#[derive(Debug, Clone)]
pub struct Searched {
    /// Path of the object, escaped.
    pub object: String,
    /// The part of it that was searched.
    pub how: &'static str,
}

/// Mappings that were not searched, because there were too many.
#[derive(Debug, Clone, Default)]
pub struct Unsearched {
    /// Their bytes.
    pub bytes: u64,
    /// Paths of the first of the files, escaped.
    pub files: Vec<String>,
    /// The number of further files.
    pub more: usize,
    /// Whether some of them belong to objects, where buffers usually are.
    pub of_objects: bool,
}

impl fmt::Display for Unsearched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes > 0 {
            write!(f, "{} MiB of ", self.bytes.div_ceil(1 << 20))?;
        }
        f.write_str(&self.files.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

impl Unsearched {
    fn add(&mut self, bytes: u64, path: &str) {
        const SHOWN: usize = 4;
        let path = escaped(path);
        self.bytes = self.bytes.saturating_add(bytes);
        if !self.files.contains(&path) {
            if self.files.len() < SHOWN { self.files.push(path) } else { self.more += 1 }
        }
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct FoundBuffers {
    /// The buffers, by name.
    pub buffers: Vec<Buffer>,
    /// Candidates that are not trusted, with the failed check.
    pub refused: Vec<String>,
    /// The objects that were searched.
    pub searched: Vec<Searched>,
    /// Mappings that may hold more buffers.
    pub unsearched: Option<Unsearched>,
}

/// The other results of a search, without the buffers.
#[derive(Debug, Clone, Default)]
pub struct Remarks {
    /// As [`FoundBuffers::refused`].
    pub refused: Vec<String>,
    /// As [`FoundBuffers::unsearched`].
    pub unsearched: Option<Unsearched>,
}

impl Remarks {
    /// The remarks of a search.
    pub fn from_search(found: &FoundBuffers) -> Self {
        Self { refused: found.refused.clone(), unsearched: found.unsearched.clone() }
    }
}

/// Searches processes one after the other, with limits for each and for all of them.
#[derive(Debug)]
pub struct Searcher {
    budget: Budget,
    /// Whether many processes are searched, so that unlikely places are left out.
    many: bool,
    /// The content of files that were read before. `None` stands for a file that is not an object.
    files: HashMap<FileVersion, Option<Rc<Object>>>,
    scanner: Scanner,
}

/// A file as it was when it was read.
type FileVersion = (Device, u64, u64, (i64, u32), (i64, u32));

impl Searcher {
    /// Creates a searcher for one requested process.
    pub fn of_one() -> Self {
        Self::within(Budget::of_one(), false)
    }

    /// Creates a searcher for many processes of any user. Each costs little, unless it has buffers.
    pub fn of_many() -> Self {
        Self::within(Budget::of_many(), true)
    }

    fn within(budget: Budget, many: bool) -> Self {
        Self { budget, many, files: HashMap::new(), scanner: Scanner::new() }
    }

    /// The amount that has been read so far.
    pub fn spent(&self) -> Spent {
        self.budget.spent
    }

    /// Finds the ppt buffers of a process. It only reads.
    ///
    /// # Errors
    /// The process has ended, cannot be read, or is of another architecture.
    pub fn buffers(&mut self, target: &Target) -> Result<FoundBuffers> {
        self.budget.next();
        let limit = if self.many { MAPS_OF_MANY } else { MAPS_LIMIT };
        let (mappings, all) = target.mappings(Kept::Private, limit)?;
        let mut search =
            Search { target, mappings: &mappings, searcher: self, found: FoundBuffers::default() };
        if !all {
            let beyond = format!("mappings beyond the first {}", mappings.len());
            search.unsearched(0, &beyond, true);
        }
        let mut symbols = Vec::new();
        let objects = search.objects(&mut symbols);
        search.scan(&objects);
        search.refuse_split_control_pages(&symbols);
        let mut found = search.found;
        assign_names(&mut found.buffers);
        Ok(found)
    }

    /// Reads a file. Returns `None` if it is not an object.
    fn read(&mut self, file: FoundFile) -> Option<Rc<Object>> {
        let FileStat { device, inode, len, mtime, ctime, .. } = file.stat;
        let id = (device, inode, len, mtime, ctime);
        if let Some(object) = self.files.get(&id) {
            return object.clone();
        }
        self.budget.spent.opened += 1;
        let refusals = self.budget.files.refusals;
        let file = file.open()?;
        let object = Object::read(&file, &mut self.budget).map(|mut object| {
            if self.many {
                object.look_for_magic(&file, &mut self.budget);
            }
            Rc::new(object)
        });
        // If the budget of this process cut the read short, the next process reads the file again.
        if self.files.len() < REMEMBERED && self.budget.files.refusals == refusals {
            self.files.insert(id, object.clone());
        }
        object
    }
}

impl Target {
    /// Finds the ppt buffers. It only reads.
    ///
    /// # Errors
    /// The process has ended, cannot be read, or is of another architecture.
    pub fn buffers(&self) -> Result<FoundBuffers> {
        Searcher::of_one().buffers(self)
    }

    /// Returns the buffers called by `names`, or all of them if `names` is empty.
    ///
    /// # Errors
    /// A name fits no buffer, or several; or there are no buffers.
    pub fn choose(&self, found: FoundBuffers, names: &[String]) -> Result<Vec<Buffer>> {
        let pid = self.pid();
        let unsearched = || match &found.unsearched {
            Some(unsearched) => format!("\n  left out to limit the cost: {unsearched}"),
            None => String::new(),
        };
        if found.buffers.is_empty() {
            self.still_there()?;
            return Err(if found.refused.is_empty() {
                AgentError::NoBuffers {
                    pid,
                    searched: list(&found.searched),
                    unsearched: unsearched(),
                }
            } else {
                AgentError::BufferRefused { pid, refused: found.refused.join("\n  ") }
            });
        }
        if names.is_empty() {
            return Ok(found.buffers);
        }
        let mut chosen: Vec<Buffer> = Vec::new();
        for wanted in names {
            let matching = found.buffers.iter().filter(|buffer| buffer.answers_to(wanted));
            let new: Vec<_> = matching.collect();
            if new.is_empty() {
                self.still_there()?;
                let all: Vec<_> = found.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
                return Err(AgentError::NoSuchBuffer {
                    pid,
                    wanted: escaped(wanted),
                    available: all.join(", "),
                    unsearched: unsearched(),
                });
            }
            for buffer in new {
                if !chosen.iter().any(|chosen| chosen.address == buffer.address) {
                    chosen.push(buffer.clone());
                }
            }
        }
        Ok(chosen)
    }
}

fn list(searched: &[Searched]) -> String {
    const SHOWN: usize = 16;
    let mut lines: Vec<String> = searched
        .iter()
        .take(SHOWN)
        .map(|searched| format!("{} ({})", searched.object, searched.how))
        .collect();
    if searched.len() > SHOWN {
        lines.push(format!("and {} more", searched.len() - SHOWN));
    }
    if lines.is_empty() { "nothing is mapped".into() } else { lines.join(", ") }
}

/// A mapped file.
struct Mapped<'a> {
    mappings: Vec<&'a Mapping>,
    /// The content of the file. `None` if it is not an object.
    object: Option<Rc<Object>>,
    build_id: String,
    /// Whether the file has not changed since the process started.
    unchanged: bool,
}

impl Mapped<'_> {
    fn path(&self) -> &str {
        self.mappings[0].object.as_deref().unwrap_or_default()
    }

    /// Whether the file holds no descriptor, so that its mappings hold none.
    fn has_none(&self) -> bool {
        self.unchanged && self.object.as_ref().is_some_and(|object| object.has_magic == Some(false))
    }
}

/// Time of the last change of a file or its metadata, since the epoch.
fn changed(stat: &FileStat) -> Duration {
    let seconds = u64::try_from(stat.ctime.0).unwrap_or(u64::MAX);
    Duration::from_secs(seconds)
}

/// One of our symbols, with its address in memory.
struct Defined {
    /// Index of the mapped file.
    object: usize,
    name: String,
    address: u64,
}

/// The turn in which a mapping is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Relocated,
    Constant,
    /// From here on, only in a search of one process, and if nothing has been found.
    Rest,
    Data,
}

struct Search<'a> {
    target: &'a Target,
    mappings: &'a [Mapping],
    searcher: &'a mut Searcher,
    found: FoundBuffers,
}

impl<'a> Search<'a> {
    /// All mapped files, and the descriptors that symbols point to.
    fn objects(&mut self, symbols: &mut Vec<Defined>) -> Vec<Mapped<'a>> {
        let mut objects = mapped(self.mappings);
        let (began, root, pid) = (self.target.began(), self.target.root(), self.target.pid());
        for (index, it) in objects.iter_mut().enumerate() {
            let mut paths: Vec<&Mapping> = it.mappings.clone();
            paths.dedup_by_key(|path| &path.object);
            paths.truncate(if index < FILES { COPIES } else { 0 });
            let file =
                root.as_ref().and_then(|root| paths.iter().find_map(|path| path.locate(root, pid)));
            let mut how = "scan";
            if let Some(file) = file {
                it.unchanged = began.is_some_and(|began| changed(&file.stat) < began);
                it.object = self.searcher.read(file);
            }
            match it.object {
                Some(_) => how = "symbols and scan",
                None => it.object = self.in_memory(&it.mappings),
            }
            if it.object.is_some() || it.mappings.iter().any(|mapping| mapping.is_executable) {
                self.found.searched.push(Searched { object: escaped(it.path()), how });
            }
            let Some(object) = it.object.clone() else { continue };
            it.build_id.clone_from(&object.build_id);
            for (symbol, address) in resolve(&object, &it.mappings) {
                symbols.push(Defined { object: index, name: symbol.name.clone(), address });
                if symbol.name.ends_with("_descriptor") {
                    let found_by = if symbol.dynamic { FoundBy::Dynsym } else { FoundBy::Symtab };
                    self.candidate(address, it, found_by);
                }
            }
        }
        objects
    }

    /// Reads an object from memory alone, if its file cannot be opened.
    fn in_memory(&mut self, mappings: &[&Mapping]) -> Option<Rc<Object>> {
        let first = mappings.iter().find(|mapping| mapping.offset == 0)?;
        let source = elf::Mapped { memory: self.target.memory(), start: first.start };
        Some(Rc::new(Object::begin(&source, &mut self.searcher.budget)?))
    }

    /// Scans the mappings that may hold descriptors, and notes those that exceed the limits.
    fn scan(&mut self, objects: &[Mapped]) {
        let mut turns: Vec<(Turn, u64, &Mapped, &Mapping)> = Vec::new();
        for object in objects {
            if self.searcher.many && object.has_none() {
                continue;
            }
            let turn = |mapping| (turn(object, mapping), mapping.size(), object, mapping);
            turns.extend(object.mappings.iter().copied().map(turn));
        }
        turns.sort_by_key(|&(turn, size, _, mapping)| (turn, size, mapping.start));
        let mut data = DATA_LIMIT;
        for (turn, size, object, mapping) in turns {
            if turn >= Turn::Rest && (self.searcher.many || self.has_found()) {
                break;
            }
            let mut size = size;
            if turn == Turn::Data {
                size = size.min(data);
                data -= size;
            }
            let limit = BUFFER_LIMIT - self.found.buffers.len().min(BUFFER_LIMIT);
            let Searcher { budget, scanner, .. } = &mut *self.searcher;
            let range = mapping.start..mapping.start + size;
            let scan = scanner.scan(self.target.memory(), range, budget, limit);
            let left = mapping.end.saturating_sub(scan.end);
            if left > 0 && limit > 0 {
                let path = mapping.object.as_deref().unwrap_or_default();
                self.unsearched(left, path, turn != Turn::Data);
            }
            for address in scan.found {
                self.candidate(address, object, FoundBy::Scan);
            }
        }
    }

    /// Notes mappings that exceed the limits.
    fn unsearched(&mut self, bytes: u64, path: &str, of_object: bool) {
        let unsearched = self.found.unsearched.get_or_insert_default();
        unsearched.add(bytes, path);
        unsearched.of_objects |= of_object;
    }

    fn has_found(&self) -> bool {
        !self.found.buffers.is_empty() || !self.found.refused.is_empty()
    }

    /// Records the result at `address`: a buffer, a refusal, or nothing.
    fn candidate(&mut self, address: u64, object: &Mapped, found_by: FoundBy) {
        let buffers = &self.found.buffers;
        if buffers.len() >= BUFFER_LIMIT || buffers.iter().any(|buffer| buffer.address == address) {
            return;
        }
        // A file may be mapped by several names.
        let inside = object.mappings.iter().find(|mapping| mapping.contains(address, 1));
        let name = inside.and_then(|inside| inside.object.as_deref()).unwrap_or(object.path());
        let candidate = Candidate { address, object: name, build_id: &object.build_id, found_by };
        let budget = &mut self.searcher.budget;
        match check(self.target.memory(), self.mappings, candidate, budget) {
            Checked::Believed(buffer) => self.found.buffers.push(*buffer),
            Checked::Nothing => {}
            Checked::Refused(failed) => {
                let refused = format!("buffer in {}: {failed}", escaped(name));
                let all = &mut self.found.refused;
                if !all.contains(&refused) && all.len() < REFUSED_LIMIT {
                    all.push(refused);
                }
            }
        }
    }

    /// With `-Bsymbolic`, a library uses its own control page while the program that includes its
    /// header uses a copy (R_X86_64_COPY). The two would never meet.
    fn refuse_split_control_pages(&mut self, symbols: &[Defined]) {
        let refused = &mut self.found.refused;
        self.found.buffers.retain(|buffer| {
            // Uses the name in the descriptor, not a computed one: a target may be newer.
            let at_descriptor = symbols.iter().filter(|symbol| symbol.address == buffer.address);
            let mut prefixes =
                at_descriptor.filter_map(|defined| defined.name.strip_suffix("descriptor"));
            let Some(prefix) = prefixes.next() else { return true };
            let (control, descriptor) = (format!("{prefix}control"), format!("{prefix}descriptor"));
            let described = |object| {
                symbols.iter().any(|symbol| symbol.object == object && symbol.name == descriptor)
            };
            let copy = symbols.iter().find(|symbol| {
                symbol.name == control
                    && symbol.address != buffer.control
                    && !described(symbol.object)
            });
            if copy.is_some() {
                refused.push(format!(
                    "buffer {} in {}: that library was linked with -Bsymbolic, and the program \
                     uses its header, so they see different control pages. Link the library \
                     without -Bsymbolic, or the .c file into the program",
                    buffer.schema.buffer, buffer.object
                ));
            }
            copy.is_none()
        });
    }
}

/// The files that are mapped privately and readable, by device and inode: thousands of names may be
/// one file.
fn mapped(mappings: &[Mapping]) -> Vec<Mapped<'_>> {
    let mut objects: Vec<Mapped> = Vec::new();
    let mut index: BTreeMap<FileId, usize> = BTreeMap::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_private && mapping.is_readable) {
        if !mapping.object.as_deref().is_some_and(|path| path.starts_with('/')) {
            continue;
        }
        let at = *index.entry(mapping.file).or_insert_with(|| {
            objects.push(Mapped {
                mappings: Vec::new(),
                object: None,
                build_id: String::new(),
                unchanged: false,
            });
            objects.len() - 1
        });
        objects[at].mappings.push(mapping);
    }
    objects
}

/// The turn in which a mapping of a file is scanned.
fn turn(mapped: &Mapped, mapping: &Mapping) -> Turn {
    let Some(object) = &mapped.object else {
        // The headers are not available, if the file ever had any.
        return match mapped.mappings.iter().any(|mapping| mapping.is_executable) {
            true if mapping.is_executable => Turn::Rest,
            true => Turn::Constant,
            false => Turn::Data,
        };
    };
    match object.is_relocated(mapping.offset) {
        true => Turn::Relocated,
        false if object.fixed => Turn::Constant,
        false => Turn::Rest,
    }
}

/// The symbols of a file with their addresses in memory, for each mapped copy.
fn resolve<'e>(object: &'e Object, mappings: &[&Mapping]) -> Vec<(&'e elf::Symbol, u64)> {
    if object.symbols.is_empty() {
        return Vec::new();
    }
    let first = mappings[0].offset;
    let copies = mappings.iter().filter(|mapping| mapping.offset == first).take(COPIES);
    let biases = copies.filter_map(|copy| object.bias(copy.start, copy.offset));
    let at = |bias| {
        object.symbols.iter().map(move |symbol| (symbol, symbol.address.0.wrapping_add(bias)))
    };
    biases.flat_map(at).collect()
}
