//! Messages of clap: about a wrong command line, and help.

/// Prints a message of clap: help to stdout, errors to stderr.
pub(crate) fn print(error: &clap::Error) {
    ppt_text::message::usage(&error.to_string(), || drop(error.print()));
}
