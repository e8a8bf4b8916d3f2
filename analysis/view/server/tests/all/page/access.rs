//! The page for people who need other colours, sizes and devices.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::made::Shop;
use crate::page::shown::{shop, shown};

#[test]
fn one_reads_it_at_twice_the_size_and_in_forced_colours() {
    let (bytes, _) = shop(&Shop { frames: 900, threads: 3, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    browser.zoomed_in_forced_colours(1280, 800);
    browser.wait_for("innerWidth === 640 && matchMedia('(forced-colors: active)').matches");
    // The cells are drawn again with the resolution of the screen.
    browser.wait_for(
        "(() => { const cells = document.getElementById('cells');
            return cells.width === Math.round(cells.clientWidth * 2); })()",
    );
    let painted = "(() => { const cells = document.getElementById('cells');
        const bytes = cells.getContext('2d').getImageData(0, 0, cells.width, cells.height).data;
        return new Set(new Uint32Array(bytes.buffer)).size > 3; })()";
    browser.wait_for(painted);
    assert_eq!(browser.value("document.documentElement.scrollWidth > innerWidth"), false);
    // The chosen row and tab do not depend on a colour of the page.
    let colour = "getComputedStyle(document.querySelector('.row.picked')).backgroundColor !== \
                  getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.value(colour), true);
    // Otherwise the browser adds a background in the colour of the text.
    let adjusted =
        "getComputedStyle(document.querySelector('.row.picked .text')).forcedColorAdjust";
    assert_eq!(browser.text(adjusted), "none");
    let lines = "new Set([...document.querySelectorAll('#tabs button')]
        .map((tab) => getComputedStyle(tab).borderBottomColor)).size";
    assert_eq!(browser.value(lines), 2, "one tab has a line");
    let least =
        "Math.min(...[...document.querySelectorAll('header button, #tabs button, #labels button')]
        .map((button) => button.getBoundingClientRect().height))";
    assert!(browser.value(least).as_f64().unwrap() >= 24.0, "targets have 24 px");
    browser.press("e");
    browser.wait_for("document.querySelector('dialog[open]') !== null");
    let fits = "(() => { const box = document.querySelector('dialog').getBoundingClientRect();
        return box.left >= 0 && box.right <= innerWidth; })()";
    assert_eq!(browser.value(fits), true);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// The first screen as a screen reader reads it.
#[test]
fn the_first_screen_is_read() {
    let (bytes, _) = shop(&Shop { frames: 900, threads: 2, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    browser.wait_for("document.getElementById('panel').innerText.includes('What was slow')");
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes: HashMap<&str, &Value> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["nodeId"].as_str().unwrap(), node))
        .collect();
    let mut text = String::new();
    write_node(&nodes, tree["nodes"][0]["nodeId"].as_str().unwrap(), 0, &mut text);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/page/first-screen.txt");
    if std::env::var_os("PPT_BLESS").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden).unwrap(), "PPT_BLESS=1 rewrites it");
    // Each element that takes a key or a click has a name.
    for line in text.lines().map(str::trim).filter(|line| line.starts_with("button")) {
        assert!(line.contains('"') && !line.contains("\"\""), "{line}");
    }
}

/// The roles at which a screen reader stops.
const ROLES: &[&str] = &[
    "banner",
    "main",
    "region",
    "complementary",
    "search",
    "heading",
    "button",
    "searchbox",
    "slider",
    "tablist",
    "tab",
    "tabpanel",
    "treegrid",
    "row",
    "gridcell",
    "list",
    "Abbr",
    "status",
    "alert",
];
/// The states of an element besides its name.
const STATES: &[&str] = &["level", "expanded", "selected", "pressed", "invalid", "disabled"];

fn write_node(nodes: &HashMap<&str, &Value>, id: &str, depth: usize, text: &mut String) {
    let Some(node) = nodes.get(id) else { return };
    let role = node["role"]["value"].as_str().unwrap_or_default();
    let is_read = node["ignored"] != true && ROLES.contains(&role);
    if is_read {
        let name = node["name"]["value"].as_str().unwrap_or_default();
        let states = node["properties"].as_array().into_iter().flatten().filter(|property| {
            let is_false =
                ["false", "\"false\""].contains(&property["value"]["value"].to_string().as_str());
            let name = property["name"].as_str().unwrap();
            STATES.contains(&name) && (!is_false || name == "expanded")
        });
        let states: String = states
            .map(|state| {
                format!(" {}={}", state["name"].as_str().unwrap(), state["value"]["value"])
            })
            .collect();
        *text += &format!("{:1$}{role} \"{name}\"{states}\n", "", depth * 2);
    }
    for child in node["childIds"].as_array().into_iter().flatten() {
        write_node(nodes, child.as_str().unwrap(), depth + usize::from(is_read), text);
    }
}

/// The path from the top of the page to the fields of the slowest interval, without a pointer.
#[test]
fn one_walks_by_the_keyboard_alone() {
    let (bytes, _) = shop(&Shop { frames: 4000, threads: 3, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    browser.wait_for("document.getElementById('panel').innerText.includes('What was slow')");
    let at = "document.activeElement.id || document.activeElement.textContent";
    let is_seen = "(() => { const style = getComputedStyle(document.activeElement);
        return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1; })()";
    let mut stops = Vec::new();
    // After the last stop, the focus returns to the page.
    for _ in 0..80 {
        browser.press("Tab");
        if browser.value("document.activeElement === document.body") == true {
            break;
        }
        let stop = browser.text(at);
        if stops.contains(&stop) && stop == stops[0] {
            break;
        }
        assert_ne!(stop, "", "after {stops:?}");
        assert_eq!(browser.value(is_seen), true, "one sees that {stop} has the focus");
        stops.push(stop);
    }
    assert!(stops.len() < 80, "{stops:?}");
    let place = |stop: &str| {
        stops.iter().position(|one| one == stop).unwrap_or_else(|| panic!("{stop}: {stops:?}"))
    };
    let order = [
        "find",
        "filter-button",
        "save-button",
        "help-button",
        "overview",
        "labels",
        "tab-start",
        "panel",
    ];
    let places = order.map(place);
    assert!(places.is_sorted(), "{stops:?}");
    // The focus moves to the rows.
    browser.value("document.activeElement.blur()");
    let until = |browser: &mut Browser, stop: &str| {
        for _ in 0..80 {
            browser.press("Tab");
            if browser.text(at) == stop {
                return;
            }
        }
        panic!("{stop} is not reached");
    };
    until(&mut browser, "labels");
    let chosen = "document.getElementById('labels').getAttribute('aria-activedescendant')";
    let live = "document.getElementById('live').textContent";
    for _ in 0..20 {
        if browser.text(chosen) == "row-depth.0.0" {
            break;
        }
        let before = browser.text(chosen);
        browser.press("ArrowDown");
        browser.wait_for(&format!("{chosen} !== '{before}'"));
    }
    assert!(browser.text(live).starts_with("intervals, "), "{}", browser.text(live));
    browser.press("ArrowRight");
    browser.wait_for("document.body.dataset.pick !== undefined");
    browser.press("ArrowUp");
    browser.wait_for(&format!("{chosen} === 'row-thread.0'"));
    let folded = "document.getElementById('row-thread.0').getAttribute('aria-expanded')";
    browser.press("Enter");
    browser.wait_for(&format!("{folded} === 'false'"));
    browser.press("Enter");
    browser.wait_for(&format!("{folded} === 'true'"));
    // The focus moves to the answers: the slowest interval, and its fields.
    until(&mut browser, "tab-frame");
    while browser.text(at) != "tab-slowest" {
        browser.press("ArrowRight");
    }
    browser.wait_for("document.querySelectorAll('#panel td button').length === 20");
    browser.press("Tab");
    assert_eq!(browser.text(at), "panel");
    for _ in 0..20 {
        browser.press("Tab");
        if browser.value("document.activeElement.matches('td button')") == true {
            break;
        }
    }
    browser.value("delete document.body.dataset.pick");
    browser.press("Enter");
    browser.wait_for("document.body.dataset.pick !== undefined");
    // A term shows its meaning when it has the focus.
    until(&mut browser, "tab-frame");
    browser.press("ArrowLeft");
    browser.wait_for("document.querySelector('#panel abbr') !== null");
    for _ in 0..20 {
        browser.press("Tab");
        if browser.value("document.activeElement.matches('abbr')") == true {
            break;
        }
    }
    let meaning = "document.getElementById('hover')";
    browser.wait_for(&format!("!{meaning}.hidden && {meaning}.textContent.endsWith('.')"));
    let is_in_sight = "(() => { const box = document.getElementById('hover').getBoundingClientRect();
        return box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight; })()";
    assert_eq!(browser.value(is_in_sight), true);
    browser.press("Tab");
    browser.wait_for(&format!("{meaning}.hidden || document.activeElement.matches('abbr')"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Fingers zoom, move and choose.
#[test]
fn one_walks_by_touch() {
    let (bytes, _) = shop(&Shop { frames: 4000, threads: 40, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 800, 900) else { return };
    browser.call(
        "Emulation.setTouchEmulationEnabled",
        json!({ "enabled": true, "maxTouchPoints": 2 }),
    );
    let box_of = "document.getElementById('cells').getBoundingClientRect()";
    let number = |browser: &mut Browser, what: &str| browser.value(what).as_f64().unwrap();
    let (left, wide) = (
        number(&mut browser, &format!("{box_of}.left")),
        number(&mut browser, &format!("{box_of}.width")),
    );
    let y = number(
        &mut browser,
        "document.getElementById('row-depth.0.0').getBoundingClientRect().bottom - 3",
    );
    let word =
        |name: &str| format!("Number(new URLSearchParams(location.hash.slice(1)).get('{name}'))");
    let length = format!("({} - {})", word("to"), word("from"));
    // A key updates the address.
    browser.press("0");
    browser.wait_for(&format!("{length} > 0"));
    let whole = number(&mut browser, &length);
    let middle = left + wide / 2.0;
    // Two fingers move apart and zoom by three around their middle.
    browser.touch("touchStart", &[(middle - 40.0, y), (middle + 40.0, y)]);
    for step in [60.0, 80.0, 100.0, 120.0] {
        browser.touch("touchMove", &[(middle - step, y), (middle + step, y)]);
    }
    browser.touch("touchEnd", &[]);
    browser.wait_for(&format!("Math.abs({length} / {whole} - 1 / 3) < 0.02"));
    assert_eq!(browser.value("visualViewport.scale"), 1, "the page itself is not zoomed");
    // One finger moves the window and keeps its length.
    let (now, from) = (number(&mut browser, &length), number(&mut browser, &word("from")));
    browser.touch("touchStart", &[(middle, y)]);
    for step in [20.0, 40.0, 60.0, 80.0] {
        browser.touch("touchMove", &[(middle + step, y)]);
    }
    browser.touch("touchEnd", &[]);
    let moved = 80.0 / wide * now;
    browser.wait_for(&format!("Math.abs({from} - {} - {moved}) < {moved} / 20", word("from")));
    assert!((number(&mut browser, &length) / now - 1.0).abs() < 1e-6);
    // Two fingers move together and zoom out.
    browser.touch("touchStart", &[(middle - 90.0, y), (middle + 90.0, y)]);
    for step in [70.0, 50.0, 30.0] {
        browser.touch("touchMove", &[(middle - step, y), (middle + step, y)]);
    }
    browser.touch("touchEnd", &[]);
    browser.wait_for(&format!("{length} > {now} * 2"));
    // A tap chooses a frame.
    browser.touch("touchStart", &[(middle, y)]);
    browser.touch("touchEnd", &[]);
    browser.wait_for("document.querySelector('.row.picked').id === 'row-depth.0.0'");
    // A drag on the axis marks a range.
    let axis =
        number(&mut browser, "document.getElementById('axis').getBoundingClientRect().top + 10");
    browser.touch("touchStart", &[(middle, axis)]);
    browser.touch("touchMove", &[(middle + 50.0, axis)]);
    browser.touch("touchMove", &[(middle + 100.0, axis)]);
    browser.touch("touchEnd", &[]);
    browser.wait_for("location.hash.includes('marked=')");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Text has enough contrast in light and dark colours.
#[test]
fn it_is_light_or_dark_as_one_likes() {
    let (bytes, _) = shop(&Shop { frames: 900, threads: 3, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 1280, 800) else { return };
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefer("prefers-color-scheme", scheme);
        browser.wait_for(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches"));
        let colours = browser.value(
            "(() => { const style = getComputedStyle(document.documentElement);
                return ['text', 'faint', 'accent', 'loss', 'ground', 'raised']
                    .map((name) => style.getPropertyValue(`--${name}`).trim()); })()",
        );
        let colours: Vec<String> = serde_json::from_value(colours).unwrap();
        for text in &colours[..4] {
            for ground in &colours[4..] {
                let contrast = contrast(text, ground);
                assert!(contrast >= 4.5, "{scheme}: {text} on {ground}: {contrast:.2}");
            }
        }
        // Canvases follow the colours: the corner of the axis has the background of labels.
        let raised = &colours[5];
        let pixel = "(() => { const pixel = document.getElementById('axis').getContext('2d')
            .getImageData(2, 2, 1, 1).data; return '#' + [...pixel.slice(0, 3)]
            .map((it) => it.toString(16).padStart(2, '0')).join(''); })()";
        browser.wait_for(&format!("{pixel} === '{raised}'"));
        grounds.push(browser.text("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(grounds[0], grounds[1]);
    // The test itself reads canvases more than once.
    browser.complaints.retain(|complaint| !complaint.contains("willReadFrequently"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// The contrast ratio of WCAG 2. 4.5 is enough for small text.
fn contrast(one: &str, other: &str) -> f64 {
    let light = |colour: &str| {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    };
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}
