//! Experiments, run for real. This program also plays every other program: the helper on a host, a
//! controller that is killed, hosts that lie, and programs on hosts. So it has a `main` of its own.

mod basics;
mod failures;
mod hostile;
mod kills;
mod plans;
mod programs;
mod rig;
mod ssh;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|argument| argument.to_str()) {
        Some("lab" | "program" | "controller" | "hostile" | "sql" | "report") => {
            programs::play(&arguments)
        }
        _ => {
            let tests = [
                plans::tests(),
                basics::tests(),
                failures::tests(),
                hostile::tests(),
                ssh::tests(),
                kills::tests(),
            ];
            libtest_mimic::run(&Arguments::from_args(), tests.concat_trials()).exit_code()
        }
    }
}

trait Concat {
    fn concat_trials(self) -> Vec<Trial>;
}

impl<const N: usize> Concat for [Vec<Trial>; N] {
    fn concat_trials(self) -> Vec<Trial> {
        self.into_iter().flatten().collect()
    }
}
