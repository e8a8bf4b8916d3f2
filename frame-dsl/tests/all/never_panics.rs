//! For any bytes, the compiler returns a printable result in bounded time.

use ppt_frame_dsl::{Schema, compile, parse_edges};
use proptest::prelude::*;

/// Words and signs of the language, and some unknown ones.
const TOKENS: [&str; 82] = [
    "frame",
    "enum",
    "emit",
    "buffer",
    "option",
    "interval",
    "time",
    "tag",
    "int",
    "char",
    "bytes",
    "u8",
    "f64",
    "bool",
    "duration",
    "ns",
    "tsc",
    "timespec",
    "monotonic",
    "thread_cpu",
    "C",
    "C++",
    "Rust",
    "a",
    "b",
    "a_b",
    "c",
    "Kind",
    "LOGIN",
    "Self",
    "hash",
    "@at",
    "@unit",
    "@clock",
    "@group",
    "@span",
    "@span(host, fifo)",
    "@key",
    "@span @key",
    "@chain(a, b)",
    "@chain",
    "@point",
    "@in(a)",
    "@out(b)",
    "edge",
    "edge a -> b",
    "->",
    ".",
    "within",
    "within 5ms",
    "nearest",
    "500ms",
    "edge a.b -> c within 1s fifo;",
    "@",
    "{",
    "}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ";",
    ";",
    ",",
    ":",
    "=",
    "0",
    "1",
    "16",
    "-1",
    "4096",
    "0x10",
    "99999999999999999999",
    "\"s\"",
    "\"",
    "//x\n",
    "///d\n",
    "/*",
    "*/",
    "ä",
];

/// Complete files.
const SOURCES: [&str; 3] = [
    include_str!("../pass/everything.frame"),
    include_str!("../pass/spans.frame"),
    include_str!("../pass/points.frame"),
];

fn show(source: &[u8]) {
    if let Err(failure) = parse_edges(source, "soup.edges") {
        assert!(failure.errors() > 0);
        assert!(failure.render(false).contains("soup.edges"));
    }
    match compile(source, "soup.frame") {
        Ok(compiled) => {
            let json = compiled.schema.to_json();
            assert_eq!(Schema::from_json(json.as_bytes()).unwrap(), compiled.schema);
            compiled.render_warnings(true);
        }
        Err(failure) => {
            assert!(failure.errors() > 0);
            assert!(failure.diagnostics.len() <= 101);
            assert!(failure.render(false).contains("soup.frame"));
            failure.render(true);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn arbitrary_bytes(source in prop::collection::vec(any::<u8>(), 0..300)) {
        show(&source);
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..80)) {
        show(tokens.join(" ").as_bytes());
        show(tokens.join("\n").as_bytes());
    }

    /// A valid frame with one part replaced by another.
    #[test]
    fn one_slip(
        source in prop::sample::select(SOURCES.to_vec()),
        at: prop::sample::Index,
        token in prop::sample::select(TOKENS.to_vec()),
    ) {
        let mut words: Vec<&str> = source.split(' ').collect();
        let at = at.index(words.len());
        words[at] = token;
        show(words.join(" ").as_bytes());
    }

    #[test]
    fn cut_anywhere(at: prop::sample::Index) {
        let source = include_bytes!("../pass/everything.frame");
        show(&source[..at.index(source.len())]);
    }

    #[test]
    fn any_schema_text(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Schema::from_json(&text);
    }

    /// A schema with one changed byte is rejected or valid.
    #[test]
    fn damaged_schema(
        source in prop::sample::select(SOURCES.to_vec()),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let compiled = compile(source.as_bytes(), "all.frame").unwrap();
        let mut text = compiled.schema.to_json().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(schema) = Schema::from_json(&text) {
            let again = Schema::from_json(schema.to_json().as_bytes()).unwrap();
            prop_assert_eq!(&again, &schema);
            prop_assert_eq!(again.symbol_prefix(), schema.symbol_prefix());
            schema.frames.iter().for_each(|frame| drop((frame.span(), frame.point())));
            for edge in schema.edges() {
                let line = format!("edge {} -> {};", edge.from, edge.to);
                prop_assert!(parse_edges(line.as_bytes(), "edges").is_ok(), "{line}");
            }
        }
    }
}

/// The longest allowed amount of each of these must take no longer than of anything else: in
/// quadratic time the test would not end today. (Builds without optimisation use less.)
#[test]
fn time_is_linear() {
    const BYTES: usize = if cfg!(debug_assertions) { 1 << 16 } else { (1 << 20) - 64 };
    let repeated = [
        "{",
        "}",
        "[",
        "(",
        "@",
        "\"",
        "\\\"",
        "/*",
        "*/",
        "//",
        "/// d\n",
        ";",
        ",",
        "x",
        " ",
        "\n",
        "frame ",
        "frame x ",
        "frame x { ",
        "frame x @",
        "enum ",
        "enum x ",
        "enum x : ",
        "emit C,",
        "emit C ",
        "buffer b;\n",
        "option time tsc;\n",
        "option tag a \"b\";\n",
        "interval ",
        "frame f { int a; }\n",
        "enum E { A, B = 2 }\n",
        "\r\n",
        "ä",
        "9",
        "@at ",
        "x y\n",
        "} frame",
        "edge ",
        "edge a -> b\n",
        "edge a -> b within 5ms nearest;\n",
        "-> ",
    ];
    let inside = [
        "int a;",
        "int a, ",
        "a,",
        "itn a;\n",
        "int a\n",
        "char a[9];",
        "A = 1, ",
        "A B, ",
        "time t @at; ",
        "interval time t;",
        "int a @x @y(z, 1, \"s\");",
        "{ ",
        "\"",
        "/* */ ",
        "// c\n",
        "/// d\nint x;\n",
        "frame ",
        "a b c",
        "A, ",
        "int for; ",
    ];
    let whole = repeated.iter().map(|part| part.repeat(BYTES / part.len()));
    let framed =
        inside.iter().map(|part| format!("frame f {{ {}", part.repeat(BYTES / part.len())));
    let listed = inside.iter().map(|part| format!("enum f {{ {}", part.repeat(BYTES / part.len())));
    let named = ["frame ", "frame f { int ", "frame f { ", "option time "]
        .iter()
        .map(|before| format!("{before}{}", "n".repeat(BYTES)));
    let shared = ["int ", "interval "].iter().map(|before| {
        let (word, names) = ("w".repeat(BYTES / 2), "a,".repeat(BYTES / 4));
        format!("frame f {{ {before}{word} {names}z; }}")
    });
    for source in whole.chain(framed).chain(listed).chain(named).chain(shared) {
        show(source.as_bytes());
    }
}

#[test]
fn ten_megabytes_are_refused() {
    let failure = compile(&b"frame f { int a; }\n".repeat(1 << 19), "big.frame").unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "file-too-long");
    assert!(format!("{failure:?}").contains("1 | frame f { int a; }"));
    assert_eq!(format!("{failure:?}"), failure.render(false));
}

/// Each line breaks a rule; beyond the limit, mistakes are only counted.
#[test]
fn no_end_of_mistakes() {
    let source = format!("frame f {{ {} }}", "itn a;\n".repeat(1000));
    let failure = compile(source.as_bytes(), "many.frame").unwrap_err();
    assert_eq!(failure.diagnostics.len(), 101);
    assert_eq!(failure.diagnostics[100].message, "and 900 more");
}

/// A short file may result in a long schema; one that readers would reject is not written.
#[test]
fn schemas_are_bounded() {
    let frames: String = (0..200)
        .map(|frame| {
            let fields: Vec<String> = (0..500).map(|field| format!("f{field}")).collect();
            format!("frame frame{frame} {{ u8 {}; }}\n", fields.join(","))
        })
        .collect();
    let failure = compile(frames.as_bytes(), "wide.frame").unwrap_err();
    assert!(failure.diagnostics.iter().any(|one| one.code == "schema-too-long"), "{failure}");
}
