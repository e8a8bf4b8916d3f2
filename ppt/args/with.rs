//! Arguments about the preloaded library.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A kind of activity that the library shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PreloadSource {
    /// Requests: those that the program answers, and those that it makes.
    Net,
    /// Waits for locks.
    Locks,
    /// Operations on files.
    Files,
}

impl PreloadSource {
    /// The value of `--with` for this source.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Locks => "locks",
            Self::Files => "files",
        }
    }
}

pub(super) const EXAMPLES: &str = "\
Examples:
  ppt run --with net,locks,files -- ./server  start it with the library, and capture
  ppt with --systemd nginx | sudo install -D /dev/stdin /etc/systemd/system/nginx.service.d/ppt.conf
  sudo systemctl daemon-reload && sudo systemctl restart nginx
  ppt attach PID                              at any time from then on";

#[derive(Args)]
#[group(id = "what", required = true, multiple = false)]
pub(crate) struct With {
    /// Print the variable of the environment: NAME=VALUE.
    #[arg(long)]
    pub(crate) env: bool,
    /// Print a drop-in file for a service of systemd, which has the library from its next start.
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub(crate) systemd: Option<String>,
    /// Write the library into a folder [default: lib/ppt beside the folder of ppt], for a ppt that was
    /// installed alone.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1)]
    pub(crate) install: Option<Option<PathBuf>>,
}

/// The name of a service, with its suffix.
fn unit(name: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if name.is_empty() || !name.chars().all(known) || name.starts_with('.') {
        return Err(
            "a unit is called by letters, digits and `:-_.\\@`, such as nginx.service".into()
        );
    }
    Ok(if name.ends_with(".service") { name.into() } else { format!("{name}.service") })
}
