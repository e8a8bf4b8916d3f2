//! A wrong command line, and help: what clap has to say.

/// Prints it.
pub(crate) fn print(error: &clap::Error) {
    ppt_text::message::usage(&error.to_string(), || drop(error.print()));
}
