//! The command line of flame.
fn main() {}
