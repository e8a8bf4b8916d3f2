//! Panics: instead of a backtrace on stderr, an error with the place and the reason.

use std::panic;
use std::sync::Mutex;
use std::sync::PoisonError;

/// The first panic: message, and place in the source.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Suppresses the output of panics; [`first`] returns the first one.
pub(crate) fn keep() {
    panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic");
        let place =
            info.location().map(|place| format!(" ({}:{})", short(place.file()), place.line()));
        let text = format!("{message}{}", place.unwrap_or_default());
        FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
    }));
}

/// The message of the first panic.
pub(crate) fn first() -> Option<String> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The path of a source file, relative to its package.
fn short(path: &str) -> &str {
    let in_package = path.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    in_package.map_or(path, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_place() {
        keep();
        let done = std::thread::spawn(|| panic!("no such row")).join();
        let _ = panic::take_hook();
        assert!(done.is_err());
        let message = first().unwrap();
        assert!(message.starts_with("no such row (analysis/cli/src/panicked.rs:"), "{message}");
    }

    #[test]
    fn paths_begin_with_the_package() {
        let path = "/home/a/.cargo/registry/src/index-1/datafusion-55.2.0/src/a.rs";
        assert_eq!(short(path), "datafusion-55.2.0/src/a.rs");
        assert_eq!(short("analysis/cli/src/run.rs"), "analysis/cli/src/run.rs");
    }
}
