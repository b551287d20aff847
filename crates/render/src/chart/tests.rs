use flame_profile::{FrameKind, Location, Pid, Run, StackId, Tid, TimedSample, Timeline};
use flame_profile::{Profile, ValueType};

use super::*;

const MILLI: u64 = 1_000_000;

/// Samples of one thread, each at a millisecond, with its stack.
fn profile(samples: &[(u64, &str)], runs: Option<&[(u64, u64)]>) -> Profile {
    let mut profile =
        Profile::new(vec![ValueType::samples(), ValueType::new("cpu", "nanoseconds")]);
    let thread = profile.add_thread("worker", Pid(7), Tid(8));
    let mut timeline = Timeline::default();
    for (millis, path) in samples {
        let mut stack = StackId::EMPTY;
        for name in path.split(';') {
            let frame = profile.add_frame(name, FrameKind::User);
            let location = profile.add_location(Location::named(frame));
            stack = profile.push_stack(stack, location);
        }
        profile.add_sample(thread, stack, &[1, MILLI]);
        let key = profile.samples().position(|sample| sample.stack == stack).unwrap();
        let time = Nanos(millis * MILLI);
        timeline.push(TimedSample { time, row: key, cpu: None, event: 0, weight: MILLI });
    }
    profile.timeline = Some(timeline);
    profile.meta.duration = Some(Nanos(100 * MILLI));
    let run = |(from, until): &(u64, u64)| Run {
        pid: Pid(7),
        tid: Tid(8),
        from: Nanos(from * MILLI),
        until: Nanos(until * MILLI),
    };
    profile.runs = runs.map(|runs| runs.iter().map(run).collect());
    profile
}

/// The boxes of a chart: what they are called, and from where to where they go in parts of a thousand.
fn boxes(profile: &Profile) -> Vec<(String, u32, u32)> {
    let finest = Chart::finest(Nanos(100 * MILLI));
    let (lanes, _) = Lane::busiest(profile, 0, finest, 9);
    let chart = Chart {
        title: "a < b".to_owned(),
        lanes: lanes.into_iter().map(|lane| ("worker".to_owned(), lane)).collect(),
        knows_runs: profile.runs.is_some(),
        colours: ColourConfig::default(),
        footer: Vec::new(),
    };
    let mut out = Vec::new();
    write_chart(&chart, &mut out).unwrap();
    let svg = String::from_utf8(out).unwrap();
    assert!(svg.contains("a &lt; b"), "{svg}");
    let of_box = |text: &str| {
        let number = |name: &str| -> Option<u32> {
            let (_, rest) = text.split_once(&format!("{name}=\""))?;
            rest.split('"').next()?.parse().ok()
        };
        let name = text.split_once("<title>")?.1.split('\n').next()?.to_owned();
        let (x, width) = (number("x")?, number("width")?);
        Some((name, x * 1000 / INNER, (x + width) * 1000 / INNER))
    };
    svg.split("<rect ").filter_map(of_box).collect()
}

fn named(name: &str, from: u32, until: u32) -> (String, u32, u32) {
    (name.to_owned(), from, until)
}

#[test]
fn samples_share_the_time_in_which_their_thread_ran() {
    let samples = [(10, "main;a"), (20, "main;a;b"), (30, "main;a"), (70, "main;c")];
    let boxes = boxes(&profile(&samples, Some(&[(5, 40), (60, 80)])));
    // What main calls between two boxes of one name is not put in front of them.
    let first = [named("main", 50, 400), named("a", 50, 400), named("b", 150, 250)];
    assert_eq!(boxes[..3], first);
    assert_eq!(boxes[3..], [named("main", 600, 800), named("c", 600, 800)]);
}

#[test]
fn without_switches_what_was_not_sampled_for_long_did_not_run() {
    let samples = [(10, "main"), (11, "main"), (12, "main"), (50, "main")];
    let boxes = boxes(&profile(&samples, None));
    // Samples are a millisecond apart mostly, so that each reaches three of them.
    assert_eq!(boxes, [named("main", 70, 150), named("main", 470, 530)]);
}

#[test]
fn long_titles_end_before_the_search_field_and_long_notes_are_wrapped() {
    let long = "word ".repeat(100);
    let config =
        SvgConfig { title: long.clone(), footer: vec![long.clone()], ..SvgConfig::default() };
    let chart = Chart::of_profile(&profile(&[(0, "a")], None), 0, config);
    let mut out = Vec::new();
    write_chart(&chart, &mut out).unwrap();
    let svg = String::from_utf8(out).unwrap();
    assert!(
        !svg.contains(long.trim_end()) && svg.contains("&#8230;</text>\n<text id=\"matched\""),
        "{svg}"
    );
    let notes = svg.split_once("id=\"notes\"").unwrap().1;
    assert_eq!(notes.matches("word").count(), 100);
}
