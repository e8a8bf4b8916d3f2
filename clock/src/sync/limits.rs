//! Limits of the content of files.

/// Most bytes of a name.
pub const MAX_NAME: usize = 64;
/// Most hosts in all files together.
pub const MAX_HOSTS: usize = 1024;
/// Highest tick rate in Hz.
pub const MAX_HZ: u64 = 1_000_000_000_000;

/// Whether a name may be in a line and on a screen.
pub(super) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
}
