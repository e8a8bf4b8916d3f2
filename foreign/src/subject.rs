//! What requests are about.

/// The number of a device, major and minor: it identifies a file system while that is mounted.
pub type Device = (u32, u32);

/// What a request is about, for [`Unanswered`](crate::Unanswered).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The process that has mapped the file.
    pub pid: i32,
    /// The path of the file, as the process sees it.
    pub path: String,
    /// The device of the file, if known.
    pub device: Option<Device>,
}
