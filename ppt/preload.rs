//! The library that writes frames from inside unmodified programs: its location, and how programs
//! load it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ppt_agent::{PreloadBarrier, escaped, preload_barrier};
use ppt_sources::{FILE_NAME, SOURCES};

use crate::args::PreloadSource;
use crate::code::Code;
use crate::failure::Failure;
use crate::report;

/// The variable with the list of libraries that the dynamic linker preloads.
pub(crate) const VARIABLE: &str = "LD_PRELOAD";

/// The library's file.
pub(crate) struct Library {
    path: PathBuf,
}

impl Library {
    /// The library, if any of its sources is requested.
    pub(crate) fn wanted(sources: &[PreloadSource]) -> Result<Option<Self>, Failure> {
        (!sources.is_empty()).then(Self::find).transpose()
    }

    /// Finds the library where packages install it, or where cargo builds it.
    pub(crate) fn find() -> Result<Self, Failure> {
        let places = [installed(), in_own_folder()];
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

    /// The variable's value for a child of this process. Libraries that are preloaded anyway come
    /// first, because sanitizers insist on that.
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

    /// Warns if this program, found as a shell finds it, would not load the library; returns whether
    /// it did. Programs that it starts may still load it.
    pub(crate) fn warn_if_unloadable(&self, program: &OsStr) -> bool {
        let Some(path) = looked_up(program) else { return false };
        let Ok(Some(barrier)) = preload_barrier(&path) else { return false };
        report::warning(Code::NotPreloaded, format_args!("{}: {}", shown(&path), why(barrier)));
        true
    }
}

/// Why a process that a command started has no buffers of the library.
pub(crate) fn lacking() -> Failure {
    Failure::failed(
        Code::NotPreloaded,
        format!(
            "it does not have {FILE_NAME}: its program is linked statically or gets rights that \
             its caller does not have, or its environment lost {VARIABLE}\n  programs that clear \
             their environment (env -i, nginx) must keep {VARIABLE}, PPT_RUN and PPT_HELLO"
        ),
    )
}

/// The library's buffers that were not requested. If the user preloaded the library, all are
/// requested.
pub(crate) fn unwanted(sources: &[PreloadSource]) -> Vec<&'static str> {
    let is_wanted =
        |word: &str| sources.is_empty() || sources.iter().any(|source| source.word() == word);
    let unwanted = SOURCES.iter().filter(|(word, _)| !is_wanted(word));
    unwanted.flat_map(|(_, buffers)| buffers.iter().copied()).collect()
}

/// Why a program does not load the library, or cannot use it.
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

/// The library in `lib/ppt` below ppt's installation prefix.
pub(crate) fn installed() -> Option<PathBuf> {
    let bin = in_own_folder()?.parent()?.to_owned();
    Some(bin.parent()?.join("lib/ppt").join(FILE_NAME))
}

/// The library in ppt's own folder.
fn in_own_folder() -> Option<PathBuf> {
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
