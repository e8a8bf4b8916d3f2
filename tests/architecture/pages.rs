//! Checks the statements of the `docs/` pages against the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::metadata;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The texts between backticks in a line, in order, each with the text before it.
fn quoted(line: &str) -> Vec<(&str, &str)> {
    let parts: Vec<_> = line.split('`').collect();
    parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Names in parentheses directly after a path: functions and fields of that file.
fn named_after<'a>(path: &str, rest: &[(&'a str, &'a str)]) -> Vec<&'a str> {
    assert!(path.contains('/'), "{path}");
    let mut before = " (";
    let mut names = Vec::new();
    for (text, name) in rest {
        if *text != before || name.contains(['/', ' ', '-']) {
            break;
        }
        names.push(*name);
        before = ", ";
    }
    names
}

#[test]
fn the_tables_of_the_architecture_name_files_and_what_is_in_them() {
    let page = page("docs/architecture.md");
    let (_, tables) = page.split_once("\n## Where it is decided").unwrap();
    let (mut paths, mut names) = (0, 0);
    for line in tables.lines().filter(|line| line.starts_with('|')) {
        let quoted = quoted(line);
        for (index, (_, word)) in quoted.iter().enumerate() {
            if !word.contains('/') {
                continue;
            }
            assert!(root().join(word).exists(), "there is no {word}: {line}");
            paths += 1;
            for name in named_after(word, &quoted[index + 1..]) {
                let text = fs::read_to_string(root().join(word)).unwrap();
                let is_there = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                assert!(is_there.into_iter().any(|word| word == name), "no {name} in {word}");
                names += 1;
            }
        }
    }
    assert!(paths > 120 && names >= 5, "{paths} paths, {names} names");
}

/// The questions of a newcomer.
#[test]
fn the_tables_of_the_architecture_answer_the_first_questions() {
    let page = page("docs/architecture.md");
    let row = |question: &str| {
        let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).collect();
        let found = rows.iter().find(|row| row.split(" | ").next().unwrap().contains(question));
        found.unwrap_or_else(|| panic!("no row: {question}")).to_string()
    };
    for (question, file) in [
        ("frame file is parsed", "frame-dsl/src/parse.rs"),
        ("order of fields in a slot", "frame-dsl/src/layout.rs"),
        ("writer executes while off", "codegen/src/c/gate.rs"),
        ("writer executes while on", "codegen/src/c/commit.rs"),
        ("programs that nobody edited", "sources/c/write.c"),
        ("written into a live process", "agent/src/session/control_page.rs"),
        ("rings are polled", "listener/src/pace.rs"),
        ("every byte of a capture", "capture/src/format.rs"),
        ("ticks become times", "dump/src/time_cells.rs"),
        ("`ppt stat` is computed", "analysis/query/src/summary.rs"),
        ("percentiles are computed", "analysis/stats/src/samples.rs"),
        ("put on one clock", "analysis/tables/src/align.rs"),
        ("`ppt view`", "analysis/view/server/src/window.rs"),
        ("edges come from", "analysis/causality/src/matcher.rs"),
        ("timed again", "analysis/causality/src/retime/replay_engine.rs"),
        ("lab starts a program", "hosts/src/lab/host/programs.rs"),
        ("lab ends everything", "hosts/src/lab/host/tree.rs"),
        ("new export format", "analysis/interchange/src/chrome.rs"),
        ("new export format", "analysis/query/src/encode.rs"),
        ("durations are parsed", "text/src/argument.rs"),
        ("hostile text is escaped", "analysis/report/src/html.rs"),
        ("a message says", "docs/troubleshooting.md"),
    ] {
        assert!(row(question).contains(file), "{question}: {file}");
    }
}

/// A recipe that names a type names one that exists.
#[test]
fn the_types_that_pages_name_exist() {
    let mut files = Vec::new();
    super::sources(root(), &mut files);
    let texts: Vec<_> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let mut defined = BTreeSet::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        for keyword in ["struct ", "enum ", "trait ", "type "] {
            if let Some((_, rest)) = line.split_once(keyword) {
                defined.extend(rest.split(|c: char| !c.is_alphanumeric()).next());
            }
        }
    }
    let mut types = 0;
    for name in ["CONTRIBUTING.md", "docs/architecture.md"] {
        for line in page(name).lines() {
            for (_, word) in quoted(line) {
                let ty = word.split("::").next().unwrap();
                let is_type = ty.starts_with(char::is_uppercase)
                    && ty.contains(char::is_lowercase)
                    && ty.chars().all(char::is_alphanumeric);
                if is_type {
                    assert!(defined.contains(ty), "{name}: there is no type {ty}: {line}");
                    types += 1;
                }
            }
        }
    }
    assert!(types > 30, "{types} types");
}

#[test]
fn every_package_is_in_the_table_of_folders() {
    let page = page("CONTRIBUTING.md");
    let (_, table) = page.split_once("\n## Folders\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let named: BTreeSet<_> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(|folder| folder.trim_end_matches('/'))
        .collect();
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap().strip_prefix(root()).unwrap().to_str().unwrap();
        // The package of the root has its sources in `ppt/`.
        let folder = if folder.is_empty() { "ppt" } else { folder };
        assert!(named.contains(folder), "{folder} is not in CONTRIBUTING.md: {named:?}");
    }
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept =
        heading.chars().filter(|char| char.is_alphanumeric() || [' ', '-', '_'].contains(char));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The headings of a page of this level, without those in code.
fn headings<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        found.extend(line.strip_prefix(mark).filter(|_| !is_code));
    }
    found
}

#[test]
fn long_pages_begin_with_their_contents() {
    let mut long = 0;
    for entry in fs::read_dir(root().join("docs")).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        if text.split_whitespace().count() <= 1_500 {
            continue;
        }
        long += 1;
        let (contents, _) = text.split_once("\n## ").unwrap();
        for heading in headings(&text, "## ") {
            let link = format!("](#{})", anchor(heading));
            assert!(contents.contains(&link), "{}: no link to `{heading}`", path.display());
        }
    }
    assert!(long >= 8, "{long} long pages");
}

/// A link to a missing heading of another page leads to its top without an error.
#[test]
fn links_lead_to_headings() {
    let mut links = 0;
    for entry in fs::read_dir(root().join("docs")).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            let Some((file, wanted)) = target.split_once('#') else { continue };
            if target.contains("://") || target.contains(char::is_whitespace) {
                continue;
            }
            let page = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            let page =
                fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page:?}: {error}"));
            let marks = ["# ", "## ", "### "].iter().flat_map(|mark| headings(&page, mark));
            let is_there = marks.map(anchor).any(|text| text == wanted);
            assert!(is_there, "{}: {target} leads to no heading", path.display());
            links += 1;
        }
    }
    assert!(links > 50, "{links} links");
}
