//! What flame itself costs where there are many CPUs, and what it says where the kernel lets it have less.

use anyhow::{Context, Result, ensure};

use super::answer::{Answer, Summary, number};
use super::cases::Case;
use super::truth::ATTACHED;

/// How much of each CPU flame may take while it records them at 99 Hz: emulated ones are twenty times slower than real ones.
const OWN_CPU: f64 = 3.0;

/// Ticks a second in /proc.
const HZ: f64 = 100.0;

/// How many records may be lost of a hundred samples, and how many percent of the CPU time samples have to stand for, where a
/// start and an end take long: of two seconds, flame reads the counters of 2,000 threads for most of one each time on 32
/// emulated CPUs, and rings hold a quarter of one.
const LOST_AT_START: f64 = 5.0;
const SEEN_BESIDE_START: f64 = 80.0;

/// flame's own CPU time while it records all CPUs, of which one is busy: what it takes of each.
pub(super) fn own_time() -> Case {
    let script = "shares 30 >/dev/null & burner=$!
         flame record -g -e cpu-clock -F 99 -d 60s -o a.folded -a & flame=$!
         until_open $flame; sleep 1
         cat /proc/uptime /proc/$flame/stat >from; sleep 5; cat /proc/uptime /proc/$flame/stat >to
         nproc >cpus; kill -INT $flame; wait $flame; code=$?; kill $burner; exit $code";
    Case::new("own-cpu", script, |answer| {
        let cpus: f64 = answer.text("cpus")?.trim().parse()?;
        let [from, to] = ["from", "to"].map(|file| times(answer, file));
        let ((since, before), (until, after)) = (from?, to?);
        let of_each = (after - before) / HZ / (until - since) / cpus * 100.0;
        let lost = Summary::of(&answer.said()?)?.lost;
        let text = format!("{of_each:.2} % of each CPU, {lost} lost");
        ensure!(of_each > 0.0 && of_each <= OWN_CPU && lost == 0.0, "{text}");
        Ok(text)
    })
}

/// When, in seconds, and the CPU time that flame had used, in ticks.
fn times(answer: &Answer, file: &str) -> Result<(f64, f64)> {
    let text = answer.text(file)?;
    let (uptime, stat) = text.split_once('\n').context("two lines")?;
    let now: f64 = uptime.split(' ').next().context("no uptime")?.parse()?;
    // Behind the name, which ends with the last parenthesis: the state is the third field, and the times 14 and 15.
    let fields: Vec<&str> =
        stat.rsplit_once(')').context("no name")?.1.split_ascii_whitespace().collect();
    let ticks =
        |field: usize| anyhow::Ok(fields.get(field - 3).context("no time")?.parse::<f64>()?);
    Ok((now, ticks(14)? + ticks(15)?))
}

/// Threads that wait, and one that burns.
pub(super) fn threads(count: u32) -> Case {
    let script = format!(
        "mkfifo in; crowd {count} 1 <in >ready & crowd=$!; exec 3>in
         until grep -q ready ready; do sleep 0.1; done
         flame record -g -F 99 --value samples -d 2s -o a.folded -p $crowd & flame=$!
         until_open $flame; ls /proc/$flame/fd | wc -l >descriptors; wait $flame
         code=$?; echo >&3; wait $crowd; exit $code"
    );
    Case::new(&format!("threads-{count}"), script, move |answer| {
        let summary = Summary::of(&answer.said()?)?;
        let busy = answer.folded("a.folded")?.with(|frame| frame == "crowd_work");
        let open = answer.text("descriptors")?.trim().to_owned();
        // A counter of cycles has no time to be held against.
        let coverage = summary.coverage;
        let known = coverage.map_or("not known".to_owned(), |coverage| format!("{coverage:.1} %"));
        let text =
            format!("{busy} samples, {open} descriptors, coverage {known}, {} lost", summary.lost);
        let may_lose = if count < 1000 { 0.0 } else { LOST_AT_START };
        let is_whole = summary.lost <= summary.samples * may_lose / 100.0;
        let is_covered =
            answer.on_host_clock || coverage.is_none_or(|coverage| coverage >= SEEN_BESIDE_START);
        ensure!(busy > 50 && is_whole && is_covered, "{text}");
        Ok(text)
    })
}

/// The kernel allows so few samples a second from the middle of the recording on that it stops the event between them.
pub(super) fn throttled() -> Case {
    // That it may be set at all takes a share of the CPU time that is looked after, which the machines do not have.
    let script = "cd /proc/sys/kernel; allowed=$(cat perf_event_max_sample_rate); share=$(cat perf_cpu_time_max_percent)
         echo 25 >perf_cpu_time_max_percent; cd $OLDPWD; shares 4 >truth & shares=$!
         sleep 0.3; flame record -g -e cpu-clock -F 999 --value samples -d 3s -o a.folded -p $shares & flame=$!
         until_open $flame; sleep 1; echo 100 >/proc/sys/kernel/perf_event_max_sample_rate; wait $flame
         code=$?; cd /proc/sys/kernel; echo $allowed >perf_event_max_sample_rate; echo $share >perf_cpu_time_max_percent
         cd $OLDPWD; wait $shares; exit $code";
    Case::new("throttled", script, |answer| {
        let said = answer.said()?;
        let times = number(&said, "throttled").context("no word of throttling")?;
        let holds = ATTACHED.holds(answer)?;
        let coverage = Summary::of(&said)?.coverage.context("no coverage")?;
        let text = format!("{holds}, coverage {coverage:.1} %, {times} times throttled");
        ensure!(times > 0.0, "{text}: {said}");
        Ok(text)
    })
}
