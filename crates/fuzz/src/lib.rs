//! What the fuzz targets share: how an input is cut into parts.
//!
//! Nothing that ships uses this crate. `cargo xtask fuzz` runs the targets.

/// The most memory in bytes that an input may cost; one more ends the target, which is a finding.
pub const MAX_MEMORY: usize = 1 << 30;

/// Cuts an input into parts: each is two bytes of length, little-endian, and this many bytes, or all
/// that are left where the input is shorter.
///
/// ```
/// let input = flame_fuzz::join(&[b"maps", b"", b"x"]);
/// let parts: Vec<&[u8]> = flame_fuzz::parts(&input).collect();
/// assert_eq!(parts, [&b"maps"[..], b"", b"x"]);
/// ```
pub fn parts(mut input: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = input.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_le_bytes(*len));
        let (part, rest) = rest.split_at(len.min(rest.len()));
        input = rest;
        Some(part)
    })
}

/// The input that [`parts`] cuts into `parts`, each of which loses what is beyond 65535 bytes.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    let mut input = Vec::new();
    for part in parts {
        let len = u16::try_from(part.len()).unwrap_or(u16::MAX);
        input.extend_from_slice(&len.to_le_bytes());
        input.extend(part.iter().take(usize::from(len)));
    }
    input
}

/// The 64-bit little-endian numbers that `bytes` begin with.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_cut_short_has_the_bytes_that_are_left() {
        let parts: Vec<&[u8]> = parts(&[2, 0, 7, 8, 9, 0, 5]).collect();
        assert_eq!(parts, [&[7, 8][..], &[5]]);
    }

    #[test]
    fn words_leave_out_what_is_no_whole_word() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(words(&bytes).collect::<Vec<u64>>(), [1]);
    }
}
