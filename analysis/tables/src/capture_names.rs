//! Expands names of captures: files, patterns, common names of numbered parts.

use std::path::{Path, PathBuf};

use crate::error::SetError;

/// Expands names to files, in order. A name of an existing file means that file, also if it has wildcards.
/// Other names are patterns (`*`, `?`, `[…]`, `**`), or common names of numbered parts (`out.bin`:
/// `out.000001.bin`, …).
pub(crate) fn expand(names: &[PathBuf]) -> Result<Vec<PathBuf>, SetError> {
    if names.is_empty() {
        return Err(SetError::NoCapture);
    }
    let mut paths = Vec::new();
    for name in names {
        if name.as_os_str() == "-" || name.symlink_metadata().is_ok() {
            paths.push(name.clone());
            continue;
        }
        let text = name.to_string_lossy();
        if text.contains(['*', '?', '[']) {
            paths.extend(matching(&text)?);
            continue;
        }
        match parts(name) {
            Some(found) => paths.extend(found),
            // Opening it reports the error.
            None => paths.push(name.clone()),
        }
    }
    Ok(paths)
}

fn matching(pattern: &str) -> Result<Vec<PathBuf>, SetError> {
    let no_match = |why| SetError::NoMatch { pattern: pattern.to_owned(), why };
    let found = glob::glob(pattern).map_err(|error| no_match(Some(error.to_string())))?;
    let mut paths: Vec<PathBuf> = found.flatten().filter(|path| !path.is_dir()).collect();
    paths.sort();
    if paths.is_empty() { Err(no_match(None)) } else { Ok(paths) }
}

/// The numbered parts whose common name is `name`.
fn parts(name: &Path) -> Option<Vec<PathBuf>> {
    let stem = name.file_stem()?.to_str()?;
    let extension = name.extension().and_then(|extension| extension.to_str());
    let folder = name.parent().filter(|path| !path.as_os_str().is_empty());
    let is_part = |file: &str| {
        let rest = file.strip_prefix(stem)?.strip_prefix('.')?;
        let number = match extension {
            Some(extension) => rest.strip_suffix(extension)?.strip_suffix('.')?,
            None => rest,
        };
        (number.len() >= 6).then(|| number.parse::<u64>().ok()).flatten()
    };
    let listed = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let mut found: Vec<(u64, PathBuf)> = listed
        .flatten()
        .filter_map(|entry| {
            let number = is_part(entry.file_name().to_str()?)?;
            Some((number, name.with_file_name(entry.file_name())))
        })
        .collect();
    found.sort();
    (!found.is_empty()).then(|| found.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_files_patterns_or_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let files = ["a.bin", "b[1].bin", "out.000002.bin", "out.000010.bin", "out.x.bin"];
        files.iter().for_each(|name| std::fs::write(path(name), "").unwrap());
        let expand = |names: &[&str]| {
            let names: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
            let found = expand(&names)?.into_iter();
            let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            Ok::<_, SetError>(found.map(name).collect::<Vec<_>>())
        };
        assert_eq!(
            expand(&["b[1].bin", "a.bin"]).unwrap(),
            ["b[1].bin", "a.bin"],
            "names of files"
        );
        assert_eq!(expand(&["out.bin"]).unwrap(), ["out.000002.bin", "out.000010.bin"]);
        assert_eq!(expand(&["*1*.bin"]).unwrap(), ["b[1].bin", "out.000010.bin"]);
        assert_eq!(expand(&["none.bin"]).unwrap(), ["none.bin"], "opening it reports the error");
        assert!(expand(&["z*"]).unwrap_err().to_string().starts_with("nothing matches `"));
        assert!(expand(&["a**"]).unwrap_err().to_string().contains("wildcards"));
        assert!(matches!(expand(&[]), Err(SetError::NoCapture)));
    }
}
