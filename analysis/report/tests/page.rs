//! The page as a whole: its structure, its size, what is hostile in it, and a browser's opinion.

mod made;

use std::path::{Path, PathBuf};
use std::process::Command;

use made::Shop;
use ppt_query::{CaptureSet, Engine, Options};
use ppt_report::{Ask, Facts, Plot, ReportError};

const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>";

struct Made {
    folder: tempfile::TempDir,
    captured: u64,
    engine: Engine,
}

fn engine(shop: &Shop) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.bin");
    let captured = made::write(shop, std::fs::File::create(&path).unwrap());
    let set = CaptureSet::open(&[path]).unwrap();
    let engine = Engine::new(set, &Options { threads: 2, ..Options::default() }).unwrap();
    Made { folder, captured, engine }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

fn page_with(made: &Made, views: Option<&str>) -> Result<String, ReportError> {
    let ask = Ask {
        command: "ppt report shop.bin -o report.html".to_owned(),
        views: views.map(str::to_owned),
        memory: 1 << 28,
    };
    Ok(ppt_report::page(&wait(Facts::gather(&made.engine, &ask))?))
}

fn page(shop: &Shop) -> (Made, String) {
    let made = engine(shop);
    let page = page_with(&made, None).unwrap();
    (made, page)
}

fn small() -> Shop {
    Shop { frames: 900, threads: 3, ..Shop::default() }
}

/// Headings, captions and heads of tables: what a reader meets, from top to bottom.
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

#[test]
fn a_reader_meets_everything_in_its_order() {
    let (_, page) = page(&small());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/outline.txt");
    assert!(page.contains("<dt>busy<dd>"), "an interval whose end is when the frame was is busy");
    let outline = outline(&page);
    if std::env::var_os("PPT_BLESS").is_some() {
        std::fs::write(&golden, &outline).unwrap();
    }
    assert_eq!(outline, std::fs::read_to_string(golden).unwrap(), "PPT_BLESS=1 rewrites it");
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
    let all = std::env::split_paths(&path).flat_map(|it| names.map(|name| it.join(name)));
    all.into_iter().find(|it| it.is_file())
}

/// What a browser makes of the page, once its scripts have run.
fn seen(browser: &Path, made: &Made, page: &str) -> String {
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
}
