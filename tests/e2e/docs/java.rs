//! Java: the page's recipe, and the shop in Jetty under load.

use std::fs;
use std::process::Command;

use crate::fixtures::java::home;
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
    if home().is_none() {
        return;
    }
    let bench = Bench::new();
    let page = fs::read_to_string(root().join("docs/java.md")).unwrap();
    bench.write("job.frame", &block(&page, "// job.frame\n"));
    bench.write("Main.java", &block(&page, "// Main.java\n"));
    let commands = block(&page, "pptc --emit java -o generated job.frame\n");
    let at = commands.find("java -Djava.library.path").unwrap();
    let (build, run) = (&commands[..at], commands[at..].split(" &").next().unwrap());
    let build = build.replacen("pptc ", &format!("{PPTC} "), 1);
    let output = bench.command("sh").args(["-e", "-c", &build]).output().unwrap();
    assert!(output.status.success(), "{build}: {}", text(&output.stderr));

    let mut command = bench.command("sh");
    command.args(["-c", &format!("exec {run}")]);
    let target = Target::spawn(command);
    wait_until("the library is loaded", || {
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid()));
        maps.unwrap().contains("libjob_jni.so")
    });
    bench.attach(&target, &["-d", "500ms"]).ended(0);
    let table = bench.table("out.bin", &["--frame", "work"]);
    let who = table.numbers("who");
    assert!(who.len() > 3 && who.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{who:?}");
    assert!(table.cells("kind").iter().all(|&kind| kind == "LOGIN"));
    assert!(table.cells("name").iter().all(|&name| name == "main"));
}

/// Debian's Jetty serves the shop; the capture contains what the customers saw.
#[test]
fn the_shop_in_jetty() {
    let jetty = std::path::Path::new("/usr/share/java/jetty9-server.jar").exists();
    if home().is_none() || !available("make") || !jetty {
        eprintln!("skipped: a JDK, make and Debian's libjetty9-java are needed");
        return;
    }
    let bench = Bench::new();
    let mut copy = Command::new("cp");
    let files =
        ["Makefile", "shop.frame", "src"].map(|name| root().join("examples/java").join(name));
    std::fs::create_dir(bench.path("java")).unwrap();
    copy.arg("-r").args(files).arg(bench.path("java"));
    assert!(copy.status().unwrap().success());
    let mut make = bench.command("make");
    make.args(["-C", "java", "-B", &format!("PPTC={PPTC}")]).env_remove("MAKEFLAGS");
    let output = make.output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && !said.contains("warning"), "{said}");

    let mut command = bench.command("java");
    command.args(["-Djava.io.tmpdir=.", "-jar", "java/work/shop.jar", "0"]);
    let (target, _log) = Target::spawn_loud(command);
    let port = target.stdout.wait_for("port ");
    let attach = bench.attach(&target, &[]);
    let (customers, requests) = (6, 120);
    let mut load = bench.command("java");
    load.args(["-cp", "java/work/shop.jar", "org.example.shop.Customers", &port]);
    load.args([customers.to_string(), requests.to_string()]);
    let output = load.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all = customers * requests;
    assert!(text(&output.stdout).starts_with(&format!("answers {all},")));
    attach.stop();

    let info = bench.info("out.bin");
    let table = bench.table("out.bin", &["--frame", "request"]);
    let count =
        |name: &str, cell: &str| table.cells(name).iter().filter(|&&text| text == cell).count();
    assert_eq!(table.rows.len(), all, "one frame a request");
    assert_eq!(count("status", "200"), all);
    assert_eq!((count("page", "PRICE"), count("page", "ORDER")), (all * 3 / 4, all / 4));
    let locks = bench.table("out.bin", &["--frame", "price_list"]).rows.len();
    let calls = bench.table("out.bin", &["--frame", "supplier"]);
    assert_eq!(locks, all, "each page asks for a price");
    // The first request calls the supplier, and then every 201st.
    assert_eq!(calls.rows.len(), all.div_ceil(201));
    assert!(calls.cells("items").iter().all(|&items| items == "100"));
    Account::of(&info).check(u64::try_from(2 * all + calls.rows.len()).unwrap());
    // Every fourth request of a customer is an order of 1 to 9 items.
    let per_customer: usize = (0..requests).filter(|i| i % 4 == 3).map(|i| 1 + i % 9).sum();
    let counters = info["buffers"][0]["counters"].as_array().unwrap();
    let ordered = counters.iter().find(|counter| counter["name"] == "ordered").unwrap();
    assert_eq!(
        ordered["value"].as_u64(),
        u64::try_from(customers * per_customer).ok(),
        "{ordered}"
    );
    let threads = info["threads"].as_array().unwrap();
    let named = |thread: &&serde_json::Value| thread["name"].as_str().unwrap().starts_with("shop-");
    assert!(threads.iter().filter(named).count() >= 2, "{threads:?}");
}
