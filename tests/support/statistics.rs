//! How far a sampled share or count may be from the truth.

/// Asserts that `part` of `whole` samples is the share `expect` (0 to 1): within 4 standard errors
/// of a binomial draw, which a right profiler misses once in 16,000 tries, and `slack` for what the
/// program's own truth is uncertain by.
#[track_caller]
pub(crate) fn assert_share(part: u64, whole: u64, expect: f64, slack: f64) {
    assert!(whole >= 50, "{whole} samples are too few to judge a share by");
    let share = part as f64 / whole as f64;
    let standard_error = (expect * (1.0 - expect) / whole as f64).sqrt();
    let allowed = 4.0 * standard_error + slack;
    assert!(
        (share - expect).abs() <= allowed,
        "share {share:.4} ({part} of {whole}) is not {expect:.4} ± {allowed:.4}"
    );
}

/// Asserts that a number of samples is within `slack` (0.1 = 10 %) of `expect`, and four standard
/// errors of what a program that shares its CPUs with others, as tests do, is hit by at random
/// moments.
#[track_caller]
pub(crate) fn assert_count(count: u64, expect: f64, slack: f64) {
    let allowed = expect * slack + 4.0 * expect.sqrt();
    let (low, high) = (expect - allowed, expect + allowed);
    assert!((low..=high).contains(&(count as f64)), "{count} is not within {low:.1} and {high:.1}");
}
