//! A second browser: Firefox by its own protocol, Marionette, which is JSON over a local port.
//!
//! It has no list of requests and no console: it is for what every browser must do alike.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::Error;

/// Keeps it from asking and from talking to anyone; any free port.
const PREFERENCES: &str = "\
user_pref(\"marionette.port\", 0);
user_pref(\"browser.shell.checkDefaultBrowser\", false);
user_pref(\"browser.aboutwelcome.enabled\", false);
user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);
user_pref(\"network.captive-portal-service.enabled\", false);
user_pref(\"network.connectivity-service.enabled\", false);
user_pref(\"app.normandy.enabled\", false);
user_pref(\"app.update.enabled\", false);
";
/// Where it says its port.
const PORT_FILE: &str = "MarionetteActivePort";
const LIMIT: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(10);

/// A running Firefox with one page. Dropping it ends the process.
#[derive(Debug)]
pub struct Firefox {
    answers: BufReader<TcpStream>,
    commands: u64,
    _process: Running,
}

/// The process and its profile directory.
#[derive(Debug)]
struct Running {
    child: Child,
    profile: PathBuf,
}

impl Firefox {
    /// Starts the program with an empty page of that size.
    ///
    /// # Errors
    /// When it does not start, or not in a minute.
    pub fn launch(program: &Path, width: u32, height: u32) -> Result<Firefox, Error> {
        let profile = std::env::temp_dir().join(format!("flame-firefox-{}", std::process::id()));
        let file = |source| Error::File { path: profile.clone(), source };
        fs::create_dir_all(&profile).map_err(file)?;
        fs::write(profile.join("user.js"), PREFERENCES).map_err(file)?;
        let child = Command::new(program)
            .args(["--headless", "--no-remote", "--marionette", "--profile"])
            .arg(&profile)
            .env("HOME", &profile)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| Error::Start { path: program.to_owned(), source })?;
        let process = Running { child, profile };
        let stream = connect(&process.profile.join(PORT_FILE))?;
        let mut firefox =
            Firefox { answers: BufReader::new(stream), commands: 0, _process: process };
        // It says first who it is.
        firefox.read("its name")?;
        firefox.call("WebDriver:NewSession", json!({}))?;
        let size = json!({ "width": width, "height": height });
        firefox.call("WebDriver:SetWindowRect", size)?;
        Ok(firefox)
    }

    /// Loads a file.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn open_file(&mut self, path: &Path) -> Result<(), Error> {
        let absolute = fs::canonicalize(path)
            .map_err(|source| Error::File { path: path.to_owned(), source })?;
        let url = format!("file://{}", absolute.display());
        self.call("WebDriver:Navigate", json!({ "url": url })).map(drop)
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// When the script throws.
    pub fn eval(&mut self, expression: &str) -> Result<Value, Error> {
        let script = json!({ "script": format!("return {expression}"), "args": [] });
        Ok(self.call("WebDriver:ExecuteScript", script)?["value"].take())
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// When it does not within a minute.
    pub fn wait_until(&mut self, condition: &str) -> Result<(), Error> {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if self.eval(condition)? == true {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(Error::Timeout { waiting_for: condition.to_owned(), limit: LIMIT })
    }

    /// Moves the mouse to a point of the page.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn move_to(&mut self, x: f64, y: f64) -> Result<(), Error> {
        self.act(json!([{ "type": "pointerMove", "x": x as i64, "y": y as i64, "duration": 0 }]))
    }

    /// Clicks the left button where the mouse is.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn click(&mut self) -> Result<(), Error> {
        self.act(json!([
            { "type": "pointerDown", "button": 0 },
            { "type": "pointerUp", "button": 0 },
        ]))
    }

    fn act(&mut self, actions: Value) -> Result<(), Error> {
        let mouse = json!({
            "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" },
            "actions": actions,
        });
        self.call("WebDriver:PerformActions", json!({ "actions": [mouse] })).map(drop)
    }

    /// Sends any command of the protocol and waits for its result.
    ///
    /// # Errors
    /// When the browser refuses, ends, or does not answer in time.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value, Error> {
        self.commands += 1;
        let message = json!([0, self.commands, method, parameters]).to_string();
        let gone = |_| Error::Gone { waiting_for: method.to_owned() };
        let stream = self.answers.get_mut();
        stream.write_all(format!("{}:{message}", message.len()).as_bytes()).map_err(gone)?;
        let mut answer = self.read(method)?;
        if answer[2].is_null() {
            return Ok(answer[3].take());
        }
        let message = answer[2]["message"].as_str().unwrap_or("?").to_owned();
        Err(Error::Refused { method: method.to_owned(), message })
    }

    /// A message: how many bytes it has, a colon, JSON.
    fn read(&mut self, waiting_for: &str) -> Result<Value, Error> {
        let gone = || Error::Gone { waiting_for: waiting_for.to_owned() };
        let mut length = Vec::new();
        self.answers.read_until(b':', &mut length).map_err(|_| gone())?;
        let length = String::from_utf8_lossy(&length);
        let length: u64 = length.trim_end_matches(':').parse().map_err(|_| gone())?;
        let mut message = Vec::new();
        (&mut self.answers).take(length).read_to_end(&mut message).map_err(|_| gone())?;
        serde_json::from_slice(&message).map_err(|_| gone())
    }
}

/// Waits for the port that a starting browser listens on.
fn connect(port_file: &Path) -> Result<TcpStream, Error> {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        let port = fs::read_to_string(port_file).ok().and_then(|port| port.trim().parse().ok());
        if let Some(port) = port {
            let connected = TcpStream::connect(("127.0.0.1", port));
            let stream =
                connected.map_err(|source| Error::File { path: port_file.to_owned(), source })?;
            let _ = stream.set_read_timeout(Some(LIMIT));
            return Ok(stream);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Error::Timeout { waiting_for: "start".to_owned(), limit: LIMIT })
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.call("Marionette:Quit", json!({ "flags": ["eForceQuit"] }));
    }
}

impl Drop for Running {
    /// It was asked to quit before, if it listened.
    fn drop(&mut self) {
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Neither can fail in a way that matters: it has ended already, or it ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}
