//! The driver against a real browser.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends by panicking")]

use std::time::{Duration, Instant};

use flame_browser::{Browser, Error, Launch, find_or_skip};

fn launch(limit: Duration) -> Option<Browser> {
    let launch = Launch { program: Some(find_or_skip()?), limit, ..Launch::default() };
    Some(Browser::launch(&launch).unwrap())
}

const PATIENT: Duration = Duration::from_secs(30);

/// The page hears of a click some time after the browser has taken it.
fn wait_for_problems(browser: &mut Browser) -> Vec<String> {
    let end = Instant::now() + PATIENT;
    while browser.problems().is_empty() && Instant::now() < end {
        browser.eval("new Promise(done => setTimeout(done, 10))").unwrap();
    }
    browser.problems().to_vec()
}

#[test]
fn scripts_clicks_keys_and_complaints_come_through() {
    let Some(mut browser) = launch(PATIENT) else { return };
    let directory = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(directory.join("driver.css"), "button { color: red }").unwrap();
    let page = "<!DOCTYPE html><link rel=stylesheet href=driver.css><input>\
                <button onclick='console.error(`clicked`)'>x</button>";
    std::fs::write(directory.join("driver.html"), page).unwrap();
    browser.open_file(&directory.join("driver.html")).unwrap();
    assert_eq!(browser.problems(), [] as [&str; 0]);
    browser.click_on("button").unwrap();
    let problems = wait_for_problems(&mut browser);
    assert!(problems.len() == 1 && problems[0].contains("clicked"), "{problems:?}");
    browser.click_on("input").unwrap();
    browser.type_text("größe").unwrap();
    assert_eq!(browser.eval("document.querySelector('input').value").unwrap(), "größe");
    assert_eq!(browser.requests().len(), 2, "the page and its style sheet");
    let thrown = browser.eval("nothing.there").unwrap_err();
    assert!(matches!(thrown, Error::Script { .. }), "{thrown}");
    browser.navigate("data:text/plain,x").unwrap();
    assert_eq!(browser.problems(), [] as [&str; 0], "a new page starts afresh");
}

#[test]
fn a_page_that_never_answers_is_given_up() {
    let Some(mut browser) = launch(Duration::from_secs(8)) else { return };
    let limit = browser.eval("new Promise(() => {})").unwrap_err();
    assert!(matches!(limit, Error::Timeout { .. }), "{limit}");
}

#[test]
fn a_program_that_is_no_browser_is_an_error() {
    let launch = Launch { program: Some("/bin/true".into()), limit: PATIENT, ..Launch::default() };
    let error = Browser::launch(&launch).unwrap_err();
    assert!(matches!(error, Error::Gone { .. }), "{error}");
}

#[test]
fn a_screenshot_is_a_picture_of_the_size_of_the_page() {
    let Some(mut browser) = launch(PATIENT) else { return };
    browser.resize(320, 200).unwrap();
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("driver.png");
    browser.screenshot(&path).unwrap();
    let png = std::fs::read(&path).unwrap();
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(png[16..24], [0, 0, 1, 64, 0, 0, 0, 200]);
}
