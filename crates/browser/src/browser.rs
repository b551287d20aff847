//! A browser with one page.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;
use crate::find::find_browser;
use crate::pipe::Pipe;
use crate::shared::InUse;

/// How a browser is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program; by default what [`find_browser`] finds.
    pub program: Option<PathBuf>,
    /// Size of the page in CSS pixels; 1200 by 900 by default.
    pub width: u32,
    /// See `width`.
    pub height: u32,
    /// The longest wait for one answer; 30 seconds by default, since test machines are slow.
    pub limit: Duration,
}

impl Default for Launch {
    fn default() -> Launch {
        Launch { program: None, width: 1200, height: 900, limit: Duration::from_secs(30) }
    }
}

/// A running browser with one page. Dropping it closes the page and forgets what it kept.
#[derive(Debug)]
pub struct Browser {
    running: InUse,
    context: String,
    session: String,
    problems: Vec<String>,
    requests: Vec<String>,
}

impl Browser {
    /// Starts a browser with an empty page.
    ///
    /// # Errors
    /// When there is none, or it does not start.
    pub fn launch(launch: &Launch) -> Result<Browser, Error> {
        let program = launch.program.clone().or_else(find_browser).ok_or(Error::NotFound)?;
        let running = InUse::start(&program, launch.limit)?;
        let (context, session) = (String::new(), String::new());
        let (problems, requests) = (Vec::new(), Vec::new());
        let mut browser = Browser { running, context, session, problems, requests };
        browser.context =
            text(browser.command("Target.createBrowserContext", json!({}))?, "browserContextId")?;
        let page = json!({ "url": "about:blank", "browserContextId": browser.context });
        let target = text(browser.command("Target.createTarget", page)?, "targetId")?;
        let attach = json!({ "targetId": target, "flatten": true });
        browser.session = text(browser.command("Target.attachToTarget", attach)?, "sessionId")?;
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, json!({}))?;
        }
        browser.resize(launch.width, launch.height)?;
        Ok(browser)
    }

    /// Sends any command of the protocol to the page and waits for its result.
    ///
    /// # Errors
    /// When the browser refuses, ends, or does not answer in time.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value, Error> {
        self.running.pipe()?.call(Some(&self.session), method, parameters)
    }

    /// A command to the browser itself.
    fn command(&mut self, method: &str, parameters: Value) -> Result<Value, Error> {
        self.running.pipe()?.call(None, method, parameters)
    }

    /// Loads a URL, waits until it is loaded, and forgets the problems and requests so far.
    ///
    /// # Errors
    /// When the page cannot be loaded.
    pub fn navigate(&mut self, url: &str) -> Result<(), Error> {
        self.collect();
        self.problems.clear();
        self.requests.clear();
        let answer = self.call("Page.navigate", json!({ "url": url }))?;
        if let Some(message) = answer["errorText"].as_str() {
            let method = format!("Page.navigate to {url}");
            return Err(Error::Refused { method, message: message.to_owned() });
        }
        self.running.pipe()?.wait_for_event("Page.loadEventFired")?;
        Ok(())
    }

    /// Loads a file.
    ///
    /// # Errors
    /// As [`Browser::navigate`]; also when the path has no absolute form.
    pub fn open_file(&mut self, path: &Path) -> Result<(), Error> {
        let absolute = fs::canonicalize(path)
            .map_err(|source| Error::File { path: path.to_owned(), source })?;
        self.navigate(&format!("file://{}", absolute.display()))
    }

    /// The value of an expression, a promise's once it is kept.
    ///
    /// # Errors
    /// When the script throws.
    pub fn eval(&mut self, expression: &str) -> Result<Value, Error> {
        let parameters =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", parameters)?;
        if let Some(details) = answer.get("exceptionDetails") {
            let thrown = details["exception"]["description"].as_str();
            let message = thrown.or(details["text"].as_str()).unwrap_or("?").to_owned();
            return Err(Error::Script { message });
        }
        Ok(answer["result"]["value"].take())
    }

    /// Sets the size of the page in CSS pixels, at one device pixel each.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn resize(&mut self, width: u32, height: u32) -> Result<(), Error> {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics).map(drop)
    }

    /// Makes the page that of a phone with a touch screen, of that many CSS pixels, and of so many
    /// pixels of the screen for each.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn emulate_phone(&mut self, width: u32, height: u32, density: u32) -> Result<(), Error> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": density, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", metrics)?;
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true })).map(drop)
    }

    /// Sets a media feature, for example `prefers-color-scheme` to `dark`.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn emulate_media(&mut self, feature: &str, value: &str) -> Result<(), Error> {
        let features = json!({ "features": [{ "name": feature, "value": value }] });
        self.call("Emulation.setEmulatedMedia", features).map(drop)
    }

    /// Lets pages that are loaded from now on run scripts, or not.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn allow_scripts(&mut self, allowed: bool) -> Result<(), Error> {
        let parameters = json!({ "value": !allowed });
        self.call("Emulation.setScriptExecutionDisabled", parameters).map(drop)
    }

    /// Writes what the page looks like as PNG.
    ///
    /// # Errors
    /// When the browser refuses or the file cannot be written.
    pub fn screenshot(&mut self, path: &Path) -> Result<(), Error> {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }))?;
        let png = decode_base64(&text(answer, "data")?);
        fs::write(path, png).map_err(|source| Error::File { path: path.to_owned(), source })
    }

    /// Errors and warnings of the console and uncaught exceptions since the page was navigated to.
    pub fn problems(&mut self) -> &[String] {
        self.collect();
        &self.problems
    }

    /// URLs that were requested since the page was navigated to, the page's own among them.
    pub fn requests(&mut self) -> &[String] {
        self.collect();
        &self.requests
    }

    fn collect(&mut self) {
        let events = self.running.pipe().map(Pipe::take_events).unwrap_or_default();
        for event in events.into_iter().filter(|event| event["sessionId"] == *self.session) {
            let parameters = &event["params"];
            match event["method"].as_str() {
                Some("Runtime.exceptionThrown") => {
                    self.problems.push(parameters["exceptionDetails"].to_string());
                }
                Some("Runtime.consoleAPICalled")
                    if matches!(parameters["type"].as_str(), Some("error" | "warning")) =>
                {
                    self.problems.push(parameters["args"].to_string());
                }
                Some("Log.entryAdded") => self.problems.push(parameters["entry"].to_string()),
                Some("Network.requestWillBeSent") => {
                    let url = parameters["request"]["url"].as_str().unwrap_or("?");
                    self.requests.push(url.to_owned());
                }
                _ => {}
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let context = json!({ "browserContextId": self.context });
        if self.command("Target.disposeBrowserContext", context).is_err() {
            self.running.end();
        }
    }
}

fn text(answer: Value, key: &str) -> Result<String, Error> {
    let found = answer[key].as_str().map(str::to_owned);
    found.ok_or_else(|| Error::Answer { method: key.to_owned(), answer: answer.to_string() })
}

/// Standard base64; characters outside the alphabet are passed over.
fn decode_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        let cases: [(&str, &[u8]); 5] = [
            ("", b""),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9vYmFy", b"foobar"),
            ("/+8", b"\xff\xef"),
        ];
        for (text, bytes) in cases {
            assert_eq!(decode_base64(text), bytes, "{text}");
        }
    }
}
