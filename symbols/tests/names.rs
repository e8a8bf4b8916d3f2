//! Compares names of addresses with those of binutils: `nm` and `addr2line`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use ppt_capture::{Module, Modules, Process};
use ppt_symbols::{
    CaptureHost, CodeFile, NameRemark, SearchPaths, Symbols, UnnamedCause, functions_of,
};

/// Runs a tool. If it is missing, reports that and returns `None`.
fn run(tool: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    match Command::new(tool).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{tool} {arguments:?}: {said}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            eprintln!("skipped: {tool}: {error}");
            None
        }
    }
}

/// A folder with a program of several hundred functions.
struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn new(flags: &[&str]) -> Option<Built> {
        let folder = tempfile::tempdir().unwrap();
        let mut source = String::from("volatile int x;\n");
        for number in 0..400 {
            let (linkage, body) = match number % 3 {
                0 => ("static __attribute__((noinline))", "x += 3;"),
                1 => ("", "for (int i = 0; i < x; i++) x ^= i;"),
                _ => ("__attribute__((weak))", "if (x) x = 7 / x;"),
            };
            writeln!(source, "{linkage} void f{number}(void) {{ {body} }}").unwrap();
        }
        source += "void g(void) __attribute__((alias(\"f1\")));\nint main(void) {";
        (0..400).for_each(|number| write!(source, " f{number}();").unwrap());
        source += " return 0; }\n";
        std::fs::write(folder.path().join("many.c"), source).unwrap();
        let arguments = [flags, &["-O1", "-Wl,--build-id", "many.c", "-o", "many"]].concat();
        run("gcc", &arguments, folder.path())?;
        Some(Built { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn build_id(&self, name: &str) -> Vec<u8> {
        let shown = run("readelf", &["-n", name], self.folder.path()).unwrap();
        let id = shown.split_once("Build ID: ").expect("a build id").1;
        let id = id.split_whitespace().next().unwrap().as_bytes();
        id.chunks(2)
            .map(|chunk| u8::from_str_radix(str::from_utf8(chunk).unwrap(), 16).unwrap())
            .collect()
    }

    /// Code symbols by address, according to nm.
    fn nm(&self, name: &str) -> Option<BTreeMap<u64, BTreeSet<String>>> {
        let mut all: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for line in run("nm", &["--defined-only", name], self.folder.path())?.lines() {
            let parts: Vec<&str> = line.split_whitespace().collect();
            if let [address, "t" | "T" | "w" | "W" | "i", symbol] = parts[..] {
                let address = u64::from_str_radix(address, 16).unwrap();
                all.entry(address).or_default().insert(symbol.to_owned());
            }
        }
        Some(all)
    }

    /// The module of the program, mapped at `start` from file offset 0.
    fn module(&self, name: &str, start: u64) -> Module {
        Module {
            start,
            end: start + (1 << 30),
            address: Some(0),
            path: self.path(name).to_str().unwrap().into(),
            build_id: self.build_id(name),
            ..Module::default()
        }
    }

    /// Search paths below the folder, except the root of paths.
    fn places(&self) -> SearchPaths {
        let places = SearchPaths::default();
        SearchPaths { debug: vec![self.path("debug")], tmp: self.path("tmp"), ..places }
    }
}

/// Names the addresses of a process with this module.
fn symbols(places: SearchPaths, module: &Module) -> (Symbols, Process) {
    let process = Process { pid: 1, exe: "/bin/x".into(), ..Process::default() };
    let mut symbols = Symbols::new(places, CaptureHost::default());
    let mapped = [module.clone()].into();
    symbols.add(&process, &Modules { mapped, ..Modules::default() });
    (symbols, process)
}

fn name(symbols: &Symbols, process: &Process, address: u64) -> String {
    symbols.namer(process).name(address).unwrap().to_string()
}

#[test]
fn functions_are_those_of_binutils() {
    for flags in [&["-pie", "-fPIE"][..], &["-no-pie"], &["-static"]] {
        let Some(built) = Built::new(flags) else { return };
        let (Some(nm), functions) = (built.nm("many"), functions_of(&built.bytes("many"))) else {
            return;
        };
        let sections = run("readelf", &["-SW", "many"], built.folder.path()).unwrap();
        let text = sections.lines().find(|line| line.contains(" .text ")).unwrap();
        let text: Vec<&str> = text.split_whitespace().skip_while(|word| *word != ".text").collect();
        let number = |at: usize| u64::from_str_radix(text[at], 16).unwrap();
        let (start, size) = (number(2), number(4));
        // Approximately every instruction's address, and some that are not instructions.
        let step = (size / 20_000).max(3);
        let addresses: Vec<u64> = (start..start + size).step_by(step as usize).collect();
        let asked: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
        std::fs::write(built.path("addresses"), asked).unwrap();
        let oracle = ["-c", "addr2line -f -e many < addresses"];
        let Some(oracle) = run("sh", &oracle, built.folder.path()) else { return };
        let oracle: Vec<&str> = oracle.lines().step_by(2).collect();
        assert_eq!(oracle.len(), addresses.len());
        let (mut named, mut of_oracle) = (0, 0);
        for (&address, &theirs) in addresses.iter().zip(&oracle) {
            of_oracle += usize::from(theirs != "??");
            let Some((symbol, offset)) = functions.find(address) else { continue };
            named += 1;
            let symbol = String::from_utf8_lossy(symbol).into_owned();
            let at = &nm[&(address - offset)];
            assert!(at.contains(&symbol), "{address:#x}: {symbol} is not in {at:?}");
            // addr2line also assigns the space between two functions to the earlier one.
            let is_theirs = theirs == "??" || at.contains(theirs) || theirs.starts_with("..");
            assert!(is_theirs, "{flags:?} {address:#x}: {symbol}+{offset:#x}, but {theirs}");
        }
        assert!(named * 100 >= addresses.len() * 95, "{named} of {}", addresses.len());
        assert!(named * 100 >= of_oracle * 95, "{named}, and addr2line {of_oracle}");
        println!("{flags:?}: {named} of {} addresses, addr2line {of_oracle}", addresses.len());
    }
}

#[test]
fn a_file_is_that_of_the_module_or_is_not_used() {
    let Some(built) = Built::new(&[]) else { return };
    let Some(nm) = built.nm("many") else { return };
    let main = *nm.iter().find(|(_, names)| names.contains("main")).unwrap().0;
    const START: u64 = 0x5555_0000_0000;
    let module = built.module("many", START);
    let (found, process) = symbols(built.places(), &module);
    assert_eq!(name(&found, &process, START + main), "main (many)");
    assert_eq!(name(&found, &process, START + main + 2), "main+0x2 (many)");
    assert_eq!(name(&found, &process, START - 1), format!("{:#x}", START - 1));
    assert!(found.namer(&process).name(0).is_none());
    assert_eq!(found.remarks(), []);

    // Another file is there now.
    let other = Module { build_id: vec![7; 20], ..module.clone() };
    let (found, process) = symbols(built.places(), &other);
    assert_eq!(name(&found, &process, START + main), format!("many+{main:#x}"));
    let remark = |cause| [NameRemark { path: built.path("many").to_str().unwrap().into(), cause }];
    assert_eq!(found.remarks(), remark(UnnamedCause::OtherFile));

    // A file without a build id cannot be verified to be the mapped one.
    let unproven = Module { build_id: vec![], ..module.clone() };
    let (found, process) = symbols(built.places(), &unproven);
    assert_eq!(name(&found, &process, START + main), format!("many+{main:#x}"));
    assert_eq!(found.remarks(), remark(UnnamedCause::NotProven));
    let arguments = ["--remove-section", ".note.gnu.build-id", "many", "without"];
    if run("objcopy", &arguments, built.folder.path()).is_none() {
        return;
    }
    let without = Module {
        path: built.path("without").to_str().unwrap().into(),
        build_id: vec![],
        ..module.clone()
    };
    let of_host = |created_realtime_ns| {
        let process = Process::default();
        let host = CaptureHost { created_realtime_ns, ..CaptureHost::default() };
        let mut symbols = Symbols::new(built.places(), host);
        symbols.add(&process, &Modules { mapped: [without.clone()].into(), ..Modules::default() });
        name(&symbols, &process, START + main)
    };
    assert_eq!(of_host(0), format!("without+{main:#x}"), "it is younger than the capture");
    assert_eq!(of_host(u64::MAX), "main (without)");

    // It is gone.
    let gone = Module { path: built.path("gone").to_str().unwrap().into(), ..module };
    let (found, process) = symbols(built.places(), &gone);
    assert_eq!(name(&found, &process, START + main), format!("gone+{main:#x}"));
    assert_eq!(found.remarks()[0].cause, UnnamedCause::Missing);
}

#[test]
fn separate_debug_files_are_found_by_build_id() {
    let Some(built) = Built::new(&[]) else { return };
    let Some(nm) = built.nm("many") else { return };
    let local = *nm.iter().find(|(_, names)| names.contains("f0")).unwrap().0;
    let module = built.module("many", 0x10_0000);
    let hex: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = built.path("debug/.build-id").join(&hex[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    let debug = folder.join(format!("{}.debug", &hex[2..]));
    let in_folder = |tool, arguments: &[&str]| run(tool, arguments, built.folder.path());
    let keep = ["--only-keep-debug", "many", debug.to_str().unwrap()];
    if in_folder("objcopy", &keep).is_none() || in_folder("strip", &["many"]).is_none() {
        return;
    }
    let (found, process) = symbols(built.places(), &module);
    assert_eq!(name(&found, &process, 0x10_0000 + local + 1), "f0+0x1 (many)");
    assert_eq!(found.remarks(), []);
    // A file of another build is not used.
    std::fs::copy(&debug, folder.join("other")).unwrap();
    std::fs::write(&debug, built.bytes("many.c")).unwrap();
    let (found, process) = symbols(built.places(), &module);
    assert_eq!(name(&found, &process, 0x10_0000 + local + 1), format!("many+{:#x}", local + 1));
    assert_eq!(found.remarks()[0].cause, UnnamedCause::NoSymbols);
}

/// Modules come and go: a name belongs to the module that was loaded then.
#[test]
fn the_module_of_the_time_has_an_address() {
    let Some(built) = Built::new(&[]) else { return };
    let module = |name: &str| Module {
        start: 0x1000,
        end: 0x2000,
        path: name.into(),
        address: Some(0),
        ..Module::default()
    };
    let process = Process::default();
    let mut symbols = Symbols::new(built.places(), CaptureHost::default());
    for (mono_ns, name) in [(10, "/gone/first.so"), (20, "/gone/second.so")] {
        let mapped = [module(name)].into();
        symbols.add(&process, &Modules { mono_ns, mapped, ..Modules::default() });
    }
    let mut namer = symbols.namer(&process);
    for (mono_ns, expected) in [(0, "first.so+0x12"), (25, "second.so+0x12"), (15, "first.so+0x12")]
    {
        namer.at(mono_ns);
        assert_eq!(namer.name(0x1012).unwrap().as_ref(), expected);
        assert_eq!(namer.name(0x1012).unwrap().as_ref(), expected, "at hand");
    }
}

/// A name stands for the version that programs get today. Names that the loader resolves are marked.
#[test]
fn functions_of_a_name_are_those_of_its_default_version() {
    const SOURCE: &str = "
        int before(void); int before(void) { return 1; } __asm__(\".symver before,f@V1\");
        int now(void); int now(void) { return 2; } __asm__(\".symver now,f@@V2\");
        int only(void); int only(void) { return 3; } __asm__(\".symver only,h@V1\");
        static int one(void) { return 4; } static void *choose(void) { return one; }
        int g(void) __attribute__((ifunc(\"choose\")));";
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("f.c", SOURCE);
    write("f.map", "V1 { global: f; g; h; local: *; }; V2 { global: f; } V1;");
    let flags = ["-shared", "-fPIC", "f.c", "-Wl,--version-script=f.map", "-o", "libf.so"];
    for strip in ["-g", "-s"] {
        if run("gcc", &[&flags[..], &[strip]].concat(), folder.path()).is_none() {
            return;
        }
        let Some(listed) = run("nm", &["-D", "libf.so"], folder.path()) else { return };
        let address = |name: &str| {
            let line = listed.lines().find(|line| line.ends_with(name)).unwrap();
            u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
        };
        let file = std::fs::File::open(folder.path().join("libf.so")).unwrap();
        let file = CodeFile::new(ppt_foreign::ReadableFile::local(file).unwrap()).unwrap();
        let found = |name: &str| {
            let found = file.functions(|known| known == name);
            found.iter().map(|entry| (entry.offset, entry.is_indirect)).collect::<Vec<_>>()
        };
        assert_eq!(found("f"), [(address(" f@@V2"), false)], "{strip}");
        assert_eq!(found("h"), [(address(" h@V1"), false)], "{strip}: it has no other");
        assert_eq!(found("g"), [(address(" g@@V1"), true)], "{strip}");
    }
}
