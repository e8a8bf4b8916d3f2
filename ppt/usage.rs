//! A wrong command line, and help: what clap has to say.

/// Prints it. A word of the command line may be the name of a stranger's file, so it is escaped.
pub(crate) fn print(error: &clap::Error) {
    let text = error.to_string();
    let safe = ppt_text::escaped_lines(&text);
    if safe == text {
        let _ = error.print();
    } else {
        anstream::eprint!("{safe}");
    }
}
