//! Closures, called through a pointer and inlined, with functions inlined into them.

mod numbers {
    pub struct Source(pub u64);

    impl Source {
        #[inline(always)]
        pub fn next(&mut self) -> u64 {
            self.0 = self.0.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0
        }
    }

    #[inline(always)]
    pub fn fold(values: &[u64], join: impl Fn(u64, u64) -> u64) -> u64 {
        values.iter().fold(0, |sum, value| join(sum, *value))
    }
}

#[inline(never)]
fn repeat(times: u64, work: &mut dyn FnMut(u64) -> u64) -> u64 {
    // Not known at compile time, so the closure is a function of its own.
    let work = std::hint::black_box(work);
    (0..times).fold(1, |sum, at| sum ^ work(at))
}

fn main() {
    let times = std::env::args().count() as u64 * 1000;
    let mut source = numbers::Source(times);
    let mut values = Vec::new();
    let sum = repeat(times, &mut |at| {
        values.push(source.next() ^ at);
        numbers::fold(&values, |sum, value| sum.rotate_right(3) ^ value / (at + 1))
    });
    println!("{sum}");
}
