//! Demangles symbols into source names.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::limits::NAME_BYTES;

/// The source name of a function, from the linker's symbol. A symbol that is not a mangled C++ or
/// Rust name stays as it is. U+FFFD replaces bytes that are not UTF-8.
pub fn demangled(symbol: &[u8]) -> Cow<'_, str> {
    let symbol = &symbol[..symbol.len().min(NAME_BYTES)];
    let Ok(text) = str::from_utf8(symbol) else { return String::from_utf8_lossy(symbol) };
    // Suffixes of the linker, such as a version, are not part of the mangled name.
    rust(text).or_else(|| cpp(text)).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn rust(text: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(text).ok()?;
    let mut bounded = Bounded::default();
    // Without the hash that follows the path.
    write!(bounded, "{name:#}").ok()?;
    bounded.text()
}

fn cpp(text: &str) -> Option<String> {
    // Other names match only by accident: `_Z` is reserved for the implementation.
    if !text.starts_with("_Z") {
        return None;
    }
    let symbol = cpp_demangle::BorrowedSymbol::new(text.as_bytes()).ok()?;
    let mut bounded = Bounded::default();
    symbol.structured_demangle(&mut bounded, &cpp_demangle::DemangleOptions::default()).ok()?;
    bounded.text()
}

/// Text that fails when it becomes too long, because a short mangled name may expand to a very long
/// one.
#[derive(Default)]
struct Bounded(String);

impl Bounded {
    fn text(self) -> Option<String> {
        (!self.0.is_empty()).then_some(self.0)
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > NAME_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_they_were_written() {
        for (symbol, name) in [
            ("processCommand", "processCommand"),
            ("_ZN3foo3barEic", "foo::bar(int, char)"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_Znot_mangled", "_Znot_mangled"),
            ("_Z", "_Z"),
            ("", ""),
        ] {
            assert_eq!(demangled(symbol.as_bytes()), name);
        }
        assert_eq!(demangled(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn long_names_are_bounded() {
        // Each substitution doubles the name.
        let bomb = format!("_Z1fI{}E", "S_".repeat(1000));
        let nested = format!("_Z1f{}i", "P".repeat(3000));
        let long = "x".repeat(NAME_BYTES + 1);
        for symbol in [bomb, nested, long] {
            assert!(demangled(symbol.as_bytes()).len() <= NAME_BYTES, "{symbol:.20}");
        }
        let doubling = format!("_Z1f{}", (0..24).map(|_| "N1aIS_S_E").collect::<String>());
        assert!(demangled(doubling.as_bytes()).len() <= NAME_BYTES);
    }
}
