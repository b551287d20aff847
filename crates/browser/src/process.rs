//! The browser's process and its profile directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;

/// Keeps the browser from talking to anyone and from touching anything but its own directory.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "about:blank",
];
const GRACE: Duration = Duration::from_secs(5);
static LAUNCHED: AtomicU32 = AtomicU32::new(0);

/// A running browser; dropping it ends the process and removes the directory.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    profile: PathBuf,
}

impl Process {
    /// Starts the browser with its debugging pipe on our ends of stdin and stdout.
    pub(crate) fn start(program: &Path) -> Result<(Process, ChildStdin, ChildStdout), Error> {
        let number = LAUNCHED.fetch_add(1, Ordering::Relaxed);
        let name = format!("flame-browser-{}-{number}", std::process::id());
        let profile = std::env::temp_dir().join(name);
        fs::create_dir_all(&profile)
            .map_err(|source| Error::File { path: profile.clone(), source })?;
        // The pipe is file descriptors 3 and 4. A shell puts them there: std has no way to.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#])
            .arg(program)
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(FLAGS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| Error::Start { path: program.to_owned(), source })?;
        let gone = || Error::Gone { waiting_for: "start".to_owned() };
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = child.stdout.take().ok_or_else(gone)?;
        Ok((Process { child, profile }, input, output))
    }
}

impl Drop for Process {
    /// The pipe is closed by now, upon which the browser quits by itself, its helpers with it.
    fn drop(&mut self) {
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // Neither can fail in a way that matters: it has ended already, or it ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}
