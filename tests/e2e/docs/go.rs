//! Go: the page's own recipe, and the shop under load.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::fixtures::go::run;
use crate::fixtures::support::{Account, Bench, Table, Target, available, root, text, wait_until};

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

/// The capture contains what the customers saw, and each slow request waited while the price list was
/// read.
#[test]
fn the_shop() {
    if !available("go") || !available("make") {
        return;
    }
    let bench = Bench::new();
    let mut copy = Command::new("cp");
    let files = ["Makefile", "go.mod", "shop.frame", "main.go", "serve.go", "visit.go"];
    let files = files.map(|name| root().join("examples/go").join(name));
    assert!(copy.args(files).arg(bench.path("")).status().unwrap().success());
    let mut make = bench.command("make");
    make.arg(format!("PPTC={}", env!("CARGO_BIN_EXE_pptc"))).env_remove("MAKEFLAGS");
    make.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    run(make.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go")));

    let server = bench.path("work/server");
    let mut command = bench.command(&server);
    command.args(["serve", "0"]);
    let target = Target::spawn(command);
    let port = target.stdout.wait_for("port ");
    let attach = bench.attach(&target, &[]);
    let (customers, requests) = (6, 120);
    let mut load = bench.command(&server);
    load.args(["visit", &port, &customers.to_string(), &requests.to_string()]);
    let output = load.output().unwrap();
    let all: usize = customers * requests;
    assert_eq!(text(&output.stdout), format!("answers {all}\n"), "{}", text(&output.stderr));
    attach.stop();

    let info = bench.info("out.bin");
    let table = bench.table("out.bin", &["--frame", "request"]);
    let count =
        |name: &str, cell: &str| table.cells(name).iter().filter(|&&text| text == cell).count();
    assert_eq!(table.rows.len(), all, "one frame a request");
    assert_eq!(count("status", "200"), all);
    assert_eq!((count("page", "PRICE"), count("page", "ORDER")), (all * 3 / 4, all / 4));
    // An order asks for the price once more; the list is read every 200th time.
    let reloads = bench.table("out.bin", &["--frame", "price_list"]);
    assert_eq!(reloads.rows.len(), (all + all / 4).div_ceil(200));
    assert!(reloads.cells("items").iter().all(|&items| items == "100"));
    Account::of(&info).check(u64::try_from(all + reloads.rows.len()).unwrap());
    let per_customer: usize = (0..requests).filter(|i| i % 4 == 3).map(|i| 1 + i % 9).sum();
    let counters = info["buffers"][0]["counters"].as_array().unwrap();
    let ordered = counters.iter().find(|counter| counter["name"] == "ordered").unwrap();
    assert_eq!(ordered["value"].as_u64(), u64::try_from(customers * per_customer).ok());
    // Each read of the list lies within the request that caused it.
    let times = |table: &Table, interval: &str| {
        let edges = ["start", "end"].map(|edge| table.numbers(&format!("{interval}_{edge}")));
        let [start, end] = edges;
        start.into_iter().zip(end).collect::<Vec<_>>()
    };
    let handled = times(&table, "handle");
    for (start, end) in times(&reloads, "reload") {
        assert!(end - start >= 15_000_000, "{start} {end}");
        assert!(handled.iter().any(|request| request.0 <= start && end <= request.1));
    }
}
