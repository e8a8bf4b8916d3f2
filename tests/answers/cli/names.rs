//! The extension of an output matches its format.

use ppt_capture::{CaptureWriter, FileHeader};

use crate::support::{Bench, capture, schema};

#[test]
fn a_picture_is_not_written_under_the_name_of_another_format() {
    let bench = Bench::new();
    let plot =
        |name: &str| ["plot", "out.bin", "SELECT seqno FROM pass", "-o", name].map(str::to_owned);
    for name in ["p.png", "p.PDF", "p.jpg", "p.html"] {
        let args = plot(name);
        let (said, code) = bench.fails(&args.each_ref().map(String::as_str));
        assert!(said.contains(name) && said.contains("end the name in .svg"), "{said}");
        assert_eq!(code, 2, "{said}");
    }
    let (said, code) = bench.fails(&["report", "out.bin", "-o", "r.pdf"]);
    assert!(said.contains("end the name in .html") && code == 2, "{said}");
    for (drawing, name, wanted) in [("svg", "g.png", ".svg"), ("dot", "g.svg", ".dot")] {
        let (said, code) = bench.fails(&["graph", "out.bin", "--draw", drawing, "-o", name]);
        assert!(said.contains(&format!("end the name in {wanted}")) && code == 2, "{said}");
    }
    assert_eq!(bench.names(), ["out.bin"]);
    for name in ["p.svg", "picture", "p.1"] {
        let args = plot(name);
        bench.done(&args.each_ref().map(String::as_str));
    }
}

#[test]
fn one_look_at_a_capture_says_whether_it_has_ended() {
    let json = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{"name":"it","kind":"plain","size":16,
        "fields":[{"name":"n","type":"u64","offset":8}]}]}"#;
    let bench = Bench::empty();
    bench.write("ended.bin", capture(&FileHeader::default(), &schema(json), &[]));
    let text = bench.done(&["top", "ended.bin", "--once"]);
    assert!(text.lines().next().unwrap().contains("ended: stopped"), "{text}");
    let mut bytes = Vec::new();
    drop(CaptureWriter::create(&mut bytes, &FileHeader::default()).unwrap());
    bench.write("grows.bin", bytes);
    let text = bench.done(&["top", "grows.bin", "--once"]);
    assert!(text.lines().next().unwrap().contains("has no end yet: it may grow"), "{text}");
}
