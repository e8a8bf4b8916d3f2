//! Runs tools. One may be installed in part, so what a test needs of it is tried.

use std::process::Command;

/// Whether each of these commands succeeds. Otherwise it says what is skipped, and why.
pub fn works(what: &str, attempts: &mut [Command]) -> bool {
    attempts.iter_mut().all(|command| {
        let why = match command.output() {
            Ok(output) if output.status.success() => return true,
            Ok(output) => [output.stdout, output.stderr].concat(),
            Err(error) => error.to_string().into_bytes(),
        };
        println!("{what} is skipped: {command:?}: {}", String::from_utf8_lossy(&why));
        false
    })
}

/// The stdout of a command.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [said, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{command:?}:\n{said}{errors}");
    said
}
