//! The output of the emitters.

/// One generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// File name. Classes of Java are in the folder of their package: `org/example/Job.java`.
    pub name: String,
    /// Contents.
    pub text: String,
}
