//! How much memory and time what files hold packed may cost, for all images of a recording together.
//!
//! A file of some kilobytes can promise gigabytes, and a process can map any number of files. So
//! what is unpacked is claimed from one budget before it is unpacked, and given back when it is not
//! needed any more. What is longer than honest data become by unpacking comes from a small part.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flame_profile::{ByteLen, SharedBytes};

/// Bytes of memory for what is unpacked at a time: the debug information of the largest programs,
/// or of ten usual ones.
pub const DEFAULT_UNPACKED: ByteLen = ByteLen(512 << 20);

/// Debug information becomes 2 to 10 times as long by unpacking. What becomes longer than this many
/// times is as good as empty, and all of it together has little room.
const MAX_RATIO: u64 = 32;
const MAX_IMPLAUSIBLE: u64 = 32 << 20;

/// The largest section that is unpacked, in bytes.
const MAX_LEN: u64 = 1 << 30;

/// How many bytes are read for checksums; the debug files of the largest programs have as many.
const MAX_CHECKED: u64 = 4 << 30;

/// A budget; clones share it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    left: AtomicU64,
    implausible_left: AtomicU64,
    checked_left: AtomicU64,
    refused: AtomicU64,
}

/// Memory that was claimed; given back on drop.
#[derive(Debug)]
pub(crate) struct Claim {
    budget: Budget,
    len: u64,
    is_plausible: bool,
}

/// Unpacked bytes with their claim.
struct Unpacked {
    bytes: Vec<u8>,
    _claim: Claim,
}

impl AsRef<[u8]> for Unpacked {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Budget {
    /// That much memory.
    pub fn new(memory: ByteLen) -> Budget {
        Budget(Arc::new(Inner {
            left: AtomicU64::new(memory.0),
            implausible_left: AtomicU64::new(MAX_IMPLAUSIBLE.min(memory.0)),
            checked_left: AtomicU64::new(MAX_CHECKED),
            refused: AtomicU64::new(0),
        }))
    }

    /// How often something was left out because there was no room for it.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Counts what became longer than it might.
    pub(crate) fn refuse(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Memory for what is made of a file.
    pub(crate) fn claim(&self, len: u64) -> Option<Claim> {
        self.claim_from(len, true)
    }

    /// Memory for `len` bytes that are packed into `stored`.
    pub(crate) fn claim_unpacked(&self, stored: u64, len: u64) -> Option<Claim> {
        self.claim_from(len, len <= longest_plausible(stored)).filter(|_| len <= MAX_LEN)
    }

    /// Whether this many bytes may be read for a checksum.
    pub(crate) fn may_check(&self, len: u64) -> bool {
        let may = take(&self.0.checked_left, len);
        if !may {
            self.refuse();
        }
        may
    }

    fn claim_from(&self, len: u64, is_plausible: bool) -> Option<Claim> {
        if !take(self.pool(is_plausible), len) {
            self.refuse();
            return None;
        }
        Some(Claim { budget: self.clone(), len, is_plausible })
    }

    fn pool(&self, is_plausible: bool) -> &AtomicU64 {
        if is_plausible { &self.0.left } else { &self.0.implausible_left }
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(DEFAULT_UNPACKED)
    }
}

impl PartialEq for Budget {
    fn eq(&self, other: &Budget) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Budget {}

impl Claim {
    /// The bytes that it was made for; what of it they do not need is given back.
    pub(crate) fn keep(mut self, bytes: Vec<u8>) -> SharedBytes {
        self.shrink_to(bytes.capacity() as u64);
        SharedBytes::new(Unpacked { bytes, _claim: self })
    }

    /// Gives back what is beyond a length.
    pub(crate) fn shrink_to(&mut self, len: u64) {
        let rest = self.len.saturating_sub(len);
        self.budget.pool(self.is_plausible).fetch_add(rest, Ordering::Relaxed);
        self.len -= rest;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// The longest that honest data of that packed length become.
pub(crate) fn longest_plausible(stored: u64) -> u64 {
    stored.saturating_mul(MAX_RATIO)
}

fn take(pool: &AtomicU64, len: u64) -> bool {
    let take = |left: u64| left.checked_sub(len);
    pool.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_is_gone_until_it_is_given_back() {
        let budget = Budget::new(ByteLen(100));
        let first = budget.claim_unpacked(10, 60).unwrap();
        assert!(budget.claim_unpacked(10, 60).is_none());
        let kept = first.keep(vec![7; 20]);
        let second = budget.claim_unpacked(10, 60).unwrap();
        assert_eq!((&kept[..2], budget.refused()), (&[7, 7][..], 1));
        drop((kept, second));
        assert!(budget.claim(100).is_some());
    }

    #[test]
    fn what_is_implausible_comes_from_a_small_part() {
        let budget = Budget::new(ByteLen(1 << 40));
        let half = MAX_IMPLAUSIBLE / 2 + 1;
        let first = budget.claim_unpacked(7, half);
        assert!(first.is_some() && budget.claim_unpacked(7, half).is_none());
        assert!(budget.claim_unpacked(half, half).is_some());
        assert!(budget.claim_unpacked(MAX_LEN, MAX_LEN + 1).is_none());
    }

    #[test]
    fn checksums_are_not_given_back() {
        let budget = Budget::default();
        assert!(budget.may_check(MAX_CHECKED - 1) && !budget.may_check(2) && budget.may_check(1));
    }
}
