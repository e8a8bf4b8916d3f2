//! A man page: the text of `--help`, and sections of its own.

use clap_mangen::Man;

/// The page `name` of `program`, with `sections` at its end.
pub(crate) fn page(
    command: clap::Command,
    name: &str,
    program: &str,
    sections: &str,
) -> std::io::Result<Vec<u8>> {
    let version = format!("{program} {}", env!("CARGO_PKG_VERSION"));
    let has_words = command.has_subcommands();
    let command = command.disable_help_subcommand(true).after_help(None::<&str>);
    let man = Man::new(command).title(name).section("1").source(version).manual("ppt");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if name == program && has_words {
        man.render_subcommands_section(&mut text)?;
    }
    text.extend(sections.as_bytes());
    Ok(text)
}
