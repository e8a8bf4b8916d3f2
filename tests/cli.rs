//! Terminals as they look: each block of `tests/cli/*.md` is run in the folder `*.in` beside it and
//! compared word by word. After a change that is meant, `TRYCMD=overwrite cargo test --test cli`
//! rewrites what was said; read the difference.

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("ppt", std::path::Path::new(env!("CARGO_BIN_EXE_ppt")))
        .register_bin("pptc", std::path::Path::new(env!("CARGO_BIN_EXE_pptc")))
        // Help is as wide as the terminal that it finds.
        .env("COLUMNS", "100")
        .case("tests/cli/*.md");
}
