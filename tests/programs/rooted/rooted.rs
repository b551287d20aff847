//! rooted SECONDS: main -> outer -> inner, which burns some milliseconds and sleeps for two in turn.
use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn inner(end: Instant) -> u64 {
    let mut x = 1_u64;
    while Instant::now() < end {
        for round in 0..2_000_000_u64 {
            x = black_box(x ^ x << 13 ^ round);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    x
}

#[inline(never)]
fn outer(end: Instant) -> u64 {
    inner(end) + 1
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("ready");
    black_box(outer(Instant::now() + Duration::from_secs(seconds)));
}
