//! The output of the emitters.

/// One generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// File name without a folder.
    pub name: String,
    /// Contents.
    pub text: String,
}
