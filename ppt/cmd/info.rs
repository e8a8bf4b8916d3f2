//! `ppt info out.bin`: prints what a capture contains, or the readings of clocks.

use std::io::{self, Write};
use std::path::PathBuf;

use ppt_dump::{Info, SyncInfo, Unreadable};
use ppt_output::{FileId, Output, Rules};
use ppt_text::escaped;
use ppt_text::exit::ExitStatus;

use crate::failure::{CommandResult, Failure};
use crate::{args, privileges, signals, stdout};

pub(crate) fn run(args: &args::Info) -> CommandResult {
    signals::needs_stdout()?;
    let inputs = args.files.iter().filter_map(|file| FileId::of_input(file)).collect();
    // If stdout is one of the inputs, the text would damage it.
    Output::open("-".as_ref(), &Rules { inputs, ..Rules::default() })?;
    privileges::only_read(false);
    let files = &args.files;
    if args.sync || files.iter().all(|file| SyncInfo::is_sync(file)) {
        clocks(args)
    } else {
        captures(files, args.json)
    }
}

/// Prints the content of each capture: of several captures under their names, or as a JSON array.
fn captures(files: &[PathBuf], json: bool) -> CommandResult {
    let infos = Info::read_all(files).map_err(|Unreadable { path, error }| {
        Failure::failed(error.code(), format!("{}: {error}", path.display()))
    })?;
    let write = |out: &mut dyn Write| match (&infos[..], json) {
        ([info], true) => info.write_json(out),
        ([info], false) => info.write_text(out),
        (_, true) => Info::write_json_array(&infos, out),
        (_, false) => write_texts(files, &infos, out),
    };
    stdout::by(write).map_err(Failure::stdout)?;
    Ok(ExitStatus::from_success(infos.iter().all(|info| info.damages == 0)))
}

fn write_texts(files: &[PathBuf], infos: &[Info], out: &mut dyn Write) -> io::Result<()> {
    for (number, (path, info)) in files.iter().zip(infos).enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(out, "file      {}", escaped(&path.to_string_lossy()))?;
        info.write_text(&mut *out)?;
    }
    Ok(())
}

fn clocks(args: &args::Info) -> CommandResult {
    let info = SyncInfo::read(&args.files, args.reference.as_deref())
        .map_err(|error| Failure::failed(error.code(), error.to_string()))?;
    let write =
        |out: &mut dyn Write| if args.json { info.write_json(out) } else { info.write_text(out) };
    stdout::by(write).map_err(Failure::stdout)?;
    Ok(ExitStatus::from_success(true))
}
