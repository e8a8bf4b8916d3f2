fn main() {
    if let Err(error) = ppt_codegen::compile("../video.frame") {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
