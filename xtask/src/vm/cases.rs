//! What is tried on the machines: a script for the guest's shell, and a look at what it left behind.
//! Every program that is recorded says itself what was true.

use anyhow::{Context, Result, ensure};

use super::answer::{Answer, Summary, number, standard_errors};
use super::rights;

/// How far shares may be from the truth, in standard errors.
const WITHIN: f64 = 3.0;

/// How many percent of the stacks have to be complete.
const COMPLETE: f64 = 99.0;

/// How many percent of the CPU time the samples may stand for, and have to.
const COVERAGE: std::ops::RangeInclusive<f64> = 90.0..=110.0;

/// Judges what a case left behind; gives the finding in words.
type Check = Box<dyn Fn(&Answer) -> Result<String>>;

/// One thing that is tried.
pub(super) struct Case {
    pub(super) name: String,
    /// For the guest's shell, with the functions of `guest/lib.sh`.
    pub(super) script: String,
    pub(super) check: Check,
}

impl Case {
    pub(super) fn new(
        name: &str,
        script: impl Into<String>,
        check: impl Fn(&Answer) -> Result<String> + 'static,
    ) -> Case {
        Case { name: name.to_owned(), script: script.into(), check: Box::new(check) }
    }
}

/// With every change: the levels that distributions ship, and that no recording is lost.
pub(super) fn short() -> Vec<Case> {
    let rights = [(4, "root"), (4, "perfmon"), (4, "user"), (2, "user")];
    let mut cases = vec![shares(), deep(4)];
    cases.extend(rights.map(|(level, who)| rights::case(level, who)));
    cases
}

/// A launched program only: emulating this processor takes longest.
pub(super) fn shares_alone() -> Vec<Case> {
    vec![shares()]
}

/// One CPU and little memory.
pub(super) fn small() -> Vec<Case> {
    vec![shares(), whole_machine(), threads(300)]
}

/// More CPUs than the host has.
pub(super) fn many_cpus() -> Vec<Case> {
    vec![shares(), whole_machine(), threads(2000)]
}

/// A processor of another kind, with counters.
pub(super) fn arm() -> Vec<Case> {
    let mut cases = recordings();
    cases.push(shares_of("static", "-e cpu-clock -F 499", "shares_static"));
    cases.push(frame_pointers());
    cases.push(shares_of("branch-protection", "-F 499", "shares_pac"));
    cases.push(shares_of("stripped", "-F 499", "shares_stripped"));
    cases.extend(counted());
    cases.extend([deep(4), raised()]);
    cases
}

/// Cycles of a counter: by frequency, and by period.
pub(super) fn counted() -> Vec<Case> {
    vec![cycles("frequency", "-F 99"), cycles("period", "-c 4000000")]
}

/// The same, and instructions besides, which take two cycles each there.
pub(super) fn instructions() -> Vec<Case> {
    let mut cases = counted();
    cases.push(cycles_per_instruction());
    cases
}

fn recordings() -> Vec<Case> {
    vec![shares(), attached(), grouped(), whole_machine(), counts(), threads(100)]
}

/// Everything that two CPUs can be tried with.
pub(super) fn all() -> Vec<Case> {
    let mut cases = recordings();
    cases.extend([4, 3, 2].map(deep));
    cases.extend([raised(), online(), without_tracefs(), hidden_kernel(), container(), console()]);
    for level in [4, 3, 2, 1, 0, -1] {
        cases.extend(rights::USERS.map(|who| rights::case(level, who)));
    }
    cases
}

/// A program whose functions take 50, 30 and 20 % of its time.
fn shares() -> Case {
    shares_of("launched", "-F 499", "shares")
}

/// The same, built or recorded another way.
fn shares_of(name: &str, options: &str, program: &str) -> Case {
    let script = format!("flame record {options} --value samples -o a.folded -- {program} 2");
    let thread = program.to_owned();
    Case::new(&format!("shares-{name}"), script, move |answer| judge_thread(answer, "out", &thread))
}

/// Frame pointers do not tell where a stack ends, but lead there.
fn frame_pointers() -> Case {
    let script = "flame record -F 499 --call-graph fp --value samples -o a.folded -- shares_fp 2";
    Case::new("shares-frame-pointers", script, |answer| {
        let said = answer.said()?;
        ensure!(said.contains("frame pointers do not tell where a stack ends"), "{said}");
        shares_are_true(answer, "out", "shares_fp")
    })
}

/// Holds a recording against what `shares` printed into that file.
fn judge(answer: &Answer, truth: &str) -> Result<String> {
    judge_thread(answer, truth, "shares")
}

fn judge_thread(answer: &Answer, truth: &str, thread: &str) -> Result<String> {
    let summary = Summary::of(&answer.said()?)?;
    Ok(format!("{}, {}", shares_are_true(answer, truth, thread)?, quality(summary)?))
}

/// That the functions have the shares of time that the program says, below `main`.
fn shares_are_true(answer: &Answer, truth: &str, thread: &str) -> Result<String> {
    let folded = answer.folded("a.folded")?.of_thread(thread);
    let truth = answer.text(truth)?;
    let truth: Vec<&str> = truth.split_ascii_whitespace().collect();
    let of = folded.with(|frame| ["alpha", "beta", "omega"].contains(&frame));
    let mut worst: f64 = 0.0;
    for name in ["alpha", "beta", "omega"] {
        let at = truth.iter().position(|word| *word == name);
        let share = at.and_then(|at| truth.get(at + 1)?.parse().ok());
        let share: f64 = share.with_context(|| format!("no {name} in {truth:?}"))?;
        worst = worst.max(standard_errors(folded.with(|frame| frame == name), of, share));
    }
    ensure!(worst <= WITHIN, "shares are {worst:.1} standard errors off");
    let rooted = folded.with(|frame| frame == "main") as f64 / of.max(1) as f64;
    ensure!(rooted >= COMPLETE / 100.0, "{:.1} % of the stacks reach main", rooted * 100.0);
    Ok(format!("shares within {worst:.1} standard errors"))
}

/// What holds of every recording. Whether stacks with guesses are right is seen by their root.
fn quality(summary: Summary) -> Result<String> {
    let Summary { samples, complete, guessed, coverage, lost } = summary;
    let mut text = format!("{complete:.1} % of {samples} stacks complete, ");
    if guessed > 0.0 {
        text += &format!("{guessed:.1} % with guessed frames, ");
    }
    // A counter of cycles has no time to be held against.
    let known = coverage.map_or("not known".to_owned(), |coverage| format!("{coverage:.1} %"));
    text += &format!("coverage {known}, {lost} lost");
    let coverage = coverage.unwrap_or(100.0);
    ensure!(complete + guessed >= COMPLETE && COVERAGE.contains(&coverage), "{text}");
    Ok(text)
}

fn attached() -> Case {
    let script =
        "shares 4 >truth & sleep 0.3; flame record -F 499 --value samples -o a.folded -p $!";
    Case::new("shares-attached", script, |answer| judge(answer, "truth"))
}

fn grouped() -> Case {
    let script = "echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/one
        sh -c 'echo $$ >/sys/fs/cgroup/one/cgroup.procs; exec shares 4' >truth &
        sleep 0.3; flame record -F 499 --value samples -d 3s -o a.folded -G one; code=$?; wait; exit $code";
    Case::new("shares-group", script, |answer| judge(answer, "truth"))
}

/// All CPUs, one of which is busy all the time.
fn whole_machine() -> Case {
    let script = "shares 60 >/dev/null & busy=$!; sleep 0.3
        flame record -F 499 --value samples -d 3s -o a.folded -a; code=$?; kill $busy; exit $code";
    Case::new("shares-machine", script, |answer| {
        let summary = Summary::of(&answer.said()?)?;
        let busy = answer.folded("a.folded")?.of_thread("shares").total();
        ensure!(busy > 100, "{busy} samples of a thread that was always busy");
        Ok(format!(
            "{} samples, coverage {:.1} %",
            summary.samples,
            summary.coverage.unwrap_or(0.0)
        ))
    })
}

/// Every occurrence of an event, so that the counts have to be exact.
fn counts() -> Case {
    let script = "flame record -e page-faults -c 1 -o faults.folded -- events 300 0 &&
        flame record -e context-switches -c 1 -o switches.folded -- events 0 200";
    Case::new("counts", script, |answer| {
        let count = |file, name| anyhow::Ok(answer.folded(file)?.with(|frame| frame == name));
        let faults = count("faults.folded", "touch_pages")?;
        let switches = count("switches.folded", "take_naps")?;
        let said = answer.said()?;
        let text = format!("{faults} page faults, {switches} context switches");
        // A nap that is over before the CPU was given away is none: the kernel's counter knows.
        let all = said.matches("counted   100.0 %").count();
        ensure!(faults == 300 && (100..=204).contains(&switches) && all == 2, "{text}: {said}");
        Ok(text)
    })
}

/// Threads that wait, and one that burns.
fn threads(count: u32) -> Case {
    let script = format!(
        "mkfifo in; crowd {count} 1 <in >ready & crowd=$!; exec 3>in
         until grep -q ready ready; do sleep 0.1; done
         flame record -F 99 --value samples -d 2s -o a.folded -p $crowd & flame=$!
         until_dropped $flame; ls /proc/$flame/fd | wc -l >descriptors; wait $flame
         code=$?; echo >&3; wait $crowd; exit $code"
    );
    Case::new(&format!("threads-{count}"), script, move |answer| {
        let summary = Summary::of(&answer.said()?)?;
        let busy = answer.folded("a.folded")?.with(|frame| frame == "crowd_work");
        let open = answer.text("descriptors")?.trim().to_owned();
        let text = format!("{busy} samples, {open} descriptors, {} lost", summary.lost);
        ensure!(busy > 50 && summary.lost == 0.0, "{text}");
        Ok(text)
    })
}

/// Functions with 70 and 30 % of the time, 99 times a second, on a counter of 1 GHz.
fn cycles(name: &str, options: &str) -> Case {
    let script = format!(
        "flame record -e cycles {options} -o a.folded -o a.txt --value cycles -- \
         lockstep 4 one=99:70,30"
    );
    Case::new(&format!("cycles-{name}"), script, |answer| {
        let summary = Summary::of(&answer.said()?)?;
        let folded = answer.folded("a.folded")?;
        let truth = answer.text("out")?;
        let first = folded.with(|frame| frame == "first") as f64;
        let second = folded.with(|frame| frame == "second") as f64;
        let share = first / (first + second).max(1.0);
        let error = (0.21 / summary.samples.max(1.0)).sqrt();
        let off = (share - 0.7).abs() / error;
        let total = number(&truth, "total").context("no total")?;
        let sum = folded.total() as f64 / 1e9 / total;
        let text = format!(
            "share {share:.3} ({off:.1} standard errors) of {} samples, weights {:.1} % of the counter",
            summary.samples,
            sum * 100.0
        );
        ensure!(off <= WITHIN && (sum - 1.0).abs() <= 0.02, "{text}");
        Ok(text)
    })
}

/// Cycles and instructions of one recording, whose quotient is known for all functions.
fn cycles_per_instruction() -> Case {
    let script = "flame record -e cycles,instructions -F 499 -o a.pb.gz -- shares 4 && \
        for value in cycles instructions; do flame fold -q a.pb.gz --value $value -o $value.folded; done";
    Case::new("cycles-per-instruction", script, |answer| {
        answer.said()?;
        let [cycles, instructions] =
            ["cycles", "instructions"].map(|name| answer.folded(&format!("{name}.folded")));
        let (cycles, instructions) = (cycles?, instructions?);
        let mut text = String::from("cycles per instruction:");
        let mut is_right = true;
        for name in ["alpha", "beta", "omega"] {
            let [cycles, instructions] =
                [&cycles, &instructions].map(|folded| folded.with(|frame| frame == name) as f64);
            let quotient = cycles / instructions.max(1.0);
            text += &format!(" {name} {quotient:.2}");
            is_right &= (quotient / 2.0 - 1.0).abs() <= 0.1;
        }
        ensure!(is_right, "{text}");
        Ok(text)
    })
}

/// Stacks that go on beyond their copy are read on.
fn deep(level: i32) -> Case {
    let script = format!(
        "level {level}; flame record -v -F 499 -d 60s -o a.folded -a & flame=$!
         until_dropped $flame; wide_deep 12 >/dev/null; kill -INT $flame; wait $flame
         code=$?; level 2; exit $code"
    );
    Case::new(&format!("deep-{level}"), script, |answer| {
        let said = answer.said()?;
        ensure!(said.contains("read on from the process"), "{said}");
        Ok(format!("{} samples", Summary::of(&said)?.samples))
    })
}

/// Rights that are taken away while a recording is in progress: nothing is opened any more.
fn raised() -> Case {
    let script = "level 2; flame record -v -F 499 -d 60s -o a.folded -a & flame=$!
        until_dropped $flame; level 4; wide_deep 12 >/dev/null; kill -INT $flame; wait $flame
        code=$?; level 2; exit $code";
    Case::new("level-raised", script, |answer| {
        let said = answer.said()?;
        ensure!(said.contains("read on from the process"), "{said}");
        Ok(format!("{} samples", Summary::of(&said)?.samples))
    })
}

/// A CPU that goes offline and comes back, at a level that asks for CAP_SYS_ADMIN.
fn online() -> Case {
    let script = "level 4; cpu=/sys/devices/system/cpu/cpu1/online
        echo 0 >$cpu; flame record -v -F 199 -d 60s -o a.folded -a & flame=$!
        until_dropped $flame; echo 1 >$cpu; sleep 3
        taskset 2 burn 1 0; kill -INT $flame; wait $flame; code=$?; level 2; exit $code";
    Case::new("cpu-online", script, |answer| {
        let said = answer.said()?;
        ensure!(!said.contains("was not sampled"), "{said}");
        let seen = answer.folded("a.folded")?.of_thread("burn").total();
        // How many depends on clocks that emulated CPUs do not keep in step.
        ensure!(seen > 0, "the CPU that came online was not sampled: {said}");
        Ok(format!("{seen} samples of the CPU that came online"))
    })
}

fn without_tracefs() -> Case {
    let script = "umount /sys/kernel/tracing; flame doctor >doctor
        flame record -F 499 -o a.folded -- shares 2; code=$?
        mount -t tracefs tracefs /sys/kernel/tracing; exit $code";
    Case::new("no-tracefs", script, |answer| {
        ensure!(answer.text("doctor")?.contains("tracefs is not mounted"), "doctor says nothing");
        judge(answer, "out")
    })
}

/// Addresses of the kernel that nobody may see.
fn hidden_kernel() -> Case {
    let script = "echo 2 >/proc/sys/kernel/kptr_restrict; flame doctor >doctor
        flame record -F 499 -o a.folded -- syscalls 1; code=$?
        echo 0 >/proc/sys/kernel/kptr_restrict; exit $code";
    Case::new("kernel-hidden", script, |answer| {
        let said = answer.said()?;
        ensure!(said.contains("kernel.kptr_restrict is 2") && !said.contains("sudo"), "{said}");
        ensure!(answer.text("doctor")?.contains("kernel.kptr_restrict is 2"), "doctor");
        Ok("reported by record and by doctor".to_owned())
    })
}

/// A program with process numbers and a file system of its own.
fn container() -> Case {
    let script = "mkdir -p /tmp/box; mount -t tmpfs box /tmp/box; mkdir /tmp/box/lib /tmp/box/lib64
        cp -r /lib /lib64 /tmp/box/; cp /bin/shares /tmp/box/inside
        unshare -pmf chroot /tmp/box /inside 4 >truth & sleep 0.5
        flame record -F 499 -o a.folded -p $(pidof inside | cut -d ' ' -f 1); code=$?
        wait; umount /tmp/box; exit $code";
    Case::new("container", script, |answer| {
        let summary = Summary::of(&answer.said()?)?;
        let folded = answer.folded("a.folded")?;
        let named = folded.with(|frame| ["alpha", "beta", "omega"].contains(&frame));
        let share = named as f64 / folded.total().max(1) as f64;
        ensure!(share > 0.9, "{share:.2} of the weight has names");
        quality(summary)
    })
}

/// What a serial line gets to see while a recording is in progress.
fn console() -> Case {
    let script = "flame record -F 99 -o a.folded -- burn 0.6 0 2>/dev/console";
    Case::new("console", script, |answer| {
        let shown = answer.text("../console")?;
        ensure!(shown.contains("Ctrl-C ends the recording"), "not told how to end it");
        ensure!(!shown.contains("\x1b[2K"), "the console gets cursor sequences");
        Ok("text only".to_owned())
    })
}
