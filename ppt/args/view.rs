//! Arguments of `ppt view PID`. `ppt-analysis` has, and explains, all arguments of `ppt view`; this module has
//! those that apply to a process.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};

use super::attach::Attach;
use super::capture::{Allow, CaptureArgs, KernelPart, stacks};
use super::processes::Processes;

#[derive(Parser)]
#[command(name = "ppt view", disable_help_flag = true)]
pub(crate) struct ProcessView {
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: i32,
    #[arg(short, long)]
    output: Option<PathBuf>,
    #[arg(short, long = "buffer")]
    buffers: Vec<String>,
    #[arg(long, value_delimiter = ',')]
    kernel: Vec<KernelPart>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "99")]
    #[arg(value_parser = stacks)]
    stacks: Option<ppt_kernel::Stacks>,
    #[arg(long, value_delimiter = ',')]
    allow: Vec<Allow>,
    #[arg(long)]
    port: Option<OsString>,
    #[arg(long)]
    no_open: bool,
    #[arg(long)]
    index: Option<OsString>,
    #[arg(long)]
    no_index: bool,
    #[arg(long)]
    memory: Option<OsString>,
    #[arg(long)]
    threads: Option<OsString>,
}

impl ProcessView {
    /// The view of a process, if `words` ask for one. `words` are the arguments of `ppt`.
    ///
    /// # Errors
    /// An option that only a process has is given for a capture.
    pub(crate) fn asked(words: &[OsString]) -> Result<Option<Self>, clap::Error> {
        let of_process = |error: &clap::Error| {
            let option = error.get(ContextKind::InvalidArg).map(ToString::to_string);
            ["--kernel", "--stacks", "--allow"]
                .iter()
                .any(|name| option.as_ref().is_some_and(|option| option.starts_with(name)))
        };
        match Self::try_parse_from(words) {
            Err(error) if of_process(&error) && is_about_a_value(&error) => Err(error),
            parsed => Ok(parsed.ok()),
        }
    }

    /// Whether there are options for making the capture.
    pub(crate) fn has_capture_options(&self) -> bool {
        let any = !(self.buffers.is_empty() && self.kernel.is_empty() && self.allow.is_empty());
        any || self.output.is_some() || self.stacks.is_some()
    }

    /// The `ppt attach` that makes the capture.
    pub(crate) fn attach(&self) -> Attach {
        let output = self.output.clone().unwrap_or_else(|| {
            let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let now = now.replace(':', "");
            format!("view-{}-{}.bin", self.pid, now.trim_end_matches('Z')).into()
        });
        Attach {
            processes: Processes { pid: Some(self.pid), pid_option: None, name: None, all: false },
            wait_for: None,
            follow: false,
            capture: CaptureArgs {
                buffers: self.buffers.clone(),
                kernel: self.kernel.clone(),
                stacks: self.stacks,
                allow: self.allow.clone(),
                ..CaptureArgs::to(output)
            },
        }
    }

    /// The arguments for `ppt-analysis view`.
    pub(crate) fn of_view(&self) -> Vec<OsString> {
        let flags = [("--no-open", self.no_open), ("--no-index", self.no_index)];
        let flags = flags.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.into());
        let named = [
            ("--port", &self.port),
            ("--index", &self.index),
            ("--memory", &self.memory),
            ("--threads", &self.threads),
        ];
        let mut words: Vec<OsString> = flags.collect();
        for (name, text) in named {
            words.extend(text.iter().flat_map(|text| [name.into(), text.clone()]));
        }
        words
    }
}

fn is_about_a_value(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<ProcessView> {
        tried(text).unwrap()
    }

    fn tried(text: &str) -> Result<Option<ProcessView>, clap::Error> {
        ProcessView::asked(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_number_is_a_process_and_all_else_a_capture() {
        for of_captures in [
            "view out.bin",
            "view 4711.bin",
            "view ./4711",
            "view 0",
            "view -- -4711",
            "view 4711 4712",
            "view 4711 out.bin",
            "view out.bin --port 8000",
            "view 4711 --sync a.sync",
            "view --help",
            "view 4711 --memory nonsense --nothing",
        ] {
            assert!(asked(of_captures).is_none(), "{of_captures}");
        }
        let error = tried("view 4711 --kernel nonsense").err().unwrap().to_string();
        assert!(error.contains("nonsense") && error.contains("sched"), "{error}");
        let view = asked("view --port 8000 4711 --no-open -b store --kernel sched,faults").unwrap();
        assert_eq!((view.pid, view.has_capture_options()), (4711, true));
        assert_eq!(view.of_view(), ["--no-open", "--port", "8000"]);
        let capture = view.attach().capture;
        assert_eq!(capture.buffers, ["store"]);
        assert!(capture.kernel == [KernelPart::Sched, KernelPart::Faults] && !capture.force);
        let name = capture.output.to_str().unwrap().to_owned();
        assert!(name.starts_with("view-4711-2") && !name.contains(':'), "{name}");
        let plain = asked("view 4711 --no-index --threads 2").unwrap();
        assert!(!plain.has_capture_options());
        assert_eq!(plain.of_view(), ["--no-index", "--threads", "2"]);
    }
}
