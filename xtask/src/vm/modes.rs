//! What is recorded besides CPU time: waits, transfers, allocations, calls of functions.

use anyhow::{Context, Result, ensure};

use super::answer::{Answer, Folded};
use super::cases::Case;

/// All of them: they need nothing but root.
pub(super) fn all() -> Vec<Case> {
    vec![waits(), transfers(), allocations(), calls()]
}

/// Threads that wait for known times, and say for how long they did. What a switch takes is time off CPU to flame
/// and CPU time to the scheduler.
fn waits() -> Case {
    let script = "mkdir -p /var/tmp; flame record --mode off-cpu -o a.folded -- waits";
    Case::new("mode-off-cpu", script, |answer| {
        let folded = recorded(answer)?;
        let truth = answer.text("out")?;
        let mut worst: f64 = 0.0;
        for name in ["in_lock", "in_naps", "in_pipe", "in_socket"] {
            let line = truth.lines().find_map(|line| line.strip_prefix(name));
            let waited: f64 = line.context("no truth")?.trim().parse()?;
            let seen = folded.with(|frame| frame == name) as f64;
            worst = worst.max((seen / waited - 1.0).abs() * 100.0);
        }
        ensure!(worst <= 2.0, "a function's waits are {worst:.1} % off: {folded:?}\n{truth}");
        Ok(format!("each function's waits within {worst:.1} % of what it measures itself"))
    })
}

/// Bytes that system calls read and write.
fn transfers() -> Case {
    let script = "flame record --mode io -o a.folded -- transfers 100";
    Case::new("mode-io", script, |answer| {
        exact(answer, "bytes", &[("small", 10_000), ("large", 40_960), ("slow", 10)])
    })
}

/// Bytes that the C library is asked for, by uprobes.
fn allocations() -> Case {
    let script = "flame record --mode alloc -o a.folded -- allocations 50";
    Case::new("mode-alloc", script, |answer| {
        exact(answer, "bytes", &[("small", 5000), ("array", 30_000), ("aligned", 204_800)])
    })
}

/// Calls of a function, by one of its arguments: blocks of 60 bytes, ten at a time.
fn calls() -> Case {
    let script = "libc=$(ls /lib/libc.so.6 /lib/*/libc.so.6 2>/dev/null | head -n 1)
        flame record -e uprobe:$libc:calloc --weight arg2 -o a.folded -- allocations 50";
    Case::new("uprobe-argument", script, |answer| {
        exact(answer, "60 bytes a call", &[("array", 3000)])
    })
}

fn recorded(answer: &Answer) -> Result<Folded> {
    answer.said()?;
    answer.folded("a.folded")
}

/// That functions have those weights.
fn exact(answer: &Answer, unit: &str, functions: &[(&str, u64)]) -> Result<String> {
    let folded = recorded(answer)?;
    let mut text = Vec::new();
    for (name, expect) in functions {
        let seen = folded.with(|frame| frame == *name);
        text.push(format!("{seen} of {expect} in {name}"));
        ensure!(seen == *expect, "{}: {folded:?}", text.join(", "));
    }
    Ok(format!("{} ({unit})", text.join(", ")))
}
