//! A flame graph open in a browser.

use std::path::PathBuf;

use flame_browser::{Browser, Launch, find_or_skip};
use flame_profile::CallTree;
use flame_render::{SvgConfig, write_svg};
use serde_json::{Value, json};

/// All boxes are there: of many, the narrow ones are drawn a frame later.
const DRAWN: &str = "!document.querySelector('[data-drawing]')";

pub(crate) struct Graph {
    pub(crate) browser: Browser,
}

/// A small server: `parse` and `read` side by side, a kernel frame, and runs of thin frames.
pub(crate) fn server() -> Vec<(String, u64)> {
    let mut stacks: Vec<(String, u64)> = [
        ("server;main;parse", 50_000),
        ("server;main;parse;alloc_[i]", 10_000),
        ("server;main;read;sys_read_[k]", 30_000),
        ("idle;sys_wait_[k]", 5_000),
    ]
    .map(|(stack, weight)| (stack.to_owned(), weight))
    .into();
    // 500 siblings of 0.01 % each: none is wide enough to be drawn alone.
    stacks.extend((0..500).map(|n| (format!("server;main;thin_{n:03};leaf_{}", n % 10), 10)));
    stacks
}

pub(crate) fn svg(tree: &CallTree, config: &SvgConfig) -> String {
    let mut out = Vec::new();
    write_svg(tree, config, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(crate) fn browser(width: u32, height: u32) -> Option<Browser> {
    let launch = Launch { program: Some(find_or_skip()?), width, height, ..Launch::default() };
    Some(Browser::launch(&launch).unwrap())
}

/// Writes a file for one test; its name must be the test's own.
pub(crate) fn write(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

impl Graph {
    /// Opens the graph of a tree in a page of 1200 by 900; `None` without a browser.
    pub(crate) fn open(name: &str, tree: &CallTree) -> Option<Graph> {
        Graph::open_sized(name, tree, &SvgConfig::default(), (1200, 900))
    }

    pub(crate) fn open_sized(
        name: &str,
        tree: &CallTree,
        config: &SvgConfig,
        size: (u32, u32),
    ) -> Option<Graph> {
        let mut browser = browser(size.0, size.1)?;
        browser.open_file(&write(&format!("{name}.svg"), &svg(tree, config))).unwrap();
        let mut graph = Graph { browser };
        graph.wait_until("document.documentElement.hasAttribute('data-ready')");
        // A tall graph is scrolled to its root in the first frame.
        graph.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        Some(graph)
    }

    /// Waits until a condition holds, frame by frame; the browser's own limit ends a wait in vain.
    pub(crate) fn wait_until(&mut self, condition: &str) {
        self.eval(&format!(
            "new Promise(done => (function look() {{ \
             if ({condition}) done(); else requestAnimationFrame(look); }})())"
        ));
    }

    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        self.browser.eval(expression).unwrap()
    }

    /// The text of the element with that id; empty when it is hidden.
    pub(crate) fn text(&mut self, id: &str) -> String {
        let shown = self.eval(&format!(
            "(e => e.getAttribute('display') === 'none' ? '' : e.textContent)\
             (document.getElementById({id:?}))"
        ));
        shown.as_str().unwrap().to_owned()
    }

    /// What the address ends with; it changes a moment after the picture.
    pub(crate) fn address(&mut self) -> String {
        let hash = self.eval(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => \
             setTimeout(() => done(location.hash)))))",
        );
        hash.as_str().unwrap().to_owned()
    }

    /// The markup of all boxes, without what is added for screen readers once there is time.
    pub(crate) fn boxes(&mut self) -> String {
        self.wait_until(DRAWN);
        let boxes = self.eval(
            "document.getElementById('frames').innerHTML \
             .replace(/ (role|aria-[a-z]*|tabindex)=\"[^\"]*\"/g, '')",
        );
        boxes.as_str().unwrap().to_owned()
    }

    /// The names of the frames that are drawn, in the order of the file.
    pub(crate) fn names(&mut self) -> Vec<String> {
        self.wait_until(DRAWN);
        let names = self.eval(
            "Array.from(document.querySelectorAll('#frames title'), \
             t => t.textContent.replace(/ [(][^(]*[)]$/, ''))",
        );
        names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    /// `[x, y, width, opacity, class]` of the frame of that name.
    pub(crate) fn frame(&mut self, name: &str) -> Value {
        let find = find(name);
        self.eval(&format!(
            "(g => {{ const r = g.querySelector('rect'); \
             return [+r.getAttribute('x'), +r.getAttribute('y'), +r.getAttribute('width'), \
             r.getAttribute('opacity') || '1', g.getAttribute('class') || '']; }})({find})"
        ))
    }

    pub(crate) fn click(&mut self, name: &str) {
        let (x, y) = self.middle(name);
        self.browser.click(x, y).unwrap();
    }

    pub(crate) fn hover(&mut self, name: &str) {
        let (x, y) = self.middle(name);
        self.browser.move_to(x, y).unwrap();
    }

    pub(crate) fn middle(&mut self, name: &str) -> (f64, f64) {
        self.wait_until(DRAWN);
        let find = find(name);
        let at = self.eval(&format!(
            "(r => [r.x + r.width / 2, r.y + r.height / 2])\
             ({find}.querySelector('rect').getBoundingClientRect())"
        ));
        (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
    }

    /// The middle of the first element that a selector finds.
    pub(crate) fn middle_of(&mut self, selector: &str) -> (f64, f64) {
        let at = self.eval(&format!(
            "(r => [r.x + r.width / 2, r.y + r.height / 2])\
             (document.querySelector({selector:?}).getBoundingClientRect())"
        ));
        (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
    }

    /// Opens the search by its key and types a pattern.
    pub(crate) fn search(&mut self, pattern: &str) {
        self.browser.press_control("f").unwrap();
        self.browser.type_text(pattern).unwrap();
    }

    /// Names of the frames that are marked as matches.
    pub(crate) fn hits(&mut self) -> Value {
        self.wait_until(DRAWN);
        self.eval(
            "Array.from(document.querySelectorAll('#frames g')) \
             .filter(g => g.querySelector('rect').getAttribute('stroke-width') === '.7') \
             .map(g => g.firstChild.textContent.replace(/ [(][^(]*[)]$/, ''))",
        )
    }

    /// Nothing was complained about, and nothing but the page itself was requested.
    #[track_caller]
    pub(crate) fn check_quiet(&mut self) {
        assert_eq!(self.browser.problems(), [] as [&str; 0]);
        assert_eq!(self.requests().len(), 1, "{:?}", self.requests());
    }

    /// What was requested; browsers look for the icon of a server by themselves.
    pub(crate) fn requests(&mut self) -> Vec<String> {
        let requests = self.browser.requests().iter();
        requests.filter(|url| !url.ends_with("/favicon.ico")).cloned().collect()
    }
}

/// An expression for the `<g>` whose tooltip starts with that name.
pub(crate) fn find(name: &str) -> String {
    let name = json!(name);
    format!(
        "Array.from(document.querySelectorAll('#frames g')).find(g => \
         g.firstChild.textContent.startsWith({name} + ' (') || g.firstChild.textContent === {name})"
    )
}
