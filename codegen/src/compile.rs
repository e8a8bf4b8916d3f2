//! The function that build scripts call.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ppt_frame_dsl::{CompileFailure, Language, MAX_SOURCE_BYTES, Severity};

use crate::generate::{GenerateError, generate};
use crate::write::{WriteError, write_outputs};

/// The error of a build script.
///
/// `Debug` shows the same text as `Display`, so that the `unwrap()` of a build script reads well.
#[derive(thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CompileError {
    #[error("cannot read {}: {cause}{}", path.display(), from(path))]
    Read { path: PathBuf, cause: io::Error },
    #[error("\n{}", .0.render(false).trim_end())]
    Frames(#[source] CompileFailure),
    #[error("{}: {cause}", path.display())]
    Generate { path: PathBuf, cause: GenerateError },
    #[error(
        "{} and {} would both become `{stem}.rs`: give one of them another name",
        first.display(), second.display()
    )]
    OneStem { stem: String, first: PathBuf, second: PathBuf },
    #[error("OUT_DIR is not set: `compile` is for build scripts; use pptc elsewhere")]
    NoOutDir,
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Debug for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The end of a message: the folder that a relative path starts from.
fn from(path: &Path) -> String {
    match std::env::current_dir() {
        Ok(folder) if path.is_relative() => format!(" (looked for in {})", folder.display()),
        _ => String::new(),
    }
}

/// The files that this build script has compiled, by the stem of the output.
static COMPILED: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);

/// Compiles a frame file to Rust, whatever its `emit` says, for
/// `ppt_probe::include_frames!("STEM")`. Build scripts call it. It writes `$OUT_DIR/STEM.rs`, and
/// makes cargo run the build script again when the frame file changes.
///
/// ```no_run
/// // build.rs, in its main:
/// ppt_codegen::compile("job.frame").unwrap();
/// ```
///
/// # Errors
/// The file cannot be read, has mistakes, or has the stem of another file, or the output cannot be
/// written.
pub fn compile(frame_file: impl AsRef<Path>) -> Result<(), CompileError> {
    let path = frame_file.as_ref();
    let name = path.to_string_lossy();
    // This comes before any error: a missing file may appear later.
    println!("cargo:rerun-if-changed={name}");
    let source =
        read(path).map_err(|cause| CompileError::Read { path: path.to_path_buf(), cause })?;
    let mut frames = ppt_frame_dsl::compile_for(&source, &name, &[Language::Rust])
        .map_err(CompileError::Frames)?;
    // cargo would show a hint as a warning, at every build.
    frames.warnings.retain(|warning| warning.severity > Severity::Hint);
    for line in frames.render_warnings(false).lines() {
        println!("cargo:warning={line}");
    }
    let outputs = generate(&frames, &name, &[Language::Rust])
        .map_err(|cause| CompileError::Generate { path: path.to_path_buf(), cause })?;
    claim_stem(path)?;
    let folder = std::env::var_os("OUT_DIR").ok_or(CompileError::NoOutDir)?;
    write_outputs(Path::new(&folder), &outputs)?;
    Ok(())
}

/// Reads a frame file, up to the largest possible length.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_SOURCE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Refuses a file with the stem of an earlier one, whose output it would overwrite.
fn claim_stem(path: &Path) -> Result<(), CompileError> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let second = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut compiled = COMPILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let first = compiled.get_or_insert_default().entry(stem.clone()).or_insert(second.clone());
    if *first == second {
        return Ok(());
    }
    Err(CompileError::OneStem { stem, first: first.clone(), second })
}
