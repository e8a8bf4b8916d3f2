//! Arguments of `ppt list` and `ppt doctor`.

use clap::Args as ClapArgs;

use super::processes::pid;

#[derive(ClapArgs)]
pub(crate) struct List {
    /// Process id [default: every process].
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid, conflicts_with = "pid")]
    pid_option: Option<i32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl List {
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid.or(self.pid_option)
    }
}

#[derive(ClapArgs)]
pub(crate) struct Doctor {
    /// Process id [default: check only the machine].
    #[arg(value_name = "PID", value_parser = pid)]
    pid: Option<i32>,
    /// Process id, as an option.
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = pid, conflicts_with = "pid")]
    pid_option: Option<i32>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Doctor {
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid.or(self.pid_option)
    }
}
