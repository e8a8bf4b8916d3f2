fn main() {
    if let Err(error) = ppt_codegen::compile("lines.frame") {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
