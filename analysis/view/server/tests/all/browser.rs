//! Drives Chromium over a pipe, without a port and without a library.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// A program in one of the folders of `PATH`.
pub fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    all.into_iter().find(|program| program.is_file())
}

/// The pipe to a browser, which ends with it.
struct Pipe {
    _shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

/// Browsers that started and have nothing open: starting one takes longer than most tests.
static IDLE: Mutex<Vec<Pipe>> = Mutex::new(Vec::new());

/// A page in a browser, with cookies, a cache and connections of its own.
pub struct Browser {
    pipe: Option<Pipe>,
    context: Value,
    session: Option<String>,
    /// The errors that the page reported.
    pub complaints: Vec<String>,
}

impl Browser {
    /// Opens a page and waits until it has drawn. Prints a message and returns None without Chromium.
    pub fn open(url: &str, width: u32, height: u32) -> Option<Browser> {
        let mut browser = Browser::empty(width, height)?;
        browser.visit(url);
        Some(browser)
    }

    /// An empty page.
    pub fn empty(width: u32, height: u32) -> Option<Browser> {
        let Some(chromium) = program(&["chromium", "chromium-browser", "google-chrome"]) else {
            println!("skipped: no chromium: apt-get install chromium");
            return None;
        };
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let pipe = Some(idle.unwrap_or_else(|| start(&chromium)));
        let (context, complaints) = (Value::Null, Vec::new());
        let mut browser = Browser { pipe, context, session: None, complaints };
        let context = browser.call("Target.createBrowserContext", json!({}));
        browser.context = context["browserContextId"].clone();
        browser.tab();
        browser.resize(width, height);
        Some(browser)
    }

    /// Opens a tab and uses it.
    fn tab(&mut self) {
        self.session = None;
        let page = json!({ "url": "about:blank", "browserContextId": self.context });
        let target = self.call("Target.createTarget", page);
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", attach);
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Page"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    pub fn navigate(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Opens a page of another server, and waits until it has drawn.
    pub fn visit(&mut self, url: &str) {
        self.navigate(url);
        self.wait_for("document.body?.dataset.ready === '1'");
    }

    /// Opens another tab and uses it.
    pub fn another(&mut self, url: &str) {
        self.tab();
        self.call("Page.bringToFront", json!({}));
        self.visit(url);
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets the folder of downloads.
    pub fn save_into(&mut self, folder: &Path) {
        let asked = json!({
            "behavior": "allow", "downloadPath": folder, "browserContextId": self.context,
        });
        self.call("Browser.setDownloadBehavior", asked);
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let pipe = self.pipe.as_mut().expect("open");
        pipe.calls += 1;
        let mut message = json!({ "id": pipe.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        pipe.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            pipe.output.read_until(0, &mut bytes).unwrap();
            bytes.pop();
            let said: Value = serde_json::from_slice(&bytes).expect("chromium has ended");
            if said["id"] == pipe.calls {
                assert!(said["error"].is_null(), "{method}: {said}");
                return said["result"].clone();
            }
            let event = said["method"].as_str().unwrap_or_default();
            if ["Runtime.exceptionThrown", "Log.entryAdded"].contains(&event) {
                self.complaints.push(said["params"].to_string());
            }
        }
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != true {
            let page = "document.body?.innerText.slice(0, 1500)";
            assert!(
                begun.elapsed() < PATIENCE,
                "{expression}\n{}\n{:?}",
                self.text(page),
                self.complaints
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.chars().count() == 1 => key,
            _ => "",
        };
        // The browser handles these keys by their codes.
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let mut event = json!({ "type": kind, "key": key, "text": text });
            if code > 0 {
                event["windowsVirtualKeyCode"] = code.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Sends an event of fingers on the screen: `touchStart`, `touchMove`, `touchEnd`.
    pub fn touch(&mut self, kind: &str, fingers: &[(f64, f64)]) {
        let points =
            fingers.iter().zip(0..).map(|((x, y), id)| json!({ "x": x, "y": y, "id": id }));
        let event = json!({ "type": kind, "touchPoints": points.collect::<Vec<_>>() });
        self.call("Input.dispatchTouchEvent", event);
    }

    /// Sets a preference for all pages, such as `prefers-color-scheme`.
    pub fn prefer(&mut self, feature: &str, value: &str) {
        let features = json!([{ "name": feature, "value": value }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// A picture of the page as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        from_base64(picture["data"].as_str().unwrap())
    }

    /// Zooms the page by two, with forced colours.
    pub fn zoomed_in_forced_colours(&mut self, width: u32, height: u32) {
        self.prefer("forced-colors", "active");
        let size = json!({
            "width": width / 2, "height": height / 2, "deviceScaleFactor": 2, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.drag_with(from, to, 0);
    }

    pub fn shift_drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.drag_with(from, to, 8);
    }

    fn drag_with(&mut self, from: (f64, f64), to: (f64, f64), modifiers: u32) {
        for (kind, (x, y), buttons) in
            [("mousePressed", from, 1), ("mouseMoved", to, 1), ("mouseReleased", to, 0)]
        {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({
                "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1,
                "modifiers": modifiers,
            });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }
}

/// Names that resolve to other addresses: a foreign one, and `localhost` for a tunnel.
const NAMES: &str = "MAP rebound.test 127.0.0.1, MAP localhost 127.0.0.2";

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| -> u32 {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        value.into()
    };
    let text = text.trim_end_matches('=').as_bytes();
    let four = |four: &[u8]| {
        let word = four.iter().fold(0, |word, &byte| word << 6 | digit(byte));
        (word << (6 * (4 - four.len()))).to_be_bytes()[1..four.len()].to_vec()
    };
    text.chunks(4).flat_map(four).collect()
}

/// Connects the pipes of the browser, which reads descriptor 3 and writes descriptor 4. It ends when the first one is
/// closed, and its profile is removed then.
fn start(chromium: &Path) -> Pipe {
    let script = "\"$0\" --headless=new --no-sandbox --disable-gpu --remote-debugging-pipe \
                  --host-resolver-rules=\"$2\" \
                  --user-data-dir=\"$1\" about:blank 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null; \
                  rm -rf \"$1\"";
    let profile = tempfile::tempdir().unwrap().keep();
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(chromium).arg(&profile).arg(NAMES);
    // A killed browser leaves files in this folder.
    shell.env("TMPDIR", profile);
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    Pipe { _shell: child, input, output: BufReader::new(output), calls: 0 }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.session = None;
            let context = json!({ "browserContextId": self.context });
            self.call("Target.disposeBrowserContext", context);
            let pipe = self.pipe.take().expect("open");
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(pipe);
        }
    }
}
