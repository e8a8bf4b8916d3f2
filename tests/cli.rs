//! Terminal transcripts: each block of `tests/cli/*.md` is run in the folder `*.in` next to it and
//! compared word by word. After an intended change, `TRYCMD=overwrite cargo test --test cli`
//! rewrites the output; review the difference.

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .register_bin("ppt", std::path::Path::new(env!("CARGO_BIN_EXE_ppt")))
        .register_bin("pptc", std::path::Path::new(env!("CARGO_BIN_EXE_pptc")))
        // The width of help text follows the terminal.
        .env("COLUMNS", "100")
        .case("tests/cli/*.md");
}
