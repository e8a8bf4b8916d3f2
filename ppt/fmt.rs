//! `pptc fmt`: rewrites frame files in their canonical form.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ppt_text::exit::ExitStatus;

use crate::pptc_args::Fmt as Args;
use crate::stdout;
use crate::translate::{read, shown, special};

pub(crate) fn run(args: &Args) -> ExitStatus {
    let (mut failed, mut unformatted) = (false, 0);
    for file in &args.files {
        let formatted = if file.as_os_str() == "-" { of_stdin(args) } else { of_file(args, file) };
        match formatted {
            Ok(same) => unformatted += usize::from(!same),
            Err(message) => {
                anstream::eprint!("{message}");
                failed = true;
            }
        }
    }
    if args.check && unformatted > 0 {
        let files =
            if unformatted == 1 { "1 file".to_owned() } else { format!("{unformatted} files") };
        eprintln!("pptc: {files} would change; `pptc fmt` without --check formats them");
    }
    ExitStatus::from_success(!(failed || args.check && unformatted > 0))
}

/// Formats a file in place; returns whether it already had the canonical form.
fn of_file(args: &Args, file: &Path) -> Result<bool, String> {
    if let Some(kind) = special(file) {
        let file = shown(file);
        return Err(format!("pptc: {file} is {kind}: `pptc fmt -` reads standard input\n"));
    }
    let source = read(file)?;
    let formatted = format(&source, &file.to_string_lossy())?;
    let same = formatted.as_bytes() == source;
    if args.check && !same {
        print(&format!("{}\n", shown(file)))?;
    } else if !same {
        let written = replace(file, formatted.as_bytes());
        written.map_err(|error| format!("pptc: cannot write {}: {error}\n", shown(file)))?;
    }
    Ok(same)
}

fn of_stdin(args: &Args) -> Result<bool, String> {
    let mut source = Vec::new();
    let limit = ppt_codegen::MAX_SOURCE_BYTES as u64 + 1;
    let read = io::stdin().take(limit).read_to_end(&mut source);
    read.map_err(|error| format!("pptc: cannot read standard input: {error}\n"))?;
    let formatted = format(&source, "<stdin>")?;
    let same = formatted.as_bytes() == source;
    match (args.check, same) {
        (true, true) => {}
        (true, false) => print("<stdin>\n")?,
        (false, _) => print(&formatted)?,
    }
    Ok(same)
}

fn format(source: &[u8], name: &str) -> Result<String, String> {
    ppt_codegen::format(source, name).map_err(|failure| failure.render(true))
}

fn print(text: &str) -> Result<(), String> {
    stdout::plain(text).map_err(|error| format!("pptc: cannot write standard output: {error}\n"))
}

/// Replaces an old file by a new one. If that fails at any point, the old file stays whole. Mode,
/// owner and symbolic links stay as they are.
fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let file = fs::canonicalize(file)?;
    let old = fs::metadata(&file)?;
    // A rename needs the right to write only to the folder. A read-only file stays as it is
    // nevertheless.
    fs::OpenOptions::new().write(true).open(&file)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = file.with_file_name(name);
    let mut new =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = new
        .write_all(text)
        .and_then(|()| new.set_permissions(old.permissions()))
        .and_then(|()| keep_owner(&new, &old))
        .and_then(|()| new.sync_all())
        .and_then(|()| fs::rename(&temporary, &file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Root may format files of other users, which keep their owner.
fn keep_owner(new: &fs::File, old: &fs::Metadata) -> io::Result<()> {
    let mine = new.metadata()?;
    if (mine.uid(), mine.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(new, Some(old.uid()), Some(old.gid()))?;
    // A change of the owner clears the set-ID bits.
    new.set_permissions(old.permissions())
}
