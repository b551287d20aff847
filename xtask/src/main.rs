//! Maintainer tasks.
fn main() {}
