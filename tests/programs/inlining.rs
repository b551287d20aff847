//! inlining_rs [SECONDS]: `main` -> `outer`, into which `middle` and in it `inner` are inlined.
//!
//! Besides that a generic method of a trait, so that its name needs the demangler.
use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(always)]
fn inner(mut x: u64) -> u64 {
    for _ in 0..8000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x)
}

#[inline(always)]
fn middle(mut x: u64) -> u64 {
    for _ in 0..50 {
        x = inner(x).wrapping_add(1);
    }
    x
}

#[inline(never)]
fn outer(x: u64) -> u64 {
    black_box(middle(x) | 1)
}

trait Crunch {
    fn crunch(&self, x: u64) -> u64;
}

struct Wrapper<T>(T);

impl<T: Copy + Into<u64>> Crunch for Wrapper<T> {
    #[inline(never)]
    fn crunch(&self, x: u64) -> u64 {
        black_box(middle(x ^ self.0.into()) | 1)
    }
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(1.0, |text| text.parse().unwrap());
    let wrapper = Wrapper(7_u32);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut x = 1;
    while Instant::now() < end {
        x = outer(x);
        x = wrapper.crunch(x);
    }
    assert_ne!(x, 0);
}
