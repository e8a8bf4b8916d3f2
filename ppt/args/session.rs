//! Arguments of commands for a running ppt: `ppt trigger`, `ppt enable` and `ppt disable`.

use clap::Args as ClapArgs;
use clap::builder::NonEmptyStringValueParser;

use super::processes::pid;

#[derive(ClapArgs)]
#[group(id = "of", required = true, multiple = false)]
pub(crate) struct Of {
    /// Process id.
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid)]
    pid_option: Option<i32>,
}

#[derive(ClapArgs)]
pub(crate) struct Trigger {
    #[command(flatten)]
    of: Of,
    /// Text for the window, which says why.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) note: String,
}

impl Trigger {
    pub(crate) fn pid(&self) -> i32 {
        self.of.pid.or(self.of.pid_option).unwrap_or_default()
    }
}

#[derive(ClapArgs)]
pub(crate) struct Choose {
    /// Process id.
    #[arg(value_name = "PID", value_parser = pid)]
    pid: i32,
    /// Names, BUFFER.NAME or @GROUP; `*` and `?` stand for others.
    #[arg(value_name = "NAME", required = true, value_delimiter = ',')]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    names: Vec<String>,
}

impl Choose {
    /// The process, and the names.
    pub(crate) fn process_and_names(&self) -> (i32, Vec<String>) {
        (self.pid, self.names.clone())
    }
}
