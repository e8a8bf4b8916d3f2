//! Formatting changes only white space, and formatting twice changes nothing more: tested with
//! every frame file of the repository, and with randomly composed files.

use std::fs;
use std::path::{Path, PathBuf};

use ppt_frame_dsl::{CompileFailure, Compiled, compile, format};
use proptest::prelude::*;
use proptest::sample::select;

/// The characters that must stay.
fn without_blanks(source: &str) -> String {
    let source = source.trim_start_matches('\u{feff}');
    source.chars().filter(|c| !matches!(c, ' ' | '\t' | '\r' | '\n')).collect()
}

fn meaning(result: &Result<Compiled, CompileFailure>) -> Result<(String, u64), Vec<&'static str>> {
    match result {
        Ok(compiled) => Ok((compiled.schema.to_json(), compiled.schema.hash())),
        Err(failure) => Err(failure.diagnostics.iter().map(|one| one.code).collect()),
    }
}

/// Formats a file that parses, and checks the result.
#[track_caller]
fn check(source: &str, name: &str) -> String {
    let once = format(source.as_bytes(), name).unwrap_or_else(|failure| panic!("{failure}"));
    let twice = format(once.as_bytes(), name).unwrap_or_else(|failure| panic!("{failure}\n{once}"));
    assert_eq!(once, twice, "the second time differs; of\n{source}");
    assert_eq!(without_blanks(&once), without_blanks(source), "of\n{source}");
    let (before, after) = (compile(source.as_bytes(), name), compile(once.as_bytes(), name));
    assert_eq!(meaning(&before), meaning(&after), "of\n{source}\n{once}");
    for line in once.lines() {
        assert_eq!(line, line.trim_end(), "of\n{source}");
    }
    assert!(!once.contains("\n\n\n") || source.contains("/*"), "{once}");
    once
}

fn frame_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let hidden = path.file_name().unwrap().as_encoded_bytes().starts_with(b".");
        if path.is_dir() && !hidden && !path.ends_with("target") {
            frame_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "frame") {
            found.push(path);
        }
    }
}

#[test]
fn every_frame_file_of_the_repository() {
    let mut found = Vec::new();
    frame_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    let mut formatted = 0;
    for path in &found {
        let name = path.file_name().unwrap().to_str().unwrap();
        let source = fs::read(path).unwrap();
        if format(&source, name).is_ok() {
            check(std::str::from_utf8(&source).unwrap(), name);
            formatted += 1;
        } else {
            assert!(compile(&source, name).is_err(), "{}", path.display());
        }
    }
    assert!(formatted > 40, "{formatted} of {}", found.len());
}

/// The longest time must not be quadratic in the shortest.
#[test]
fn time_is_linear() {
    const BYTES: usize = if cfg!(debug_assertions) { 1 << 15 } else { (1 << 20) - 64 };
    for (open, part, close) in [
        ("", "// c\n", ""),
        ("", "/**/", ""),
        ("frame f { int a; ", "/**/", "}"),
        ("frame f { int a; ", "// c\n", "}"),
        ("frame f { int a; ", "/**/\n", "}"),
        ("frame f { int a", ", b", ";}"),
        ("frame f { int a", ", // c\n b", ";}"),
        ("frame f { int a ", "@b ", ";}"),
        ("frame f { int a @b(c", ",c", ");}"),
        ("enum E { A", ",\nA", "}"),
        ("", "frame f{int a;}", ""),
        ("", ";", ""),
    ] {
        let source = format!("{open}{}{close}", part.repeat(BYTES / part.len()));
        assert!(format(source.as_bytes(), "long.frame").is_ok(), "{open}{part}{close}");
    }
}

/// A line of a frame, as words.
fn field() -> impl Strategy<Value = String> {
    let ty =
        select(vec!["int", "u8", "f64", "time", "interval time", "bool", "Kind", "interval int"]);
    let attributes =
        select(vec!["", "", "", "@ unit ( \"B  // x\" )", "@ name(a , 2)@ track", "@ flow"]);
    let names = prop::collection::vec(attributes, 1..12);
    let list = (ty, names).prop_map(|(ty, names)| {
        let names: Vec<String> =
            names.iter().map(|attributes| format!("name_# {attributes}")).collect();
        format!("{ty} {} ;", names.join(" , "))
    });
    let sized = (select(vec!["char", "bytes", "u16", "time"]), 1..9u8)
        .prop_map(|(ty, length)| format!("{ty} name_# [ {length} ] ;"));
    prop_oneof![3 => list, 1 => sized, 1 => Just("; ;".to_owned())]
}

fn declaration() -> impl Strategy<Value = String> {
    let frame = (
        select(vec![
            ("", ""),
            ("@ group ( net )", ""),
            ("@x @y", ""),
            ("@ span( host ,fifo )", "u8 its_key@ key ;"),
        ]),
        prop::collection::vec(field(), 1..5),
    )
        .prop_map(|((attributes, key), fields)| {
            format!("frame NAME {attributes} {{ {} {key} bool last ; }}", fields.join(" "))
        });
    let fixed = select(vec![
        "emit C",
        "emit C , C++ ;",
        "emit Rust ; ;",
        "buffer b 0x40 ;",
        "option time ns monotonic ;",
        "option tag build \"r  /* 1 */\" ;",
        "enum Kind : i16 { A = -1 , B , C = 0x7 , }",
        "enum Other { A_LONG_NAME = 1 , ANOTHER_LONG_NAME , SHORT , AND_SO_ON , AND_ON , THE_END } ;",
    ]);
    prop_oneof![1 => frame, 1 => fixed.prop_map(str::to_owned)]
}

/// Text that may stand between two words.
fn gap() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just(" "),
        2 => Just("\n"),
        1 => select(vec![
            "\n\n\n", "\r\n", "\t", " /* c */ ", "/*c*/\n", "\n/* c */", "\n/* c\n  * d\n*/\n",
            " /* c\n d */ ", " // c  \n", "\n// c\n", "\n\n// c\n\n", "\n/// doc\n", " /// no\n",
            "\n  ///  two \r\n /// docs\n", "\n//// ruler\n", " /* c */ /// no\n", "\r///\n",
        ]),
    ]
}

/// A file without mistakes, with random spacing.
fn file() -> impl Strategy<Value = String> {
    let kind = Just("enum Kind { ONE }".to_owned());
    (prop::collection::vec(declaration(), 1..6), kind, prop::collection::vec(gap(), 400)).prop_map(
        |(mut declarations, kind, gaps)| {
            // Only frames may occur more than once.
            let mut seen = Vec::new();
            declarations.retain(|declaration| {
                let head: Vec<String> = declaration.split(' ').take(2).map(str::to_owned).collect();
                let fresh = head[0] == "frame" || !seen.contains(&head);
                seen.push(head);
                fresh
            });
            if !declarations.iter().any(|declaration| declaration.starts_with("enum Kind")) {
                declarations.push(kind);
            }
            declarations.push("frame last { int a ; }".to_owned());
            let mut text = String::new();
            let mut names = 0..;
            let mut gaps = gaps.into_iter().cycle();
            for (number, declaration) in declarations.iter().enumerate() {
                let mut declaration = declaration.replace("NAME", &format!("frame_{number}"));
                while declaration.contains("#") {
                    declaration = declaration.replacen('#', &names.next().unwrap().to_string(), 1);
                }
                // Strings are one word; no other word has spaces.
                for (index, part) in declaration.split('"').enumerate() {
                    if index % 2 == 1 {
                        text += &format!("\"{part}\"");
                        continue;
                    }
                    for word in part.split_inclusive(' ') {
                        text += word.trim_end();
                        text += if word.ends_with(' ') { gaps.next().unwrap() } else { "" };
                    }
                }
                text += gaps.next().unwrap();
                text += if declaration == "emit C" { " " } else { "" };
            }
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..<_>::default() })]

    #[test]
    fn nothing_but_white_space_changes(source in file()) {
        let compiled = compile(source.as_bytes(), "random.frame");
        prop_assert!(compiled.is_ok(), "{}", compiled.unwrap_err());
        check(&source, "random.frame");
    }

    /// Fields on separate lines, as in most files.
    #[test]
    fn the_same_by_lines(source in file()) {
        check(&source.replace("; ", ";\n").replace("{ ", "{\n"), "random.frame");
    }
}
