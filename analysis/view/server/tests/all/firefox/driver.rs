//! Drives Firefox by its built-in Marionette, over loopback and without a library.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// Preferences: a free port, and no request, update or report to the network.
const SETTINGS: &str = "user_pref(\"marionette.port\", 0);
user_pref(\"browser.shell.checkDefaultBrowser\", false);
user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);
user_pref(\"app.normandy.enabled\", false);
user_pref(\"network.captive-portal-service.enabled\", false);
user_pref(\"network.connectivity-service.enabled\", false);
user_pref(\"dom.w3c_touch_events.enabled\", 1);
";

/// A page in Firefox. Dropping it ends Firefox.
pub struct Firefox {
    child: Child,
    stream: TcpStream,
    calls: u64,
    address: String,
    _profile: tempfile::TempDir,
}

impl Firefox {
    /// Opens a page and waits until it has drawn.
    pub fn open(program: &Path, url: &str) -> Firefox {
        let profile = tempfile::tempdir().unwrap();
        std::fs::write(profile.path().join("user.js"), SETTINGS).unwrap();
        let mut command = Command::new(program);
        command.args(["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]);
        command.arg("--profile").arg(profile.path()).arg("about:blank");
        command.env("HOME", profile.path()).env("TMPDIR", profile.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = child.spawn().unwrap();
        let stream = connect(profile.path());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let address = url.split("/#").next().unwrap().to_owned();
        let mut firefox = Firefox { child, stream, calls: 0, address, _profile: profile };
        let hello = firefox.message();
        assert_eq!(hello["marionetteProtocol"], 3, "{hello}");
        firefox.call("WebDriver:NewSession", json!({ "capabilities": {} }));
        firefox.call("WebDriver:Navigate", json!({ "url": url }));
        firefox.wait_for("document.body?.dataset.ready === '1'");
        firefox
    }

    /// Sends a message: its length, a colon, JSON.
    fn message(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("firefox has ended");
            match byte[0] {
                b':' => break,
                digit => length = length * 10 + usize::from(digit - b'0'),
            }
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn call(&mut self, command: &str, params: Value) -> Value {
        self.calls += 1;
        let text = json!([0, self.calls, command, params]).to_string();
        self.stream.write_all(format!("{}:{text}", text.len()).as_bytes()).unwrap();
        let answer = self.message();
        assert_eq!(answer[1], self.calls);
        assert!(answer[2].is_null(), "{command}: {}", answer[2]);
        answer[3]["value"].clone()
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let script = json!({ "script": format!("return ({expression});"), "args": [] });
        self.call("WebDriver:ExecuteScript", script)
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != true {
            let page = "document.body?.innerText.slice(0, 1500)";
            assert!(begun.elapsed() < PATIENCE, "{expression}\n{}", self.text(page));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn press(&mut self, key: &str) {
        // WebDriver has special characters for keys that write nothing.
        let key = match key {
            "Enter" => "\u{e007}",
            "Escape" => "\u{e00c}",
            "ArrowLeft" => "\u{e012}",
            "ArrowUp" => "\u{e013}",
            "ArrowRight" => "\u{e014}",
            "ArrowDown" => "\u{e015}",
            other => other,
        };
        let pressed = ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key }));
        let actions = json!([{ "type": "key", "id": "keys", "actions": pressed }]);
        self.call("WebDriver:PerformActions", json!({ "actions": actions }));
    }

    /// Runs a script with the rights of the browser.
    fn chrome(&mut self, script: &str) -> Value {
        self.call("Marionette:SetContext", json!({ "value": "chrome" }));
        let answer = self.call("WebDriver:ExecuteScript", json!({ "script": script, "args": [] }));
        self.call("Marionette:SetContext", json!({ "value": "content" }));
        answer
    }

    /// Sets the size of the page in pixels of the screen, zoomed by `zoom`.
    pub fn resize(&mut self, width: u32, height: u32, zoom: u32) {
        self.chrome(&format!(
            "const chosen = gBrowser.selectedBrowser; chosen.fullZoom = {zoom};
             window.resizeTo({width} + window.outerWidth - chosen.clientWidth,
                 {height} + window.outerHeight - chosen.clientHeight);"
        ));
        self.wait_for(&format!("innerWidth === {}", width / zoom));
    }

    /// Sets the colours for all pages: `light` or `dark`.
    pub fn prefer_scheme(&mut self, scheme: &str) {
        let number = u8::from(scheme == "light");
        let name = "layout.css.prefers-color-scheme.content-override";
        self.chrome(&format!("Services.prefs.setIntPref('{name}', {number})"));
        self.wait_for(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches"));
    }

    /// Moves fingers on the screen, each from one place to another.
    pub fn touch(&mut self, fingers: &[[(f64, f64); 2]]) {
        let moves = |(x, y): (f64, f64), ms: u32| {
            let (x, y) = (x.round() as i64, y.round() as i64);
            json!({ "type": "pointerMove", "duration": ms, "x": x, "y": y })
        };
        let finger = |(number, [from, to]): (usize, &[(f64, f64); 2])| {
            json!({
                "type": "pointer", "id": format!("finger{number}"), "parameters": { "pointerType": "touch" },
                "actions": [moves(*from, 0), { "type": "pointerDown", "button": 0 }, moves(*to, 200),
                    { "type": "pointerUp", "button": 0 }],
            })
        };
        let actions: Vec<Value> = fingers.iter().enumerate().map(finger).collect();
        self.call("WebDriver:PerformActions", json!({ "actions": actions }));
        self.call("WebDriver:ReleaseActions", json!({}));
    }

    /// The errors of scripts and of the content policy that the browser reports.
    pub fn complaints(&mut self) -> Vec<String> {
        let script = "return Services.console.getMessageArray().map((one) => [one.category ?? '', \
                      one.sourceName ?? '', one.errorMessage ?? one.message ?? ''].join(' | '))";
        let all = self.chrome(script);
        let all = all.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned);
        all.filter(|text| text.contains(&self.address) || text.contains("CSP")).collect()
    }
}

/// Reads the port from a file in the profile.
fn connect(profile: &Path) -> TcpStream {
    let begun = Instant::now();
    loop {
        let port = std::fs::read_to_string(profile.join("MarionetteActivePort"));
        let port: Option<u16> = port.ok().and_then(|text| text.trim().parse().ok());
        let stream = port.and_then(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        if let Some(stream) = stream {
            return stream;
        }
        assert!(begun.elapsed() < PATIENCE, "firefox does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let quit = json!([0, self.calls + 1, "Marionette:Quit", { "flags": ["eForceQuit"] }]);
        let text = quit.to_string();
        let _ = self.stream.write_all(format!("{}:{text}", text.len()).as_bytes());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
