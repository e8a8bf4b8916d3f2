//! Names that would break the generated code or the tables, each tried in every such position. The
//! lists are repeated here, so that a word missing from the compiler's own list is detected.

use ppt_frame_dsl::{Language, compile_for};

const C: &str = "auto break case char const continue default do double else enum extern float for \
    goto if inline int long register restrict return short signed sizeof static struct switch \
    typedef union unsigned void volatile while alignas alignof bool constexpr false nullptr \
    static_assert thread_local true typeof typeof_unqual";
const CPP: &str = "and and_eq asm bitand bitor catch char8_t char16_t char32_t class co_await \
    co_return co_yield compl concept const_cast consteval constinit decltype delete dynamic_cast \
    explicit export friend mutable namespace new noexcept not not_eq operator or or_eq private \
    protected public reinterpret_cast requires static_cast template this throw try typeid typename \
    using virtual wchar_t xor xor_eq";
const RUST: &str = "as crate dyn fn impl in let loop match mod move mut pub ref self Self super \
    trait type unsafe use where async await abstract become box final macro override priv unsized \
    yield gen";
const MACROS: &str = "linux unix errno stdin stdout stderr EOF NULL";
const LATER: &str = "in out point edge chain key span histogram counter say blob group";
const COLUMNS: &str = "seqno ring tid pid frame buffer segment source host capture time_lo time_hi";

/// A file in which the word is declared as each of the five kinds of name.
fn places(word: &str) -> [String; 5] {
    [
        format!("buffer {word}; frame f {{ int a; }}"),
        format!("enum {word} {{ A }} frame f {{ int a; }}"),
        format!("enum E {{ {word} }} frame f {{ int a; }}"),
        format!("frame {word} {{ int a; }}"),
        format!("frame f {{ int a, {word}; }}"),
    ]
}

/// The codes of the mistakes in a file for all languages.
fn faults(source: &str) -> Vec<&'static str> {
    faults_for(source, Language::ALL)
}

/// The codes of the mistakes in a file for these languages, or for its own if none are given.
fn faults_for(source: &str, languages: &[Language]) -> Vec<&'static str> {
    match compile_for(source.as_bytes(), "b.frame", languages) {
        Ok(_) => Vec::new(),
        Err(failure) => failure.diagnostics.iter().map(|one| one.code).collect(),
    }
}

#[track_caller]
fn refused(source: &str, codes: &[&str]) {
    let faults = faults(source);
    assert!(faults.iter().any(|code| codes.contains(code)), "{source}: {faults:?}");
}

#[test]
fn keywords_macros_and_words_of_later_versions() {
    for (words, codes) in [
        ([C, CPP, RUST].join(" "), &["keyword", "reserved-word", "type-name"][..]),
        (MACROS.to_owned(), &["macro-name"]),
        (LATER.to_owned(), &["reserved-word"]),
    ] {
        for source in words.split_whitespace().flat_map(places) {
            refused(&source, codes);
        }
    }
}

#[test]
fn columns_of_every_table() {
    for word in COLUMNS.split_whitespace() {
        for name in [word.to_owned(), word.to_uppercase()] {
            refused(&format!("frame f {{ int a, {name}; }}"), &["standard-column"]);
        }
    }
    refused("frame f { interval time time; u8 seqno[2]; time pid; }", &["standard-column"]);
}

#[test]
fn names_that_meet() {
    for (source, code) in [
        // Macros in C.
        ("frame a_b { int c; } frame a { int b_c; }", "name-clash"),
        ("frame f { int x_timestamp; time x; }", "name-clash"),
        ("frame f { int a, A; }", "name-clash"),
        ("frame f { int a; } frame F { int a; }", "name-clash"),
        // Enumerators.
        ("enum A { B_C } enum A_B { C } frame f { int a; }", "name-clash"),
        ("enum A { b, B } frame f { int a; }", "name-clash"),
        // Types of Rust and C++.
        ("enum f { A } frame f { int a; }", "duplicate-name"),
        ("enum job_one { A } frame JobOne { int a; }", "name-clash"),
        ("frame self_ { int a; }", "becomes-self"),
        ("enum SELF { A } frame f { int a; }", "becomes-self"),
        ("enum E { SELF } frame f { int a; }", "becomes-self"),
        // Functions and namespaces of C++.
        ("frame write { int a; }", "method-name"),
        ("frame scope { int a; }", "method-name"),
        ("buffer std; frame f { int a; }", "buffer-name"),
        // Halves of intervals, elements of arrays, and duplicate declarations.
        ("frame f { interval time a; int a_end; }", "duplicate-name"),
        ("frame f { int pos[2], pos_1; }", "column-clash"),
        ("frame f { int a, a; }", "duplicate-name"),
        // Names that C and ppt reserve.
        ("frame f { int _a; }", "underscores"),
        ("frame f { int a__b; }", "underscores"),
        ("frame ppt_f { int a; }", "ppt-name"),
    ] {
        refused(source, &[code]);
    }
}

/// A word that has a meaning only in some positions may be a name elsewhere.
#[test]
fn words_that_are_free() {
    for name in ["time", "bytes", "interval", "tag", "unit", "at", "write", "scope", "emit", "std"]
    {
        let source = format!("frame f {{ int {name}; }}");
        assert_eq!(faults(&source), [] as [&str; 0], "{source}");
    }
}

/// A name is rejected for the generated languages only.
#[test]
fn names_are_refused_where_they_are_taken() {
    use Language::{C, Cpp, Go, Java, Node, Python, Rust};
    let refused_in: [(&str, &str, &[Language]); 10] = [
        ("frame f { int class; }", "keyword", &[Cpp, Java]),
        ("frame f { int finally; }", "keyword", &[Java]),
        ("frame f { int type; }", "keyword", &[Rust]),
        ("frame f { int restrict; }", "keyword", &[C, Python, Java, Node, Go]),
        ("frame f { int errno; }", "macro-name", &[C, Cpp, Python, Java, Node, Go]),
        ("frame self_ { int a; }", "becomes-self", &[Rust]),
        ("frame write { int a; }", "method-name", &[Cpp]),
        ("frame f { int a; } counter add;", "method-name", &[Cpp]),
        ("buffer std; frame f { int a; }", "buffer-name", &[Cpp]),
        ("enum job_one { A } frame JobOne { int a; }", "name-clash", &[Rust, Java, Go]),
    ];
    for (source, code, languages) in refused_in {
        for &language in Language::ALL {
            let expected = if languages.contains(&language) { vec![code] } else { Vec::new() };
            assert_eq!(faults_for(source, &[language]), expected, "{source} {language:?}");
            let emit = format!("emit {}; {source}", language.word());
            assert_eq!(faults_for(&emit, &[]), expected, "{emit}");
            assert_eq!(faults_for(&emit, &[C]).is_empty(), !languages.contains(&C), "{emit}");
        }
        // Without `emit`, C is generated.
        assert_eq!(faults_for(source, &[]).is_empty(), !languages.contains(&C), "{source}");
    }
}
