//! Runs a command and prints its ten hottest functions.

use std::ffi::OsString;
use std::io::{Write, stdout};
use std::time::Duration;

use flame_profile::{CallTree, TreeOptions, functions};
use flame_recorder::{Recorder, RecorderConfig};
use flame_sampler::{Launched, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut child = Launched::launch(&command, None)?;
    let mut recorder = Recorder::start(RecorderConfig::new(Target::Launched(child.pid())))?;
    child.release()?;
    while child.try_wait().is_none() {
        recorder.poll(Duration::from_millis(100))?;
    }
    let profile = recorder.finish()?;
    let tree = CallTree::from_profile(&profile, &TreeOptions::default());
    for function in functions(&tree).iter().take(10) {
        let share = 100.0 * function.self_weight.0 as f64 / tree.total().0 as f64;
        writeln!(stdout(), "{share:5.1} %  {}", tree.labels()[function.label.index()].name)?;
    }
    Ok(())
}
