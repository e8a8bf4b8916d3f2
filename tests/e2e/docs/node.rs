//! Node.js: the page's recipe, and the shop under load.

use std::fs;
use std::process::Command;

use crate::fixtures::node::headers;
use crate::fixtures::support::{Account, Bench, Target, available, root, text, wait_until};

const PPTC: &str = env!("CARGO_BIN_EXE_pptc");

/// The content of the first block of a page with this first line, without that line.
fn block(page: &str, first: &str) -> String {
    let at = page.find(first).unwrap_or_else(|| panic!("no block begins with {first:?}"));
    let after = &page[at..];
    after[..after.find("```").unwrap()].to_owned()
}

#[test]
fn the_recipe_of_the_page() {
    let Some(include) = headers() else { return };
    let bench = Bench::new();
    let page = fs::read_to_string(root().join("docs/node.md")).unwrap();
    bench.write("job.frame", &block(&page, "// job.frame\n"));
    bench.write("main.mjs", &block(&page, "// main.mjs\n"));
    let commands = block(&page, "pptc --emit node -o job job.frame\n");
    let at = commands.find("node main.mjs").unwrap();
    let build = commands[..at].replacen("pptc ", &format!("{PPTC} "), 1);
    let build = build.replacen("/usr/include/node", include.to_str().unwrap(), 1);
    let output = bench.command("sh").args(["-e", "-c", &build]).output().unwrap();
    assert!(output.status.success(), "{build}: {}", text(&output.stderr));

    let mut command = bench.command("node");
    command.arg("main.mjs");
    let target = Target::spawn(command);
    wait_until("the addon is loaded", || {
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid()));
        maps.unwrap().contains("job_node.node")
    });
    bench.attach(&target, &["-d", "500ms"]).ended(0);
    let table = bench.table("out.bin", &["--frame", "work"]);
    let who = table.numbers("who");
    assert!(who.len() > 3 && who.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{who:?}");
    assert!(table.cells("kind").iter().all(|&kind| kind == "LOGIN"));
    assert!(table.cells("name").iter().all(|&name| name == "main"));
}

/// The capture contains what the customers saw, and the slowest requests are those during which the
/// price list was read.
#[test]
fn the_shop() {
    if headers().is_none() || !available("make") {
        return;
    }
    let bench = Bench::new();
    let mut copy = Command::new("cp");
    let files = ["Makefile", "shop.frame", "server.js", "customers.js"];
    let files = files.map(|name| root().join("examples/node").join(name));
    assert!(copy.args(files).arg(bench.path("")).status().unwrap().success());
    let mut make = bench.command("make");
    make.args(["-B", &format!("PPTC={PPTC}")]).env_remove("MAKEFLAGS");
    let output = make.output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && !said.contains("warning"), "{said}");

    let mut command = bench.command("node");
    command.args(["server.js", "0"]);
    let target = Target::spawn(command);
    let port = target.stdout.wait_for("port ");
    let attach = bench.attach(&target, &[]);
    let (customers, requests) = (6, 120);
    let mut load = bench.command("node");
    load.args(["customers.js", &port, &customers.to_string(), &requests.to_string()]);
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
    let expected = u64::try_from(customers * per_customer).ok();
    assert_eq!(ordered["value"].as_u64(), expected, "{ordered}");
    // Each read of the list lies within the request that caused it.
    let ends = |table: &crate::fixtures::support::Table, of: &str| {
        let [start, end] = ["start", "end"].map(|edge| table.numbers(&format!("{of}_{edge}")));
        start.into_iter().zip(end).collect::<Vec<_>>()
    };
    let handled = ends(&table, "handle");
    for (start, end) in ends(&reloads, "reload") {
        assert!(end - start >= 14_000_000, "{start} {end}");
        assert!(handled.iter().any(|it| it.0 <= start && end <= it.1), "{start} {end}");
    }
}
