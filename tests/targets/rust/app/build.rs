fn main() {
    println!("cargo::rustc-check-cfg=cfg(ppt_ticks)");
    for file in ["job", "values", "clocks", "truth", "errands", "counting", "choosing", "relay", "lengths"] {
        ppt_codegen::compile(format!("../{file}.frame")).unwrap();
    }
    for file in std::fs::read_dir("../golden").unwrap() {
        let path = file.unwrap().path();
        if path.file_stem().unwrap() != "job" {
            ppt_codegen::compile(path).unwrap();
        }
    }
}
