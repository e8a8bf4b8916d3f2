//! The protocol between the controller and a host's helper: frames over a pipe, each with a type
//! and a length. A message is JSON; data frames hold bytes of a file.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::plan::{ClockCondition, ShellCommand};

/// Version of the protocol; a peer with another version is reported.
pub(super) const VERSION: u32 = 1;
/// The most bytes of a frame. The largest message has the commands of all programs of an
/// experiment.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
pub(super) const MAX_DATA_BYTES: usize = 256 << 10;

/// Requests of the controller. The helper answers in the same order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HelperRequest {
    /// Identifies the files of programs: [`HelperMessage::Identified`].
    Identify { programs: Vec<String> },
    /// Runs a system program to its end: [`HelperMessage::Tool`].
    Tool { words: Vec<String>, input: String },
    /// Begins a cell in a fresh folder: [`HelperMessage::Begun`].
    Begin,
    /// Starts a program at a time of the host's REALTIME, in ns: [`HelperMessage::Done`] once it is ready or
    /// has ended, or [`HelperMessage::Failed`].
    Start { phase: String, command: ShellCommand, capture: Option<CaptureRequest>, at: i64 },
    /// Starts to measure clocks, until this is stopped as a program is: [`HelperMessage::Done`] once clocks are
    /// known. The measurement continues after that.
    Measure { phase: String, name: String, key: Vec<u8>, part: ClockRole },
    /// Requests the offsets of other hosts' REALTIME from the host that measures: [`HelperMessage::Offsets`].
    Offsets { phase: String },
    /// Stops the programs of a phase: [`HelperMessage::Stopped`].
    Stop { phase: String },
    /// Cancels the awaited request, and requests the programs that are not done: [`HelperMessage::Unfinished`].
    GiveUp,
    /// Sends files that match: [`HelperMessage::File`] for each, then [`HelperMessage::Collected`].
    Collect { patterns: Vec<String> },
    /// Ends a cell: stops all programs, and sends the files that ppt itself wrote, as `Collect` does.
    End,
    /// Keep-alive.
    Ping,
}

/// The role of a host in measuring clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ClockRole {
    /// The host answers probes at this address.
    Answer(String),
    /// The host probes these hosts (NAME=ADDRESS) until their clocks are known, and continues.
    Ask { clock: ClockCondition, others: Vec<String> },
}

/// A request to capture the frames of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CaptureRequest {
    /// The program `ppt`.
    pub ppt: String,
    /// The name of the capture.
    pub file: String,
}

/// Answers of the helper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HelperMessage {
    Hello(Box<Facts>),
    /// In the order of the request.
    Identified(Vec<FileIdentity>),
    Tool {
        end: ProgramEnd,
        output: String,
    },
    Begun,
    Done {
        started: i64,
    },
    Failed(Box<HelperFailure>),
    Stopped,
    /// REALTIME of this host, and by host name the offset of another host's REALTIME and its
    /// uncertainty, in ns.
    Offsets {
        now: i64,
        others: Vec<(String, i64, i64)>,
    },
    Unfinished(Vec<HelperFailure>),
    /// A file: data frames follow, then `FileEnd`.
    File {
        name: String,
    },
    FileEnd,
    /// All files are sent. These patterns matched nothing, these files were left out.
    Collected {
        unmatched: Vec<String>,
        left_out: Vec<String>,
        ends: Vec<Ended>,
    },
}

/// Facts about a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Version of the protocol.
    pub version: u32,
    /// Two hosts with the same boot id share a clock.
    pub boot_id: String,
    /// Of uname(2).
    pub kernel: String,
    /// Of uname(2).
    pub machine: String,
    /// The model of the CPU.
    pub cpu: String,
    /// The number of CPUs that the helper may use.
    pub cpus: u32,
    /// The frequency governor of the first CPU.
    pub governor: String,
    /// The clock source of the kernel.
    pub clock_source: String,
    /// The isolation of programs.
    pub isolation: Isolation,
    /// The variables that all programs inherit.
    pub environment: Vec<(String, String)>,
}

/// The isolation of a host's programs, so that none survives its helper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// In a PID namespace and an IPC namespace.
    Namespaces,
    /// By parent-death signals.
    #[default]
    Guard,
}

/// The file of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileIdentity {
    /// The file was found.
    Found {
        /// The path of the file.
        path: String,
        /// SHA-256 of its content, in hexadecimal.
        sha256: String,
        /// The build id of an ELF file, in hexadecimal.
        build_id: Option<String>,
    },
    /// No file was found.
    Missing {
        /// The reason.
        why: String,
    },
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramEnd {
    /// By exit(3).
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// A program that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The phase that started it.
    pub phase: String,
    /// The end of the program.
    pub end: ProgramEnd,
    /// Whether ppt asked it to end.
    pub stopped: bool,
    /// The number of bytes of its output that were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A program that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperFailure {
    /// The phase that started it.
    pub phase: String,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The failure.
    pub problem: Problem,
    /// The last lines that it wrote.
    pub tail: String,
}

/// The failure of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// The program was not started, for this reason.
    NotStarted(String),
    /// The program ended early or with the wrong status.
    Ended(ProgramEnd),
    /// The program runs, but is not ready: this condition is missing.
    NotReady(String),
    /// The program still runs.
    Running,
}

impl std::fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProgramEnd::Code(code) => write!(f, "ended with status {code}"),
            ProgramEnd::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::NotStarted(why) => write!(f, "cannot be started: {why}"),
            Problem::Ended(end) => write!(f, "{end}"),
            Problem::NotReady(missing) => write!(f, "is not ready: {missing}"),
            Problem::Running => f.write_str("still runs"),
        }
    }
}

/// A frame.
#[derive(Debug, PartialEq)]
pub(super) enum WireFrame<M> {
    Message(M),
    Data(Vec<u8>),
}

/// Bytes that are not a valid frame.
#[derive(Debug, Error)]
pub enum WireError {
    /// The pipe.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An unknown type of frame.
    #[error("it says `{0}`, which no helper of ppt says")]
    Kind(String),
    /// A frame that is too long.
    #[error("it announces {bytes} bytes: at most {most} are taken")]
    TooLong {
        /// The length of the message, bytes.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// A message that cannot be parsed.
    #[error("its message cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

pub(super) fn write_message(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    write_frame(to, b'm', &json)
}

pub(super) fn write_data(to: &mut impl Write, data: &[u8]) -> io::Result<()> {
    write_frame(to, b'd', data)
}

fn write_frame(to: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(5 + payload.len());
    frame.push(kind);
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend(payload);
    to.write_all(&frame)?;
    to.flush()
}

/// Reads one frame; None at the end.
pub(super) fn read<M: DeserializeOwned>(
    from: &mut impl Read,
) -> Result<Option<WireFrame<M>>, WireError> {
    let mut head = [0; 5];
    let mut got = 0;
    while got < head.len() {
        match from.read(&mut head[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        // Output of a shell before the helper starts is shown; nothing waits for it.
        if head[0] != b'm' && head[0] != b'd' {
            let mut more = vec![0; 120];
            let read = from.read(&mut more).unwrap_or(0);
            let shown = [&head[..got], &more[..read]].concat();
            let shown = ppt_text::escaped(&String::from_utf8_lossy(&shown));
            return Err(WireError::Kind(shown));
        }
    }
    let bytes = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let most = if head[0] == b'm' { MAX_MESSAGE_BYTES } else { MAX_DATA_BYTES };
    if bytes > most {
        return Err(WireError::TooLong { bytes, most });
    }
    let mut payload = Vec::new();
    from.take(bytes as u64).read_to_end(&mut payload)?;
    if payload.len() < bytes {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(Some(match head[0] {
        b'm' => WireFrame::Message(serde_json::from_slice(&payload)?),
        _ => WireFrame::Data(payload),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let mut bytes = Vec::new();
        write_message(&mut bytes, &HelperRequest::Begin).unwrap();
        write_data(&mut bytes, b"abc").unwrap();
        let mut from = &bytes[..];
        assert_eq!(
            read::<HelperRequest>(&mut from).unwrap(),
            Some(WireFrame::Message(HelperRequest::Begin))
        );
        assert_eq!(
            read::<HelperRequest>(&mut from).unwrap(),
            Some(WireFrame::Data(b"abc".to_vec()))
        );
        assert_eq!(read::<HelperRequest>(&mut from).unwrap(), None);
        // A stream cut at any byte gives an error or the end.
        for cut in 1..bytes.len() {
            let mut from = &bytes[..cut];
            while let Ok(Some(_)) = read::<HelperRequest>(&mut from) {}
        }
    }

    #[test]
    fn garbage_is_named() {
        let error = |bytes: &[u8]| read::<HelperMessage>(&mut &bytes[..]).unwrap_err().to_string();
        assert_eq!(
            error(b"Welcome to b!\n"),
            "it says `Welcome to b!\\n`, which no helper of ppt says"
        );
        assert!(error(b"m\xff\xff\xff\xff").contains("at most 4194304"));
        assert!(error(b"d\xff\xff\xff\x7f").contains("at most 262144"));
        assert!(error(b"m\x02\x00\x00\x00{}").contains("cannot be read"));
        assert!(error(b"m\x02\x00\x00\x00{").contains("unexpected end"));
    }
}
