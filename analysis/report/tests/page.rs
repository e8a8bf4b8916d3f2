//! The whole page: its structure, its size, hostile text, and a browser's view of it.

#[path = "made/kinds.rs"]
mod every;
mod made;

#[path = "../../view/server/tests/all/browser.rs"]
#[allow(dead_code, reason = "each test that includes this file needs a part of it")]
mod driven;

use std::path::{Path, PathBuf};
use std::process::Command;

use made::Shop;
use ppt_query::{CaptureSet, Engine, EngineOptions};
use ppt_report::{Facts, PageRequest, Plot, ReportError};

const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>";

struct MadePage {
    folder: tempfile::TempDir,
    captured: u64,
    engine: Engine,
}

fn engine(shop: &Shop) -> MadePage {
    let mut bytes = Vec::new();
    let captured = made::write(shop, &mut bytes);
    engine_of(&bytes, captured)
}

/// A capture with every kind of record except plain frames.
fn kinds(text: &str) -> MadePage {
    let (bytes, captured) = every::write(text);
    engine_of(&bytes, captured)
}

fn engine_of(bytes: &[u8], captured: u64) -> MadePage {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    std::fs::write(&path, bytes).unwrap();
    let set = CaptureSet::open(&[path]).unwrap();
    let engine =
        Engine::new(set, &EngineOptions { threads: 2, ..EngineOptions::default() }).unwrap();
    MadePage { folder, captured, engine }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

fn page_with(made: &MadePage, views: Option<&str>) -> Result<String, ReportError> {
    let request = PageRequest {
        command: "ppt report shop.bin -o report.html".to_owned(),
        views: views.map(str::to_owned),
        memory: 1 << 28,
    };
    Ok(ppt_report::page(&wait(Facts::gather(&made.engine, &request))?))
}

fn page(shop: &Shop) -> (MadePage, String) {
    let made = engine(shop);
    let page = page_with(&made, None).unwrap();
    (made, page)
}

fn small() -> Shop {
    Shop { frames: 900, threads: 3, ..Shop::default() }
}

/// Headings, captions and heads of tables, from top to bottom.
fn outline(page: &str) -> String {
    let body = &page[page.find("<header>").unwrap()..page.find("<script").unwrap()];
    let mut out = String::new();
    let mut rest = body;
    let tags = ["h1", "h2", "h3", "h4", "figcaption", "summary", "thead", "p class=\"verdict"];
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let Some(tag) = tags.into_iter().find(|tag| rest.starts_with(tag)) else { continue };
        let begin = rest.find('>').unwrap() + 1;
        let end = match tag {
            "thead" => rest.find("<tbody").unwrap(),
            _ => rest.find(&format!("</{}", tag.split(' ').next().unwrap())).unwrap(),
        };
        let mut text = String::new();
        let mut inside = false;
        for char in rest[begin..end].chars() {
            match char {
                '<' => inside = true,
                '>' => {
                    inside = false;
                    text.push(' ');
                }
                char if !inside => text.push(char),
                _ => {}
            }
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let tag = tag.split(' ').next().unwrap();
        out.push_str(&format!("{tag}: {}\n", words.join(" ")));
    }
    out
}

#[test]
fn a_link_into_the_timeline_says_where_it_leads() {
    let (_, page) = page(&small());
    let links: Vec<_> = page.split("data-at=\"").skip(1).collect();
    assert!(links.len() > 20, "{}", links.len());
    for link in links {
        let place: i64 = link.split('"').next().unwrap().parse().unwrap();
        let said = link.split_once('>').unwrap().1.split_once(" s<").unwrap().0;
        let said = (said.parse::<f64>().unwrap() * 1e6).round() as i64;
        assert!((said - place / 1000).abs() <= 1, "{said} µs leads to {place} ns");
    }
}

fn has_outline(page: &str, golden: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(golden);
    let outline = outline(page);
    if std::env::var_os("PPT_BLESS").is_some() {
        std::fs::write(&golden, &outline).unwrap();
    }
    assert_eq!(outline, std::fs::read_to_string(golden).unwrap(), "PPT_BLESS=1 rewrites it");
}

#[test]
fn a_reader_meets_everything_in_its_order() {
    let (_, page) = page(&small());
    assert!(page.contains("<dt>busy<dd>"), "an interval whose end is when the frame was is busy");
    has_outline(&page, "outline.txt");
}

/// All rows of an answer, as text.
fn asked(made: &MadePage, sql: &str) -> Vec<Vec<String>> {
    let rows = wait(async { made.engine.sql(sql).await.unwrap().collect().await.unwrap() });
    let mut all = Vec::new();
    for batch in &rows {
        let columns: Vec<_> = batch.columns().iter().collect();
        let text = |row: usize, column: usize| {
            ppt_query::arrow::util::display::array_value_to_string(columns[column], row).unwrap()
        };
        let row = |row| (0..columns.len()).map(|column| text(row, column)).collect();
        all.extend((0..batch.num_rows()).map(row));
    }
    all
}

/// The part of a page from a heading to the next of its kind.
fn part<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let rest =
        &page[page.find(from).unwrap_or_else(|| panic!("{from} is not there")) + from.len()..];
    &rest[..rest.find(to).unwrap_or(rest.len())]
}

/// The texts of cells, row by row.
fn cells(part: &str) -> Vec<Vec<String>> {
    let bare = |cell: &str| {
        let mut text = String::new();
        let mut inside = true;
        for char in cell.chars() {
            match char {
                '<' => inside = true,
                '>' => inside = false,
                char if !inside => text.push(char),
                _ => {}
            }
        }
        text.trim().to_owned()
    };
    let rows = part.split("<tbody").nth(1).unwrap_or("").split("<tr").skip(1);
    rows.map(|row| row.split("<td").skip(1).map(bare).collect()).collect()
}

#[test]
fn spans_chains_counters_and_the_kernel_are_told_as_sql_tells_them() {
    let made = kinds("");
    let page = page_with(&made, None).unwrap();
    has_outline(&page, "kinds.txt");
    let ns = |text: &str| ppt_query::text::duration(text.parse().unwrap());
    let grouped = |text: &str| ppt_query::text::grouped(text.parse().unwrap());

    // Ends and durations of spans and chains.
    let whole = [("request_spans", "dur"), ("encode_chains", "total")];
    for (table, length) in whole {
        let section = part(&page, &format!("<h2>{table}</h2>"), "<section");
        let states = asked(
            &made,
            &format!("SELECT state, count(*) AS n FROM {table} GROUP BY state ORDER BY n DESC"),
        );
        assert!(states.len() > 1);
        let told: Vec<_> = cells(&section[section.find(">state<").unwrap()..]);
        let told = told.iter().map(|row| row[..2].to_vec()).take(states.len());
        let states = states.iter().map(|row| vec![row[0].clone(), grouped(&row[1])]);
        assert_eq!(told.collect::<Vec<_>>(), states.collect::<Vec<_>>(), "{table}");
        let sql = format!("SELECT count({length}), median({length}), max({length}) FROM {table}");
        let [count, median, max] = <[String; 3]>::try_from(asked(&made, &sql)[0].clone()).unwrap();
        for (name, value) in [("count", grouped(&count)), ("p50", ns(&median)), ("max", ns(&max))] {
            assert!(section.contains(&format!("<dt>{name}<dd>{value}<")), "{table} {name} {value}");
        }
    }
    let steps = part(&page, "<figcaption>From step to step", "</figure>");
    for (row, step) in cells(steps).iter().zip(["start_to_dsp", "dsp_to_send"]) {
        let sql = format!("SELECT count({step}), avg({step}), max({step}) FROM encode_chains");
        let said = &asked(&made, &sql)[0];
        let told = [&row[0], &row[1], &row[2], &row[6]];
        assert_eq!(told, [step, &grouped(&said[0]), &ns(&said[1]), &ns(&said[2])]);
    }

    // Totals and rates of counters: the same rate each second.
    let counter = part(&page, "<figure class=counter data-name=\"bytes_in\">", "</figure>");
    let sum = &asked(&made, "SELECT sum(delta) FROM counters WHERE name = 'bytes_in'")[0][0];
    assert!(counter.contains(&format!(">{} B<", grouped(sum))), "{counter:.300}");
    let rates: Vec<String> = cells(counter).into_iter().map(|row| row[1].clone()).collect();
    assert!(rates.len() > 40 && rates.iter().all(|rate| rate == "1,000 B/s"), "{rates:?}");
    let counter = part(&page, "<figure class=counter data-name=\"inflight\">", "</figure>");
    let levels: Vec<f64> = cells(counter).iter().map(|row| row[1].parse().unwrap()).collect();
    assert!(levels.contains(&3.0) && levels.last() == Some(&1.0), "{levels:?}");

    // Histograms have the buckets of their last reading.
    for name in ["handling", "queue"] {
        let section = part(&page, &format!("<h3 data-name=\"{name}\">"), "<h3");
        let sql = format!(
            "SELECT sum(count) FROM histograms WHERE name = '{name}' AND ts = (SELECT max(ts) FROM \
             histograms)"
        );
        let count = grouped(&asked(&made, &sql)[0][0]);
        assert!(section.contains(&format!("<dt>count<dd>{count}<")), "{name} {count}");
        assert!(section.contains("percentiles of"), "{name} over time");
    }

    // Threads and calls by the kernel's record.
    let threads = cells(part(&page, "<figcaption>Threads", "</figure>"));
    for row in asked(&made, "SELECT DISTINCT tid FROM thread_states WHERE tid > 0") {
        let told = threads.iter().find(|thread| thread[1] == row[0]).unwrap();
        for (place, state) in [(3, "running"), (4, "runnable"), (5, "blocked"), (6, "unknown")] {
            let sql = format!(
                "SELECT coalesce(sum(dur), 0) FROM thread_states WHERE tid = {} AND state = '{state}'",
                row[0]
            );
            assert_eq!(told[place], ns(&asked(&made, &sql)[0][0]), "{state} of {row:?}");
        }
    }
    let calls = cells(part(&page, "<figcaption>System calls", "</figure>"));
    let sql = "SELECT name, count(*), sum(dur) AS s FROM syscalls GROUP BY name ORDER BY s DESC";
    let said = asked(&made, sql).into_iter();
    let said = said.map(|row| vec![row[0].clone(), grouped(&row[1]), ns(&row[2])]);
    let told = calls.iter().map(|row| vec![row[0].clone(), row[1].clone(), row[3].clone()]);
    assert_eq!(told.collect::<Vec<_>>(), said.collect::<Vec<_>>());

    // A trigger has a mark and a link to it.
    assert!(page.contains("\"marks\":[["), "on the timeline");
    assert!(part(&page, "<h2>Triggers</h2>", "</section>").contains(">look here\n"));
}

#[test]
fn where_the_slowest_were_adds_up() {
    let made = kinds("");
    let page = page_with(&made, None).unwrap();
    let figures: Vec<&str> = page.split("<figure class=why>").skip(1).collect();
    assert_eq!(figures.len(), 2, "an interval and a kind of spans");
    for (figure, name) in figures.iter().zip(["request", "job.handle"]) {
        let figure = &figure[..figure.find("</figure>").unwrap()];
        let slow = wait(made.engine.why_each(20)).unwrap().slowest;
        let slow: Vec<_> = slow.into_iter().filter(|slow| slow.name == name).collect();
        let rows: Vec<&str> = figure.split("<tr").skip(2).collect();
        assert_eq!((rows.len(), slow.len()), (20, 20), "{name}");
        let longest = slow.iter().map(|slow| slow.dur).max().unwrap() as f64;
        for (row, slow) in rows.iter().zip(&slow) {
            let width = |text: &str| text[..text.find('%').unwrap()].parse::<f64>().unwrap();
            let bars = row.split(" width=\"").skip(2).map(width).sum::<f64>();
            let whole = slow.dur as f64 / longest * 100.0;
            assert!((bars - whole).abs() < 0.1, "{bars} of {whole}: {row}");
            assert!(row.contains("class=block") && row.contains("class=run"), "{row}");
            assert!(row.contains("blocked in"), "{row}");
            assert!(!slow.request.is_empty(), "{slow:?}");
            assert!(row.contains(&slow.label().replace('\'', "&#39;")), "{row}: {}", slow.label());
        }
    }
}

#[test]
fn the_same_captures_make_the_same_page() {
    let made = engine(&small());
    assert!(page_with(&made, None).unwrap() == page_with(&made, None).unwrap());
}

#[test]
fn nothing_comes_from_elsewhere() {
    let (_, page) = page(&small());
    for word in ["http://", "https://", "src=", "url(", "@import", "<link", "<img"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn text_of_a_target_stays_text() {
    let shop = Shop { text: HOSTILE.to_owned(), ..small() };
    let (_, page) = page(&shop);
    assert!(page.contains("&lt;/script&gt;"), "the text is there");
    assert_eq!(page.matches("<script").count(), 2, "the data, and the script");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img"));
    let page = page_with(&kinds(HOSTILE), None).unwrap();
    assert!(page.contains("look here&lt;/script&gt;"), "the note of a trigger is there");
    assert_eq!(page.matches("<script").count(), 2);
    assert!(!page.contains("<img"));
}

#[test]
fn a_page_does_not_grow_with_the_captures() {
    let shop = Shop { frames: 60_000, threads: 8, ..Shop::default() };
    let (_, page) = page(&shop);
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.contains("\"all\":false"), "single frames are those around the slowest");
}

#[test]
fn a_capture_without_frames_has_a_page() {
    let (_, page) = page(&Shop { frames: 0, gap: false, ..Shop::default() });
    assert!(page.contains("No frame was captured."));
}

#[test]
fn views_are_sections_and_nothing_else_runs() {
    let made = engine(&small());
    let views = "CREATE VIEW slow AS SELECT kind, count(*) AS n FROM request \
                 WHERE handle > 100000 GROUP BY kind; SELECT max(n) AS most FROM slow";
    let page = page_with(&made, Some(views)).unwrap();
    assert!(page.contains("<h2>slow</h2>") && page.contains("<h2>Query 2</h2>"));
    let to = made.folder.path().join("x.csv");
    let copy = format!("COPY request TO '{}'", to.display());
    let external = format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{}'", to.display());
    let refused = [&copy, &external, "SET datafusion.execution.batch_size = 7", "DROP VIEW slow"];
    for statement in refused {
        let refused = page_with(&made, Some(statement)).unwrap_err();
        assert_eq!(refused.code(), "select-only", "{statement}: {refused}");
    }
    assert!(!to.exists());
}

#[test]
fn plots_are_drawn_as_their_columns_suggest() {
    let made = engine(&small());
    let draw = |sql: &str| wait(ppt_report::plot(&made.engine, sql, &Plot::default()));
    let cases = [
        ("SELECT handle FROM request", "<rect"),
        ("SELECT handle_start, handle, size FROM request ORDER BY handle_start", "<polyline"),
        ("SELECT kind, count(*) FROM request GROUP BY kind ORDER BY kind", ">BROWSE<"),
    ];
    for (sql, sign) in cases {
        let svg = draw(sql).unwrap();
        assert!(svg.starts_with("<svg xmlns") && svg.contains(sign), "{sql}\n{svg}");
    }
    assert_eq!(draw("SELECT path FROM request").unwrap_err().code(), "not-drawn");
    assert_eq!(draw("SELECT handle FROM request WHERE 1 = 0").unwrap_err().code(), "not-drawn");
    assert_eq!(draw("SET a = 1").unwrap_err().code(), "select-only");
    assert_eq!(draw("SELECT x FROM nowhere").unwrap_err().code(), "no-table");
    assert_eq!(draw("SELECT 1; SELECT 2").unwrap_err().code(), "not-drawn");
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = std::env::split_paths(&path).flat_map(|path| names.map(|name| path.join(name)));
    all.into_iter().find(|path| path.is_file())
}

/// The text of the page after a browser has run its scripts.
fn seen(browser: &Path, made: &MadePage, page: &str) -> String {
    let file = made.folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"])
        .arg(format!("--user-data-dir={}", made.folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_browser_draws_the_page_and_runs_nothing_else() {
    let Some(browser) = browser() else {
        println!("skipped: no chromium: apt-get install chromium");
        return;
    };
    let large = Shop { frames: 20_000, ..Shop::default() };
    for shop in [small(), Shop { text: HOSTILE.to_owned(), ..small() }, large] {
        let (made, page) = page(&shop);
        let seen = seen(&browser, &made, &page);
        assert!(seen.contains("data-ready=\"1\""), "{seen:.2000}");
        assert!(seen.contains(&format!("data-rows=\"{}\"", made.captured)));
        assert!(!seen.contains("<title>owned</title>"), "a script of the target ran");
    }
    let made = kinds(HOSTILE);
    let seen = seen(&browser, &made, &page_with(&made, None).unwrap());
    assert!(seen.contains("data-ready=\"1\""), "{seen:.2000}");
    assert!(seen.contains(&format!("data-rows=\"{}\"", made.captured)));
    assert!(!seen.contains("<title>owned</title>"), "a script of the target ran");
}

#[test]
fn what_is_cut_says_that_it_goes_on() {
    let (made, page) = page(&Shop { frames: 20_000, threads: 40, ..Shop::default() });
    let file = made.folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let url = format!("file://{}", file.display());
    for width in [1280, 400] {
        let Some(mut browser) = driven::Browser::open(&url, width, 800) else { return };
        browser.value("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
        // Scrolling elements have shades at both ends that vanish at the ends; the timeline has a line
        // of text.
        let hidden = browser.value(
            "[...document.querySelectorAll('body *')].filter((it) => {
                const style = getComputedStyle(it);
                const scrolls = (way) => ['auto', 'scroll'].includes(style[way]);
                const down = it.scrollHeight > it.clientHeight + 1 && scrolls('overflowY');
                const right = it.scrollWidth > it.clientWidth + 1 && scrolls('overflowX');
                if (it.id === 'lanes') return document.getElementById('below').hidden;
                const shades = style.backgroundImage.split('linear-gradient').length - 1;
                const cut = style.overflowX === 'hidden' && it.scrollWidth > it.clientWidth + 1 && it.matches('td, th');
                return (down && shades < 8) || (right && shades < 4) || cut;
            }).map((it) => it.outerHTML.slice(0, 80))",
        );
        assert_eq!(hidden, serde_json::json!([]), "at {width} px");
        let cut = browser.value("[...document.querySelectorAll('.wide')].filter((it) => it.scrollHeight > it.clientHeight + 1).length");
        assert!(cut.as_u64().unwrap() > 3, "there are such tables: {cut}");
        let overflow = "document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.value(overflow), false, "{width} px are enough");
        let more = browser.text("document.getElementById('below').innerText");
        assert!(more.starts_with("↓ ") && more.ends_with(" more rows"), "{more}");
        browser.value("document.getElementById('lanes').scrollTop = 1e6");
        browser.wait_for("document.getElementById('below').hidden");
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}

#[test]
fn a_percentile_of_few_values_is_not_told() {
    let made = engine(&Shop { frames: 120, threads: 2, gap: false, ..Shop::default() });
    let page = page_with(&made, None).unwrap();
    let mut few = 0;
    for name in ["request.handle", "query.run"] {
        let (table, field) = name.split_once('.').unwrap();
        let sql = format!("SELECT count({field}), max({field}) FROM {table}");
        let count: u64 = asked(&made, &sql)[0][0].parse().unwrap();
        let section = part(&page, &format!("</i>{name}</h3>"), "</dl>");
        for (percentile, least) in [("p50", 1), ("p90", 10), ("p99", 100), ("p99.9", 1000)] {
            let said = part(section, &format!("<dt>{percentile}<dd>"), "<");
            assert_eq!(said == "too few values", count < least, "{name} {percentile}: {count}");
            few += u64::from(count < least);
        }
    }
    assert!(few > 0);
    for row in cells(part(&page, "<figcaption>By kind", "</figure>")) {
        let count: u64 = row[1].parse().unwrap();
        assert_eq!(row[3] == "too few values", count < 10, "{row:?}");
        assert_eq!(row[4] == "too few values", count < 100, "{row:?}");
    }
}

/// The JSON of the page's script.
fn data(page: &str) -> serde_json::Value {
    serde_json::from_str(part(page, "<script type=\"application/json\" id=data>", "</script>"))
        .unwrap()
}

#[test]
fn the_kernels_frames_are_named_beside_those_of_programs() {
    let made = kinds("");
    let page = page_with(&made, None).unwrap();
    let sql = "SELECT sum(count) FROM account WHERE cause = 'captured' AND buffer = 'kernel'";
    let count = ppt_query::text::grouped(asked(&made, sql)[0][0].parse().unwrap());
    let verdict = part(&page, "<p class=\"verdict", "</p>");
    assert!(verdict.contains(&format!("{count} of them say what the kernel did")), "{verdict}");
    let (_, page) = self::page(&small());
    assert!(!part(&page, "<p class=\"verdict", "</p>").contains("kernel"));
}

#[test]
fn spans_have_lanes_on_the_timeline() {
    let made = kinds("");
    let data = data(&page_with(&made, None).unwrap());
    let lanes = data["lanes"].as_array().unwrap();
    let spans: Vec<_> = lanes.iter().filter(|lane| !lane["spans"].is_null()).collect();
    let [lane] = &spans[..] else { panic!("{spans:?}") };
    let names = data["names"].as_array().unwrap();
    assert!(names.contains(&lane["spans"]), "{names:?}");
    assert!(!lane["look"].as_str().unwrap().is_empty(), "it is drawn");
    let count = &asked(&made, "SELECT count(*) FROM request_spans")[0][0];
    assert_eq!(lane["frames"].to_string(), *count);
    // Threads are unchanged.
    let threads = asked(&made, "SELECT DISTINCT tid FROM frames WHERE buffer = 'shop'").len();
    assert_eq!(lanes.len() - 1, threads);
}

/// The contrast ratio of two colours: from 1 to 21, which is black on white.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let linear = |part: f64| match part / 255.0 {
        dark @ ..=0.03928 => dark / 12.92,
        light => ((light + 0.055) / 1.055).powf(2.4),
    };
    let light = |[red, green, blue]: [f64; 3]| {
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) + 0.05
    };
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

#[test]
fn every_band_stands_out_from_the_page() {
    let style = include_str!("../assets/page.css");
    let (light, dark) = style.split_once("prefers-color-scheme:dark").unwrap();
    for theme in [light, &dark[..dark.find("@media").unwrap()]] {
        let value = |name: &str| {
            let rest = theme.split_once(&format!("{name}:")).unwrap().1;
            &rest[..rest.find([';', '}']).unwrap()]
        };
        let colour = |name: &str| {
            let digits = &value(name)[1..];
            [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()))
        };
        let page = colour("--bg");
        // Kernel states, also unknown ones.
        let states = ["--s0", "--s1", "--s2", "--s3", "--s4"];
        for name in states {
            let found = contrast(colour(name), page);
            assert!(found >= 1.7, "{name}: {found:.2}");
        }
        let found = contrast(colour("--s2"), colour("--s3"));
        assert!(found >= 1.3, "blocked beside unknown: {found:.2}");
        for name in ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8", "--cx"]
        {
            let full = colour(name);
            let mut before = page;
            for share in ["--o3", "--o2", "--o1"] {
                let share: f64 = value(share).parse().unwrap();
                let mixed = [0, 1, 2].map(|at| full[at] * share + page[at] * (1.0 - share));
                let found = contrast(mixed, page);
                assert!(found >= 2.0, "{name} at {share}: {found:.2}");
                assert!(contrast(mixed, before) >= 1.15, "{name} at {share}: beside the next band");
                before = mixed;
            }
        }
    }
}
