//! The same in another browser, as far as its protocol goes: mouse, script, address.

use flame_browser::{Firefox, firefox_or_skip};
use flame_render::SvgConfig;
use serde_json::{Value, json};

use crate::graph::{find, server, svg, write};
use crate::test_trees::tree_of;

/// The text of an element.
fn text(firefox: &mut Firefox, id: &str) -> Value {
    firefox.eval(&format!("document.getElementById('{id}').textContent")).unwrap()
}

fn point_at(firefox: &mut Firefox, name: &str) {
    let find = find(name);
    let at = firefox.eval(&format!(
        "(r => [r.x + r.width / 2, r.y + r.height / 2])\
         ({find}.querySelector('rect').getBoundingClientRect())"
    ));
    let at = at.unwrap();
    firefox.move_to(at[0].as_f64().unwrap(), at[1].as_f64().unwrap()).unwrap();
}

#[test]
fn firefox_hovers_zooms_searches_and_gives_up() {
    let Some(program) = firefox_or_skip() else { return };
    let mut stacks = server();
    stacks.push((format!("server;{}", "usr/lib/".repeat(12)), 1_000));
    let path = write("firefox.svg", &svg(&tree_of(&stacks), &SvgConfig::default()));
    let mut firefox = Firefox::launch(&program, 1200, 900).unwrap();
    firefox.open_file(&path).unwrap();
    firefox.wait_until("document.documentElement.getAttribute('data-ready') === 'true'").unwrap();
    point_at(&mut firefox, "read");
    firefox.wait_until("/read/.test(document.getElementById('details').textContent)").unwrap();
    let said = "Function: read — total 29.70% (31.58% of parent), self 0.00%, 30,000 samples";
    assert_eq!(text(&mut firefox, "details"), said);
    point_at(&mut firefox, "parse");
    firefox.click().unwrap();
    firefox.wait_until("document.querySelectorAll('#frames g').length === 5").unwrap();
    firefox.wait_until("/^#z=/.test(location.hash)").unwrap();
    let search = |firefox: &mut Firefox, pattern: &str| {
        let input = "(i => { i.value = PATTERN; i.dispatchEvent(new Event('input')); })\
                     (document.querySelector('input'))";
        firefox.eval(&input.replace("PATTERN", &json!(pattern).to_string())).unwrap();
    };
    search(&mut firefox, "alloc");
    let found = "Matched: 16.67% of view, 9.90% of all (1 frame, 10,000 samples)";
    assert_eq!(text(&mut firefox, "matched"), found);
    assert_eq!(text(&mut firefox, "standing"), "1 marked");
    // What takes too long is ended here, too.
    search(&mut firefox, "^(([a-z/])+.)+[A-Z]([a-z])+$");
    firefox.wait_until("/^Given up/.test(document.getElementById('matched').textContent)").unwrap();
    search(&mut firefox, "");
    firefox.eval("history.back()").unwrap();
    firefox.wait_until("document.querySelectorAll('#frames g').length > 5").unwrap();
}
