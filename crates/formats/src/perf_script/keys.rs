//! What a line of a stack is known by once it was there: its bytes without those that make no difference.

use super::{frame, usual};
use crate::line_cache::LineKey;

/// What a line of a stack is known by; `None` for what has no address.
#[inline]
pub(super) fn key(text: &[u8], has_addresses: bool) -> Option<LineKey<'_>> {
    let behind = frame::behind_address(text)?;
    Some(if has_addresses { LineKey::Whole(text) } else { key_behind_address(behind) })
}

/// The same by what stands behind its address.
#[inline]
pub(super) fn key_behind_address(behind: &[u8]) -> LineKey<'_> {
    match usual::around_offset(behind) {
        Some((symbol, module)) => LineKey::Around(symbol, module),
        None => LineKey::Whole(behind),
    }
}

/// Whether what a key leaves out is the offset indeed: brackets that do not match may hide it.
/// Then that is so for every line of the key.
#[inline]
pub(super) fn is_around_offset(key: LineKey<'_>, text: &[u8]) -> bool {
    match key {
        LineKey::Whole(_) => true,
        LineKey::Around(symbol, _) => frame::parse(text).is_some_and(|line| line.symbol == symbol),
    }
}
