//! The output of the emitters.

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// The file name. Java classes are in the folder of their package: `org/example/Job.java`.
    pub name: String,
    /// The content.
    pub text: String,
}
