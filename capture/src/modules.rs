//! Modules chunks: the files that a process had mapped as code, and their addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::error::DamageKind;
use crate::format::modules::{self, entry};
use crate::source::Process;
use crate::thread_names::ProcessKey;

/// The executable mappings of a process at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    /// A source of the process; a source chunk of this number comes first.
    pub source: u16,
    /// Whether an earlier file states them, too.
    pub is_base: bool,
    /// CLOCK_MONOTONIC in ns when they were read.
    pub mono_ns: u64,
    /// Number of the process's mappings that are not listed.
    pub left_out: u32,
    /// The mappings, sorted by address. They hold until the next set of the process.
    pub mapped: Arc<[Module]>,
}

/// One executable mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// The first address.
    pub start: u64,
    /// The end address, exclusive; greater than `start`.
    pub end: u64,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The address that the file assigns to [`Self::start`], as `nm` and `addr2line` show it.
    /// `None` if unknown.
    pub address: Option<u64>,
    /// The path of the file as the process sees it, or a name of the kernel such as `[vdso]`. The
    /// target may choose any bytes, so escape it before you show it.
    pub path: Vec<u8>,
    /// The build id of the file; empty if it has none, or could not be read.
    pub build_id: Vec<u8>,
    /// Whether the file had been deleted or replaced.
    pub is_deleted: bool,
}

impl Module {
    /// The path as text. U+FFFD replaces bytes that are not UTF-8.
    pub fn path_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }

    /// The last component of the path. U+FFFD replaces bytes that are not UTF-8.
    pub fn name(&self) -> Cow<'_, str> {
        let last = self.path.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty());
        String::from_utf8_lossy(last.unwrap_or(&self.path))
    }

    /// The build id in hex digits, as `file` and debuggers show it.
    pub fn build_id_text(&self) -> String {
        hex::encode(&self.build_id)
    }

    /// The address that the file assigns to `address`, which lies in the mapping. If that is
    /// unknown, the offset in the file.
    pub fn in_file(&self, address: u64) -> u64 {
        let from = self.address.unwrap_or(self.offset);
        from.wrapping_add(address.wrapping_sub(self.start))
    }

    /// The length of the module in a payload, bytes.
    fn len(&self) -> usize {
        (entry::LEN + self.path.len() + self.build_id.len()).next_multiple_of(modules::ENTRY_ALIGN)
    }

    fn is_valid(&self) -> bool {
        self.start < self.end
            && self.path.len() <= modules::MAX_PATH
            && self.build_id.len() <= modules::MAX_BUILD_ID
    }
}

impl Modules {
    /// Reduces the set to at most 4,096 mappings and `most` bytes. Mappings that do not fit or are
    /// invalid are only counted. The first one comes first, then the last ones: a program has the
    /// lowest addresses, and what it began with the highest.
    pub fn fitting(mut self, most: usize) -> Modules {
        let mut left = most.min(modules::MAX_PAYLOAD);
        let fits = |module: &&Module| {
            let len = module.len();
            let fits = module.is_valid() && len <= left;
            left -= if fits { len } else { 0 };
            fits
        };
        let (first, rest) = self.mapped.split_at(self.mapped.len().min(1));
        let by_worth = first.iter().chain(rest.iter().rev()).filter(fits);
        let mut fitting: Vec<Module> = by_worth.take(modules::MAX_COUNT).cloned().collect();
        fitting.sort_unstable_by_key(|module| module.start);
        if fitting.len() < self.mapped.len() {
            let beside = self.mapped.len() - fitting.len();
            self.left_out = self.left_out.saturating_add(u32::try_from(beside).unwrap_or(u32::MAX));
            self.mapped = fitting.into();
        }
        self
    }

    /// Bytes of the payload.
    pub fn payload_len(&self) -> usize {
        self.mapped.iter().map(Module::len).sum()
    }

    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u64(bytes, modules::MONOTONIC, self.mono_ns);
        put_u32(bytes, modules::COUNT, self.mapped.len() as u32);
        put_u32(bytes, modules::LEFT_OUT, self.left_out);
        put_u32(bytes, modules::FLAGS, if self.is_base { modules::BASE } else { 0 });
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.payload_len());
        for module in self.mapped.iter() {
            let at = bytes.len();
            bytes.resize(at + entry::LEN, 0);
            let head = &mut bytes[at..];
            put_u64(head, entry::START, module.start);
            put_u64(head, entry::END, module.end);
            put_u64(head, entry::OFFSET, module.offset);
            put_u64(head, entry::ADDRESS, module.address.unwrap_or(0));
            put_u16(head, entry::PATH_LEN, module.path.len() as u16);
            put_u16(head, entry::BUILD_ID_LEN, module.build_id.len() as u16);
            let address = if module.address.is_some() { entry::HAS_ADDRESS } else { 0 };
            let deleted = if module.is_deleted { entry::DELETED } else { 0 };
            put_u32(head, entry::FLAGS, address | deleted);
            bytes.extend_from_slice(&module.path);
            bytes.extend_from_slice(&module.build_id);
            bytes.resize(at + module.len(), 0);
        }
        bytes
    }

    pub(crate) fn decode(source: u16, head: &[u8], payload: &[u8]) -> Result<Self, DamageKind> {
        let count = u32_at(head, modules::COUNT) as usize;
        if count > modules::MAX_COUNT || payload.len() > modules::MAX_PAYLOAD {
            return Err(DamageKind::Content("more modules than any capture states at once"));
        }
        let mut mapped = Vec::with_capacity(count);
        let mut rest = payload;
        for _ in 0..count {
            let (module, behind) = decode_one(rest)?;
            if mapped.last().is_some_and(|before: &Module| before.end > module.start) {
                return Err(DamageKind::Content("modules that are not in order"));
            }
            mapped.push(module);
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(DamageKind::Length);
        }
        Ok(Modules {
            source,
            is_base: u32_at(head, modules::FLAGS) & modules::BASE != 0,
            mono_ns: u64_at(head, modules::MONOTONIC),
            left_out: u32_at(head, modules::LEFT_OUT),
            mapped: mapped.into(),
        })
    }
}

/// The first entry, and the bytes after it.
fn decode_one(bytes: &[u8]) -> Result<(Module, &[u8]), DamageKind> {
    let (head, rest) = bytes.split_at_checked(entry::LEN).ok_or(DamageKind::Length)?;
    let path_len = u16_at(head, entry::PATH_LEN) as usize;
    let build_id_len = u16_at(head, entry::BUILD_ID_LEN) as usize;
    let (path, rest_of_texts) = rest.split_at_checked(path_len).ok_or(DamageKind::Length)?;
    let build_id = rest_of_texts.get(..build_id_len).ok_or(DamageKind::Length)?;
    let flags = u32_at(head, entry::FLAGS);
    let module = Module {
        start: u64_at(head, entry::START),
        end: u64_at(head, entry::END),
        offset: u64_at(head, entry::OFFSET),
        address: (flags & entry::HAS_ADDRESS != 0).then(|| u64_at(head, entry::ADDRESS)),
        path: path.to_vec(),
        build_id: build_id.to_vec(),
        is_deleted: flags & entry::DELETED != 0,
    };
    if !module.is_valid() {
        return Err(DamageKind::Content("a module that is no mapping"));
    }
    let behind = bytes.get(module.len()..).ok_or(DamageKind::Length)?;
    Ok((module, behind))
}

/// A program in a process. A process has a new one after each exec.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramKey {
    /// The process.
    pub process: ProcessKey,
    /// The path of its executable.
    pub exe: String,
}

impl ProgramKey {
    /// The program that writes the frames of a source with this process.
    pub fn of_process(process: &Process) -> ProgramKey {
        ProgramKey { process: process.key(), exe: process.exe.clone() }
    }
}

/// The mappings of one program over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleHistory {
    /// In chronological order; neighbours differ.
    sets: Vec<ModuleSet>,
}

/// The mappings at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleSet {
    /// CLOCK_MONOTONIC in ns when it was read.
    pub mono_ns: u64,
    /// Number of the process's mappings that are not listed.
    pub left_out: u32,
    /// Sorted by address.
    pub mapped: Arc<[Module]>,
}

impl ModuleHistory {
    /// The sets, in chronological order.
    pub fn sets(&self) -> &[ModuleSet] {
        &self.sets
    }

    /// The index of the set that holds at `mono_ns` of CLOCK_MONOTONIC: the last one read before,
    /// or else the first. `None` if there is none.
    pub fn set_at(&self, mono_ns: u64) -> Option<usize> {
        let after = self.sets.partition_point(|set| set.mono_ns <= mono_ns);
        (!self.sets.is_empty()).then(|| after.saturating_sub(1))
    }

    /// The module of an address while set `set` holds. A library may have been loaded right before
    /// the next set was read, and unloaded right after the previous one. So later sets are searched
    /// next, then earlier ones.
    pub fn find(&self, set: usize, address: u64) -> Option<&Module> {
        let later = self.sets.get(set..).unwrap_or_default().iter();
        let earlier = self.sets.get(..set).unwrap_or_default().iter().rev();
        later.chain(earlier).find_map(|set| set.find(address))
    }

    /// All modules that were ever mapped, each file and address once, with the time of the first
    /// set that has it, in chronological order.
    pub fn seen(&self) -> impl Iterator<Item = (u64, &Module)> {
        let before = |set: usize, module: &Module| {
            self.sets[..set].iter().any(|earlier| earlier.find(module.start) == Some(module))
        };
        let sets = self.sets.iter().enumerate();
        sets.flat_map(move |(number, set)| {
            let is_new = move |module: &&Module| !before(number, module);
            set.mapped.iter().filter(is_new).map(|module| (set.mono_ns, module))
        })
    }
}

impl ModuleSet {
    /// The module of an address.
    pub fn find(&self, address: u64) -> Option<&Module> {
        let behind = self.mapped.partition_point(|module| module.start <= address);
        self.mapped[..behind].last().filter(|module| address < module.end)
    }
}

/// Most sets of one program that a table keeps. Beyond that, it keeps the first and the last ones.
const MAX_SETS: usize = 256;

/// The modules of all programs of a capture.
#[derive(Debug, Clone, Default)]
pub struct ModuleTable(BTreeMap<ProgramKey, ModuleHistory>);

impl ModuleTable {
    /// Adds the chunk of `process`. A set equal to the current one is ignored.
    pub fn add(&mut self, process: &Process, modules: &Modules) {
        let history = self.0.entry(ProgramKey::of_process(process)).or_default();
        let Modules { mono_ns, left_out, ref mapped, .. } = *modules;
        let sets = &mut history.sets;
        let place = sets.partition_point(|before| before.mono_ns <= mono_ns);
        let is_same = |set: Option<&ModuleSet>| set.is_some_and(|set| set.mapped == *mapped);
        match place.checked_sub(1) {
            Some(before) if is_same(sets.get(before)) => {}
            _ if is_same(sets.get(place)) => sets[place].mono_ns = mono_ns,
            _ => sets.insert(place, ModuleSet { mono_ns, left_out, mapped: mapped.clone() }),
        }
        if sets.len() > MAX_SETS {
            sets.remove(MAX_SETS / 2);
        }
    }

    /// The mappings of the program of `process`.
    pub fn history(&self, process: &Process) -> Option<&ModuleHistory> {
        self.0.get(&ProgramKey::of_process(process))
    }

    /// The histories, by program.
    pub fn iter(&self) -> impl Iterator<Item = (&ProgramKey, &ModuleHistory)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(start: u64, path: &[u8]) -> Module {
        Module {
            start,
            end: start + 0x1000,
            offset: 0x200,
            address: Some(0x1200),
            path: path.to_vec(),
            build_id: vec![0xab; 20],
            is_deleted: false,
        }
    }

    fn set(mono_ns: u64, mapped: &[Module]) -> Modules {
        Modules { mono_ns, mapped: mapped.into(), ..Modules::default() }
    }

    fn coded(modules: &Modules) -> (Vec<u8>, Vec<u8>) {
        let mut head = vec![0; modules::LEN];
        modules.encode(&mut head);
        (head, modules.payload())
    }

    #[test]
    fn a_set_survives_its_payload() {
        let odd = Module {
            address: None,
            build_id: Vec::new(),
            is_deleted: true,
            ..module(0x9000, b"/tmp/\xff\n x")
        };
        let longest = Module { path: vec![b'p'; modules::MAX_PATH], ..module(0xf000, b"") };
        let mapped = [module(0x1000, b"/usr/bin/redis-server"), odd, longest];
        let modules = Modules { source: 3, is_base: true, left_out: 7, ..set(5, &mapped) };
        let (head, payload) = coded(&modules);
        assert_eq!(payload.len(), modules.payload_len());
        assert_eq!(Modules::decode(3, &head, &payload), Ok(modules));
        for len in 0..payload.len() {
            assert_eq!(
                Modules::decode(3, &head, &payload[..len]),
                Err(DamageKind::Length),
                "{len}"
            );
        }
        let longer = [&payload[..], &[0; 8]].concat();
        assert_eq!(Modules::decode(3, &head, &longer), Err(DamageKind::Length));
    }

    #[test]
    fn impossible_sets_are_damage() {
        let is_bad = |modules: &[Module]| {
            let (head, payload) = coded(&set(0, modules));
            matches!(Modules::decode(0, &head, &payload), Err(DamageKind::Content(_)))
        };
        assert!(!is_bad(&[module(0x1000, b"/a"), module(0x2000, b"/b")]));
        assert!(is_bad(&[module(0x1000, b"/a"), module(0x1fff, b"/b")]), "they overlap");
        assert!(is_bad(&[module(0x2000, b"/a"), module(0x1000, b"/b")]), "not in order");
        assert!(is_bad(&[Module { end: 0x1000, ..module(0x1000, b"/a") }]), "empty");
        assert!(is_bad(&[module(0x1000, &[b'p'; modules::MAX_PATH + 1])]), "a long path");
        let (mut head, payload) = coded(&set(0, &[]));
        put_u32(&mut head, modules::COUNT, u32::MAX);
        assert!(Modules::decode(0, &head, &payload).is_err());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let many: Vec<Module> =
            (1..=modules::MAX_COUNT as u64 + 5).map(|at| module(at * 0x1000, b"/lib/x")).collect();
        let all = set(1, &many).fitting(usize::MAX);
        assert_eq!((all.mapped.len(), all.left_out), (modules::MAX_COUNT, 5));
        let few = set(1, &many).fitting(3 * many[0].len() + 1);
        assert_eq!((few.mapped.len(), few.left_out), (3, many.len() as u32 - 3));
        assert!(few.payload_len() <= 3 * many[0].len() + 1);
        let long = [module(0x1000, &vec![b'p'; modules::MAX_PATH + 1]), module(0x2000, b"/lib/y")];
        let fitting = set(1, &long).fitting(usize::MAX);
        assert_eq!((fitting.mapped.len(), fitting.left_out), (1, 1));
        let (head, payload) = coded(&fitting);
        assert_eq!(Modules::decode(0, &head, &payload), Ok(fitting));
    }

    #[test]
    fn a_set_holds_until_the_next() {
        let process = Process { pid: 1, start_time: 1, exe: "/bin/x".into(), ..Process::default() };
        let (main, plugin) = (module(0x1000, b"/bin/x"), module(0x5000, b"/lib/plugin.so"));
        let other = module(0x5000, b"/lib/other.so");
        let mut table = ModuleTable::default();
        table.add(&process, &set(10, std::slice::from_ref(&main)));
        // Another buffer of the process states the same set.
        table.add(&process, &set(12, std::slice::from_ref(&main)));
        table.add(&process, &set(20, &[main.clone(), plugin.clone()]));
        table.add(&process, &set(30, &[main.clone(), other.clone()]));
        let history = table.history(&process).unwrap();
        let at = |time, address| {
            let set = history.set_at(time).unwrap();
            history.find(set, address).map(|module| module.name().into_owned())
        };
        assert_eq!(history.sets().len(), 3);
        assert_eq!(at(0, 0x1000).as_deref(), Some("x"));
        assert_eq!(at(10, 0x1fff).as_deref(), Some("x"));
        assert_eq!(at(10, 0x2000), None);
        assert_eq!(at(15, 0x5000).as_deref(), Some("plugin.so"), "it was loaded before 20");
        assert_eq!(at(29, 0x5000).as_deref(), Some("plugin.so"));
        assert_eq!(at(u64::MAX, 0x5000).as_deref(), Some("other.so"));
        let seen: Vec<_> = history.seen().map(|(time, module)| (time, module.name())).collect();
        assert_eq!(seen, [(10, "x".into()), (20, "plugin.so".into()), (30, "other.so".into())]);
        assert_eq!(plugin.in_file(0x5010), 0x1210);
        let after_exec = Process { exe: "/bin/y".into(), ..process };
        assert_eq!(table.history(&after_exec), None);
    }

    #[test]
    fn a_table_keeps_a_bounded_number_of_sets() {
        let process = Process::default();
        let mut table = ModuleTable::default();
        for time in 0..3 * MAX_SETS as u64 {
            table.add(&process, &set(time, &[module(0x1000 * (time + 1), b"/lib/x")]));
        }
        let sets = table.history(&process).unwrap().sets();
        assert_eq!(sets.len(), MAX_SETS);
        assert_eq!((sets[0].mono_ns, sets[MAX_SETS - 1].mono_ns), (0, 3 * MAX_SETS as u64 - 1));
    }
}
