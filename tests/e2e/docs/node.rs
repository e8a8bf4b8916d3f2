//! Node.js: the page's recipe, and the shop under load.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
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

/// The folder with Express, which npm has installed there as it is configured. `None` if it cannot.
fn express() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("express");
    let loads = || {
        let mut command = Command::new("node");
        command.args(["-e", "require('express')"]).current_dir(&folder);
        command.output().is_ok_and(|output| output.status.success())
    };
    fs::create_dir_all(&folder).unwrap();
    if loads() {
        return Some(folder);
    }
    if !available("npm") {
        return None;
    }
    fs::write(folder.join("package.json"), "{\"private\": true}\n").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"]);
    let output = npm.arg("express@5").current_dir(&folder).output().unwrap();
    if !output.status.success() || !loads() {
        eprintln!("skipped: npm cannot install express: {}", text(&output.stderr));
        return None;
    }
    Some(folder)
}

/// Customers: some ask for a price, some for a page that is broken or not there, and some go away before
/// they have the answer. Prints how often they got each status.
const VISITS: &str = r#"
const http = require('node:http');
const port = process.argv[2];
const counts = {};
function ask(path, leaves) {
    return new Promise((resolve) => {
        const asks = http.get({ agent: false, host: '127.0.0.1', path, port }, (answer) => {
            const seen = leaves ? 'gone' : answer.statusCode;
            counts[seen] = (counts[seen] ?? 0) + 1;
            answer.resume();
            answer.on('close', resolve);
            if (leaves)
                asks.destroy();
        });
        asks.on('error', resolve);
    });
}
async function customer(who) {
    for (let i = 0; i < 25; i++)
        await ask(i % 5 === 1 ? '/broken' : i % 5 === 2 ? '/nowhere' : `/price/${'x'.repeat(who + 1)}`, false);
}
Promise.all([0, 1, 2, 3].map(customer)).then(async () => {
    for (let i = 0; i < 10; i++)
        await ask('/slow', true);
    console.log(JSON.stringify(counts));
});
"#;

/// The page's middleware in a server with Express from npm: each request is a span, with the status that its
/// customer got.
#[test]
fn a_middleware_of_express() {
    let Some(include) = headers() else { return };
    let Some(express) = express() else { return };
    let bench = Bench::new();
    let page = fs::read_to_string(root().join("docs/node.md")).unwrap();
    bench.write("web.frame", &block(&page, "// web.frame\n"));
    // An answer that does not end.
    let slow = "let gone = 0;\napp.get('/slow', (req, res) => {\n\
                res.on('close', () => console.log(`gone ${++gone}`));\nres.write('some');\n});\nconst server";
    let program = block(&page, "// server.js\n").replacen("const server", slow, 1);
    // Express reports each error otherwise.
    bench.write(
        "server.js",
        &program.replacen("const app = express();", "const app = express().set('env', 'test');", 1),
    );
    bench.write("visits.js", VISITS);
    std::os::unix::fs::symlink(express.join("node_modules"), bench.path("node_modules")).unwrap();
    let commands = block(&page, "npm install express\n");
    let build =
        commands.lines().filter(|line| line.starts_with("pptc ") || line.starts_with("cc "));
    let build = build.collect::<Vec<_>>().join("\n").replacen("pptc ", &format!("{PPTC} "), 1);
    let build = build.replacen("/usr/include/node", include.to_str().unwrap(), 1);
    let output = bench.command("sh").args(["-e", "-c", &build]).output().unwrap();
    assert!(output.status.success(), "{build}: {}", text(&output.stderr));

    let mut command = bench.command("node");
    command.args(["server.js", "0"]);
    let target = Target::spawn(command);
    let port = target.stdout.wait_for("port ");
    let attach = bench.attach(&target, &[]);
    let mut visits = bench.command("node");
    let output = visits.args(["visits.js", &port]).output().unwrap();
    target.stdout.wait_for("gone 10");
    let counted: BTreeMap<String, usize> = serde_json::from_slice(&output.stdout).unwrap();
    attach.stop();
    let expected = [("200", 60), ("404", 20), ("500", 20), ("gone", 10)];
    assert_eq!(counted, expected.map(|(status, count)| (status.to_owned(), count)).into());

    let table = bench.table("out.bin", &["--frame", "visit"]);
    let mut open: HashMap<&str, &str> = HashMap::new();
    let mut ended: BTreeMap<String, usize> = BTreeMap::new();
    let [edge, id, path, status, whole] =
        ["edge", "id", "path", "status", "whole"].map(|name| table.column(name));
    for row in &table.rows {
        if row[edge] == "begin" {
            assert_eq!(open.insert(&row[id], &row[path]), None, "{row:?}");
            continue;
        }
        let path = open.remove(&*row[id]).unwrap_or_else(|| panic!("it did not begin: {row:?}"));
        let is_whole = row[whole] == "1";
        let expected = match path {
            "/slow" => ("200", false),
            "/broken" => ("500", true),
            "/nowhere" => ("404", true),
            _ => ("200", true),
        };
        assert_eq!((&*row[status], is_whole), expected, "{path}");
        let seen = if is_whole { row[status].clone() } else { "gone".to_owned() };
        *ended.entry(seen).or_default() += 1;
    }
    assert_eq!((open.len(), &ended), (0, &counted));
    Account::of(&bench.info("out.bin")).check(2 * 110);
}
