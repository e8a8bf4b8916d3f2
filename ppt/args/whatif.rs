//! Arguments of `ppt whatif --live`. `analysis/cli/src/args/whatif.rs` has those of `ppt whatif` for captures.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Parser;
use ppt_text::argument;

use super::{CaptureArgs, StampSource, pid};

/// The shortest round.
const LEAST_ROUND: Duration = Duration::from_millis(200);

/// Run a program under a hypothesis: what an interval that takes longer, or a little shorter, would be worth.
#[derive(Parser)]
#[command(name = "ppt whatif --live", bin_name = "ppt whatif", max_term_width = 100)]
pub(crate) struct LiveWhatIf {
    /// The processes.
    #[arg(value_name = "PID", required = true, value_parser = pid)]
    pub(crate) pids: Vec<i32>,
    /// Answer about running programs.
    #[arg(long)]
    live: bool,
    /// How many times as fast an interval is, work=0.8x,0.5x: below 1 it really takes longer, and up to 1.25x is
    /// extrapolated (may be given again for another).
    #[arg(long, value_name = "INTERVAL=FACTORS", required = true, value_parser = speeds)]
    pub(crate) speed: Vec<AskedSpeeds>,
    /// What to measure: an interval (job.handle) or a span (request), 'path(a, b)' between points, or
    /// 'rate(job.handle)' [default: all spans, or else all intervals].
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Option<String>,
    /// Duration of the experiment.
    #[arg(long = "for", value_name = "TIME", value_parser = argument::duration, default_value = "60s")]
    pub(crate) time: Duration,
    /// Least duration of a round. It goes on until the metric has ended 30 times.
    #[arg(long, value_name = "TIME", value_parser = round, default_value = "500ms")]
    pub(crate) round: Duration,
    /// These intervals are timed work (they wait for devices or others): threads sleep at their end, and do not
    /// compute (several are separated by commas).
    #[arg(long, value_name = "INTERVALS", value_delimiter = ',')]
    pub(crate) wall: Vec<String>,
    /// The capture to write [default: whatif-PID-TIME.bin].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Make spans look faster, up to 1.5x: while they run, ppt pauses all other CPUs of this host for a part of the time.
    /// All programs of this host are slower meanwhile. Needs CAP_SYS_NICE and CAP_PERFMON.
    #[arg(long)]
    pub(crate) pause_host: bool,
    /// Format of the answer [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Replace the capture if it exists.
    #[arg(long)]
    force: bool,
}

/// An interval, and how many times as fast it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AskedSpeeds {
    /// The name of the interval, or the last part of it.
    pub(crate) interval: String,
    /// Each positive.
    pub(crate) times: Vec<f64>,
}

fn speeds(text: &str) -> Result<AskedSpeeds, String> {
    let mistake = || format!("`{text}` is not like work=0.8x,0.5x");
    let (interval, factors) = text.rsplit_once('=').ok_or_else(mistake)?;
    let interval = interval.trim().to_owned();
    let factor = |word: &str| {
        let number: f64 = word.trim().trim_end_matches('x').parse().ok()?;
        (number.is_finite() && number > 0.0 && number != 1.0).then_some(number)
    };
    let times: Option<Vec<f64>> = factors.split(',').map(factor).collect();
    match times {
        Some(times) if !interval.is_empty() => Ok(AskedSpeeds { interval, times }),
        _ => Err(mistake()),
    }
}

fn round(text: &str) -> Result<Duration, String> {
    let round = argument::duration(text).map_err(|error| error.to_string())?;
    if round < LEAST_ROUND {
        return Err("a round takes at least 200ms: its first 100ms are not measured".to_owned());
    }
    Ok(round)
}

impl LiveWhatIf {
    /// Whether `words`, those behind `ppt`, are about running programs.
    pub(crate) fn is_asked(words: &[OsString]) -> bool {
        words.iter().take_while(|word| *word != "--").any(|word| word == "--live")
    }

    /// How the programs are captured during the experiment.
    pub(crate) fn capture(&self) -> CaptureArgs {
        let output = self.output.clone().unwrap_or_else(|| {
            let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let now = now.replace(':', "");
            let pid = self.pids.first().copied().unwrap_or_default();
            format!("whatif-{pid}-{}.bin", now.trim_end_matches('Z')).into()
        });
        // Pauses are timed by the monotonic clock.
        let clock = if self.pause_host { StampSource::Monotonic } else { StampSource::Auto };
        CaptureArgs {
            clock,
            force: self.force,
            duration: Some(self.time),
            ..CaptureArgs::to(output)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_belong_to_an_interval() {
        let asked = speeds("serve.work=0.8x, 0.5").unwrap();
        let interval = "serve.work".to_owned();
        assert_eq!(asked, AskedSpeeds { interval, times: vec![0.8, 0.5] });
        for wrong in ["work", "=0.5x", "work=", "work=fast", "work=0x", "work=1x", "work=-2x"] {
            assert!(speeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_flag_is_about_running_programs() {
        let asked = |text: &str| {
            LiveWhatIf::is_asked(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
        };
        assert!(asked("whatif --live 4711 --speed work=0.5x"));
        assert!(!asked("whatif out.bin --speed work=2x") && !asked("whatif -- --live"));
        let words = ["whatif", "1", "--live", "--speed", "a=0.5x", "--round", "1ms"];
        assert!(LiveWhatIf::try_parse_from(words).is_err());
    }
}
