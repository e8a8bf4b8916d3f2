//! The cost of a page: `cargo bench -p ppt-report [-- FRAMES|CAPTURE… [-o PAGE]]`, 10 million frames by
//! default; `-- FRAMES -c CAPTURE` only makes the capture. Prints its time, its size, and the maximum
//! memory.

#[path = "../tests/made/mod.rs"]
mod made;

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Instant;

use ppt_query::{CaptureSet, Engine, EngineOptions};
use ppt_report::{Facts, PageRequest, page};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let mut after = |option: &str| {
        let at = words.iter().position(|text| text == option)?;
        words.drain(at..).nth(1)
    };
    let (to, only) = (after("-o"), after("-c"));
    let folder = tempfile::tempdir()?;
    let frames = match words.first().map(|text| text.parse()) {
        None => Some(10_000_000),
        Some(Ok(frames)) => Some(frames),
        Some(Err(_)) => None,
    };
    let captures: Vec<PathBuf> = match frames {
        None => words.iter().map(PathBuf::from).collect(),
        Some(frames) => {
            let made = || folder.path().join("shop.bin");
            let path = only.as_ref().map_or_else(made, PathBuf::from);
            let shop = made::Shop { frames, threads: 8, ..made::Shop::default() };
            let captured = made::write(&shop, BufWriter::new(File::create(&path)?));
            println!("{captured} frames, {} bytes", fs::metadata(&path)?.len());
            if only.is_some() {
                return Ok(());
            }
            vec![path]
        }
    };
    let engine = Engine::new(CaptureSet::open(&captures)?, &EngineOptions::default())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let began = Instant::now();
    let request = PageRequest { command: "ppt report".to_owned(), views: None, memory: 1 << 30 };
    let facts = runtime.block_on(Facts::gather(&engine, &request))?;
    let page = page(&facts);
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("?");
    println!("{:.1?}, {} bytes, peak {}", began.elapsed(), page.len(), peak.trim());
    if let Some(to) = to {
        fs::write(to, page)?;
    }
    Ok(())
}
