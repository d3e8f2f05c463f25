//! A headless Chromium, driven by its own protocol through a pipe.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest time for an answer: a page is drawn within a second, but the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The browser, with one page.
pub struct Chromium {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    /// Pages that have been loaded.
    loads: u64,
    /// Errors that the page has had.
    pub errors: Vec<String>,
    _home: TempDir,
}

impl Chromium {
    /// Starts it; none if it is not installed.
    pub fn start() -> Option<Self> {
        let home = tempfile::tempdir().expect("a temporary directory");
        // It reads from descriptor 3 and writes to descriptor 4, which the shell makes of its own
        // two.
        let flags = "--headless --remote-debugging-pipe --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                     --disable-extensions --disable-background-networking --hide-scrollbars";
        let line =
            format!("exec chromium {flags} --user-data-dir=\"$HOME\" 3<&0 4>&1 0</dev/null 1>&2");
        let installed = Command::new("sh").args(["-c", "command -v chromium"]).output().ok()?;
        if !installed.status.success() {
            return None;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env("HOME", home.path());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = shell.spawn().expect("sh runs");
        let to = process.stdin.take().expect("a pipe");
        let mut messages = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, from) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while messages.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(parsed) = serde_json::from_slice(&message) else { break };
                if sender.send(parsed).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut this = Self {
            process,
            to,
            from,
            session: None,
            sent: 0,
            loads: 0,
            errors: Vec::new(),
            _home: home,
        };
        let target = this.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = this.call("Target.attachToTarget", attach);
        this.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            this.call(&format!("{domain}.enable"), json!({}));
        }
        Some(this)
    }

    /// Opens a file in a window of this size.
    pub fn open(&mut self, file: &Path, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let (before, url) = (self.loads, format!("file://{}", file.display()));
        self.call("Page.navigate", json!({"url": url}));
        while self.loads == before {
            self.receive();
        }
        // The blank page that was there first is loaded, too.
        let deadline = Instant::now() + PATIENCE;
        while self.value("document.readyState + ' ' + location.href") != format!("complete {url}") {
            assert!(Instant::now() < deadline, "{url} is never complete");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Dark or light.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let call = json!({"expression": expression, "returnByValue": true});
        let mut result = self.call("Runtime.evaluate", call);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result:#}");
        result["result"]["value"].take()
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        let codes =
            HashMap::from([("Enter", 13), ("Escape", 27), ("ArrowDown", 40), ("ArrowRight", 39)]);
        let down = json!({"type": "keyDown", "key": key, "code": key, "text": text, "windowsVirtualKeyCode": codes[key]});
        self.call("Input.dispatchKeyEvent", down);
        let up =
            json!({"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]});
        self.call("Input.dispatchKeyEvent", up);
    }

    /// A picture of the window, as PNG in base64.
    pub fn picture(&mut self) -> String {
        let mut picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        picture["data"].take().as_str().expect("a picture").to_owned()
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.to, "{message}\0").and_then(|()| self.to.flush()).expect("it listens");
        loop {
            let mut answer = self.receive();
            if answer["id"] == self.sent {
                assert!(answer.get("error").is_none(), "{method}: {answer:#}");
                return answer["result"].take();
            }
        }
    }

    /// The next message. Errors in it are kept.
    fn receive(&mut self) -> Value {
        let message = self.from.recv_timeout(PATIENCE).expect("chromium answers");
        let parameters = &message["params"];
        let is_error = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Page.loadEventFired") => {
                self.loads += 1;
                false
            }
            Some("Log.entryAdded") => parameters["entry"]["level"] == "error",
            Some("Runtime.consoleAPICalled") => parameters["type"] == "error",
            _ => false,
        };
        if is_error {
            self.errors.push(parameters.to_string());
        }
        message
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // The browser may have ended by itself, so errors do not matter.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
