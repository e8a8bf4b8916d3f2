//! Makes `libppt-with.so`: generates the code of the buffers, and compiles it together with the code in `c/`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use ppt_codegen::Language;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The name of the library's file.
const FILE_NAME: &str = "libppt-with.so";

/// The frame files. The generated code comes before ours: destructors run in reverse, and ours write the
/// last frames before the buffers are switched off.
const FRAME_FILES: [&str; 4] = ["net", "hops", "locks", "files"];
const FILES: [&str; 12] = [
    "next",
    "real",
    "shims",
    "address",
    "descriptor",
    "connection",
    "write",
    "calls",
    "lock_real",
    "lock_calls",
    "file",
    "file_calls",
];
const HEADERS: [&str; 9] =
    ["next", "real", "hidden", "address", "descriptor", "connection", "write", "lock_real", "file"];
/// The frame files whose control pages our code reads.
const CONTROLS: [&str; 3] = ["net", "locks", "files"];

/// Flags of the C compiler. The library works in programs with a C library of any kind and age: it contains no
/// code of a C library, and requires no version of a symbol.
const FLAGS: [&str; 12] = [
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    // No memory is allocated for a thread's first frame.
    "-ftls-model=initial-exec",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    // A thread that is cancelled in a function of the C library unwinds ours.
    "-fasynchronous-unwind-tables",
    "-Wall",
    "-Wextra",
    "-Werror",
    // Weak functions may be missing.
    "-Wno-address",
];

/// Functions that not every C library has under the name that the generated code calls: see `c/shims.c`.
const SHIMS: [(&str, &str); 5] = [
    ("pthread_key_create", "ppt_key_create"),
    ("pthread_key_delete", "ppt_key_delete"),
    ("pthread_setspecific", "ppt_setspecific"),
    ("pthread_atfork", "ppt_atfork"),
    ("fstat", "ppt_fstat"),
];

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let generated =
        FRAME_FILES.iter().map(|stem| generate(stem, &out)).collect::<Result<Vec<_>>>()?;
    let mut shimmed = compiler(&out);
    SHIMS.iter().for_each(|(name, shim)| _ = shimmed.define(name, *shim));
    let mut objects = shimmed.files(&generated).try_compile_intermediates()?;
    let controls: Vec<_> =
        CONTROLS.iter().map(|stem| control_page(&out, stem)).collect::<Result<_>>()?;
    HEADERS.iter().for_each(|stem| println!("cargo:rerun-if-changed=c/{stem}.h"));
    for stem in FILES {
        let source = format!("c/{stem}.c");
        println!("cargo:rerun-if-changed={source}");
        let mut own = compiler(&out);
        own.include("c").file(source);
        controls.iter().for_each(|(name, page)| _ = own.define(name, page.as_str()));
        if stem == "next" {
            // The C library looks at the caller of dlsym, so the call must not become a jump.
            own.flag("-fno-optimize-sibling-calls");
        }
        objects.extend(own.try_compile_intermediates()?);
    }
    link(&objects, &out)?;
    copy_to_programs(&out)
}

/// Generates the C code of a buffer; returns the path of the source file.
fn generate(stem: &str, out: &Path) -> Result<PathBuf> {
    let name = format!("{stem}.frame");
    println!("cargo:rerun-if-changed={name}");
    let frames =
        ppt_codegen::parse(&fs::read(&name)?, &name).map_err(|failure| failure.render(false))?;
    let outputs = ppt_codegen::generate(&frames, &name, &[Language::C])?;
    ppt_codegen::write_outputs(out, &outputs)?;
    Ok(out.join(format!("{stem}.c")))
}

/// The macro for a buffer's control page, and the symbol of that page, which contains the schema's hash.
fn control_page(out: &Path, stem: &str) -> Result<(String, String)> {
    let header = format!("{stem}.h");
    let text = fs::read_to_string(out.join(&header))?;
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let begins = format!("ppt1_{stem}_");
    let name = words.find(|word| word.starts_with(&begins) && word.ends_with("_control"));
    let name = name.ok_or_else(|| format!("{header} names no control page"))?;
    Ok((format!("PPT_{}_CONTROL", stem.to_uppercase()), name.to_owned()))
}

/// The C compiler for the target, with our flags and no others.
fn compiler(out: &Path) -> cc::Build {
    let mut build = plain_compiler();
    build.flags(FLAGS).include(out);
    build
}

fn plain_compiler() -> cc::Build {
    let mut build = cc::Build::new();
    build.no_default_flags(true).warnings(false);
    build
}

/// Links the library against `libc.so.6`, so that the C library is initialized before it. An empty library of
/// that name stands for the C library, of whichever kind: musl takes the name for its own.
fn link(objects: &[PathBuf], out: &Path) -> Result<()> {
    let libc = out.join("libc.so.6");
    let empty = out.join("empty.c");
    fs::write(&empty, "")?;
    let shared = ["-shared", "-nostdlib", "-Wl,--as-needed", "-Wl,-z,now", "-Wl,-z,relro"];
    let soname = |name: &str| format!("-Wl,-soname,{name}");
    let linker = || plain_compiler().try_get_compiler().map(|compiler| compiler.to_command());
    run(linker()?.args(shared).arg(soname("libc.so.6")).arg(&empty).arg("-o").arg(&libc))?;
    let mut command = linker()?;
    command.args(shared).args([&soname(FILE_NAME), "-s", "-Wl,--no-as-needed"]).args(objects);
    run(command.arg(&libc).arg("-o").arg(out.join(FILE_NAME)))
}

/// Copies the library into the folder of the programs, which is above that of the build script. If cargo
/// arranges its folders otherwise, `ppt with --install` writes the library.
fn copy_to_programs(out: &Path) -> Result<()> {
    let build = out.ancestors().nth(2).filter(|folder| folder.ends_with("build"));
    let Some(programs) = build.and_then(Path::parent) else { return Ok(()) };
    // Programs may have mapped the old one.
    let (new, library) = (out.join("libppt-with.new"), programs.join(FILE_NAME));
    fs::copy(out.join(FILE_NAME), &new)?;
    fs::rename(new, library)?;
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", command.get_program().display()))?;
    if output.status.success() {
        Ok(())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("{command:?} failed:\n{stderr}").into())
    }
}
