//! Writes the files of a package other than its binaries into the folder that becomes the prefix: man pages,
//! completions, the preloaded library, CMake and pkg-config files.
//!
//! ```text
//! cargo run --example packaging PREFIX BINARIES
//! ```

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [prefix, binaries] = &args[..] else {
        eprintln!("usage: packaging PREFIX BINARIES");
        return ExitCode::from(2);
    };
    match write(Path::new(prefix), Path::new(binaries)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("packaging: {error}");
            ExitCode::FAILURE
        }
    }
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn write(prefix: &Path, binaries: &Path) -> Result<()> {
    man(prefix, &binaries.join("ppt"))?;
    completions(prefix, binaries, &["ppt", "pptc"])?;
    put(&prefix.join("lib/ppt").join(ppt_sources::FILE_NAME), ppt_sources::LIBRARY)?;
    build_files(prefix)
}

/// Writes the man pages, by running the program itself.
fn man(prefix: &Path, program: &Path) -> Result<()> {
    let pages = prefix.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    let status = Command::new(program).arg("man").arg(&pages).status();
    match status.map_err(|error| format!("{}: {error}", program.display()))? {
        status if status.success() => Ok(()),
        status => Err(format!("{} man: {status}", program.display()).into()),
    }
}

fn completions(prefix: &Path, binaries: &Path, programs: &[&str]) -> Result<()> {
    for program in programs {
        let script = |shell: &str| script(&binaries.join(program), shell);
        let share = prefix.join("share");
        put(&share.join("bash-completion/completions").join(program), &script("bash")?)?;
        let fish = share.join("fish/vendor_completions.d").join(format!("{program}.fish"));
        put(&fish, &script("fish")?)?;
        // zsh loads the file by its name at the first TAB, which the file must complete, too.
        let zsh = String::from_utf8(script("zsh")?)?;
        let function = zsh.lines().find_map(|line| line.strip_prefix("function "));
        let function = function
            .and_then(|function| function.split('(').next())
            .ok_or("no function for zsh")?;
        let now = format!("\nif [ \"$funcstack[1]\" = _{program} ]; then {function} \"$@\"; fi\n");
        put(
            &share.join("zsh/site-functions").join(format!("_{program}")),
            (zsh + &now).as_bytes(),
        )?;
    }
    Ok(())
}

/// Writes the files that CMake and pkg-config search for.
fn build_files(prefix: &Path) -> Result<()> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging");
    for (file, folder) in [
        ("cmake/pptConfig.cmake", "lib/cmake/ppt"),
        ("cmake/pptGenerate.cmake", "lib/cmake/ppt"),
        ("cmake/pptConfigVersion.cmake.in", "lib/cmake/ppt"),
        ("pkgconfig/ppt.pc.in", "lib/pkgconfig"),
    ] {
        let text =
            fs::read_to_string(from.join(file))?.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        let name = Path::new(file.trim_end_matches(".in")).file_name().ok_or("no name")?;
        put(&prefix.join(folder).join(name), text.as_bytes())?;
    }
    Ok(())
}

/// A completion script, as the program itself writes it.
fn script(program: &Path, shell: &str) -> Result<Vec<u8>> {
    let output = Command::new(program).env("PPT_COMPLETE", shell).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() || output.stdout.is_empty() {
        return Err(format!("{} gives no completions for {shell}", program.display()).into());
    }
    Ok(output.stdout)
}

fn put(path: &Path, contents: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, contents).map_err(|error| format!("{}: {error}", path.display()).into())
}
