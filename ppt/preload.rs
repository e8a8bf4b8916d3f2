//! The library that writes frames from inside of programs that nobody edited: where it is, and how
//! programs get it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ppt_agent::{PreloadBarrier, escaped, preload_barrier};
use ppt_sources::{FILE_NAME, SOURCES};

use crate::args::Source;
use crate::code::Code;
use crate::failure::Failure;
use crate::report;

/// The variable that names what the dynamic linker preloads.
pub(crate) const VARIABLE: &str = "LD_PRELOAD";

/// The library, in a file.
pub(crate) struct Library {
    path: PathBuf,
}

impl Library {
    /// The library, if any of its sources is wanted.
    pub(crate) fn wanted(sources: &[Source]) -> Result<Option<Self>, Failure> {
        (!sources.is_empty()).then(Self::find).transpose()
    }

    /// Finds the library where packages have it, or where cargo builds it.
    pub(crate) fn find() -> Result<Self, Failure> {
        let places = [installed(), beside()];
        let Some(path) = places.iter().flatten().find(|path| path.is_file()) else {
            let places: Vec<_> = places.iter().flatten().map(|path| shown(path)).collect();
            return Err(Failure::failed(
                Code::NoLibrary,
                format!(
                    "there is no {FILE_NAME}: looked for {}\n  `ppt with --install` writes it to the \
                     first of these",
                    places.join(" and ")
                ),
            ));
        };
        // The dynamic linker divides its list there.
        if path.as_os_str().as_bytes().iter().any(|byte| b": \t\n".contains(byte)) {
            return Err(Failure::failed(
                Code::CannotPreload,
                format!(
                    "{VARIABLE} cannot name {}, because a space or a colon is in the path\n  copy it \
                     elsewhere with `ppt with --install FOLDER`, and set {VARIABLE} to that file",
                    shown(path)
                ),
            ));
        }
        Ok(Self { path: path.clone() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The variable's value for a child of this process: what is preloaded anyway comes first, because
    /// sanitizers insist on that.
    pub(crate) fn variable(&self) -> OsString {
        let Some(mut value) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return self.path.clone().into();
        };
        let is_ours = |name: &[u8]| name == self.path.as_os_str().as_bytes();
        if !value.as_bytes().split(|byte| b": ".contains(byte)).any(is_ours) {
            value.push(":");
            value.push(&self.path);
        }
        value
    }

    /// Says so if the library would not be in this program, which is looked up as a shell does. What the
    /// program starts may have it all the same.
    pub(crate) fn look_at(&self, program: &OsStr) {
        let Some(path) = looked_up(program) else { return };
        let Ok(Some(barrier)) = preload_barrier(&path) else { return };
        report::warning(Code::NotPreloaded, format_args!("{}: {}", shown(&path), why(barrier)));
    }
}

/// The library's buffers that nobody asks for. Where the library was preloaded by hand, all are wanted.
pub(crate) fn unwanted(sources: &[Source]) -> Vec<&'static str> {
    let is_wanted = |word: &str| sources.is_empty() || sources.iter().any(|it| it.word() == word);
    let rest = SOURCES.iter().filter(|(word, _)| !is_wanted(word));
    rest.flat_map(|(_, buffers)| buffers.iter().copied()).collect()
}

/// Why a program does not have the library, or has no use of it.
pub(crate) fn why(barrier: PreloadBarrier) -> &'static str {
    match barrier {
        PreloadBarrier::Static => {
            "--with shows nothing of it, because it is linked statically: it calls no library that \
             could be preloaded"
        }
        PreloadBarrier::Privileged => {
            "--with shows nothing of it, because it gets rights that its caller does not have: the \
             dynamic linker preloads nothing then"
        }
        PreloadBarrier::Go => {
            "--with shows nothing of it, because programs in Go call the kernel without the C library"
        }
        PreloadBarrier::Architecture => {
            "--with shows nothing of it, because it is for another architecture than the library"
        }
    }
}

/// `lib/ppt` below the prefix that ppt is installed to.
pub(crate) fn installed() -> Option<PathBuf> {
    let bin = beside()?.parent()?.to_owned();
    Some(bin.parent()?.join("lib/ppt").join(FILE_NAME))
}

/// In the folder of ppt itself.
fn beside() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.join(FILE_NAME))
}

/// The file that a command's first word names.
fn looked_up(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

pub(crate) fn shown(path: &Path) -> String {
    escaped(&path.to_string_lossy())
}
