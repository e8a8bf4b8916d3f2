//! Facts about a host, and the files of its programs.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use goblin::elf::Elf;
use goblin::elf::note::NT_GNU_BUILD_ID;
use rustix::fs::{Access, access};
use sha2::{Digest, Sha256};

use crate::lab::wire::{Facts, FileIdentity, Isolation, VERSION};

/// Variables that programs inherit and that a manifest lists. Other variables may hold secrets.
const VARIABLES: [&str; 22] = [
    "GLIBC_TUNABLES",
    "GOMAXPROCS",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LOGNAME",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "PATH",
    "PYTHONPATH",
    "RAYON_NUM_THREADS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
];
/// The number of bytes of an ELF file that are searched for its build id.
const MAX_ELF_BYTES: u64 = 1 << 30;

pub(super) fn facts(isolation: Isolation) -> Facts {
    let line = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().next().unwrap_or_default().trim().to_owned()
    };
    let system = rustix::system::uname();
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(':'));
    let cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u32);
    Facts {
        version: VERSION,
        boot_id: line("/proc/sys/kernel/random/boot_id"),
        kernel: format!(
            "{} {}",
            system.release().to_string_lossy(),
            system.version().to_string_lossy()
        ),
        machine: system.machine().to_string_lossy().into_owned(),
        cpu: model.map(|model| model.1.trim().to_owned()).unwrap_or_default(),
        cpus,
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        isolation,
        environment: environment(),
    }
}

pub(super) fn environment() -> Vec<(String, String)> {
    let value = |name: &&str| env::var(name).ok().map(|text| ((*name).to_owned(), text));
    VARIABLES.iter().filter_map(value).collect()
}

/// The file that a program's first word names: a path, or a name looked up in PATH.
pub(super) fn find(word: &str) -> Result<PathBuf, String> {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let path = Path::new(word);
    if word.contains('/') {
        return match path.metadata() {
            Err(error) => Err(format!("{word}: {error}")),
            Ok(_) if runs(path) => Ok(std::path::absolute(path).unwrap_or_else(|_| path.into())),
            Ok(_) => Err(format!("{word} is no program: it is no file, or may not be executed")),
        };
    }
    let along = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&along).map(|path| path.join(word)).find(|path| runs(path));
    found.ok_or_else(|| format!("there is no program `{word}` along PATH"))
}

pub(super) fn identify(word: &str) -> FileIdentity {
    let found = find(word).and_then(|path| {
        let sha256 = hash(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((path, sha256))
    });
    match found {
        Err(why) => FileIdentity::Missing { why },
        Ok((path, sha256)) => {
            let build_id = build_id(&path);
            FileIdentity::Found { path: path.to_string_lossy().into_owned(), sha256, build_id }
        }
    }
}

fn hash(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn build_id(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_ELF_BYTES).read_to_end(&mut bytes).ok()?;
    let elf = Elf::parse(&bytes).ok()?;
    let headers = elf.iter_note_headers(&bytes).into_iter().flatten();
    let sections = elf.iter_note_sections(&bytes, None).into_iter().flatten();
    let note = headers.chain(sections).flatten();
    let mut note = note.filter(|note| note.n_type == NT_GNU_BUILD_ID && note.name == "GNU");
    note.next().map(|note| hex::encode(note.desc))
}
