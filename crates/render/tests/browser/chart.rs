use flame_browser::Browser;
use flame_profile::{
    FrameKind, Lane, Location, Nanos, Pid, Profile, Run, StackId, Tid, TimedSample, Timeline,
    ValueType,
};
use flame_render::{Chart, ColourConfig, write_chart};
use serde_json::{Value, json};

use crate::graph::{browser, write};

const MILLI: u64 = 1_000_000;

/// Two threads that take turns each tenth of a second: `one` is 20 calls deep for 2 ms once.
fn chart() -> String {
    let mut profile =
        Profile::new(vec![ValueType::samples(), ValueType::new("cpu", "nanoseconds")]);
    let (mut timeline, mut runs) = (Timeline::default(), Vec::new());
    let threads =
        ["one", "other"].map(|name| profile.add_thread(name, Pid(7), Tid(name.len() as u32)));
    for tenth in 0..10 {
        let (thread, tid) = (threads[tenth % 2], Tid(if tenth % 2 == 0 { 3 } else { 5 }));
        let start = tenth as u64 * 100;
        for (millis, depth) in
            (start..start + 100).step_by(2).zip((0..).map(|at| if at == 7 { 20 } else { 2 }))
        {
            let depth = if tenth == 4 { depth } else { 2 };
            let mut stack = StackId::EMPTY;
            for level in 0..depth {
                let frame = profile.add_frame(&format!("level_{level}"), FrameKind::User);
                let location = profile.add_location(Location::named(frame));
                stack = profile.push_stack(stack, location);
            }
            profile.add_sample(thread, stack, &[1, MILLI]);
            let of = |sample: &flame_profile::Sample<'_>| (sample.thread, sample.stack);
            let row = profile.samples().position(|sample| of(&sample) == (thread, stack)).unwrap();
            let time = Nanos(millis * MILLI);
            timeline.push(TimedSample { time, row, cpu: None, event: 0, weight: MILLI });
        }
        let (from, until) = (Nanos(start * MILLI), Nanos((start + 100) * MILLI));
        runs.push(Run { pid: Pid(7), tid, from, until });
    }
    (profile.timeline, profile.runs) = (Some(timeline), Some(runs));
    profile.meta.duration = Some(Nanos(1000 * MILLI));
    let finest = Chart::finest(Nanos(1000 * MILLI));
    let lanes = Lane::busiest(&profile, 0, finest, 9).0.into_iter();
    let named = lanes.map(|lane| (profile.text(profile.thread(lane.thread).name).to_owned(), lane));
    let chart = Chart {
        title: "turns".to_owned(),
        lanes: named.collect(),
        knows_runs: true,
        colours: ColourConfig::default(),
        footer: vec!["a line at the foot".to_owned()],
    };
    let mut out = Vec::new();
    write_chart(&chart, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn after_frame(page: &mut Browser, expression: &str) -> Value {
    page.eval(&format!(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done({expression}))))"
    ))
    .unwrap()
}

/// The middle of the first box of that name in a lane.
fn place(page: &mut Browser, lane: usize, name: &str) -> (f64, f64) {
    let found = after_frame(
        page,
        &format!(
            "(() => {{ const lane = document.querySelectorAll('.lane')[{lane}]; \
             const title = [...lane.querySelectorAll('title')].find(one => one.textContent.startsWith({name:?})); \
             const at = title.parentNode.getBoundingClientRect(); \
             return [at.x + at.width / 2, at.y + at.height / 2]; }})()"
        ),
    );
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

const TEXTS: &str = "[...document.querySelectorAll('.texts')].map(texts => texts.children.length)";
const AXIS: &str = "[...document.querySelectorAll('#axis text')].map(text => text.textContent)";
const SHOWN: &str = "document.querySelector('#shown').textContent";

#[test]
fn a_click_shows_one_time_in_all_lanes_and_escape_the_whole() {
    let Some(mut page) = browser(1220, 700) else { return };
    page.open_file(&write("chart.svg", &chart())).unwrap();
    let whole = after_frame(&mut page, AXIS);
    assert_eq!(whole[0], "0.0 s");
    let texts = after_frame(&mut page, TEXTS);
    assert!(texts[0].as_u64() > Some(4) && texts[1].as_u64() > Some(4), "{texts}");
    // The first turn of the first thread, a tenth of the whole: the other one does not run then.
    let (x, y) = place(&mut page, 0, "level_0");
    page.move_to(x, y).unwrap();
    let said = after_frame(&mut page, SHOWN);
    assert!(said.as_str().unwrap().starts_with("level_0 \u{2014} 100 ms from 0.0"), "{said}");
    page.click(x, y).unwrap();
    assert_eq!(after_frame(&mut page, TEXTS), json!([2, 0]));
    let axis = after_frame(&mut page, AXIS);
    assert!(
        axis.as_array().unwrap().iter().any(|text| text == "0.05 s" || text == "0.050 s"),
        "{axis}"
    );
    page.press("Escape").unwrap();
    assert_eq!(after_frame(&mut page, AXIS), whole);
    assert_eq!(page.problems(), [] as [String; 0]);
}

#[test]
fn a_search_keeps_what_it_finds_and_adds_up_nested_calls_once() {
    let Some(mut page) = browser(1220, 700) else { return };
    page.open_file(&write("chart-search.svg", &chart())).unwrap();
    page.press("/").unwrap();
    let search = |page: &mut Browser, text: &str| {
        let set = format!(
            "(() => {{ const input = document.querySelector('input'); const focused = document.activeElement === input; \
             input.value = {text:?}; input.dispatchEvent(new Event('input')); return focused; }})()"
        );
        assert_eq!(after_frame(page, &set), json!(true));
        let seen = "[document.querySelector('#matched').textContent, document.querySelectorAll('.found').length, \
                    document.documentElement.classList.contains('searched')]";
        after_frame(page, seen)
    };
    let found = search(&mut page, "level_[01]");
    let boxes = found[1].as_u64().unwrap();
    assert!(boxes >= 20 && found[2] == true, "{found}");
    // Ten turns of 100 ms, whatever is nested.
    assert_eq!(found[0], json!(format!("{boxes} boxes, 1000 ms")));
    // What is not a regular expression is looked for as it stands.
    assert_eq!(search(&mut page, "level_0("), json!(["nothing found", 0, true]));
    page.press("Escape").unwrap();
    let cleared =
        "[document.querySelector('input').value, document.querySelectorAll('.found').length]";
    assert_eq!(after_frame(&mut page, cleared), json!(["", 0]));
    assert_eq!(page.problems(), [] as [String; 0]);
}

#[test]
fn rows_that_are_rare_come_with_a_click_on_the_name() {
    let Some(mut page) = browser(1220, 700) else { return };
    page.open_file(&write("chart-rows.svg", &chart())).unwrap();
    let heights = "[...document.querySelectorAll('.boxes')].map(boxes => Number(boxes.getAttribute('height')))";
    assert_eq!(after_frame(&mut page, heights), json!([42, 42]));
    let place = after_frame(
        &mut page,
        "(at => [at.x + 5, at.y + at.height / 2])(document.querySelector('.name').getBoundingClientRect())",
    );
    let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    page.click(x, y).unwrap();
    assert_eq!(after_frame(&mut page, heights), json!([10 + 20 * 16, 42]));
    page.click(x, y).unwrap();
    assert_eq!(after_frame(&mut page, heights), json!([42, 42]));
}
