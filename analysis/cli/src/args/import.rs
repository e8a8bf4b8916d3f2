//! Arguments of `ppt import`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;
use ppt_query::Bound;

use super::captures::local;
use super::output::OutputArgs;
use super::values::nanoseconds;

#[derive(Debug, ClapArgs)]
pub struct Import {
    /// A table with a line of headings (CSV, or separated by tabs), a pcap or a pcapng file; `-` is
    /// stdin.
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Frame file that describes a line or a packet.
    #[arg(long, value_name = "FRAME_FILE")]
    pub(crate) schema: PathBuf,
    /// The kind of frame of each line [default: the only one, or that in the column `frame`].
    #[arg(long, value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// A column of the frame file has another heading (repeatable).
    #[arg(long = "column", value_name = "FIELD=HEADING", value_parser = pair)]
    pub(crate) columns: Vec<(String, String)>,
    /// Leave out the column with this heading (repeatable).
    #[arg(long, value_name = "HEADING")]
    pub(crate) skip: Vec<String>,
    /// The numbers of a time or a duration are in s, ms or us [default: ns] (repeatable).
    #[arg(long = "unit", value_name = "FIELD=UNIT", value_parser = unit)]
    pub(crate) units: Vec<(String, u64)>,
    /// Separator of cells [default: a tab if the headings have one, else a comma].
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// UTC when the clocks `monotonic` and `boottime` of the input were at 0 [default: 1970].
    #[arg(long, value_name = "TIME", value_parser = Bound::from_str)]
    pub(crate) epoch: Option<Bound>,
    /// The times are of the clocks of the host that this capture was made on: its points and those of
    /// the input can be joined.
    #[arg(long, value_name = "CAPTURE", conflicts_with_all = ["epoch", "host"], value_parser = local())]
    pub(crate) clock_of: Option<PathBuf>,
    /// By how much the times may be off, such as 600us [default: 0].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    pub(crate) clock_error: Option<i64>,
    /// Name of the host in the capture [default: the name of the input].
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Id of the process in the capture.
    #[arg(long, value_name = "PID", default_value = "0", hide_default_value = true)]
    pub(crate) pid: u32,
    /// Metadata for the capture (repeatable).
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) tags: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "two names with = between them".to_owned())
}

fn unit(text: &str) -> Result<(String, u64), String> {
    let (name, unit) = pair(text)?;
    let unit = match unit.as_str() {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1000,
        "ns" => 1,
        _ => return Err("a field, = and its unit: s, ms, us or ns".to_owned()),
    };
    Ok((name, unit))
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [one] if one.is_ascii() && !one.is_ascii_alphanumeric() && !b"\"\r\n".contains(one) => {
            Ok(*one)
        }
        _ if text == "\\t" => Ok(b'\t'),
        _ => Err("one ASCII character, such as ; or |".to_owned()),
    }
}
