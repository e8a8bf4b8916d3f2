//! From a capture to an answer: `ppt stat`, `ppt sql` and `ppt export` beside tools that read what was
//! exported.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::bench::{Bench, folder};
use crate::peer::{Place, compile};
use crate::process::run;
use crate::table::Table;

pub const QUESTIONS: &str = "(j) from a capture to an answer, ms";
/// What a process of ppt takes to answer nothing.
pub const START: &str = "SELECT 1, which reads nothing";
pub const COUNT: &str = "count(*)";
pub const SUM: &str = "sum of a column, one thread";
pub const INTERVAL: &str = "an interval by an enum: moments and percentiles";
pub const NUMBERS: &str = "all fields by an enum: moments and percentiles";
pub const EXPORT: &str = "to Parquet, one thread";
pub const RANGE: &str = "count of 1 % of the time";

const RATE: u64 = 1_000_000;

/// What is asked: its row, ppt's words, and who else is asked, and how they call it.
struct Question {
    what: &'static str,
    ppt: &'static [&'static str],
    others: Option<(&'static str, &'static [&'static str])>,
    /// Whether all must answer the same.
    same: bool,
}

const ASKED: [Question; 8] = [
    Question { what: START, ppt: &["sql", "SELECT 1"], others: None, same: false },
    Question {
        what: COUNT,
        ppt: &["sql", "SELECT count(*) FROM sample"],
        others: Some(("count", &["duckdb", "pyarrow"])),
        same: true,
    },
    Question {
        what: SUM,
        ppt: &["sql", "--threads", "1", "SELECT sum(bytes) FROM sample"],
        others: Some(("sum", &["duckdb", "pyarrow", "pandas"])),
        same: true,
    },
    Question {
        what: INTERVAL,
        ppt: &["stat", "--by", "kind", "--field", "handle"],
        others: Some(("interval", &["duckdb", "pandas"])),
        same: false,
    },
    Question {
        what: NUMBERS,
        ppt: &["stat", "--by", "kind"],
        others: Some(("numbers", &["duckdb"])),
        same: false,
    },
    Question {
        what: EXPORT,
        ppt: &["export", "--threads", "1", "--format", "parquet", "--force", "-o", "again.parquet"],
        others: Some(("export", &["pyarrow"])),
        same: false,
    },
    Question {
        what: "every frame as text",
        ppt: &["dump"],
        others: Some(("text", &["babeltrace2"])),
        same: false,
    },
    Question {
        what: RANGE,
        ppt: &["sql", "--from", "FROM", "--to", "TO", "SELECT count(*) FROM sample"],
        others: None,
        same: false,
    },
];

/// Frames, and the folder with their capture and what was made of it.
struct Asked<'a> {
    place: &'a Place,
    folder: PathBuf,
    frames: u64,
}

pub fn build(place: &Place) -> Result<()> {
    let (sources, generated) = (place.of("questions"), place.build.join("generated"));
    let frame = sources.join("sample.frame");
    run(Command::new(place.ppt.join("pptc"))
        .args(["--emit", "c", "-o"])
        .arg(&generated)
        .arg(frame))?;
    let text = |path: PathBuf| path.display().to_string();
    let files = [text(sources.join("main.c")), text(generated.join("sample.c"))];
    let include = format!("-I{}", generated.display());
    let output = ["-o".to_owned(), text(place.built("questions"))];
    compile("gcc", files.into_iter().chain([include]).chain(output))
}

pub fn measure(bench: &mut Bench) {
    if let Err(error) = ask(bench) {
        bench.skipped.push(("ppt".into(), format!("{QUESTIONS}: {error:#}")));
    }
}

fn ask(bench: &mut Bench) -> Result<()> {
    let kept = folder()?;
    eprint!("\r\x1b[K{QUESTIONS}: capture and export");
    let mut asked =
        Asked { place: &bench.place, folder: kept.path().to_owned(), frames: bench.amount.asked };
    asked.prepare()?;
    let mut missing: Vec<(&str, String)> = Vec::new();
    for tool in ["duckdb", "pyarrow", "pandas", "babeltrace2"] {
        if let Err(why) = asked.other(tool, "version") {
            let by =
                if tool == "babeltrace2" { "Debian has it" } else { "analysis/oracles/install" };
            missing.push((tool, format!("{QUESTIONS}: {why:#} ({by})")));
        }
    }
    for round in 1..=bench.amount.rounds {
        for question in &ASKED {
            eprint!(
                "\r\x1b[K{QUESTIONS}: round {round} of {}, {}",
                bench.amount.rounds, question.what
            );
            asked.round(question, &missing, &mut bench.table)?;
        }
    }
    eprint!("\r\x1b[K");
    let note = format!("of {} frames of 48 bytes; the whole process", asked.frames);
    for question in &ASKED {
        bench.table.note(QUESTIONS, question.what, "ppt", note.clone());
    }
    bench.absent.extend(missing.into_iter().map(|(tool, why)| (tool.to_owned(), why)));
    Ok(())
}

impl Asked<'_> {
    fn ppt(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.place.ppt.join("ppt"));
        command.current_dir(&self.folder).args(args);
        command
    }

    /// Makes the capture, and of it what others read.
    fn prepare(&mut self) -> Result<()> {
        let program = self.place.built("questions");
        let words = ["run", "-q", "--slots", "1048576", "-o", "out.bin", "--"];
        let mut capture = self.ppt(&words);
        run(capture.arg(program).args([self.frames, RATE].map(|it| it.to_string())))?;
        let said = run(&mut self.ppt(&["sql", "out.bin", "SELECT count(*) FROM sample"]))?;
        let there = last(&said.stdout).parse().context("a count")?;
        if there < self.frames * 9 / 10 {
            bail!("{there} of {} frames arrived", self.frames);
        }
        self.frames = there;
        run(&mut self.ppt(&["export", "out.bin", "--format", "parquet", "-o", "sample.parquet"]))?;
        run(&mut self.ppt(&["export", "out.bin", "--format", "ctf", "-o", "trace"]))?;
        let csv = File::create(self.folder.join("sample.csv"))?;
        let status = self.ppt(&["dump", "--format", "csv", "out.bin"]).stdout(csv).status()?;
        // What everybody reads is in memory.
        for name in ["out.bin", "sample.parquet", "sample.csv"] {
            fs::read(self.folder.join(name))?;
        }
        if status.success() { Ok(()) } else { bail!("ppt dump: {status}") }
    }

    fn round(
        &self,
        question: &Question,
        missing: &[(&str, String)],
        table: &mut Table,
    ) -> Result<()> {
        let seconds = self.frames as f64 / RATE as f64;
        let (from, to) = (format!("{:.6}s", seconds * 0.5), format!("{:.6}s", seconds * 0.51));
        let mut words = vec![question.ppt[0], "out.bin"];
        words.extend(question.ppt[1..].iter().map(|word| match *word {
            "FROM" => from.as_str(),
            "TO" => to.as_str(),
            word => word,
        }));
        let started = Instant::now();
        let said = run(&mut self.ppt(&words))?;
        table.add(QUESTIONS, question.what, "ppt", started.elapsed().as_secs_f64() * 1e3);
        let ours = last(&said.stdout);
        let Some((name, tools)) = question.others else { return Ok(()) };
        for tool in tools.iter().filter(|tool| !missing.iter().any(|missing| missing.0 == **tool)) {
            let said = self.other(tool, name)?;
            let (seconds, answer) = said.split_once(' ').context("seconds and an answer")?;
            if question.same && answer.trim() != ours {
                bail!("{tool} answers {answer}, and ppt {ours}: {}", question.what);
            }
            table.add(QUESTIONS, question.what, tool, seconds.parse::<f64>()? * 1e3);
        }
        Ok(())
    }

    /// Seconds that a tool took, and its answer.
    fn other(&self, tool: &str, question: &str) -> Result<String> {
        if tool == "babeltrace2" {
            let mut command = Command::new(tool);
            let what = if question == "version" { "--version" } else { "trace" };
            let started = Instant::now();
            run(command.current_dir(&self.folder).arg(what))?;
            return Ok(format!("{} text", started.elapsed().as_secs_f64()));
        }
        let root = self.place.source.join("..");
        let mut command = Command::new(root.join("target/oracles/bin/python"));
        command.arg(self.place.of("questions").join("ask.py")).args([tool, question]);
        let output = run(command.arg(Path::new(&self.folder)))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// The last line.
fn last(stdout: &[u8]) -> String {
    String::from_utf8_lossy(stdout).lines().last().unwrap_or_default().trim().to_owned()
}
