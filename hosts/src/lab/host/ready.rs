//! Whether a program is ready.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::lab::plan::Readiness;

/// The conditions of [`Readiness`] that are not met yet.
#[derive(Debug)]
pub(super) struct Missing {
    wanted: Readiness,
    outputs: [Scan; 2],
}

/// A file that is searched for a text, and the position reached.
#[derive(Debug)]
struct Scan {
    path: PathBuf,
    read: u64,
    /// The end of the data read so far, in which the text may have begun.
    end: Vec<u8>,
}

impl Missing {
    /// `outputs` are the program's output files, `folder` is its working folder.
    pub(super) fn new(ready: &Readiness, outputs: [&Path; 2], folder: &Path) -> Self {
        let mut wanted = ready.clone();
        wanted.file = wanted.file.map(|file| folder.join(file));
        let scan = |path: &Path| Scan { path: path.to_owned(), read: 0, end: Vec::new() };
        Self { wanted, outputs: outputs.map(scan) }
    }

    /// Checks again. Returns a description of the missing condition; None if the program is ready.
    pub(super) fn look(&mut self) -> Option<String> {
        if let Some(text) = &self.wanted.output {
            if !self.outputs.iter_mut().any(|output| output.has(text.as_bytes())) {
                return Some(format!("it has not written `{text}`"));
            }
            self.wanted.output = None;
        }
        if let Some(port) = self.wanted.tcp {
            if !is_bound("tcp", port) {
                return Some(format!("nobody listens on TCP port {port}"));
            }
            self.wanted.tcp = None;
        }
        if let Some(port) = self.wanted.udp {
            if !is_bound("udp", port) {
                return Some(format!("nobody has bound UDP port {port}"));
            }
            self.wanted.udp = None;
        }
        if let Some(file) = &self.wanted.file {
            if !file.exists() {
                return Some(format!("there is no file {}", file.display()));
            }
            self.wanted.file = None;
        }
        None
    }
}

impl Scan {
    /// Whether the text is in the file, in new or earlier data.
    fn has(&mut self, text: &[u8]) -> bool {
        let Ok(mut file) = File::open(&self.path) else { return text.is_empty() };
        let mut bytes = std::mem::take(&mut self.end);
        if file.seek(SeekFrom::Start(self.read)).is_ok() {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = file.read(&mut buffer) {
                self.read += read as u64;
                bytes.extend(&buffer[..read]);
                if text.is_empty() || bytes.windows(text.len()).any(|window| window == text) {
                    return true;
                }
                let from = bytes.len().saturating_sub(text.len().saturating_sub(1));
                bytes.drain(..from);
            }
        }
        self.end = bytes;
        text.is_empty()
    }
}

/// Whether a socket of this network namespace is bound to the port; with `tcp`, whether it listens.
fn is_bound(protocol: &str, port: u16) -> bool {
    const LISTENS: &str = "0A";
    ["", "6"].iter().any(|version| {
        let table = fs::read_to_string(format!("/proc/self/net/{protocol}{version}"));
        let table = table.unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().and_then(|text| text.rsplit_once(':'));
            let is_it = local.is_some_and(|local| u16::from_str_radix(local.1, 16) == Ok(port));
            is_it && (protocol != "tcp" || words.nth(1) == Some(LISTENS))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn texts_are_found_across_reads() {
        let folder = tempfile::tempdir().unwrap();
        let (out, err) = (folder.path().join("out"), folder.path().join("err"));
        let mut file = File::create(&out).unwrap();
        let ready = Readiness { output: Some("listening".to_owned()), ..Readiness::default() };
        let mut missing = Missing::new(&ready, [&out, &err], folder.path());
        for part in ["not yet, liste", "n", "ing"] {
            assert_eq!(missing.look().unwrap(), "it has not written `listening`");
            file.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(missing.look(), None);
        assert_eq!(missing.look(), None);
    }

    #[test]
    fn ports_are_found() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        assert!(is_bound("udp", port));
        drop(udp);
        assert!(!is_bound("udp", port));
        let tcp =
            TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
        assert!(is_bound("tcp", tcp.local_addr().unwrap().port()));
    }
}
