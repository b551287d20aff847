//! A program that a bench attaches to.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A running program; killed on drop.
#[derive(Debug)]
pub(super) struct Target {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts it.
    pub(super) fn spawn(command: &mut Command) -> Result<Target> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let input = child.stdin.take().context("a pipe")?;
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Target { child, input, output })
    }

    /// Starts it, and waits until it says `ready`.
    pub(super) fn start(command: &mut Command) -> Result<Target> {
        let mut target = Target::spawn(command)?;
        let mut line = String::new();
        target.output.read_line(&mut line)?;
        ensure!(line == "ready\n", "{command:?} said {line:?}");
        Ok(target)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets a program go on that waits for a line.
    pub(super) fn go(&mut self) -> Result<()> {
        self.input.write_all(b"\n").context("a line for the program")
    }

    /// What it prints from here to its end.
    pub(super) fn rest(&mut self) -> Result<String> {
        let mut text = String::new();
        while self.output.read_line(&mut text)? > 0 {}
        self.child.wait()?;
        Ok(text)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
