//! What a reader sees and does, in a real browser.
//!
//! Skipped, loudly, where no Chromium is installed; `FLAME_REQUIRE_BROWSER=1` forbids that.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends by panicking")]

#[path = "../../src/test_trees.rs"]
mod test_trees;

mod access;
mod around;
mod chart;
mod contrast;
mod diff;
mod environment;
mod filter;
mod firefox;
mod graph;
mod header;
mod hostile;
mod keys;
mod policy;
mod redraw;
mod search;
mod serve;
mod state;
mod towers;
mod tree;
mod zoom;
