//! A search reads a bounded amount, however much a process has mapped and however many processes
//! there are.

mod fake;

use fake::{DATA, DATA_END, FakeSystem, elf};
use ppt_agent::{FoundBuffers, Searcher};
use std::path::PathBuf;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("ppt-test-").tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn elf(&self, name: &str) -> PathBuf {
        elf(&self.path(name), DATA_END, 0);
        self.path(name)
    }

    /// A sparse file of `size` bytes.
    fn sparse(&self, name: &str, size: u64) -> PathBuf {
        std::fs::File::create(self.path(name)).unwrap().set_len(size).unwrap();
        self.path(name)
    }
}

fn objects(found: &FoundBuffers) -> Vec<&str> {
    found.buffers.iter().map(|buffer| buffer.object.rsplit('/').next().unwrap()).collect()
}

/// A database maps gigabytes of data before it loads a plugin.
#[test]
fn a_large_mapping_hides_no_object() {
    let (files, system) = (Files::new(), FakeSystem::new());
    let mut process = system.process();
    process.map((0x10000, 3 * GIB), "rw-p", 0, &files.sparse("table", 3 * GIB));
    let at = 4 * GIB;
    process.load(at, &files.elf("plugin.so"));
    process.buffer(at + DATA);
    let mut searcher = Searcher::of_one();
    let found = searcher.buffers(&system.open(&process)).unwrap();
    assert_eq!((objects(&found), found.unsearched.is_none()), (vec!["plugin.so"], true));
    assert!(searcher.spent().memory < 2 * MIB, "{:?}", searcher.spent());
}

/// An object may have as much data, too: small mappings come first.
#[test]
fn a_large_object_hides_no_other() {
    let (files, system) = (Files::new(), FakeSystem::new());
    let mut process = system.process();
    let large = files.elf("large.so");
    process.map((0x10000, DATA), "r--p", 0, &large);
    process.map((0x100000, 3 * GIB), "rw-p", DATA, &large);
    let at = 4 * GIB;
    process.load(at, &files.elf("plugin.so"));
    process.buffer(at + DATA);
    let mut searcher = Searcher::of_one();
    let found = searcher.buffers(&system.open(&process)).unwrap();
    assert_eq!(objects(&found), ["plugin.so"]);
    let unsearched = found.unsearched.expect("said");
    assert!(unsearched.of_objects && unsearched.files[0].ends_with("large.so"), "{unsearched}");
    assert!(unsearched.bytes >= 2 * GIB, "{unsearched}");
    assert!(searcher.spent().memory <= GIB / 2, "{:?}", searcher.spent());
}

/// If a search finds nothing, it also reads a little of other files, and names those it left out.
#[test]
fn what_is_left_out_is_told() {
    let (files, system) = (Files::new(), FakeSystem::new());
    let mut process = system.process();
    process.map((0x10000, 3 * GIB), "rw-p", 0, &files.sparse("table", 3 * GIB));
    let mut searcher = Searcher::of_one();
    let target = system.open(&process);
    let found = searcher.buffers(&target).unwrap();
    let left = found.unsearched.as_ref().expect("said");
    assert!(!left.of_objects && left.bytes == 3 * GIB - 64 * MIB, "{left}");
    let said = target.choose(found, &[]).unwrap_err().to_string();
    let path = files.path("table");
    let expected = format!("left out to limit the cost: 3008 MiB of {}", path.display());
    assert!(said.contains(&expected), "{said}");
}

/// The smallest mapping of a huge file.
#[test]
fn a_huge_object_costs_what_a_bound_allows() {
    let (files, system) = (Files::new(), FakeSystem::new());
    let mut process = system.process();
    let huge = files.path("huge.so");
    elf(&huge, 4 * GIB, 3 * GIB);
    process.map((0x10000, DATA), "r--p", 0, &huge);
    let target = system.open(&process);
    for (mut searcher, bound) in [(Searcher::of_one(), 256 * MIB), (Searcher::of_many(), 68 * MIB)]
    {
        searcher.buffers(&target).unwrap();
        let spent = searcher.spent();
        assert!(spent.files > 0 && spent.files <= bound, "{spent:?}");
        assert_eq!(spent.opened, 1);
    }
}

/// A file with thousands of names is one file, and is read once for all processes that map it.
#[test]
fn a_file_is_read_once() {
    let (files, system) = (Files::new(), FakeSystem::new());
    let library = files.elf("library.so");
    let names: Vec<PathBuf> = (0..2000).map(|n| files.path(&format!("name-{n}"))).collect();
    for name in &names {
        std::fs::hard_link(&library, name).unwrap();
    }
    let mut searcher = Searcher::of_many();
    for round in 0..5 {
        let mut process = system.process();
        for (name, at) in names.iter().zip(1..) {
            process.map((at * 0x10000, DATA), "r--p", 0, name);
        }
        searcher.buffers(&system.open(&process)).unwrap();
        let spent = searcher.spent();
        assert_eq!(spent.opened, 1, "round {round}");
        assert!(spent.files < 2 * MIB && spent.memory < MIB, "{spent:?}");
    }
}

/// Each process of a hostile user maps huge files of its own. All of them together cost no more
/// than the common amount, and the next process is still searched.
#[test]
fn many_huge_processes_cost_a_bounded_amount() {
    let (files, system) = (Files::new(), FakeSystem::new());
    let mut searcher = Searcher::of_many();
    for n in 0..40 {
        let mut process = system.process();
        for m in 0..2 {
            let huge = files.path(&format!("huge-{n}-{m}"));
            elf(&huge, GIB, GIB - MIB);
            process.map((0x10000 + m * MIB, DATA), "r--p", 0, &huge);
        }
        searcher.buffers(&system.open(&process)).unwrap();
    }
    let spent = searcher.spent();
    assert!(spent.files > GIB && spent.files <= GIB + 40 * 4 * MIB, "{spent:?}");

    let mut process = system.process();
    process.load(MIB, &files.elf("plugin.so"));
    process.buffer(MIB + DATA);
    let found = searcher.buffers(&system.open(&process)).unwrap();
    assert_eq!(objects(&found), ["plugin.so"]);
}

/// For a library that ten thousand processes map, each process costs only the read of its mappings.
#[test]
fn what_a_file_does_not_hold_is_not_looked_for_in_memory() {
    let system = FakeSystem::new();
    let mut searcher = Searcher::of_many();
    let mut process = system.process();
    // A library as mapped in this process, but at lower addresses.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let lines: Vec<Vec<&str>> =
        maps.lines().map(|line| line.split_whitespace().collect()).collect();
    let path =
        lines.iter().filter_map(|line| line.get(5)).find(|text| text.contains("/libc")).unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let mut lowest = None;
    for line in lines.iter().filter(|line| line.get(5) == Some(path)) {
        let (start, end) = line[0].split_once('-').unwrap();
        let (start, end) = (number(start), number(end));
        let at = MIB + start - *lowest.get_or_insert(start);
        process.map((at, end - start), line[1], number(line[2]), path.as_ref());
    }
    system.uptime(1.0);
    let target = system.open(&process);
    searcher.buffers(&target).unwrap();
    let spent = searcher.spent();
    assert!(spent.opened == 1 && spent.files > 0 && spent.memory == 0, "{spent:?}");
    // A process that began before the file was last changed may hold any content in its memory.
    system.uptime(1e9);
    searcher.buffers(&target).unwrap();
    let spent = searcher.spent();
    assert!(spent.opened == 1 && spent.memory > 0, "{spent:?}");
}
