//! What is said of a profile when its recording is over, and at the foot of its pictures.

use std::collections::BTreeMap;

use flame_message::{Paint, clean_name, group_thousands};
use flame_profile::{
    ByteLen, CallTree, Health, Meta, Missing, Nanos, Occurrences, OffCpuTime, Profile, StackEnd,
    Weight,
};

use crate::hottest::hottest;
use crate::scripts;

mod shares;

use shares::Shares;

/// Images with unnamed frames that the summary lists one by one.
const UNNAMED: usize = 3;

/// The share of samples from which on frames without a name are worth a line: what is shown as
/// 0.1 % or more. `--explain` lists all.
const MIN_UNNAMED: f64 = 0.001;

/// Characters of a command line that are shown.
const COMMAND: usize = 400;

/// The lines at the foot of pictures: how the profile was taken, and how far to trust it.
pub fn recording_footer(profile: &Profile) -> Vec<String> {
    let mut lines = vec![how(&profile.meta)];
    lines.extend(profile.meta.command.as_deref().map(cut_command));
    lines.push(profile.health.one_line());
    lines.extend(profile.health.notes.iter().cloned());
    lines
}

/// The start of a command line: some are longer than a picture.
fn cut_command(command: &str) -> String {
    match command.char_indices().nth(COMMAND) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command.to_owned(),
    }
}

/// `cpu-clock at 99 Hz for 10.0 s on host, flame 0.1.0`
fn how(meta: &Meta) -> String {
    let mut text = meta.event.clone().unwrap_or_default();
    match (meta.frequency, meta.period) {
        (Some(frequency), _) => text += &format!(" at {frequency}"),
        (None, Some(period)) => text += &format!(" every {period}"),
        (None, None) => {}
    }
    if let Some(duration) = meta.duration {
        text += &format!(" for {:.1} s", duration.as_secs_f64());
    }
    if let Some(host) = &meta.host {
        text += &format!(" on {host}");
    }
    if let Some(producer) = &meta.producer {
        text += &format!(", {producer}");
    }
    text
}

/// The summary for a terminal of that many columns; `taken` says how much of the target was found.
pub fn recording_summary(
    profile: &Profile,
    tree: &CallTree,
    taken: Option<&str>,
    paint: Paint,
    columns: usize,
) -> String {
    let taken = taken.map_or_else(String::new, |taken| format!("  {:<10}{taken}\n", "target"));
    let shown = Shown {
        distinct: profile.samples().len(),
        counted: counted_event(profile),
        shares: Shares::of(profile, tree),
    };
    let mut health = health(&profile.health, shown, paint);
    health.insert_str(0, &precision(profile, paint));
    health.insert_str(0, &drawn_event(profile));
    format!("{}{taken}{health}{}", headline(profile, paint), hottest(tree, paint, columns))
}

fn headline(profile: &Profile, paint: Paint) -> String {
    let count = profile.health.samples;
    let noun = if count == 1 { "sample" } else { "samples" };
    let samples = paint.bold(&format!("{} {noun}", group_thousands(count)));
    let mut text = format!("{samples} of {}", how(&profile.meta));
    if let Some((before, _)) = text.rsplit_once(", flame") {
        text.truncate(before.len());
    }
    text + "\n"
}

/// Why some samples are no part of a profile, and nothing is wrong with that.
const SURPLUS: &str =
    "left out at random where timers fired more often than asked for; no time is missing";

/// What a profile shows, for what is said of its quality.
#[derive(Clone, Copy, Debug, Default)]
struct Shown<'p> {
    /// How many distinct stacks.
    distinct: usize,
    /// What was counted, in the words of the summary.
    counted: &'p str,
    shares: Shares,
}

/// What is known of the profile's quality; in colour what is not as it should be.
fn health(health: &Health, shown: Shown<'_>, paint: Paint) -> String {
    let Shown { distinct, counted, shares } = shown;
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("  {name:<10}{value}\n");
    if let Some(coverage) = health.coverage.filter(|coverage| !coverage.is_of_nothing()) {
        let share = percent(coverage.fraction());
        let is_near = (0.95..1.1).contains(&coverage.fraction());
        let share = if is_near { share } else { paint.yellow(&share) };
        line("coverage", format!("{share} of {} CPU time", seconds(coverage.accounted)));
    }
    if let Some(seen) = health.occurrences {
        line("counted", occurrences(seen, counted, health.samples, paint));
    }
    if let Some(off_cpu) = health.off_cpu {
        line("off CPU", off_cpu.to_string());
        if let Some(share) = off_cpu.deviation_share() {
            line("shares", shares_of_waits(&off_cpu, share, paint));
        }
    }
    if let Some(share) = health.complete_share() {
        line("complete", complete(health, share, distinct, paint));
        shares.of_few_stacks(health, share, paint).into_iter().for_each(|text| line("", text));
    }
    if health.complete_share().is_none() && health.stack_ends.contains_key(&StackEnd::ChainEnd) {
        line("complete", "not known: frame pointers do not tell where a stack ends".to_owned());
    }
    if let Some(text) = beyond_copies(health) {
        line("copied", text);
    }
    scripts::lines(health).iter().for_each(|(name, text)| line(name, text.clone()));
    line("lost", lost(health, paint));
    if health.throttled > 0 {
        let time = health.throttled_time.as_secs_f64();
        let times = format!("{} times, {time:.3} s without samples", health.throttled);
        line("throttled", paint.yellow(&times));
    }
    if health.multiplexed_time > Nanos(0) {
        let time = seconds(health.multiplexed_time);
        line("multiplex", paint.yellow(&format!("{time} in which other events had the counter")));
    }
    if health.outside_mappings > 0 {
        let count = group_thousands(health.outside_mappings);
        line("unmapped", paint.yellow(&format!("{count} samples outside any mapping")));
    }
    if health.undecodable_records > 0 {
        line("undecoded", paint.red(&format!("{} records", health.undecodable_records)));
    }
    if health.idle_samples > 0 {
        line("idle", format!("{} samples, left out", group_thousands(health.idle_samples)));
    }
    if health.stray_samples > 0 {
        line("surplus", format!("{} samples, {SURPLUS}", group_thousands(health.stray_samples)));
    }
    if let Some(text) = unnamed(health) {
        // What is hot matters more than what stands somewhere in a stack.
        line("unnamed", format!("{} by self weight\n            {text}", percent(shares.unnamed)));
    }
    text
}

/// The records that the kernel had no room for, by what they would have said.
fn lost(health: &Health, paint: Paint) -> String {
    let Health { lost_records, lost_samples, lost_side_band, .. } = *health;
    let records = format!("{} records", group_thousands(lost_records));
    if lost_records == 0 {
        return records;
    }
    let either = lost_records.saturating_sub(lost_samples + lost_side_band);
    let kinds = [
        (lost_samples, "samples of any process"),
        (lost_side_band, "records of processes, threads and mappings"),
        (either, "samples or records of processes, threads and mappings (the kernel does not say)"),
    ];
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    let kinds = kinds.map(|(count, kind)| format!("{} {kind}", group_thousands(count)));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    format!("{}, the buffer was full: {kinds}", paint.red(&records))
}

/// What was counted: the name of an event where there are several, of which each has two values.
fn counted_event(profile: &Profile) -> &str {
    let event = profile.health.occurrences.map_or(0, |seen| seen.event);
    match profile.value_types().get(2 * event + 1) {
        Some(value) if profile.value_types().len() > 2 => &value.name,
        _ => "that happened",
    }
}

/// How many of the occurrences the samples alone stood for, and whether a few samples stood for most:
/// while other programs flood a CPU with the event, fewer are sampled there, and each weighs more.
fn occurrences(seen: Occurrences, of: &str, samples: u64, paint: Paint) -> String {
    let share = percent(seen.fraction());
    let share = if seen.fraction() < 0.99 { paint.yellow(&share) } else { share };
    let text =
        format!("{} {of}; samples alone add up to {share} of that", group_thousands(seen.happened));
    let text = match (0.99..=1.01).contains(&seen.fraction()) {
        true => text,
        false => text + ", and are scaled to it",
    };
    if seen.effective >= samples / 2 {
        return text;
    }
    let effective = group_thousands(seen.effective);
    format!("{text}; weights differ: as precise as {effective} samples of equal weight")
}

/// Which of several events is shown: text and a picture have one of them.
fn drawn_event(profile: &Profile) -> String {
    let events: Vec<&str> = profile.meta.event.iter().flat_map(|event| event.split(", ")).collect();
    // Of each event there are two values: how many samples, and their weight.
    match events.get(profile.default_value / 2) {
        Some(event) if events.len() > 1 => format!(
            "  {:<10}{event} alone: --value chooses another event, a .pb.gz file has them all\n",
            "shown"
        ),
        _ => String::new(),
    }
}

/// How far the sum may be off, since few of many occurrences were sampled, and what they add up to differs.
fn precision(profile: &Profile, paint: Paint) -> String {
    let total = profile.total(profile.default_value);
    let error = Weight(profile.health.standard_error).share_of(total);
    if error < 0.01 {
        return String::new();
    }
    let percent = format!("within {:.0} %", error * 100.0);
    let percent = if error > 0.1 { paint.yellow(&percent) } else { percent };
    format!(
        "  {:<10}{percent} (one standard deviation): few of many were sampled, and they differ in size\n",
        "total"
    )
}

fn complete(health: &Health, share: f64, distinct: usize, paint: Paint) -> String {
    let shown = floor_percent(share);
    let shown = if share < 0.95 { paint.yellow(&shown) } else { shown };
    format!("{shown} of stacks{}, {} distinct", cut(health), group_thousands(distinct as u64))
}

/// How far each box may be off, since not all waits were sampled.
fn shares_of_waits(off_cpu: &OffCpuTime, share: f64, paint: Paint) -> String {
    let seconds = off_cpu.deviation.as_secs_f64();
    let percent = share * 100.0;
    let percent = if percent < 1.0 { format!("{percent:.1}") } else { format!("{percent:.0}") };
    let within = format!("each within some {seconds:.3} s, {percent} % of that time");
    let (within, advice) = match share > 0.05 {
        true => (paint.yellow(&within), "; a higher -F samples more of them"),
        false => (within, ""),
    };
    format!("{within} (one standard deviation): not all waits were sampled{advice}")
}

/// Why stacks are not complete, most frequent first.
fn cut(health: &Health) -> String {
    let mut ends: Vec<(StackEnd, u64)> =
        health.walked().filter(|(end, _)| *end != StackEnd::Root).collect();
    ends.sort_by_key(|(end, count)| (std::cmp::Reverse(*count), *end));
    let part = |(end, count): &(StackEnd, u64)| match most_without_info(health) {
        Some(image) if *end == StackEnd::NoUnwindInfo => format!("{count} {end}, most in {image}"),
        _ => format!("{count} {end}"),
    };
    let parts: Vec<String> = ends.iter().map(part).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// The image in which most walks ended for lack of unwind information.
fn most_without_info(health: &Health) -> Option<String> {
    let images = health.no_unwind_info.iter();
    let (image, _) = images.max_by_key(|(image, count)| (**count, std::cmp::Reverse(*image)))?;
    Some(clean_name(image.rsplit('/').next().unwrap_or(image)).into_owned())
}

/// What became of stacks that went on beyond their copy; `None` if there were none.
fn beyond_copies(health: &Health) -> Option<String> {
    if health.read_on == 0 && health.not_read.is_empty() {
        return None;
    }
    let kib = |bytes: Option<ByteLen>| bytes.map_or(0.0, |bytes| bytes.0 as f64 / 1024.0);
    let copies = health.stack_copies;
    let mut text = format!(
        "{:.1} of {:.0} KiB a stack on average",
        kib(copies.mean_copied()),
        kib(copies.mean_asked())
    );
    if let Some(read) = health.read_on_text() {
        text += &format!(", {read} read on from the process");
    }
    Some(text + &not_read(health))
}

/// The stacks that went on beyond their copy and were not read to their end. Not all are shown: where it is asked who wakes
/// threads, an interrupt is shown without what it came upon.
fn not_read(health: &Health) -> String {
    let all: u64 = health.not_read.values().sum();
    if all == 0 {
        return String::new();
    }
    let reasons = health.not_read.iter();
    let reasons = reasons.map(|(why, count)| format!("{} {why}", group_thousands(*count)));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let is_cut = |end: StackEnd| {
        matches!(end, StackEnd::CopyTooShort | StackEnd::OtherStack | StackEnd::BadValue)
    };
    let shown: u64 = health.walked().filter(|(end, _)| is_cut(*end)).map(|(_, count)| count).sum();
    let part = match shown {
        0 => "; none of these is shown".to_owned(),
        shown if shown < all => format!("; {} of these are shown", group_thousands(shown)),
        _ => String::new(),
    };
    format!("; stacks without the callers beyond their copy: {reasons}{part}")
}

/// The images that most unnamed frames are in, and why; of the others the reasons. `None` where
/// there are none, or so few that nobody would look for them.
fn unnamed(health: &Health) -> Option<String> {
    let share = |count: u64| Weight(count).share_of(Weight(health.samples));
    let mut parts: Vec<(&(String, Missing), u64)> =
        health.unnamed.iter().map(|(key, count)| (key, *count)).collect();
    parts.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
    let frequent = parts.partition_point(|(_, count)| share(*count) >= MIN_UNNAMED);
    let (first, others) = parts.split_at(frequent.min(UNNAMED));
    let text = |((image, missing), count): &(&(String, Missing), u64)| {
        let share = percent(share(*count));
        format!("{share} have frames in {}: {missing}", clean_name(image))
    };
    let mut shown: Vec<String> = first.iter().map(text).collect();
    let mut reasons: BTreeMap<Missing, (usize, u64)> = BTreeMap::new();
    for ((_, missing), count) in others {
        let (images, samples) = reasons.entry(*missing).or_default();
        (*images, *samples) = (*images + 1, *samples + count);
    }
    reasons.retain(|_, (_, samples)| share(*samples) >= MIN_UNNAMED);
    let (lead, more) = if shown.is_empty() { ("frames", "") } else { ("and", "more ") };
    let more = |(missing, (count, _)): (Missing, (usize, u64))| {
        let images = if count == 1 { "image" } else { "images" };
        format!("{lead} in {count} {more}{images}: {missing}")
    };
    shown.extend(reasons.into_iter().map(more));
    (!shown.is_empty()).then(|| shown.join("\n            "))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Never says 100 % of something that is not whole.
fn floor_percent(share: f64) -> String {
    if share < 1.0 { format!("{:.2} %", (share * 1e4).floor() / 100.0) } else { "100 %".to_owned() }
}

fn seconds(time: Nanos) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests;
