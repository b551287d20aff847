//! How long one picture takes to be ready and to answer, in a browser of its own.

use std::path::Path;

use anyhow::{Context, Result};
use flame_browser::{Browser, Launch};
use serde_json::{Value, json};

/// How long a browser may take to come to rest after its start: it loads pages of its own then, on
/// the CPUs that the picture is to be drawn with. Whoever opens a picture has a browser.
const START: u32 = 2_000;

/// Seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// From the start of the navigation until the picture is loaded, decoded and painted.
    pub(super) ready: f64,
    /// From the start of the navigation until a click right at that moment is painted.
    pub(super) answer: f64,
    /// From the event until it is painted; so are the others.
    pub(super) zoom: f64,
    pub(super) unzoom: f64,
    pub(super) search: f64,
    /// The first change of order; flamegraph.pl's pictures have one order.
    pub(super) order: Option<f64>,
}

/// Runs before anything of the page: notes when all is there and two frames were painted since.
const WATCH: &str = "window.addEventListener('load', () => {
    const root = document.documentElement;
    const frame = then => requestAnimationFrame(then);
    const look = () => {
        if (root.matches('.flame-graph:not([data-ready])')) frame(look);
        else frame(() => frame(() => { window.readyAt = performance.now(); }));
    };
    look();
});";

/// Acts at the start of a frame, as browsers hand on what mouse and keys did, and resolves to the
/// milliseconds until that frame was painted.
const TIMED: &str = "const timed = act => new Promise(done => requestAnimationFrame(() => {
    const from = performance.now(), after = new MessageChannel();
    after.port1.onmessage = () => done(performance.now() - from);
    act();
    after.port2.postMessage(0);
}));";

/// Widest box of at most 60 %: the same in both pictures.
const TARGET: &str = "Array.from(document.querySelectorAll('#frames g')).map(g => {
    const found = g.querySelector('title').textContent.match(/, ([0-9.]+)%\\)$/);
    return { g, share: found ? +found[1] : 100 };
}).filter(box => box.share <= 60).reduce((a, b) => a.share >= b.share ? a : b).g";

/// A click on [`TARGET`].
const CLICK: &str = "at.dispatchEvent(new MouseEvent('click', { bubbles: true }))";

/// A mouse that gets there.
const MOVE: &str = "new PointerEvent('pointermove', { bubbles: true })";

/// Opens a picture twice, to click at once and to use it at leisure.
pub(super) fn measure(path: &Path, launch: &Launch) -> Result<Times> {
    let mut browser = open(path, launch)?;
    let answer = seconds(&browser.eval(&format!(
        "(() => {{ {TIMED} return new Promise(done => (function look() {{ \
         if (!window.readyAt) {{ requestAnimationFrame(look); return; }} \
         const at = {TARGET}.querySelector('rect'); \
         timed(() => {CLICK}).then(time => done(window.readyAt + time)); }})()); }})()"
    ))?)?;
    drop(browser);
    let mut browser = open(path, launch)?;
    let ready = seconds(&browser.eval(
        "new Promise(done => (function look() { \
         if (window.readyAt) done(window.readyAt); else setTimeout(look, 20); })())",
    )?)?;
    // Nobody clicks in the very moment in which a picture is there, nor without moving there first.
    browser.eval(&format!("{TARGET}.dispatchEvent({MOVE})"))?;
    pause(&mut browser, 1_000)?;
    let mut timed = |act: &str| -> Result<f64> {
        seconds(&browser.eval(&format!("(() => {{ {TIMED} {act} }})()"))?)
    };
    let zoom =
        timed(&format!("const at = {TARGET}.querySelector('rect'); return timed(() => {CLICK});"))?;
    let unzoom = timed("return timed(() => unzoom());")?;
    let search = timed("return timed(() => search('rehash'));")?;
    let has_orders = browser.eval("document.querySelector('#order') !== null")? == json!(true);
    let order = match has_orders {
        true => Some(first_order(&mut browser)?),
        false => None,
    };
    Ok(Times { ready, answer, zoom, unzoom, search, order })
}

/// The time until the boxes stand in another order for the first time.
fn first_order(browser: &mut Browser) -> Result<f64> {
    browser.eval("search('')")?;
    pause(browser, 1_000)?;
    let key = "document.documentElement.dispatchEvent(\
               new KeyboardEvent('keydown', { key: 'o', bubbles: true }))";
    seconds(&browser.eval(&format!("(() => {{ {TIMED} return timed(() => {key}); }})()"))?)
}

/// A browser that has come to rest, and loads the picture then.
fn open(path: &Path, launch: &Launch) -> Result<Browser> {
    let mut browser = Browser::launch(launch)?;
    browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH }))?;
    pause(&mut browser, START)?;
    browser.open_file(path)?;
    Ok(browser)
}

fn pause(browser: &mut Browser, milliseconds: u32) -> Result<()> {
    browser.eval(&format!("new Promise(done => setTimeout(() => done(0), {milliseconds}))"))?;
    Ok(())
}

/// A time that the page gave, in seconds.
fn seconds(value: &Value) -> Result<f64> {
    Ok(value.as_f64().context("the page gave no time")? / 1e3)
}
