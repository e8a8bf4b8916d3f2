//! Generates the code of the buffers.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ppt_codegen::compile("tracing.frame")?;
    ppt_codegen::compile("callsites.frame")?;
    Ok(())
}
