//! `ppt with`: preloads the library into programs that `ppt run` does not start.
//!
//! ```text
//! $ ppt with --systemd nginx
//! # /etc/systemd/system/nginx.service.d/ppt.conf
//! [Service]
//! Environment="LD_PRELOAD=/usr/lib/ppt/libppt-with.so"
//! ```

use std::path::{Path, PathBuf};
use std::{fs, io};

use ppt_sources::{FILE_NAME, LIBRARY};
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::preload::{self, Library, VARIABLE, shown};
use crate::{report, stdout};

pub(crate) fn run(args: &args::With) -> CommandResult {
    match (&args.install, &args.systemd) {
        (Some(folder), _) => install(folder.as_deref())?,
        (None, Some(unit)) => print(&drop_in(unit, Library::find()?.path()))?,
        (None, None) => print(&format!("{VARIABLE}={}\n", Library::find()?.path().display()))?,
    }
    Ok(ExitStatus::DONE)
}

fn print(text: &str) -> Result<(), Failure> {
    stdout::plain(text).map_err(Failure::stdout)
}

/// A drop-in file of systemd that adds the library to a service. The value is in quotes, so backslashes are
/// escaped; `%` begins a specifier.
fn drop_in(unit: &str, library: &Path) -> String {
    let path = library.display().to_string();
    let path = path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!(
        "# /etc/systemd/system/{unit}.d/ppt.conf\n[Service]\nEnvironment=\"{VARIABLE}={path}\"\n"
    )
}

/// Writes the library as a new file: running programs have mapped the old one.
fn install(folder: Option<&Path>) -> Result<(), Failure> {
    let usual = || preload::installed()?.parent().map(PathBuf::from);
    let Some(folder) = folder.map(PathBuf::from).or_else(usual) else {
        return Err(Failure::usage(
            Code::NoLibrary,
            "ppt does not know where it is installed; name a folder: `ppt with --install FOLDER`",
        ));
    };
    let path = folder.join(FILE_NAME);
    let written = || -> io::Result<()> {
        fs::create_dir_all(&folder)?;
        let new = folder.join(format!("{FILE_NAME}.{}", std::process::id()));
        let put = fs::write(&new, LIBRARY).and_then(|()| fs::rename(&new, &path));
        put.inspect_err(|_| drop(fs::remove_file(&new)))
    };
    written().map_err(|error| {
        Failure::failed(Code::CannotWrite, format!("cannot write {}: {error}", shown(&path)))
    })?;
    report::note(format_args!("wrote {}", shown(&path)));
    Ok(())
}
