//! What is tried on the machines: a script for the guest's shell, and a look at what it left behind.
//! Every program that is recorded says itself what was true.

use anyhow::{Context, Result, ensure};

use super::answer::{Answer, Summary, number};
use super::costs;
use super::modes;
use super::rights;
use super::truth::{ATTACHED, COVERAGE, GROUPED, Truth, WITHIN, below, covers, quality};

/// How many percent of the time of all CPUs they may stand for, idle ones too, of a duration that is known to a tenth of a
/// second.
const ALL_TIME: f64 = 105.0;

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

/// For a look: the levels that distributions ship, and that no recording is lost.
pub(super) fn short() -> Vec<Case> {
    let rights = [(4, "root"), (4, "perfmon"), (2, "user")];
    let mut cases = vec![attached(), deep(4)];
    cases.extend(rights.map(|(level, who)| rights::case(level, who)));
    cases
}

/// The same on one CPU.
pub(super) fn short_small() -> Vec<Case> {
    vec![shares(), costs::threads(100)]
}

/// One CPU and little memory.
pub(super) fn small() -> Vec<Case> {
    vec![shares(), whole_machine(4), costs::threads(300)]
}

/// More CPUs than the host has.
pub(super) fn many_cpus() -> Vec<Case> {
    vec![
        shares_of("launched", "-e cpu-clock -F 499", "shares", 8),
        whole_machine(8),
        costs::threads(2000),
        costs::own_time(),
    ]
}

/// A processor of another kind, with counters.
pub(super) fn arm() -> Vec<Case> {
    let mut cases = recordings();
    cases.push(shares_of("cycles", "-F 499", "shares", 2));
    cases.push(shares_of("static", "-F 499", "shares_static", 2));
    cases.push(shares_of("frame-pointer-code", "-F 499", "shares_fp", 2));
    cases.push(frame_pointers());
    cases.push(shares_of("branch-protection", "-F 499", "shares_pac", 2));
    cases.push(shares_of("stripped", "-F 499", "shares_stripped", 2));
    cases.extend([shares_of("c++", "-F 499", "thrown", 2), rust(), go(), signal(), vdso()]);
    cases.extend(counted());
    cases.extend(modes::all());
    cases.extend([costs::throttled(), deep(4), raised()]);
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
    vec![shares(), attached(), grouped(), whole_machine(4), counts(), costs::threads(100)]
}

/// Everything that two CPUs can be tried with.
pub(super) fn all() -> Vec<Case> {
    let mut cases = recordings();
    cases.extend([4, 3, 2].map(deep));
    cases.extend([
        costs::throttled(),
        raised(),
        online(),
        offline(),
        without_tracefs(),
        hidden_kernel(),
    ]);
    cases.extend(modes::all());
    cases.extend([container(), in_container(), version_1(), console(), dumb_terminal()]);
    for level in [4, 3, 2, 1, 0, -1] {
        cases.extend(rights::USERS.map(|who| rights::case(level, who)));
    }
    cases
}

/// A program whose functions take 50, 30 and 20 % of its time. Of recordings that begin with a program, up to 0.1 s were not
/// seen where CPUs are emulated, of 2 s as of 4 s: of 2 s that is more than the coverage may lack.
fn shares() -> Case {
    shares_of("launched", "-e cpu-clock -F 499", "shares", 4)
}

/// The same, built or recorded another way.
fn shares_of(name: &str, options: &str, program: &str, seconds: u32) -> Case {
    let script =
        format!("flame record {options} --value samples -o a.folded -- {program} {seconds}");
    let thread = program.to_owned();
    Case::new(&format!("shares-{name}"), script, move |answer| {
        Truth { thread: &thread, ..Truth::PRINTED }.judge(answer)
    })
}

/// Frame pointers do not tell where a stack ends, but lead there.
fn frame_pointers() -> Case {
    let script = "flame record -F 499 --call-graph fp --value samples -o a.folded -- shares_fp 2";
    Case::new("shares-frame-pointers", script, |answer| {
        let said = answer.said()?;
        ensure!(said.contains("frame pointers do not tell where a stack ends"), "{said}");
        Truth { thread: "shares_fp", ..Truth::PRINTED }.holds(answer)
    })
}

/// A program in Rust, two functions of which take turns.
fn rust() -> Case {
    let script = "echo outer 0.5 crunch 0.5 >truth
        flame record -F 499 --value samples -o a.folded -- turns_rs 2";
    Case::new("shares-rust", script, |answer| {
        let truth = Truth { thread: "turns_rs", ..ATTACHED };
        truth.judge(answer)
    })
}

/// A program in Go; what it does begins with a goroutine.
fn go() -> Case {
    let script = "echo alpha 0.5 beta 0.3 gamma 0.2 >truth
        flame record -F 499 --value samples -o a.folded -- rounds 2";
    Case::new("shares-go", script, |answer| {
        let truth = Truth { root: "runtime.goexit", thread: "rounds", ..ATTACHED };
        truth.judge(answer)
    })
}

/// All time below a frame that the kernel has put there.
fn signal() -> Case {
    let script = "flame record -F 499 --value samples -o a.folded -- kernels_frames 2 signal";
    Case::new("signal-frames", script, |answer| below(answer, &["main", "interrupted", "handled"]))
}

/// Most of the time in the code that the kernel maps into each process.
fn vdso() -> Case {
    let script = "flame record -F 499 --value samples -o a.folded -- kernels_frames 2 vdso";
    Case::new("vdso", script, |answer| {
        let folded = answer.folded("a.folded")?;
        let (inside, of) = (folded.with(|frame| frame == "__kernel_clock_gettime"), folded.total());
        ensure!(inside * 2 > of, "{inside} of {of} samples are in the vdso");
        Ok(format!("{inside} samples in it, {}", below(answer, &["main", "ask"])?))
    })
}

fn attached() -> Case {
    let script = "shares 4 >truth & sleep 0.3
        flame record -e cpu-clock -F 499 --value samples -o a.folded -p $!";
    Case::new("shares-attached", script, |answer| ATTACHED.judge(answer))
}

fn grouped() -> Case {
    let script = "echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/one
        sh -c 'echo $$ >/sys/fs/cgroup/one/cgroup.procs; exec shares 4' >truth &
        sleep 0.3; flame record -e cpu-clock -F 499 --value samples -d 3s -o a.folded -G one
        code=$?; wait; rmdir /sys/fs/cgroup/one; exit $code";
    Case::new("shares-group", script, |answer| GROUPED.judge(answer))
}

/// The same where the controller of events is in a hierarchy of version 1, which does not count a group's CPU time.
fn version_1() -> Case {
    let script = "umount /sys/fs/cgroup; mount -t tmpfs v1 /sys/fs/cgroup; cd /sys/fs/cgroup
        mkdir perf_event; mount -t cgroup -o perf_event v1 perf_event || exit 9
        mkdir perf_event/one; cd $OLDPWD
        sh -c 'echo $$ >/sys/fs/cgroup/perf_event/one/cgroup.procs; exec shares 4' >truth &
        sleep 0.3; flame record -F 499 --value samples -d 3s -o a.folded -G one; code=$?; wait
        rmdir /sys/fs/cgroup/perf_event/one; umount /sys/fs/cgroup/perf_event /sys/fs/cgroup
        mount -t cgroup2 cgroup /sys/fs/cgroup; exit $code";
    Case::new("cgroup-v1", script, |answer| ATTACHED.judge(answer))
}

/// The same cases where what flame does for a sample takes so long that many samples a second would be most of what there is.
pub(super) fn at_default_rate(cases: Vec<Case>) -> Vec<Case> {
    let slower = |case: Case| Case { script: case.script.replace("-F 499", "-F 99"), ..case };
    cases.into_iter().map(slower).collect()
}

/// All CPUs, while a program runs on one of them. Its samples stand for its time, and those of all tasks, the idle ones too,
/// for no more time than there was. What flame says of the coverage is not judged: the kernel's ticks leave out what timers start
/// and what interrupts an idle CPU, and of both there is much on a slow machine.
fn whole_machine(seconds: u32) -> Case {
    let script = format!(
        "nproc >cpus
        flame record -e cpu-clock -F 499 --value samples -o a.folded -a -- shares {seconds}"
    );
    let used = f64::from(seconds);
    Case::new("shares-machine", script, move |answer| {
        let said = answer.said()?;
        let summary = Summary::of(&said)?;
        let cpus: f64 = answer.text("cpus")?.trim().parse()?;
        let seconds = said.split_once(" for ").and_then(|(_, rest)| rest.split(' ').next());
        let seconds: f64 = seconds.context("no duration")?.parse()?;
        let hz = said.split_once(" Hz for ").and_then(|(before, _)| before.rsplit(' ').next());
        let hz: f64 = hz.context("no frequency")?.parse()?;
        let percent = |samples: f64, of_seconds: f64| samples / hz / of_seconds * 100.0;
        let all = summary.samples + number(&said, "idle").unwrap_or(0.0);
        let all = percent(all, cpus * seconds);
        let seen = answer.folded("a.folded")?.of_thread("shares").total() as f64;
        let own = percent(seen, used);
        let coverage = summary.coverage.context("no coverage")?;
        let text = format!(
            "{}, {own:.1} % of the program's time, {all:.1} % of all CPUs', coverage {coverage:.1} %",
            Truth::PRINTED.holds(answer)?
        );
        let is_covered = answer.on_host_clock || covers(&COVERAGE, own, seen);
        ensure!(is_covered && all <= ALL_TIME && summary.lost == 0.0, "{text}");
        Ok(text)
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
        let all = said.matches("samples alone add up to 100.0 %").count();
        ensure!(faults == 300 && (100..=204).contains(&switches) && all == 2, "{text}: {said}");
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
        let said = answer.said()?;
        let summary = Summary::of(&said)?;
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
        // Nothing else has the counter.
        let is_alone = !said.contains("multiplex");
        ensure!(is_alone, "other events had the counter: {said}");
        ensure!(off <= WITHIN && (sum - 1.0).abs() <= 0.02, "{text}");
        Ok(text)
    })
}

/// Cycles and instructions of one recording, whose quotient is known for all functions: 2, as a table of both and as a
/// flame graph.
fn cycles_per_instruction() -> Case {
    let script = "flame record -e cycles,instructions -F 99 -o a.pb.gz -- shares 12 && \
        for value in samples cycles instructions_samples instructions; do
            flame fold -q a.pb.gz --value $value -o $value.folded
        done && \
        flame diff -q a.pb.gz --values instructions,cycles --no-normalize -o cpi.folded -o cpi.svg";
    Case::new("cycles-per-instruction", script, |answer| {
        answer.said()?;
        let read = |name: &str| answer.folded(&format!("{name}.folded"));
        let [cycles, instructions] = [read("cycles")?, read("instructions")?];
        let samples = [read("samples")?, read("instructions_samples")?];
        // Lines `STACK INSTRUCTIONS CYCLES`.
        let both = answer.folded("cpi.folded")?;
        let of_all = cycles.total() as f64 / instructions.total().max(1) as f64;
        let mut text = format!("cycles per instruction: all {of_all:.2}");
        let is_drawn = answer.text("cpi.svg")?.contains("alpha");
        let mut is_right = is_drawn && (of_all / 2.0 - 1.0).abs() <= 0.02;
        for name in ["alpha", "beta", "omega"] {
            let of_cycles = cycles.with(|frame| frame == name);
            let of_instructions = instructions.with(|frame| frame == name);
            let quotient = of_cycles as f64 / of_instructions.max(1) as f64;
            // What chance makes of the samples of each event.
            let variance = samples.each_ref().map(|folded| {
                let own = folded.with(|frame| frame == name).max(1) as f64;
                (1.0 - own / folded.total().max(1) as f64) / own
            });
            let off = (quotient / 2.0 - 1.0).abs() / variance.iter().sum::<f64>().sqrt();
            text += &format!(", {name} {quotient:.2} ({off:.1} standard errors)");
            is_right &= off <= WITHIN;
            let drawn = both.with(|frame| frame.split(' ').next() == Some(name));
            is_right &= drawn == of_cycles;
        }
        ensure!(is_right, "{text}");
        Ok(text)
    })
}

/// Stacks that go on beyond their copy are read on.
fn deep(level: i32) -> Case {
    let script = format!(
        "level {level}; flame record -g -F 499 -d 60s -o a.folded -a & flame=$!
         until_open $flame; wide_deep 4 >/dev/null; kill -INT $flame; wait $flame
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
    let script = "level 2; flame record -g -F 499 -d 60s -o a.folded -a & flame=$!
        until_open $flame; level 4; wide_deep 4 >/dev/null; kill -INT $flame; wait $flame
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
        echo 0 >$cpu; flame record -g -F 199 -d 60s -o a.folded -a & flame=$!
        until_open $flame; echo 1 >$cpu; sleep 3
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

/// A CPU that goes offline during a recording and comes back, and what is recorded then runs there.
fn offline() -> Case {
    let script = "cpu=/sys/devices/system/cpu/cpu1/online; shares 9 >truth & busy=$!
        taskset -p 1 $busy >/dev/null
        flame record -g -F 499 --value samples -o a.folded -p $busy & flame=$!
        until_open $flame; echo 0 >$cpu; sleep 0.5; echo 1 >$cpu; sleep 2
        taskset -p 2 $busy >/dev/null; wait $flame";
    Case::new("cpu-offline", script, |answer| {
        let said = answer.said()?;
        ensure!(!said.contains("was not sampled"), "{said}");
        ATTACHED.judge(answer)
    })
}

fn without_tracefs() -> Case {
    let script = "umount /sys/kernel/tracing; flame doctor >doctor
        flame record -F 499 -o a.folded -- shares 4; code=$?
        mount -t tracefs tracefs /sys/kernel/tracing; exit $code";
    Case::new("no-tracefs", script, |answer| {
        ensure!(answer.text("doctor")?.contains("tracefs is not mounted"), "doctor says nothing");
        Truth::PRINTED.judge(answer)
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
        quality(answer, summary, &COVERAGE)
    })
}

/// flame in a container: process numbers, file systems and control groups of its own.
fn in_container() -> Case {
    let script = "mkdir -p /tmp/box; mount -t tmpfs box /tmp/box; cd /tmp/box
        mkdir -p proc sys dev tmp; cp -a /bin /lib /lib64 /etc .
        mknod dev/null c 1 3; cd $OLDPWD
        mkdir /sys/fs/cgroup/box; echo '
            mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t cgroup2 cgroup /sys/fs/cgroup; cd /tmp
            shares 6 >truth & flame doctor >doctor -p $!; cat /proc/self/cgroup >group
            flame record -e cpu-clock -F 499 --value samples -o a.folded -p $!' >/tmp/box/run
        sh -c 'echo $$ >/sys/fs/cgroup/box/cgroup.procs; exec apart chroot /tmp/box sh /run'
        code=$?; cp /tmp/box/tmp/* .; umount /tmp/box
        rmdir /sys/fs/cgroup/box; exit $code";
    Case::new("container-inside", script, |answer| {
        ensure!(answer.text("group")?.trim() == "0::/", "it sees the machine's groups");
        ensure!(answer.text("doctor")?.contains("shares"), "the doctor does not see the process");
        ATTACHED.judge(answer)
    })
}

/// What a serial line gets to see while a recording is in progress.
fn console() -> Case {
    let script = "flame record -F 99 -o a.folded -- burn 0.6 0 2>/dev/console";
    Case::new("console", script, |answer| is_plain(&answer.text("../console")?))
}

/// The same of a terminal that is said to know no sequences.
fn dumb_terminal() -> Case {
    let script = "mkdir -p /dev/pts; mount -t devpts pts /dev/pts
        TERM=dumb terminal shown flame record -F 99 -o a.folded -- burn 0.6 0; code=$?
        TERM=vt100 terminal written_over flame record -F 99 -o a.folded -- burn 0.6 0
        umount /dev/pts; exit $code";
    Case::new("terminal-dumb", script, |answer| {
        let other = answer.text("written_over")?;
        ensure!(other.contains("\x1b[2K"), "a terminal that knows sequences gets none: {other}");
        is_plain(&answer.text("shown")?)
    })
}

fn is_plain(shown: &str) -> Result<String> {
    ensure!(shown.contains("Ctrl-C ends the recording"), "not told how to end it: {shown}");
    ensure!(!shown.contains('\x1b'), "cursor sequences: {shown:?}");
    Ok("text only".to_owned())
}
