fn main() {
    ppt_codegen::compile("../clocks.frame").unwrap();
}
