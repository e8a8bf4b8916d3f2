//! The table in the documentation, between its marks.

use std::path::Path;

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- table -->\n";
const END: &str = "<!-- end -->";

pub fn put(page: &Path, table: &str) -> Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let (before, rest) = text.split_once(BEGIN).context("no <!-- table --> in the page")?;
    let (_, after) = rest.split_once(END).context("no <!-- end --> in the page")?;
    let new = format!("{before}{BEGIN}```text\n{}\n```\n{END}{after}", table.trim_end());
    std::fs::write(page, new).with_context(|| page.display().to_string())
}
