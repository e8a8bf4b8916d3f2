fn main() {
    ppt_codegen::compile("request.frame").unwrap();
}
