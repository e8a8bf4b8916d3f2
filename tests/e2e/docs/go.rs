//! Go: the page's own recipe.

use std::fs;
use std::path::Path;

use crate::fixtures::go::run;
use crate::fixtures::support::{Bench, Target, available, root, wait_until};

/// The first block of a page that begins with this line, without it.
fn block(page: &str, first: &str) -> String {
    let at = page.find(first).unwrap_or_else(|| panic!("no block begins with {first:?}"));
    let after = &page[at..];
    after[..after.find("```").unwrap()].to_owned()
}

#[test]
fn the_recipe_of_the_page() {
    if !available("go") {
        return;
    }
    let bench = Bench::new();
    let page = fs::read_to_string(root().join("docs/go.md")).unwrap();
    bench.write("job.frame", &block(&page, "// job.frame\n"));
    bench.write("main.go", &block(&page, "// main.go\n"));
    let commands = block(&page, "go mod init example.org/server\n");
    let build = &commands[..commands.find("./server").unwrap()];
    // `go generate` finds this pptc.
    let pptc = Path::new(env!("CARGO_BIN_EXE_pptc")).parent().unwrap();
    let path = format!("{}:{}", pptc.display(), std::env::var("PATH").unwrap());
    let mut command = bench.command("sh");
    command.args(["-e", "-c", build]).env("PATH", path);
    command.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    run(command.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go")));

    let target = Target::spawn(bench.command(bench.path("server")));
    wait_until("it runs", || {
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid()));
        maps.unwrap().contains("/server")
    });
    bench.attach(&target, &["-d", "500ms"]).ended(0);
    let table = bench.table("out.bin", &["--frame", "work"]);
    let who = table.numbers("who");
    assert!(who.len() > 3, "{who:?}");
    assert!(table.cells("kind").iter().all(|&kind| kind == "LOGIN"));
    assert!(table.cells("name").iter().all(|&name| name == "main"));
}
